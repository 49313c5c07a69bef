#pragma once

#include <cstdint>
#include <vector>

#include "storage.hpp"

namespace hostless {

/// Finds, while the leaves stream by, the blocks that need not be stored because the transposed block was
/// stored a short while before. Values are compared by 64-bit hashes here and bit by bit when the matrix is
/// filled.
class Mirrors {
 public:
  struct Found {
    std::uint32_t far = 0;       ///< blocks before the mirrored ones
    std::uint32_t mirrored = 0;  ///< consecutive blocks up to the diagonal
  };

  Mirrors() = default;
  Mirrors(Tiling const& tiling, std::int64_t window_bytes);
  bool active() const { return window_ > 0; }

  /// The next leaf: its rows begin at `row` of the panel, its first block will be stored as the `stored`-th
  /// of the matrix, in a slice that begins with the `slice_first`-th.
  Found add(std::int64_t leaf, std::int64_t stored, std::int64_t slice_first, LocalPanel const& panel,
            std::int64_t row, std::vector<std::int32_t> const& columns);
  /// Hands over the positions; a shape without mirrored blocks keeps no trace of them.
  void finish(Shape& shape);

 private:
  /// Position among all stored blocks of the transpose of (leaf, column), or -1.
  std::int64_t image(std::int64_t leaf, std::int32_t column, std::uint64_t transposed,
                     std::int64_t stored) const;
  std::uint64_t hash(double const* block, bool transposed) const;

  int block_ = 1;
  std::int64_t leaves_ = 0;
  std::int64_t window_ = 0;                // blocks
  std::vector<std::int64_t> first_upper_;  // of a leaf: its first block right of the diagonal, in upper_ ...
  std::vector<std::int64_t> position_;     // ... and among all stored blocks
  std::vector<std::int32_t> upper_column_;
  std::vector<std::uint64_t> upper_hash_;
  std::vector<double> values_;
  Array<std::int32_t> found_;
};

}  // namespace hostless
