#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hostless/stencil/kernel.hpp"
#include "stencil/grid_array.hpp"

namespace hostless {

/// What a step reads, fields and then coefficients, and the fields that it writes.
struct StepArrays {
  std::vector<GridArray const*> read, written;
};

/// Cells at the beginning of every row of a box that stay as given.
std::int64_t given_before(Grid const& grid, StencilKernel const& kernel, Box const& box);

/// Bytes of caches that a core has for itself.
struct CoreCaches {
  std::int64_t nearest = 32 << 10;  ///< to the core
  std::int64_t own = 256 << 10;     ///< nearest to memory
};

/// Steps of one box on one thread, to and fro between two arrays of each field.
class Pass {
 public:
  /// wraps: axes that no rank shares and whose far end `mirror` brings beyond this one; nothing is known there
  /// before, and cells are stepped from end to end. One step in a pass only.
  Pass(Grid const& grid, StencilKernel const& kernel, std::array<bool, 3> wraps, CoreCaches const& caches);

  /// Cells of `wanted` grown by `steps` radii: what must be known before so many steps. Clipped to what is
  /// stepped at all.
  Box grown(Box const& wanted, int steps) const;
  /// Takes `steps` steps of the cells `wanted`, the first and each other one after it by arrays[0], those between
  /// by arrays[1], which reads what that writes and writes what that reads. The first reads cells known on
  /// grown(wanted, steps) and a radius around them; what stays as given, and its mirrored cells, are in both.
  /// Several steps are blocked: tiles of the last two axes, in each a front of planes along the first one, every
  /// step behind the one before along all three (after Wellein et al. 2009 and Wonnacott 2000;
  /// docs/references.md), so that it finds all its neighbours stepped and none of them overwritten.
  /// mirrored: `mirror` of the last step too, of others always. What `arrays` are of must not change from call to call:
  /// a step that was taken before is taken again as it was made out.
  void take(std::array<StepArrays const*, 2> const& arrays, int steps, Box const& wanted, bool mirrored);
  /// Writes the mirrored cells beyond Neumann boundaries that the array's own box touches, and those of the
  /// other end where an axis wraps here, of cells of `box`; at the ends of rows only where the kernel does not look
  /// there itself (StencilKernel::update_ends).
  void mirror(GridArray const& array, Box const& box) const;
  /// Whether it writes any along an axis.
  bool mirrors(std::size_t axis) const;

 private:
  /// What a step of some cells calls: `step_rows` with each piece of their rows, which `planes` follow, or one plane after
  /// the other; and the copies of what lies beyond ends.
  struct Piece {
    CellFunction step_rows = nullptr;
    CellBlock block;
  };
  struct Copies {
    std::byte const* from;
    std::byte* to;
    std::int64_t next, rows, bytes;  ///< from one row to the next; of a row
  };
  struct Step {
    StepArrays const* arrays = nullptr;
    Box wanted{};
    bool mirrored = false;
    std::vector<Piece> pieces;
    std::vector<Copies> copies;
    std::vector<void const*> in;  ///< of all pieces, as the others
    std::vector<std::int64_t> strides;
    std::vector<void*> out;
    bool is(StepArrays const& of, Box const& box, bool with_mirror) const {
      std::int64_t other = 0;  // all together: a comparison of arrays is a call each
      for (std::size_t a = 0; a < 3; ++a)
        other |= (wanted.low[a] ^ box.low[a]) | (wanted.high[a] ^ box.high[a]);
      return arrays == &of && mirrored == with_mirror && other == 0;
    }
  };

  void blocked(std::array<StepArrays const*, 2> const& arrays, int steps, Box const& wanted, bool mirrored);
  /// Cells of one tile that fit the caches as one step after the other passes over them.
  std::array<std::int64_t, 3> tile_of(Box const& cells, int steps) const;
  /// One step of all cells of a box, by pieces of its rows.
  void step(StepArrays const& arrays, Box const& wanted, bool mirrored);
  /// The same, made out once.
  void step_again(StepArrays const& arrays, Box const& wanted, bool mirrored);
  void make(Step& step, StepArrays const& arrays, Box const& wanted, bool mirrored) const;
  void add_piece(Step& step, Box const& cells) const;
  void begin_at_the_end(Step& step, CellBlock& block) const;
  void add_copies(std::vector<Copies>& copies, GridArray const& array, Box const& box) const;
  void take(Step const& step);
  /// A call for each plane.
  void take_planes(Piece const& piece);
  static void copy(Copies const& one);
  /// Whether cells beyond the ends of an axis are others of it.
  bool is_mirrored(std::size_t axis) const;

  Grid grid_;
  StencilKernel kernel_;
  std::array<bool, 3> wraps_;
  CoreCaches caches_;
  std::int64_t columns_ = 0;     ///< of a piece of a row
  std::vector<Step> known_;      ///< in the order in which they were first taken
  std::size_t last_ = 0;         ///< of `known_`, that was taken last
  Step once_;                    ///< of `step`
  std::vector<void const*> in_;  ///< of one plane
  std::vector<void*> out_;
};

}  // namespace hostless
