#pragma once

#include <cstdint>
#include <vector>

#include "storage.hpp"

namespace hostless {

/// The least and the greatest column of a slice.
struct ColumnRange {
  std::int64_t least = INT64_MAX, most = INT64_MIN;
  bool empty() const { return most < least; }
  /// Every column is at most `distance` after the least.
  bool within(std::int64_t distance) const { return empty() || most - least <= distance; }
  void add(std::int64_t column) {
    least = least < column ? least : column;
    most = most > column ? most : column;
  }
};

/// Turns the shape of BSR into one where a block whose transpose the matrix holds is stored once
/// (matrix_view.hpp, HalvedView). Blocks are compared by 64-bit hashes here, while the block rows stream by,
/// and bit by bit when the matrix is filled.
class Halves {
 public:
  Halves() = default;
  Halves(Tiling const& tiling, FormatRequest request);
  bool active() const { return reach_ > 0; }

  /// The next block row: its rows begin at `row` of the panel.
  void add(std::int64_t block_row, LocalPanel const& panel, std::int64_t row,
           std::vector<std::int32_t> const& columns);
  /// After the last block row: rewrites the shape, unless too few blocks could be left out.
  ///
  /// order   who multiplies which slices, in which order
  /// ranges  the columns of each slice
  void apply(Shape& shape, SweepOrder const& order, std::vector<ColumnRange> const& ranges,
             FormatRequest::Columns columns);

 private:
  /// A block left of the diagonal whose transpose the block row `column` holds.
  struct Candidate {
    std::int32_t column;
    std::int64_t image;  // in upper_column_
  };
  struct BlockRow {
    std::int64_t upper = 0;      // its first block right of the diagonal, in upper_column_
    std::int64_t candidate = 0;  // its first candidate; they are the last blocks before the diagonal
    std::int32_t lower = 0;      // blocks before the diagonal
    std::int32_t run = 0;        // of these the last ones: not stored
    std::int32_t diagonal = 0;   // 1: there is one
  };

  std::int64_t image(std::int64_t block_row, std::int32_t column, std::uint64_t transposed) const;
  std::uint64_t hash(double const* block, bool transposed) const;
  /// Decides on every block row's run; returns how many blocks are left out.
  std::int64_t choose_runs(SweepOrder const& order);
  void lay_out_block_rows(Shape& shape, std::vector<ColumnRange> const& ranges,
                          FormatRequest::Columns columns);
  void lay_out_far_blocks(Shape& shape, SweepOrder const& order) const;
  /// Rows whose lower blocks are not stored read nothing before their own x, but multiply by that.
  void narrow_reads(Shape& shape) const;

  Tiling tiling_;
  std::int64_t reach_ = 0;           // block rows
  std::int64_t longest_ = 0;         // block rows between the two of a block that is stored once
  std::vector<BlockRow> block_row_;  // and one more
  std::vector<std::int32_t> upper_column_;
  std::vector<std::uint64_t> upper_hash_;
  std::vector<bool> upper_once_;  // the transposed block is not stored
  std::vector<Candidate> candidate_;
  std::vector<double> values_;
};

}  // namespace hostless
