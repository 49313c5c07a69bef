#include "hostless/files/stored_rows.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

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
  for (std::size_t r = 0; r + 1 < offset_.size(); ++r) {
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

std::optional<StoredRows::Place> StoredRows::duplicate() const {
  for (std::int64_t row = first_; row < last_; ++row) {
    for (std::int64_t k = row_begin(row) + 1; k < row_begin(row + 1); ++k) {
      if (column_at(k - 1) == column_at(k)) return Place{row, column_at(k)};
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

void StoredRows::panel(std::int64_t first, std::int64_t count, RowPanel& out) const {
  out.clear();
  std::int64_t const begin = row_begin(first), end = row_begin(first + count);
  out.offset.reserve(static_cast<std::size_t>(count) + 1);
  for (std::int64_t row = first + 1; row <= first + count; ++row)
    out.offset.push_back(row_begin(row) - begin);
  out.column.reserve(static_cast<std::size_t>(end - begin));
  out.value.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t k = begin; k < end; ++k) {
    out.column.push_back(column_at(k));
    out.value.push_back(value_at(k));
  }
}

std::int64_t StoredRows::stored_bytes() const {
  auto const bytes = [](auto const& v) { return static_cast<std::int64_t>(v.capacity() * sizeof(v[0])); };
  return bytes(offset_) + bytes(column32_) + bytes(column64_) + bytes(float_) + bytes(double_);
}

}  // namespace hostless
