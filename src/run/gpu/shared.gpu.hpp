#pragma once
// What the threads of a block share in a persistent kernel: the state, sums on their way, and where the
// flagged words of barriers (grid_barrier.gpu.hpp) go and come.

#include <type_traits>

#include "device/runtime.hpp"
#include "hostless/base/order.hpp"
#include "hostless/run/state.hpp"
#include "run/gpu/launch.hpp"
#include "run/gpu/peers.gpu.hpp"
#include "transport/peer/flagged_words.gpu.hpp"

namespace hostless::gpu {

/// A warp awaits a group of flagged words at a time, two a lane, which are neighbours in the tree: it needs
/// fewer exchanges between lanes, and fewer warps poll. Flagged words of one parity: a group of what every
/// rank's block 0 orders, then for each sum the groups of the ranks' partials, rank after rank.
constexpr int flagged_words_of_lane = 2, group_flagged_words = 32 * flagged_words_of_lane,
              most_groups = most_tiles / group_flagged_words;
HOSTLESS_HOST_DEVICE int groups_of(int partials) {
  return (partials + group_flagged_words - 1) / group_flagged_words;
}
/// Where a partial's flagged word lies among those of its sum: flagged word u of all lanes side by side, so
/// that a warp loads whole lines.
HOSTLESS_HOST_DEVICE int offset_of_partial(int partial) {
  int const inside = partial % group_flagged_words;
  return partial - inside + inside % flagged_words_of_lane * 32 + inside / flagged_words_of_lane;
}
/// columns: right-hand sides, whose sums travel together.
HOSTLESS_HOST_DEVICE int flagged_words_of_parity(int most_partials, int ranks, int columns = 1) {
  return group_flagged_words * (1 + columns * widest_sum * ranks * groups_of(most_partials));
}
/// Sums of groups of one sum: a tree over ranks, each of a tree over its groups. At most most_groups.
HOSTLESS_HOST_DEVICE int levels_of(int most_partials, int ranks) {
  return power_of_two(ranks) * power_of_two(groups_of(most_partials));
}
static_assert(most_ranks <= warps);  // the lanes that know a sum store it, one for each rank
/// Where the flagged words of this rank's blocks go, and those of all ranks come; the same all the time,
/// hence no registers.
struct FlaggedWordLayout {
  FlaggedWord*
      target[2][warps];  ///< the flagged words of the rank that a lane stores to, of both parities, or null
  FlaggedWord const* here[2];  ///< those of this rank
  int ranks;
  int groups, sum_flagged_words;  ///< of a sum, those of all ranks
  int levels;                     ///< sums of groups, with zeros where a rank has fewer than a power of two
  int first;                      ///< this rank's first flagged word of the first sum
  std::uint64_t deadline, begun, looked;
  std::int32_t send[most_turns][2];  ///< what this block sends of each of its tiles: most send nothing
  bool sends, reads;                 ///< anything to other ranks; what they have sent
};

/// How many flagged words of a group are awaited, with sums and without; where their sum belongs.
struct Group {
  std::uint8_t partials, blocks, level, unused;
};

/// Where the block's duties of each level begin, and end; nothing where ghosts are not passed on.
template <Ranks ranks>
struct DutiesOnChip {};
template <>
struct DutiesOnChip<Ranks::routed> {
  std::int32_t first[most_rounds + 1];
};

/// What a block knows of the other ranks, in shared memory: it is looked at all the time.
template <Ranks ranks>
struct PeersOnChip : DutiesOnChip<ranks> {
  static constexpr bool several = ranks != Ranks::one;
  using View = std::conditional_t<ranks == Ranks::routed, RoutedView, PeerView>;
  static_assert(sizeof(View) % sizeof(std::uint32_t) == 0);
  alignas(16) std::uint32_t part[several ? sizeof(View) / sizeof(std::uint32_t) : 1];
  Group group[several ? most_groups : 1];
  __device__ void copy(PeerView const* from) {
    if constexpr (several) {
      auto const* const parts = reinterpret_cast<std::uint32_t const*>(from);
      for (int at = static_cast<int>(threadIdx.x); at < static_cast<int>(sizeof part / sizeof part[0]);
           at += block_threads)
        part[at] = parts[at];
    }
  }
  __device__ View const* view() const { return several ? reinterpret_cast<View const*>(part) : nullptr; }
};

/// What the threads of a block share beside the fields, of so many right-hand sides: sum k of the c-th is
/// number c * K + k of the sums of a barrier.
template <int columns_of_block, int turns>
struct SharedOf {
  static constexpr int columns = columns_of_block, widest = columns * widest_sum, most_turns = turns;
  static_assert(widest <= warps);  // a warp for each sum
  FlaggedWordLayout word_layout;
  alignas(16) unsigned char state_bytes[columns * sizeof(State)];
  double warp_sum[turns * widest][warps];
  double level[widest * most_groups];  ///< sums of groups
  double total[widest];
  std::int32_t first_block_row[turns][slices_of_block + 1];  ///< of this block's slices
  alignas(8) std::uint8_t orders[most_ranks];                ///< of every rank's block 0
  std::uint32_t own_orders;
  int lost;
  int count;                           ///< right-hand sides that there are
  std::uint64_t begun_phase, arrived;  ///< of the trace, which one thread writes
  std::int32_t traced;                 ///< barriers
  __device__ State* states() { return reinterpret_cast<State*>(state_bytes); }
  __device__ State& state(int column = 0) { return states()[column]; }
};
using Shared = SharedOf<1, most_turns>;

/// By all threads, first of all; count: right-hand sides that there are, each with a state.
template <Ranks ranks, class Block>
__device__ __forceinline__ void enter_kernel(Block& shared, PeersOnChip<ranks>& on_chip, Layout const& layout,
                                             PeerView const* peers, State const* states, int count = 1) {
  on_chip.copy(peers);
  if (int const c = static_cast<int>(threadIdx.x); c < Block::columns) {
    if (c < count) {
      shared.state(c) = states[c];
    } else {
      shared.state(c) = State{};
      shared.state(c).status = Status::converged;  // the others have no gate open
    }
    if (blockIdx.x != 0) shared.state(c).history = nullptr;  // one block writes it
  }
  if (threadIdx.x == 0) {
    shared.count = count;
    shared.own_orders = 0;
    shared.lost = 0;
  }
  if (threadIdx.x < most_ranks) shared.orders[threadIdx.x] = 0;
  for (int at = static_cast<int>(threadIdx.x); at < Block::widest * most_groups; at += block_threads)
    shared.level[at] = 0.0;
  for (int at = static_cast<int>(threadIdx.x); at < layout.turns * (slices_of_block + 1);
       at += block_threads) {
    int const turn = at / (slices_of_block + 1), which = at % (slices_of_block + 1);
    int const slice = (turn * layout.blocks + static_cast<int>(blockIdx.x)) * slices_of_block + which;
    shared.first_block_row[turn][which] = static_cast<std::int32_t>(
        layout.tiling.first(slice < layout.tiling.slices ? slice : layout.tiling.slices));
  }
  __syncthreads();
}

/// Last of all: nobody reads the states or the epoch any more, every block has passed its last barrier,
/// `last`, or was lost.
template <class Block>
__device__ __forceinline__ void leave_kernel(Block& shared, std::uint32_t last, State* states,
                                             std::uint32_t& epoch, int count = 1) {
  if (blockIdx.x != 0) return;
  if (int const c = static_cast<int>(threadIdx.x); c < count) {
    StepRecord* const history = states[c].history;
    states[c] = shared.state(c);
    states[c].history = history;
  }
  if (threadIdx.x == 0) epoch = last;
}

}  // namespace hostless::gpu
