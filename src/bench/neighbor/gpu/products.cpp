#include "bench/neighbor/gpu/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace hostless::bench {
namespace {

template <class T>
T* taken(gpu::Workbench& bench, std::size_t count) {
  return reinterpret_cast<T*>(bench.take(std::max<std::size_t>(1, count) * sizeof(T)));
}
template <class T>
void put(gpu::Workbench& bench, T* to, std::vector<T> const& values) {
  bench.put(reinterpret_cast<std::byte*>(to), values.data(), values.size() * sizeof(T));
}
template <class T>
T const* brought(gpu::Workbench& bench, std::vector<T> const& values) {
  T* const to = taken<T>(bench, values.size());
  put(bench, to, values);
  return to;
}

}  // namespace

GpuProduct::GpuProduct(RowProduct const& what, int ranks, int rank, bool needed_rows, gpu::Workbench& bench)
    : what_(what), rank_(rank), ranks_(ranks), needs_rows_(needed_rows), rows_(what, ranks, needed_rows) {
  b_ = taken<double>(bench, unsigned_of(rows_.own_values() + rows_.other_values()));
  y_ = taken<double>(bench, unsigned_of(rows_.own_values()));
  RowPanel const& a = what.block.rows;
  product_ = {what.block.count(),
              what.columns,
              brought(bench, a.offset),
              brought(bench, rows_.first_of_entry()),
              brought(bench, a.value),
              b_,
              y_};
  if (needed_rows) return;
  for (int const target : what.mine.destinations)
    out_.push_back(
        {target, reinterpret_cast<std::byte*>(b_), unsigned_of(rows_.own_values()) * sizeof(double)});
  for (std::size_t k = 0; k < what.mine.sources.size(); ++k)
    in_.push_back(
        {what.mine.sources[k],
         reinterpret_cast<std::byte*>(b_ + rows_.own_values() + rows_.rows_before(k) * what.columns),
         unsigned_of(rows_.rows_of(k) * what.columns) * sizeof(double)});
}

std::int64_t GpuProduct::gathered_bytes() const {
  return rows_.other_values() * static_cast<std::int64_t>(sizeof(double));
}

NeighborCollective GpuProduct::plan(Transport& transport) const {
  return rows_.plan(transport, b_, {false, Route::direct, "direct", needs_rows_}, 0);
}

void GpuProduct::by_library(LibraryNeighbors& library) const {
  library.allgatherv({b_, unsigned_of(rows_.own_values())},
                     {b_ + rows_.own_values(), unsigned_of(rows_.other_values())}, rows_.counts(),
                     rows_.displacements());
}

void GpuProduct::require_parts() const {
  if (needs_rows_)
    throw Error(
        ErrorCode::usage,
        "rows that are needed lie apart (a library moves whole blocks). Compare with --gather blocks.");
}

void GpuProduct::fill(gpu::Workbench& bench, std::uint64_t number) const {
  double const none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> b(unsigned_of(rows_.own_values() + rows_.other_values()), none);
  for (std::int64_t row = 0; row < what_.block.count(); ++row)
    for (std::int64_t c = 0; c < what_.columns; ++c)
      b[unsigned_of(row * what_.columns + c)] = dense_value(what_.block.first + row, c, number);
  put(bench, b_, b);
  put(bench, y_, std::vector<double>(unsigned_of(rows_.own_values()), none));
}

// Of whole blocks: also rows that no entry of A takes.
std::string GpuProduct::first_wrong_gathered(gpu::Workbench& bench, std::uint64_t number) const {
  std::vector<double> b(unsigned_of(needs_rows_ ? 0 : rows_.other_values()));
  if (b.empty()) return {};
  bench.get(b.data(), reinterpret_cast<std::byte const*>(b_ + rows_.own_values()), b.size() * sizeof(double));
  for (std::size_t k = 0; k < in_.size(); ++k) {
    std::int64_t const first = piece(in_[k].rank, ranks_, what_.block.global_rows);
    for (std::int64_t row = 0; row < rows_.rows_of(k); ++row)
      for (std::int64_t c = 0; c < what_.columns; ++c) {
        double const expected = dense_value(first + row, c, number);
        double const found = b[unsigned_of((rows_.rows_before(k) + row) * what_.columns + c)];
        if (!is_value(found, expected))
          return fmt::format("rank {}: value ({}, {}) of rank {} is {} and not {}", rank_, first + row, c,
                             in_[k].rank, found, expected);
      }
  }
  return {};
}

std::string GpuProduct::first_wrong(gpu::Workbench& bench, std::uint64_t number) const {
  if (std::string wrong = first_wrong_gathered(bench, number); !wrong.empty()) return wrong;
  std::vector<double> y(unsigned_of(rows_.own_values()));
  bench.get(y.data(), reinterpret_cast<std::byte const*>(y_), y.size() * sizeof(double));
  for (std::int64_t row = 0; row < what_.block.count(); ++row)
    for (std::int64_t c = 0; c < what_.columns; ++c) {
      double const expected = product_value(what_.block, row, c, number);
      double const found = y[unsigned_of(row * what_.columns + c)];
      if (!is_value(found, expected))
        return fmt::format("rank {}: value ({}, {}) of the product is {} and not {}", rank_,
                           what_.block.first + row, c, found, expected);
    }
  return {};
}

}  // namespace hostless::bench
