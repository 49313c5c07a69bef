// A kernel as users write it, with nothing to do but its exchange: what one costs inside a kernel.
#include "exchange/gpu/exchange_steps.hpp"

#include <algorithm>

#include "device/memory.hpp"
#include "hostless/exchange/kernel_exchange.hpp"

namespace hostless::gpu {
namespace {

constexpr int step_threads = 512;

struct ExchangeSteps {
  kernel::KernelExchange exchange;
  void const* send;
  void* receive;
  int steps;
};

__global__ void __launch_bounds__(step_threads)
    exchange_steps_kernel(HOSTLESS_PARAMETER ExchangeSteps const call) {
  for (int step = 0; step < call.steps; ++step)
    if (!kernel::start(call.exchange, call.send) || !kernel::await(call.exchange, call.receive)) return;
}

void const* steps_kernel() { return reinterpret_cast<void const*>(&exchange_steps_kernel); }

}  // namespace

int most_step_blocks(int device) {
  HOSTLESS_DEVICE_PROPERTIES facts{};
  check(HOSTLESS_GPU(GetDeviceProperties)(&facts, device), "asking what a GPU has");
  int fit = 0;
  check(HOSTLESS_GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&fit, steps_kernel(), step_threads, 0),
        "asking how many blocks fit");
  return facts.multiProcessorCount * std::min(fit, 1);
}

void queue_exchange_steps(kernel::KernelExchange const& exchange, void const* send, void* receive, int steps,
                          HOSTLESS_GPU(Stream_t) stream) {
  ExchangeSteps call{exchange, send, receive, steps};
  void* parameters[] = {&call};
  check(HOSTLESS_GPU(LaunchKernel)(steps_kernel(), dim3(static_cast<unsigned>(exchange.blocks)),
                                   dim3(step_threads), parameters, 0, stream),
        "launching steps of an exchange");
}

}  // namespace hostless::gpu
