#include "solve/matrix/caller_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "solve/matrix/cut_rows.hpp"

namespace hostless {

void MemoryRows::pattern(std::int64_t first, std::int64_t count, RowPanel& out) const {
  cut_pattern(
      first - first_row_, count, [&](std::int64_t row) { return offsets_[static_cast<std::size_t>(row)]; },
      [&](std::int64_t k) { return columns_[static_cast<std::size_t>(k)]; }, out);
}

void MemoryRows::panel(std::int64_t first, std::int64_t count, RowPanel& out) const {
  pattern(first, count, out);
  auto const begin = values_.begin() + offsets_[static_cast<std::size_t>(first - first_row_)];
  out.value.assign(begin, begin + out.offset.back());
}

void check_arrays(std::span<std::int64_t const> offsets, std::span<std::int64_t const> columns,
                  std::span<double const> values, std::int64_t global_rows) {
  bool const sizes = !offsets.empty() && offsets.front() == 0 &&
                     std::is_sorted(offsets.begin(), offsets.end()) &&
                     static_cast<std::size_t>(offsets.back()) <= columns.size() &&
                     static_cast<std::size_t>(offsets.back()) <= values.size();
  if (!sizes) {
    throw Error(
        ErrorCode::usage,
        "offsets do not describe columns and values (they must start at 0, rise, and end within both).");
  }
  for (std::size_t row = 1; row < offsets.size(); ++row) {
    std::int64_t const entries = offsets[row] - offsets[row - 1];
    if (entries > global_rows)
      throw Error(ErrorCode::usage, fmt::format("offsets[{}] - offsets[{}]: {} of a row (the matrix has {}). "
                                                "Correct the offsets.",
                                                row, row - 1, counted(entries, "entry", "entries"),
                                                counted(global_rows, "column")));
  }
}

void CallerRows::pattern(std::int64_t first, std::int64_t count, RowPanel& out) const {
  std::call_once(once_, [&] { all_ = pattern_scan_.pattern(rows_, first_, last_); });
  cut_pattern(
      first - first_, count, [&](std::int64_t row) { return all_.offset[static_cast<std::size_t>(row)]; },
      [&](std::int64_t k) { return all_.column[static_cast<std::size_t>(k - all_.offset[0])]; }, out);
}

void CallerRows::panel(std::int64_t first, std::int64_t count, RowPanel& out) const {
  pattern(first, count, out);
  std::int64_t const begin = all_.offset[static_cast<std::size_t>(first - first_)];
  out.value.resize(out.column.size());
  for (std::size_t k = 0; k < out.value.size(); ++k)
    out.value[k] = static_cast<double>(begin + static_cast<std::int64_t>(k) + 1);
}

}  // namespace hostless
