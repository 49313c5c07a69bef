#include "exchange/gpu/sparse_product.hpp"

#include <algorithm>

#include "device/memory.hpp"

namespace hostless::gpu {
namespace {

constexpr int product_threads = 256;

__global__ void __launch_bounds__(product_threads)
    sparse_product_kernel(HOSTLESS_PARAMETER SparseProduct const p) {
  std::int64_t const values = p.rows * p.columns, all = std::int64_t{gridDim.x} * product_threads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * product_threads + threadIdx.x; at < values; at += all) {
    std::int64_t const row = at / p.columns, column = at % p.columns;
    double sum = 0;
    for (std::int64_t k = p.offset[row]; k < p.offset[row + 1]; ++k)
      sum += p.value[k] * p.b[p.first[k] + column];
    p.y[at] = sum;
  }
}

}  // namespace

void queue_sparse_product(SparseProduct const& product, HOSTLESS_GPU(Stream_t) stream) {
  constexpr std::int64_t most_blocks = 1 << 20;
  std::int64_t const values = product.rows * product.columns;
  if (values == 0) return;
  SparseProduct copy = product;
  void* parameters[] = {&copy};
  auto const blocks = std::min(most_blocks, (values + product_threads - 1) / product_threads);
  check(HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(&sparse_product_kernel),
                                   dim3(static_cast<unsigned>(blocks)), dim3(product_threads), parameters, 0,
                                   stream),
        "launching a product of a sparse matrix");
}

}  // namespace hostless::gpu
