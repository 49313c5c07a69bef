// The text that only communicates: one object for all block sizes, which it does not multiply with.
#include "run/gpu/communication.gpu.hpp"

#include "solve/gpu/instance.hpp"

namespace hostless::gpu {
namespace {

template <Ranks ranks>
void const* kernel_of(int values) {
  switch (values) {
    case 2:
      return reinterpret_cast<void const*>(&communication_kernel<2, ranks>);
    case 3:
      return reinterpret_cast<void const*>(&communication_kernel<3, ranks>);
    case 4:
      return reinterpret_cast<void const*>(&communication_kernel<4, ranks>);
    default:
      return reinterpret_cast<void const*>(&communication_kernel<1, ranks>);
  }
}
void const* kernel_of(int values, Ranks ranks) {
  return ranks == Ranks::one       ? kernel_of<Ranks::one>(values)
         : ranks == Ranks::several ? kernel_of<Ranks::several>(values)
                                   : kernel_of<Ranks::routed>(values);
}

// All kernels need the same.
std::int64_t shared_bytes(int device, Ranks ranks) {
  return shared_bytes_beside(kernel_of(widest_sum, ranks), device);
}

void launch(Arguments const& a, HOSTLESS_GPU(Stream_t) stream) {
  constexpr int halo_source = 1, gathered = 3;
  GhostWay const way = ghost_way(a.communication, a.layout);
  CommunicationCall call{a.communication, way, a.preconditioner_data,
                         a.field[way == GhostWay::with_sum ? halo_source : gathered], a.clock};
  Layout layout = a.layout;
  Control control = a.control;
  PeerView const* peers = a.peers;
  FlaggedWord* words = a.flagged_words;
  std::uint32_t* epoch = a.epoch;
  State* state = a.state;
  void* parameters[] = {&call, &layout, &control, &peers, &words, &epoch, &state};
  launch_blocks(kernel_of(a.communication.values, ranks_of(a)), a, parameters, stream);
}

// The fields of cg: what travels lies where it does there.
template <int batch, bool fuses>
constexpr Instance instance{4, batch, true, false, fuses, false, &shared_bytes, nullptr, &launch, nullptr};
template <bool fuses>
Instance const& of_block(int block) {
  static_assert(batch_block_rows<3> == batch_block_rows<4> && batch_block_rows<4> == batch_block_rows<6>);
  return block == 1   ? instance<batch_block_rows<1>, fuses>
         : block == 2 ? instance<batch_block_rows<2>, fuses>
                      : instance<batch_block_rows<3>, fuses>;
}

}  // namespace

Instance const& communication_instance(int block, bool fuses) {
  return fuses ? of_block<true>(block) : of_block<false>(block);
}

}  // namespace hostless::gpu
