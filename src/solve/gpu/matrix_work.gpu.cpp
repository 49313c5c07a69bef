// A thread works on a leaf. All functions return when the GPU is done.
#include "solve/gpu/matrix_work.hpp"

#include <algorithm>

#include "device/memory.hpp"
#include "operate/gpu/diagonal.impl.hpp"
#include "operate/gpu/generate.impl.hpp"
#include "operate/gpu/rows.impl.hpp"
#include "operate/with_block.hpp"
#include "run/gpu/tree.gpu.hpp"

namespace hostless::gpu {
namespace {

constexpr int threads = Tiling::lanes;
constexpr std::int64_t most_blocks = 1 << 16;

/// use(leaf) for this thread's share of [0, leaves).
template <class Use>
__device__ __forceinline__ void each_leaf(std::int64_t leaves, Use const& use) {
  std::int64_t const step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t leaf = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; leaf < leaves;
       leaf += step)
    use(leaf);
}

template <int B>
__global__ void __launch_bounds__(threads)
    generate_kernel(HOSTLESS_PARAMETER RowsView const rows, HOSTLESS_PARAMETER LayoutArrays const to,
                    problems::Recipe const* recipe) {
  each_leaf(rows.tiling.leaves, [&](std::int64_t leaf) { write_leaf<B>(to, rows, *recipe, leaf); });
}

template <int B>
__global__ void __launch_bounds__(threads)
    diagonal_kernel(HOSTLESS_PARAMETER RowsView const rows, std::int64_t first, std::int64_t count,
                    double* to) {
  each_leaf(count, [&](std::int64_t i) { read_diagonal_block<B>(rows, first + i, to + i * (B * B)); });
}

/// A block for each slice, a thread for each lane.
template <int B>
__global__ void __launch_bounds__(threads)
    product_kernel(HOSTLESS_PARAMETER RowsView const rows, double const* x, double* y) {
  auto const slice = static_cast<int>(blockIdx.x);
  Batch<1> b{slice, 0, static_cast<std::int32_t>(threadIdx.x),
             static_cast<std::int32_t>(rows.tiling.first(slice)),
             static_cast<std::int32_t>(rows.tiling.first(slice + 1))};
  for (; b.first + b.slot * Tiling::lanes < b.last; ++b.slot) {
    double sum[1][B];
    multiply<B, 1, double, SharedRows>(rows, b, x, sum);
    if (!b.valid(0)) continue;
    for (int j = 0; j < B; ++j) y[static_cast<std::int64_t>(b.leaf(0)) * B + j] = sum[0][j];
  }
}

void launch(void const* kernel, std::int64_t blocks, void** parameters, char const* what) {
  check(HOSTLESS_GPU(LaunchKernel)(kernel, dim3(static_cast<unsigned>(blocks)), dim3(threads), parameters, 0,
                                   nullptr),
        what);
  check(HOSTLESS_GPU(StreamSynchronize)(nullptr), what);
}

std::int64_t blocks_for(std::int64_t leaves) {
  return std::clamp<std::int64_t>((leaves + threads - 1) / threads, 1, most_blocks);
}

}  // namespace

void generate_rows(RowsView const& rows, LayoutArrays const& to, problems::Recipe const* recipe) {
  RowsView view = rows;
  LayoutArrays arrays = to;
  void* parameters[] = {&view, &arrays, &recipe};
  void const* const kernel = rows.tiling.block == 1 ? reinterpret_cast<void const*>(&generate_kernel<1>)
                                                    : reinterpret_cast<void const*>(&generate_kernel<3>);
  launch(kernel, blocks_for(rows.tiling.leaves), parameters, "generating a matrix on the GPU");
}

void read_diagonal(RowsView const& rows, std::int64_t first, std::int64_t count, double* to) {
  RowsView view = rows;
  void* parameters[] = {&view, &first, &count, &to};
  void const* const kernel = with_block(
      rows.tiling.block, [](auto size) { return reinterpret_cast<void const*>(&diagonal_kernel<size()>); });
  launch(kernel, blocks_for(count), parameters, "reading a diagonal on the GPU");
}

void multiply_rows(RowsView const& rows, double const* x, double* y) {
  RowsView view = rows;
  void* parameters[] = {&view, &x, &y};
  void const* const kernel = with_block(
      rows.tiling.block, [](auto size) { return reinterpret_cast<void const*>(&product_kernel<size()>); });
  launch(kernel, rows.tiling.slices, parameters, "multiplying on the GPU");
}

}  // namespace hostless::gpu
