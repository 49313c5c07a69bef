#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage.hpp"

namespace hostless {

/// Finds, while the groups of sliced ELL stream by, the diagonals below the main one whose entries a stored
/// diagonal above it holds too, if the matrix is symmetric: they need not be stored. Only the pattern is
/// looked at here; values are compared bit by bit when the matrix is filled.
class DiagonalImages {
 public:
  /// Rows of a diagonal group back to the one that holds its other triangle: 8 MB of a 7-point matrix.
  static constexpr std::int64_t automatic_reach = std::int64_t{1} << 18;

  DiagonalImages() = default;
  DiagonalImages(std::int64_t owned, std::int64_t reach) : owned_(owned), reach_(reach) {}

  /// The next group begins with this row.
  void next(std::int64_t first_row) { first_row_.push_back(first_row); }
  /// Gives the diagonals of the next group, of `count` rows, their value indices (first and mask are given,
  /// rising); returns how many are stored.
  std::int64_t lay_out(Shape const& shape, SellGroup const& group, int count,
                       std::vector<Diagonal>& diagonals) const;

 private:
  /// Every lane may be multiplied: it holds an entry, or finds an owned x. Past those lies no x at all, or a
  /// ghost that may be arriving while this slice, which does not wait for it, is multiplied.
  bool touches_only_what_it_may(Diagonal const& d) const {
    return d.mask == UINT32_MAX || (d.first >= 0 && std::int64_t{d.first} + group_block_rows <= owned_);
  }
  struct Group;  // the one at hand
  struct Piece;
  /// Where the entries of `d` lie in the other triangle, if its columns from `start` on are rows of two
  /// groups at most.
  std::optional<Diagonal> image(Group const& group, Diagonal const& d, std::int64_t start) const;
  Piece piece(Group const& group, std::size_t from, Diagonal const& d, std::uint32_t lanes) const;

  std::int64_t owned_ = 0, reach_ = 0;   // reach: rows
  std::vector<std::int64_t> first_row_;  // of every group
};

}  // namespace hostless
