#pragma once
// How cells are stepped on a GPU: what a library can do, and what was chosen of it. Plain data, which crosses
// the loader.

#include <vector>

#include "hostless/run/run_options.hpp"
#include "hostless/stencil/gpu_stencil.hpp"
#include "stencil/gpu/axis_tiles.hpp"
#include "stencil/gpu/planes.hpp"
#include "stencil/gpu/resident.hpp"

namespace hostless::gpu {

/// Of a warp that takes several steps in one pass: cells a thread, and steps.
struct StreamedShape {
  int width = 1, steps = 1;
};

/// What kernels there are of one stencil, beside the plain one.
struct StencilShapes {
  struct Resident {
    int width, rows, most_warps;
    bool even;  ///< for windows that lie flush with the grid's ends, in whole chunks
  };
  struct Streamed {
    StreamedShape shape;
    bool even;
  };
  struct Planes {
    PlanesShape shape;  ///< but for its threads
    bool even;
  };
  std::vector<Resident> resident;
  std::vector<Streamed> streamed;
  std::vector<Planes> planes;
};

/// Tiles of the run that keeps the grid on chip.
struct ResidentPlan {
  ResidentShape shape;
  bool even = false;
  AxisTiles y, x;
  int tiles() const { return y.count * x.count; }
};
/// Strips of the run that takes several steps in one pass.
struct StreamedPlan {
  StreamedShape shape;
  bool even = false;
  AxisTiles x;
  int chunk_rows = 1, chunks = 1;  ///< once it is known how many warps there are at once
};
/// Windows of the run that does so on three axes, and what each block makes of one.
struct PlanesPlan {
  PlanesShape shape;
  bool even = false;
  AxisTiles y, x;
  int chunk_planes = 1, chunks = 1;
  int windows() const { return y.count * x.count; }
  /// So many planes to as many chunks, or fewer.
  void deal_out(std::int64_t planes) {
    chunk_planes = static_cast<int>((planes + chunks - 1) / chunks);
    chunks = static_cast<int>((planes + chunk_planes - 1) / chunk_planes);
  }
};

/// What one of several GPUs has of a grid: rows of the first axis, which are planes where there are three.
struct StencilPart {
  int device = 0;
  std::int64_t low = 0, high = 0;  ///< own rows
  int first_tile = 0, tiles = 0;   ///< of `resident`: own rows of tiles
};

struct StencilWay {
  RunKind run = RunKind::graph;
  GpuCells cells = GpuCells::plain;
  std::vector<StencilPart> parts;  ///< all rows, in order
  int sharers = 1;                 ///< parts on one GPU, at most
  /// Of several parts: steps between two exchanges of halos, as deep as so many need. Of `resident` those of
  /// the arrays, which single steps read.
  int halo_steps = 1;
  GpuHalos halos = GpuHalos::kernel;
  bool computes = true;
  std::int64_t shared_bytes = 0;  ///< that a block may have, on each of the GPUs
  ResidentPlan resident;
  StreamedPlan streamed;
  PlanesPlan planes;  ///< of `streamed` on three axes, in the place of that plan
  double step_s = 0;  ///< by the model
  int depth() const { return cells == GpuCells::resident ? resident.y.depth : halo_steps; }
  /// Rows at the ends of a part in a kernel of their own, beside that of the others.
  bool is_split() const {
    return run == RunKind::persistent && (cells == GpuCells::cached || halos == GpuHalos::overlap);
  }
  /// Such rows in kernels that the host queues, a step after the other.
  bool steps_beside_halos() const { return run != RunKind::persistent && halos == GpuHalos::overlap; }
  bool is_in_planes() const { return cells == GpuCells::streamed && planes.shape.steps > 0; }
  int block_steps() const {
    if (cells != GpuCells::streamed) return 1;
    return is_in_planes() ? planes.shape.steps : streamed.shape.steps;
  }
};

}  // namespace hostless::gpu
