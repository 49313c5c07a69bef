// A thread works on a block row. All functions return when the GPU is done.
#include "operate/gpu/matrix_work.hpp"

#include "operate/gpu/diagonal.impl.hpp"
#include "operate/gpu/generate.impl.hpp"
#include "operate/gpu/numbers.gpu.hpp"
#include "operate/gpu/rows.impl.hpp"
#include "operate/gpu/tree.gpu.hpp"
#include "operate/with_block.hpp"

namespace hostless::gpu {
namespace {

template <int B>
__global__ void __launch_bounds__(number_threads)
    generate_kernel(HOSTLESS_PARAMETER RowsView const rows, HOSTLESS_PARAMETER LayoutArrays const to,
                    problems::Recipe const* recipe) {
  each(rows.tiling.block_rows,
       [&](std::int64_t block_row) { write_block_row<B>(to, rows, *recipe, block_row); });
}

template <int B>
__global__ void __launch_bounds__(number_threads)
    diagonal_kernel(HOSTLESS_PARAMETER RowsView const rows, std::int64_t first, std::int64_t count,
                    double* to) {
  each(count, [&](std::int64_t i) { read_diagonal_block<B>(rows, first + i, to + i * (B * B)); });
}

/// A block for each slice, a thread for each accumulator.
template <int B>
__global__ void __launch_bounds__(Tiling::accumulators)
    product_kernel(HOSTLESS_PARAMETER RowsView const rows, double const* x, double* y) {
  auto const slice = static_cast<int>(blockIdx.x);
  Batch<1> b{slice, 0, static_cast<std::int32_t>(threadIdx.x),
             static_cast<std::int32_t>(rows.tiling.first(slice)),
             static_cast<std::int32_t>(rows.tiling.first(slice + 1))};
  for (; b.first + b.slot * Tiling::accumulators < b.last; ++b.slot) {
    double sum[1][B];
    multiply<B, 1, double, SharedRows>(rows, b, x, sum);
    if (!b.valid(0)) continue;
    for (int j = 0; j < B; ++j) y[static_cast<std::int64_t>(b.block_row(0)) * B + j] = sum[0][j];
  }
}

}  // namespace

void generate_rows(RowsView const& rows, LayoutArrays const& to, problems::Recipe const* recipe) {
  char const* const what = "generating a matrix on the GPU";
  void const* const kernel = rows.tiling.block == 1 ? reinterpret_cast<void const*>(&generate_kernel<1>)
                                                    : reinterpret_cast<void const*>(&generate_kernel<3>);
  launch_each(what, kernel, rows.tiling.block_rows, rows, to, recipe);
  settle(what);
}

void read_diagonal(RowsView const& rows, std::int64_t first, std::int64_t count, double* to) {
  char const* const what = "reading a diagonal on the GPU";
  with_block(rows.tiling.block, [&](auto size) {
    launch_each(what, reinterpret_cast<void const*>(&diagonal_kernel<size()>), count, rows, first, count, to);
  });
  settle(what);
}

void multiply_rows(RowsView const& rows, double const* x, double* y) {
  char const* const what = "multiplying on the GPU";
  RowsView view = rows;
  void* parameters[] = {&view, &x, &y};
  void const* const kernel = with_block(
      rows.tiling.block, [](auto size) { return reinterpret_cast<void const*>(&product_kernel<size()>); });
  check(HOSTLESS_GPU(LaunchKernel)(kernel, dim3(static_cast<unsigned>(rows.tiling.slices)),
                                   dim3(Tiling::accumulators), parameters, 0, nullptr),
        what);
  settle(what);
}

}  // namespace hostless::gpu
