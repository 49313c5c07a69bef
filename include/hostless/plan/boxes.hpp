#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// What lies beyond the first and the last cell of an axis.
enum class GridBoundary : std::uint8_t {
  dirichlet,  ///< the outermost cells (as many as the stencil's radius along that axis) stay as given
  neumann,    ///< the mirrored cell: cell -1 reads as cell 0, -2 as 1
  periodic    ///< the axis wraps
};
char const* name(GridBoundary boundary);
/// Errors  usage  unknown name
GridBoundary grid_boundary_from(char const* text);

/// Cells [low, high) of a grid along each of its three axes, the last one contiguous in memory.
struct Box {
  std::array<std::int64_t, 3> low{}, high{};
  std::int64_t extent(int axis) const {
    return high[static_cast<std::size_t>(axis)] - low[static_cast<std::size_t>(axis)];
  }
  std::int64_t cells() const { return extent(0) * extent(1) * extent(2); }
  bool operator==(Box const&) const = default;
};

/// A grid of three axes; one of two axes (y, x) is {y, 1, x}, one of a single axis {1, 1, x}.
struct Grid {
  std::array<std::int64_t, 3> extent{1, 1, 1};
  std::array<GridBoundary, 3> boundary{};
};

/// A direction of a neighbour: -1, 0 or 1 along each axis, not all 0.
using Direction = std::array<int, 3>;

/// A grid dealt out in boxes, `ranks_along` of them along each axis; the last axis runs fastest in the
/// numbers of ranks.
struct BoxPartition {
  Grid grid;
  std::array<int, 3> ranks_along{1, 1, 1};

  int ranks() const { return ranks_along[0] * ranks_along[1] * ranks_along[2]; }
  /// Where a rank's box stands among the boxes.
  std::array<int, 3> coordinates(Rank rank) const;
  Box box(Rank rank) const;
  /// The rank whose box lies next to this one's in a direction, maybe itself; -1: there the grid ends.
  Rank neighbour(Rank rank, Direction direction) const;
  /// The fewest cells that a box has along an axis.
  std::int64_t thinnest(int axis) const;
};

/// The numbers of boxes along each axis whose product is `ranks`, with the least halo altogether: cells that
/// one exchange of depth 1 moves. An axis in which the stencil does not look (radius 0) is cut only where no
/// other can be.
///
/// Errors  usage  no product of that many boxes has a cell in each
std::array<int, 3> least_surface(Grid const& grid, std::array<int, 3> radius, int ranks);

/// One strip of cells between this rank and a neighbour.
struct HaloStrip {
  Direction direction{};  ///< where the neighbour is
  Rank neighbour = 0;
  Box cells;  ///< in the numbers of the whole grid; beyond its ends where the axis wraps
  std::int64_t first =
      0;  ///< its first cell among those sent, or among the ghosts; the others follow by rows
};

/// What one rank sends and receives so that every box has a halo: strips of cells, packed one after the
/// other.
struct BoxHalo {
  std::vector<HaloStrip> out, in;
  std::int64_t items_out = 0, items_in = 0;
};

/// Halos of `depth` cells along each axis (0: none), with the edges and corners between them unless
/// `faces_only`.
///
/// Errors  usage  a halo deeper than the thinnest box along its axis (its cells would come from two ranks)
BoxHalo box_halo(BoxPartition const& partition, Rank rank, std::array<std::int64_t, 3> depth,
                 bool faces_only);

/// The pattern of every rank for `make_plan` with PlanOptions::apart: item i is cell i of the strips that a
/// rank sends, ghost g cell g of those that it receives.
/// Errors, cost  as box_halo for every rank; O(cells in all halos)
std::vector<Pattern> box_patterns(BoxPartition const& partition, std::array<std::int64_t, 3> depth,
                                  bool faces_only);

}  // namespace hostless
