#pragma once
// Makes the Instances of a method from its traits.

#include "run/gpu/persistent_kernel.gpu.hpp"
#include "run/gpu/stream.gpu.hpp"
#include "solve/gpu/methods.gpu.hpp"

namespace hostless::gpu {

template <class Traits, int B>
struct MethodInstance {
  using Data = typename Traits::template Data<B>;
  using Inner = typename Traits::Inner;
  static void const* kernel(bool several) {
    if constexpr (Traits::spans_ranks) {
      if (several) return reinterpret_cast<void const*>(&persistent_kernel<B, Data, Inner, true>);
    }
    return reinterpret_cast<void const*>(&persistent_kernel<B, Data, Inner, false>);
  }

  static std::int64_t shared_bytes(int device, bool several) {
    return shared_bytes_beside(kernel(several), device);
  }
  static void launch_persistent(Arguments const& a, HOSTLESS_GPU(Stream_t) stream) {
    void const* const chosen = kernel(a.peers != nullptr);
    Data data = data_of<Traits, B>(a);
    RowsView rows = a.rows;
    Layout layout = a.layout;
    Control control = a.control;
    PeerView const* peers = a.peers;
    FlaggedWord* flagged_words = a.flagged_words;
    std::uint32_t* epoch = a.epoch;
    State* state = a.state;
    void* parameters[] = {&data, &rows, &layout, &control, &peers, &flagged_words, &epoch, &state};
    launch_blocks(chosen, a, parameters, stream);
  }
  static void run_phases(Arguments const& a, Queue& queue) {
    StreamRun<B, typename Traits::Late, Inner> run(queue, a.rows, a.phases, a.product, a.exchange,
                                                   a.tile_order);
    run_text(run, data_of<Traits, B>(a));
  }
  static constexpr Instance instance{Traits::fields, batch_block_rows<B>, Traits::spans_ranks, Traits::fuses,
                                     Traits::begins, &shared_bytes,       &launch_persistent,  &run_phases};
};

}  // namespace hostless::gpu
