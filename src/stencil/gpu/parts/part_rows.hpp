#pragma once
// Rows of the first axis that one part of a grid has: its own, and halos where others own what comes before
// and after. Integers alone.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stencil/gpu/shapes.hpp"

namespace hostless::gpu {

struct PartRows {
  std::int64_t first = 0;  ///< of the arrays, as a row of the grid: below 0 where a halo is beyond its begin
  std::int64_t below = 0, own = 0, above = 0;
  std::int64_t all() const { return below + own + above; }
  /// Sides: 0 before the own rows, 1 after. Rows of a halo, and the first of them in the arrays.
  std::int64_t halo(int side) const { return side == 0 ? below : above; }
  std::int64_t halo_first(int side) const { return side == 0 ? 0 : below + own; }
  /// The first of `rows` own ones that the part on a side has in its halo.
  std::int64_t shown_first(int side, std::int64_t rows) const {
    return side == 0 ? below : below + own - rows;
  }

  /// deep: rows of a halo. A grid that wraps has halos at its ends too, unless it is in one part.
  static PartRows of(Grid const& grid, std::vector<StencilPart> const& parts, std::size_t which,
                     std::int64_t deep) {
    StencilPart const& part = parts[which];
    bool const wraps = parts.size() > 1 && grid.boundary[0] == GridBoundary::periodic;
    PartRows rows;
    rows.below = wraps || which > 0 ? deep : 0;
    rows.above = wraps || which + 1 < parts.size() ? deep : 0;
    rows.own = part.high - part.low;
    rows.first = part.low - rows.below;
    return rows;
  }
  /// The part's rows as a grid of their own. Beyond a halo's far end nothing is, and what steps make of that
  /// reaches no own cell while halos are deep enough.
  Grid as_grid(Grid const& whole, std::size_t parts) const {
    Grid rows = whole;
    rows.extent[0] = all();
    if (parts > 1 && rows.boundary[0] == GridBoundary::periodic) rows.boundary[0] = GridBoundary::dirichlet;
    return rows;
  }
};

}  // namespace hostless::gpu
