#pragma once
// Work on all cells of an array that no stencil does: copies from and to a caller's, and what a step changed.

#include <array>
#include <cstdint>

#include "device/memory.hpp"
#include "hostless/stencil/stencil.hpp"

namespace hostless::gpu {

/// An array of a bound stencil: cell (a, b, c) at a * stride[0] + b * stride[1] + c, in values.
struct OwnCells {
  void* data = nullptr;
  std::int64_t extent[3] = {1, 1, 1};
  std::int64_t stride[2] = {};
  int value_bytes = 8;
};

/// Between an array of the GPU in use and a caller's of the same GPU (on_gpu) or of the host; done when they
/// return.
void copy_cells_in(OwnCells const& to, CellArray const& from, bool on_gpu, Stream const& stream);
void copy_cells_out(CellArray const& to, OwnCells const& from, bool on_gpu, Stream const& stream);

/// What kernels leave of a change, in device memory.
struct ChangeSums {
  unsigned long long largest;   ///< the bits of max |new - old|; those of infinity or above: not finite
  unsigned long long digit[3];  ///< of 20 bits each, added over cells
  unsigned int not_finite;
};
class ChangeMeter {
 public:
  ChangeMeter() : sums_(1) {}
  double largest(OwnCells const& before, OwnCells const& after, Stream const& stream);
  std::array<std::uint64_t, 3> squares(OwnCells const& before, OwnCells const& after, double top,
                                       Stream const& stream);
  bool is_finite(OwnCells const& cells, Stream const& stream);

 private:
  ChangeSums read(Stream const& stream);
  Array<ChangeSums> sums_;
};

}  // namespace hostless::gpu
