// A kernel as users write it: an exchange a step by its blocks, at paces of their own.
#include "own_kernel.hpp"

#include "device/runtime.hpp"
#include "hostless/exchange/kernel_exchange.hpp"

namespace hostless::test {
namespace {

__device__ __forceinline__ std::uint64_t value_of(std::int64_t id, int step, int word) {
  return (static_cast<std::uint64_t>(id) * 64 + static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15u +
         static_cast<std::uint64_t>(step);
}
/// Now and then a block works longer than the others.
__device__ __forceinline__ void work(int step, int rank) {
  unsigned const number =
      (blockIdx.x * 7u + static_cast<unsigned>(step) * 13u + static_cast<unsigned>(rank) * 5u) % 32u;
  long long const begin = clock64();
  while (number == 0 && clock64() - begin < 20000) {
  }
}

__global__ void own_kernel(HOSTLESS_PARAMETER OwnKernelCall const call) {
  kernel::KernelExchange const& x = call.exchange;
  int const block = static_cast<int>(blockIdx.x), first = x.first_landing[block] * x.words;
  std::uint32_t wrong = 0;
  int step = call.first_step;
  for (int const end = step + call.steps - (x.rank == call.silent_rank ? 1 : 0); step < end; ++step) {
    for (int item = block + static_cast<int>(threadIdx.x) * x.blocks; item < call.owned;
         item += static_cast<int>(blockDim.x) * x.blocks)
      for (int word = 0; word < x.words; ++word)
        call.send[static_cast<std::int64_t>(item) * x.words + word] =
            value_of(call.item_id[item], step, word);
    work(step, x.rank);
    if (!kernel::start(x, call.send)) break;
    work(step + 1, x.rank);
    if (!kernel::await(x, call.receive)) break;
    for (int at = first + static_cast<int>(threadIdx.x); at < x.first_landing[block + 1] * x.words;
         at += static_cast<int>(blockDim.x)) {
      int const ghost = x.landings[at / x.words], word = at % x.words;
      wrong += call.receive[static_cast<std::int64_t>(kernel::offset_of_ghost(x, ghost)) * x.words + word] ==
                       value_of(call.ghost_id[ghost], step, word)
                   ? 0
                   : 1;
    }
  }
  if (wrong != 0) atomicAdd(call.wrong, wrong);
  if (threadIdx.x == 0) call.done[block] = static_cast<std::uint32_t>(step - call.first_step);
}

}  // namespace
}  // namespace hostless::test

extern "C" __attribute__((visibility("default"))) int hostless_queue_own_kernel(
    hostless::test::OwnKernelCall const* call, void* stream) {
  using namespace hostless::gpu;
  hostless::test::OwnKernelCall copy = *call;
  void* parameters[] = {&copy};
  constexpr int threads = 96;
  return static_cast<int>(
      HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(&hostless::test::own_kernel),
                                 dim3(static_cast<unsigned>(copy.exchange.blocks)), dim3(threads), parameters,
                                 0, static_cast<HOSTLESS_GPU(Stream_t)>(stream)));
}
