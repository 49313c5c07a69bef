#include "hostless/files/stored_rows.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/setup_watch.hpp"

namespace hostless {

StoredRows::StoredRows(std::int64_t rows, int size, int rank)
    : rows_(rows),
      first_(share_first(rows, size, rank)),
      last_(share_first(rows, size, rank + 1)),
      narrow_(rows <= std::numeric_limits<std::int32_t>::max()),
      offset_(static_cast<std::size_t>(last_ - first_ + 1)) {}

void StoredRows::count(std::int64_t row, std::int64_t entries) {
  offset_[static_cast<std::size_t>(row - first_ + 1)] += entries;
  fingerprint_ += mixed(row) * static_cast<std::uint64_t>(entries);
}

std::int64_t StoredRows::counted() const {
  return std::accumulate(offset_.begin(), offset_.end(), std::int64_t{0});
}

void StoredRows::start(StoredValue kind) {
  kind_ = kind;
  for (std::size_t r = 1; r < offset_.size(); ++r) offset_[r] += offset_[r - 1];
  auto const entries = static_cast<std::size_t>(offset_.back());
  if (narrow_) {
    column32_.resize(entries);
  } else {
    column64_.resize(entries);
  }
  if (kind == StoredValue::double_width) double_.resize(entries);
  if (kind == StoredValue::single_width) float_.resize(entries);
}

bool StoredRows::finish() {
  if (fingerprint_ != 0) return false;
  for (std::size_t r = offset_.size() - 1; r > 0; --r) {
    if (r + 1 < offset_.size()) offset_[r] = offset_[r - 1];
  }
  offset_.front() = 0;
  std::vector<std::pair<std::int64_t, double>> row;
  constexpr std::size_t between_steps = 4096;
  for (std::size_t r = 0; r + 1 < offset_.size(); ++r) {
    if (r % between_steps == 0) setup_step();
    bool sorted = true;
    for (std::int64_t k = offset_[r] + 1; k < offset_[r + 1]; ++k)
      sorted = sorted && column_at(k - 1) < column_at(k);
    if (sorted) continue;
    row.clear();
    for (std::int64_t k = offset_[r]; k < offset_[r + 1]; ++k) row.emplace_back(column_at(k), value_at(k));
    std::sort(row.begin(), row.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    auto at = static_cast<std::size_t>(offset_[r]);
    for (auto const& [column, value] : row) store(at++, column, value);
  }
  return true;
}

std::optional<StoredRows::Position> StoredRows::duplicate() const {
  for (std::int64_t row = first_; row < last_; ++row) {
    for (std::int64_t k = row_begin(row) + 1; k < row_begin(row + 1); ++k) {
      if (column_at(k - 1) == column_at(k)) return Position{row, column_at(k)};
    }
  }
  return std::nullopt;
}

std::optional<double> StoredRows::find(std::int64_t row, std::int64_t column) const {
  std::int64_t low = row_begin(row), high = row_begin(row + 1);
  while (low < high) {
    std::int64_t const middle = low + (high - low) / 2;
    if (column_at(middle) < column) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == row_begin(row + 1) || column_at(low) != column) return std::nullopt;
  return value_at(low);
}

void StoredRows::pattern(std::int64_t first, std::int64_t count, RowPanel& out) const {
  std::int64_t const begin = row_begin(first), entries = row_begin(first + count) - begin;
  out.offset.resize(static_cast<std::size_t>(count) + 1);
  for (std::int64_t i = 0; i <= count; ++i)
    out.offset[static_cast<std::size_t>(i)] = row_begin(first + i) - begin;
  out.column.resize(static_cast<std::size_t>(entries));
  for (std::int64_t k = 0; k < entries; ++k) out.column[static_cast<std::size_t>(k)] = column_at(begin + k);
}

void StoredRows::panel(std::int64_t first, std::int64_t count, RowPanel& out) const {
  pattern(first, count, out);
  std::int64_t const begin = row_begin(first);
  out.value.resize(out.column.size());
  for (std::size_t k = 0; k < out.value.size(); ++k)
    out.value[k] = value_at(begin + static_cast<std::int64_t>(k));
}

std::int64_t StoredRows::stored_bytes() const {
  auto const bytes = [](auto const& v) { return static_cast<std::int64_t>(v.capacity() * sizeof(v[0])); };
  return bytes(offset_) + bytes(column32_) + bytes(column64_) + bytes(float_) + bytes(double_);
}

}  // namespace hostless
