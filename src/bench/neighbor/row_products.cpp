#include "bench/neighbor/row_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/counted.hpp"
#include "bench/known.hpp"
#include "bench/neighbor/gathered_rows.hpp"
#include "bench/neighbor/neighbor_call.hpp"

namespace hostless::bench {
namespace {

/// What a product gathers rows of B into: [own | those of others].
class Product final : public NeighborCall {
 public:
  Product(Transport& transport, RowProduct const& what, bool needed_rows)
      : NeighborCall(transport, what.mine),
        block_(what.block),
        columns_(what.columns),
        rows_(what, transport.group().size(), needed_rows),
        memory_(
            std::make_shared<std::vector<double>>(unsigned_of(rows_.own_values() + rows_.other_values()))),
        y_(unsigned_of(rows_.own_values())) {}

 private:
  std::span<double> own() const { return std::span(*memory_).first(y_.size()); }
  std::span<double> others() const { return std::span(*memory_).subspan(y_.size()); }

  NeighborCollective plan(NeighborWay const& way, int ranks_per_node) override {
    return rows_.plan(transport(), memory_->data(), way, ranks_per_node);
  }
  void by_library(LibraryNeighbors& library) override {  // its way has whole blocks
    library.allgatherv(own(), others(), rows_.counts(), rows_.displacements());
  }
  std::shared_ptr<void> owner() override { return memory_; }
  std::size_t block_bytes() const override { return own().size_bytes(); }
  std::size_t gathered_bytes() const override { return others().size_bytes(); }

  void compute() override {
    std::fill(y_.begin(), y_.end(), 0.0);
    double const* const b = memory_->data();
    double* y = y_.data();
    for (std::int64_t row = 0; row < block_.count(); ++row, y += columns_)
      for (auto k = block_.rows.offset[unsigned_of(row)]; k < block_.rows.offset[unsigned_of(row + 1)]; ++k) {
        double const a = block_.rows.value[unsigned_of(k)];
        double const* const from = b + rows_.first_of_entry()[unsigned_of(k)];
        for (std::int64_t c = 0; c < columns_; ++c) y[c] += a * from[c];
      }
  }

  void fill(std::uint64_t number) override {
    for (std::int64_t row = 0; row < block_.count(); ++row)
      for (std::int64_t c = 0; c < columns_; ++c)
        own()[unsigned_of(row * columns_ + c)] = dense_value(block_.first + row, c, number);
    std::fill(others().begin(), others().end(), std::numeric_limits<double>::quiet_NaN());
  }
  void check(std::uint64_t number) override {
    for (std::int64_t row = 0; row < block_.count(); ++row)
      for (std::int64_t c = 0; c < columns_; ++c) {
        double const expected = product_value(block_, row, c, number);
        double const found = y_[unsigned_of(row * columns_ + c)];
        if (!is_value(found, expected))
          throw wrong(fmt::format("rank {}: value ({}, {}) of the product is {} and not {}", rank(),
                                  block_.first + row, c, found, expected));
      }
  }

  RowBlock const& block_;
  std::int64_t columns_;
  GatheredRows rows_;
  std::shared_ptr<std::vector<double>>
      memory_;  // MPI may still read and write it when a loss has ended the call
  std::vector<double> y_;
};

}  // namespace

void check_product(RowProduct const& what, int ranks) {
  if (what.columns < 1)
    throw Error(ErrorCode::usage, fmt::format("{} of B (there is nothing to multiply with). Use 1 or more.",
                                              counted(what.columns, "column")));
  if (what.block.global_rows < ranks)
    throw Error(ErrorCode::usage,
                fmt::format("{} for {} (each has at least one). Use fewer ranks.", counted(ranks, "rank"),
                            counted(what.block.global_rows, "row")));
  bool const by_library =
      std::any_of(what.ways.begin(), what.ways.end(), [](NeighborWay const& way) { return way.by_library; });
  if (by_library) GatheredRows(what, ranks, false).require_counted();
}

RowBlock block_of_rows(Group& group, RowSource const& source) {
  int const ranks = group.size();
  RowBlock block;
  block.global_rows = source.global_rows();
  block.first = piece(group.rank(), ranks, block.global_rows);
  std::vector<std::vector<std::int64_t>> lengths(unsigned_of(ranks)), columns(unsigned_of(ranks));
  std::vector<std::vector<double>> values(unsigned_of(ranks));
  group.together([&] {
    RowPanel panel;
    for (int to = 0; to < ranks; ++to) {
      std::int64_t const first = std::max(source.first_row(), piece(to, ranks, block.global_rows));
      std::int64_t const end = std::min(source.last_row(), piece(to + 1, ranks, block.global_rows));
      if (first >= end) continue;
      source.panel(first, end - first, panel);
      for (std::size_t k = 1; k < panel.offset.size(); ++k)
        lengths[unsigned_of(to)].push_back(panel.offset[k] - panel.offset[k - 1]);
      columns[unsigned_of(to)] = panel.column;
      values[unsigned_of(to)] = panel.value;
    }
  });
  block.rows.clear();
  for (auto const& part : group.exchange_values(lengths))  // ranks' shares follow each other
    for (std::int64_t const length : part) block.rows.offset.push_back(block.rows.offset.back() + length);
  for (auto const& part : group.exchange_values(columns))
    block.rows.column.insert(block.rows.column.end(), part.begin(), part.end());
  for (auto const& part : group.exchange_values(values))
    block.rows.value.insert(block.rows.value.end(), part.begin(), part.end());
  return block;
}

Neighbors neighbors_of(Group& group, RowBlock const& block) {
  std::vector<std::vector<char>> asked(unsigned_of(group.size()));
  Neighbors mine;
  group.together([&] {
    for (std::int64_t const column : foreign_columns(block)) {
      int const owner = owner_of(column, group.size(), block.global_rows);
      if (mine.sources.empty() || mine.sources.back() != owner) mine.sources.push_back(owner);
    }
    for (int const source : mine.sources) asked[unsigned_of(source)].push_back(1);
  });
  auto const asking = group.exchange_values(asked);
  for (int rank = 0; rank < group.size(); ++rank)
    if (!asking[unsigned_of(rank)].empty()) mine.destinations.push_back(rank);
  return mine;
}

std::vector<NeighborTiming> row_product(Transport& transport, RowProduct const& what,
                                        Protocol const& protocol) {
  Group& group = transport.group();
  group.together([&] { check_product(what, group.size()); });
  auto const make = [&](NeighborWay const& way) -> std::unique_ptr<NeighborCall> {
    return std::make_unique<Product>(transport, what, way.needed_rows);
  };
  return time_in_turns(transport, what, make, protocol);
}

}  // namespace hostless::bench
