#include "stencil/gpu/parts/halo_rows.hpp"

#include <algorithm>

namespace hostless::gpu {
namespace {

constexpr int halo_threads = 256;
constexpr int most_copies = 8;  // of one kernel
constexpr int in_flight = 4;    // loads of a thread before its stores: another GPU's memory is 1.6 us away

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
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * halo_threads + threadIdx.x;
       first < chunks; first += in_flight * threads) {
    HaloChunk some[in_flight];
    HOSTLESS_UNROLL
    for (int i = 0; i < in_flight; ++i)
      if (first + i * threads < chunks) some[i] = from[first + i * threads];
    HOSTLESS_UNROLL
    for (int i = 0; i < in_flight; ++i)
      if (first + i * threads < chunks) to[first + i * threads] = some[i];
  }
}

}  // namespace

void copy_halos(std::vector<HaloCopy> const& copies, Stream const& stream) {
  constexpr std::int64_t most_blocks = 132;
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
