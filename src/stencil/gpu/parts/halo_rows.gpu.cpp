#include "stencil/gpu/parts/halo_rows.hpp"

#include <algorithm>

namespace hostless::gpu {
namespace {

constexpr int halo_threads = 256;
constexpr int most_copies = 8;  // of one kernel

struct alignas(16) HaloChunk {
  std::uint32_t part[4];
};
struct HaloCopies {
  HaloChunk const* from[most_copies];
  HaloChunk* to[most_copies];
  std::int64_t chunks[most_copies];
};

__global__ void __launch_bounds__(halo_threads) halo_kernel(HOSTLESS_PARAMETER HaloCopies const all) {
  HaloChunk const* const from = all.from[blockIdx.y];
  HaloChunk* const to = all.to[blockIdx.y];
  std::int64_t const chunks = all.chunks[blockIdx.y],
                     threads = static_cast<std::int64_t>(gridDim.x) * halo_threads;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * halo_threads + threadIdx.x; k < chunks;
       k += threads)
    to[k] = from[k];
}

}  // namespace

void copy_halos(std::vector<HaloCopy> const& copies, Stream const& stream) {
  constexpr std::int64_t most_blocks = 64;
  for (std::size_t first = 0; first < copies.size(); first += most_copies) {
    auto const count = std::min<std::size_t>(most_copies, copies.size() - first);
    HaloCopies all{};
    std::int64_t most = 1;
    for (std::size_t k = 0; k < count; ++k) {
      HaloCopy const& one = copies[first + k];
      all.from[k] = static_cast<HaloChunk const*>(one.from);
      all.to[k] = static_cast<HaloChunk*>(one.to);
      all.chunks[k] = one.bytes / static_cast<std::int64_t>(sizeof(HaloChunk));
      most = std::max(most, all.chunks[k]);
    }
    dim3 const blocks(static_cast<unsigned>(std::min(most_blocks, (most + halo_threads - 1) / halo_threads)),
                      static_cast<unsigned>(count));
    void* parameters[] = {&all};
    check(HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(halo_kernel), blocks, dim3(halo_threads),
                                     parameters, 0, stream.get()),
          "launching a copy of halos");
  }
}

void queue_halos(std::vector<HaloCopy> const& copies, Stream const& stream) {
  for (HaloCopy const& one : copies)
    check(HOSTLESS_GPU(MemcpyAsync)(one.to, one.from, static_cast<std::size_t>(one.bytes),
                                    HOSTLESS_GPU(MemcpyDefault), stream.get()),
          "copying halos between GPUs");
}

}  // namespace hostless::gpu
