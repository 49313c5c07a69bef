#include "exchange/gpu/item_list.hpp"

#include <algorithm>

namespace hostless::gpu {
namespace {

__global__ void __launch_bounds__(block_threads, 1)
    pack_kernel(MessageItem const* items, std::int64_t count, double const* field, double const* staging,
                double* to) {
  std::int64_t const step = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step) {
    MessageItem const item = items[k];
    to[k] = (item.staging != 0 ? staging : field)[item.vector_offset];
  }
}

__global__ void __launch_bounds__(block_threads, 1)
    unpack_kernel(MessageItem const* items, std::int64_t count, double const* from, double* field,
                  double* staging) {
  std::int64_t const step = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step) {
    MessageItem const item = items[k];
    (item.staging != 0 ? staging : field)[item.vector_offset] = from[k];
  }
}

int blocks_of(std::int64_t count) {
  constexpr std::int64_t most_blocks = 512;
  return static_cast<int>(
      std::clamp<std::int64_t>((count + block_threads - 1) / block_threads, 1, most_blocks));
}

}  // namespace

void ItemList::pack(StreamQueue& queue, double const* field, double const* staging, double* to) const {
  auto const count = static_cast<std::int64_t>(item_.size());
  MessageItem const* const items = item_.data();
  launch(queue, reinterpret_cast<void const*>(&pack_kernel), blocks_of(count), items, count, field, staging,
         to);
}

void ItemList::unpack(StreamQueue& queue, double const* from, double* field, double* staging) const {
  auto const count = static_cast<std::int64_t>(item_.size());
  MessageItem const* const items = item_.data();
  launch(queue, reinterpret_cast<void const*>(&unpack_kernel), blocks_of(count), items, count, from, field,
         staging);
}

}  // namespace hostless::gpu
