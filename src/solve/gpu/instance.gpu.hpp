#pragma once
// Makes the Instances of a method from its traits.

#include "run/gpu/persistent.gpu.hpp"
#include "run/gpu/stream.gpu.hpp"
#include "solve/gpu/carrier.hpp"
#include "solve/gpu/methods.gpu.hpp"

namespace hostless::gpu {

template <class Traits, int B>
struct MethodInstance {
  using Data = typename Traits::template Data<B>;
  using Inner = typename Traits::Inner;
  static void const* kernel(bool several) {
    if constexpr (Traits::meets_ranks) {
      if (several) return reinterpret_cast<void const*>(&persistent_kernel<B, Data, Inner, true>);
    }
    return reinterpret_cast<void const*>(&persistent_kernel<B, Data, Inner, false>);
  }

  static std::int64_t shared_bytes(int device, bool several) {
    HOSTLESS_GPU(FuncAttributes) attributes{};
    check(HOSTLESS_GPU(FuncGetAttributes)(&attributes, kernel(several)), "loading a kernel");
    int most = 0;
    check(HOSTLESS_GPU(DeviceGetAttribute)(&most, HOSTLESS_MOST_SHARED_MEMORY, device),
          "asking for shared memory");
    return most - static_cast<std::int64_t>(attributes.sharedSizeBytes);
  }
  static void launch_persistent(Arguments const& a, HOSTLESS_GPU(Stream_t) stream) {
    void const* const chosen = kernel(a.peers != nullptr);
    Data data = data_of<Traits, B>(a);
    RowsView rows = a.rows;
    Layout layout = a.layout;
    Control control = a.control;
    PeerView const* peers = a.peers;
    Word* words = a.words;
    std::uint32_t* epoch = a.epoch;
    State* state = a.state;
    void* parameters[] = {&data, &rows, &layout, &control, &peers, &words, &epoch, &state};
    std::size_t const shared = static_cast<std::size_t>(layout.shared_values) * sizeof(double);
    check(HOSTLESS_GPU(FuncSetAttribute)(chosen, HOSTLESS_GPU(FuncAttributeMaxDynamicSharedMemorySize),
                                         static_cast<int>(shared)),
          "asking for shared memory");
    dim3 const blocks(static_cast<unsigned>(layout.blocks)), threads(block_threads);
    // Ranks that share a GPU have a share of its multiprocessors each: the vendor checks one kernel at a
    // time.
    check(a.shares_device ? HOSTLESS_GPU(LaunchKernel)(chosen, blocks, threads, parameters, shared, stream)
                          : HOSTLESS_GPU(LaunchCooperativeKernel)(chosen, blocks, threads, parameters,
                                                                  static_cast<unsigned>(shared), stream),
          "launching a persistent kernel");
  }
  static void run_phases(Arguments const& a, Queue& queue) {
    StreamRun<B, typename Traits::Late, Inner> run(queue, a.rows, a.phases, a.product, a.carrier);
    run_text(run, data_of<Traits, B>(a));
  }
  static constexpr Instance instance{Traits::fields, batch_leaves<B>,    Traits::meets_ranks, Traits::forms,
                                     &shared_bytes,  &launch_persistent, &run_phases};
};

}  // namespace hostless::gpu
