#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hostless/stencil/kernel.hpp"
#include "stencil/grid_array.hpp"

namespace hostless {

/// Steps of one box on one thread: from arrays of cells `steps` old to those of now.
class Pass {
 public:
  /// wraps: axes that no rank shares and whose far end `mirror` brings beyond this one; nothing is known there
  /// before, and cells are stepped from end to end. Without blocks only, at least along the first axis.
  /// cache_bytes: what the rows under way of a blocked pass may take.
  Pass(Grid const& grid, StencilKernel const& kernel, std::array<bool, 3> wraps, std::int64_t cache_bytes);

  /// Cells of `wanted` grown by `steps` radii: what must be known before so many steps. Clipped to what is
  /// stepped at all.
  Box grown(Box const& wanted, int steps) const;
  /// out[k] = fields after `steps` steps from in[k], for cells `wanted`. `in` are fields, then coefficients,
  /// known on the cells of grown(wanted, steps) and a radius around them. With one step, from array to array;
  /// with more, blocked: a front of planes runs along the first axis, each step a radius behind the one
  /// before, planes in between stay in the cache (after Wellein et al. 2009; docs/references.md).
  /// mirrored: `mirror` along the last two axes too, plane by plane, while they are in the cache. `wanted` is all
  /// that this step takes then, and cells that stay as given have been mirrored. True where that was done.
  bool take(std::vector<GridArray const*> const& in, std::vector<GridArray const*> const& out, int steps,
            Box const& wanted, bool mirrored);
  /// Writes the mirrored cells beyond Neumann boundaries that the array's own box touches, and those of the
  /// other end where an axis wraps here. box: cells that are known, the own ones and a halo where the grid goes
  /// on.
  /// first, last: of the axes along which it does so; along those after the last one it has been done.
  void mirror(GridArray const& array, Box const& box, int first = 0, int last = 2) const;
  /// Whether `mirror` has anything to do.
  bool mirrors() const { return mirrors_; }

 private:
  struct Front;
  bool step(std::vector<GridArray const*> const& in, std::vector<GridArray const*> const& out,
            Box const& wanted, bool mirrored);
  void blocked(std::vector<GridArray const*> const& in, std::vector<GridArray const*> const& out, int steps,
               Box const& wanted);

  Grid grid_;
  StencilKernel kernel_;
  std::array<bool, 3> wraps_;
  bool mirrors_ = false;
  std::int64_t cache_bytes_;
  std::vector<std::byte> ring_;
  std::vector<void const*> in_rows_;
  std::vector<std::int64_t> in_strides_;
  std::vector<void*> out_rows_;
};

}  // namespace hostless
