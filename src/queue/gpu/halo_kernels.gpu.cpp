#include "queue/gpu/halo_kernels.hpp"

#include <algorithm>

#include "device/dependent_launch.hpp"
#include "device/queue.hpp"
#include "queue/gpu/message_kernels.hpp"

namespace hostless::gpu {
namespace {

/// As many fields as there may be, and one, which is copied faster.
template <int Fields>
struct HaloCall {
  queue::HaloHead head;
  std::int32_t blocks_of_neighbour;
  queue::HaloArray field[Fields];
};

template <int Fields>
__global__ void halo_kernel(HOSTLESS_PARAMETER HaloCall<Fields> const call) {
  let_next_kernel_come();
  auto const blocks = static_cast<std::uint32_t>(call.blocks_of_neighbour);
  std::uint32_t const neighbour = blockIdx.x / blocks, block = blockIdx.x - neighbour * blocks;
  await_kernel_before();
  queue::pass_halo_share(call.head, call.field, static_cast<int>(neighbour), block * blockDim.x + threadIdx.x,
                         blocks * blockDim.x);
}

// hipcc 5.2 defines no kernel whose address alone is taken.
template __global__ void halo_kernel<1>(HOSTLESS_PARAMETER HaloCall<1> const);
template __global__ void halo_kernel<queue::most_halo_fields>(
    HOSTLESS_PARAMETER HaloCall<queue::most_halo_fields> const);

template <int Fields>
void launch_of(HOSTLESS_GPU(Stream_t) stream, bool is_dependent, queue::HaloPass const& pass) {
  constexpr int most_of_neighbour = 64;
  HaloCall<Fields> call{pass.head, 1, {}};
  std::copy_n(pass.field, Fields, call.field);
  std::size_t const most = most_halo_pieces(pass);
  call.blocks_of_neighbour = blocks_of(most, block_threads, most_of_neighbour);
  void* parameters[] = {&call};
  launch_dependent(reinterpret_cast<void const*>(&halo_kernel<Fields>),
                   call.blocks_of_neighbour * pass.head.neighbours, threads_of(most), stream, parameters,
                   is_dependent);
}

}  // namespace

void launch_halo(HOSTLESS_GPU(Stream_t) stream, bool is_dependent, queue::HaloPass const& pass) {
  if (pass.head.neighbours == 0) return;
  auto* const launch = pass.head.fields == 1 ? &launch_of<1> : &launch_of<queue::most_halo_fields>;
  launch(stream, is_dependent, pass);
}
void load_halo_kernels() {
  load_kernel(reinterpret_cast<void const*>(&halo_kernel<1>));
  load_kernel(reinterpret_cast<void const*>(&halo_kernel<queue::most_halo_fields>));
}

}  // namespace hostless::gpu
