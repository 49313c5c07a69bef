#pragma once
// How kernels of stencils are launched, whatever functor they have.

#include <algorithm>
#include <array>
#include <mutex>

#include "stencil/gpu/instance.hpp"

namespace hostless::gpu {

inline int blocks_a_multiprocessor(void const* kernel, int threads) {
  int found = 0;
  check(HOSTLESS_GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&found, kernel, threads, 0),
        "asking how many blocks fit");
  return std::max(found, 1);
}
inline unsigned blocks_of(std::int64_t wanted) {
  return static_cast<unsigned>(std::min<std::int64_t>(wanted, 0x7fffffff));
}
inline void ask_for_shared(void const* kernel, std::int64_t bytes) {
  check(HOSTLESS_GPU(FuncSetAttribute)(kernel, HOSTLESS_GPU(FuncAttributeMaxDynamicSharedMemorySize),
                                       static_cast<int>(bytes)),
        "asking for shared memory");
}
inline void start(void const* kernel, dim3 blocks, int threads, void** parameters,
                  HOSTLESS_GPU(Stream_t) stream) {
  check(
      HOSTLESS_GPU(LaunchKernel)(kernel, blocks, dim3(static_cast<unsigned>(threads)), parameters, 0, stream),
      "launching a stencil");
}
/// How much shared memory a kernel may have belongs to the kernel, which several threads launch with shapes of
/// their own: held from asking for it to the launch.
inline std::mutex shared_memory_asked;
/// With more shared memory than kernels have unasked.
inline void start_with_shared(void const* kernel, dim3 blocks, int threads, void** parameters,
                              std::int64_t shared, HOSTLESS_GPU(Stream_t) stream) {
  std::lock_guard<std::mutex> const alone(shared_memory_asked);
  ask_for_shared(kernel, shared);
  check(HOSTLESS_GPU(LaunchKernel)(kernel, blocks, dim3(static_cast<unsigned>(threads)), parameters,
                                   static_cast<std::size_t>(shared), stream),
        "launching a stencil");
}
/// All blocks at once, for they wait for each other. Where parts share a GPU the launcher has given each a
/// share of the multiprocessors: the vendor checks one kernel at a time.
inline void launch_together(void const* kernel, dim3 blocks, int threads, void** parameters,
                            std::size_t shared, bool shares_device, HOSTLESS_GPU(Stream_t) stream) {
  std::lock_guard<std::mutex> const alone(shared_memory_asked);
  ask_for_shared(kernel, static_cast<std::int64_t>(shared));
  dim3 const of_block(static_cast<unsigned>(threads));
  check(shares_device ? HOSTLESS_GPU(LaunchKernel)(kernel, blocks, of_block, parameters, shared, stream)
                      : HOSTLESS_GPU(LaunchCooperativeKernel)(kernel, blocks, of_block, parameters,
                                                              static_cast<unsigned>(shared), stream),
        "launching a stencil whose blocks wait for each other");
}

/// Which cells are stepped: no others than those of some rows of the first axis.
template <class Call>
void fill_plain(Call& call, Grid const& grid, std::array<int, 3> radius, StencilArrays const& arrays,
                RowRange rows) {
  for (int axis = 0; axis < 3; ++axis) {
    auto const k = static_cast<std::size_t>(axis);
    int const fixed = grid.boundary[k] == GridBoundary::dirichlet ? radius[k] : 0;
    call.extent[axis] = static_cast<int>(grid.extent[k]);
    call.boundary[axis] = grid.boundary[k];
    call.low[axis] = fixed;
    call.high[axis] = std::max(fixed, call.extent[axis] - fixed);
  }
  call.low[0] = std::max(call.low[0], static_cast<int>(rows.low));
  call.high[0] = std::max(call.low[0], std::min(call.high[0], static_cast<int>(rows.high)));
  call.stride[0] = arrays.stride[0];
  call.stride[1] = arrays.stride[1];
}
/// And in what tiles.
template <class Call>
void tile_plain(Call& call) {
  constexpr int threads = 256;
  auto const cells = [&](int axis) { return call.high[axis] - call.low[axis]; };
  call.row_axis = cells(1) > 1 ? 1 : 0;
  int const rows = cells(call.row_axis), planes = cells(1 - call.row_axis);
  call.columns_log2 = rows >= 8 ? 5 : 8;
  int const columns = 1 << call.columns_log2, rows_a_tile = threads / columns;
  call.column_tiles = (cells(2) + columns - 1) / columns;
  call.row_tiles = (rows + rows_a_tile - 1) / rows_a_tile;
  call.tiles = std::int64_t{call.column_tiles} * call.row_tiles * planes;
}

}  // namespace hostless::gpu
