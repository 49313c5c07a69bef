#pragma once

#include <mutex>
#include <span>

#include "hostless/base/rows.hpp"
#include "operate/pattern_scan.hpp"

namespace hostless {

/// A rank's rows in arrays of the host.
class MemoryRows final : public RowSource {
 public:
  /// offsets [rows + 1]; arrays that check_arrays takes. They live as long as this does.
  MemoryRows(std::int64_t global_rows, std::int64_t first_row, std::span<std::int64_t const> offsets,
             std::span<std::int64_t const> columns, std::span<double const> values)
      : global_rows_(global_rows),
        first_row_(first_row),
        offsets_(offsets),
        columns_(columns),
        values_(values) {}
  std::int64_t global_rows() const override { return global_rows_; }
  std::int64_t first_row() const override { return first_row_; }
  std::int64_t last_row() const override {
    return first_row_ + static_cast<std::int64_t>(offsets_.size()) - 1;
  }
  void pattern(std::int64_t first, std::int64_t count, RowPanel& out) const override;
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override;
  bool is_concurrent() const override { return true; }

 private:
  std::int64_t global_rows_, first_row_;
  std::span<std::int64_t const> offsets_, columns_;
  std::span<double const> values_;
};

/// Errors  usage  the offsets do not start at 0, rise, and end within columns and values; a row has more entries
///                than the matrix has columns: callers in C cannot say how long their arrays are
void check_arrays(std::span<std::int64_t const> offsets, std::span<std::int64_t const> columns,
                  std::span<double const> values, std::int64_t global_rows);

/// A rank's share of rows that lie in a GPU's memory, with the index of each value there, + 1, for partitions
/// that only the host can make: the pattern is brought when it is asked for first.
class CallerRows final : public RowSource {
 public:
  /// The pattern scan lives as long as this does.
  CallerRows(GpuRows const& rows, PatternScan const& pattern_scan, int ranks, int rank)
      : rows_(rows),
        pattern_scan_(pattern_scan),
        first_(share_first(rows.rows, ranks, rank)),
        last_(share_first(rows.rows, ranks, rank + 1)) {}
  GpuRows const& rows() const { return rows_; }
  std::int64_t global_rows() const override { return rows_.rows; }
  std::int64_t first_row() const override { return first_; }
  std::int64_t last_row() const override { return last_; }
  void pattern(std::int64_t first, std::int64_t count, RowPanel& out) const override;
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override;
  bool is_concurrent() const override { return true; }

 private:
  GpuRows const rows_;
  PatternScan const& pattern_scan_;
  std::int64_t first_, last_;
  mutable std::once_flag once_;
  mutable RowPanel all_;
};

}  // namespace hostless
