#pragma once
// The kernels of a text that runs phase by phase. The last block of a phase to arrive adds the sums of all
// tiles and takes the decision, so deciding costs no launch; a phase whose gate is closed returns at once.
// With several ranks that block waits for those of the other ranks, in every phase; where something else
// carries (SolverExchange), its totals wait for a kernel that adds those of all ranks. Threads: 512 a block,
// a block for each tile. Reduction order: row, accumulator, tree; with PhaseMemory::free_order the
// blocks as they arrive.

#include "device/runtime.hpp"
#include "hostless/base/order.hpp"
#include "operate/gpu/tree.gpu.hpp"
#include "run/gpu/fields.gpu.hpp"
#include "run/gpu/gathered.hpp"
#include "run/gpu/peers.gpu.hpp"
#include "run/gpu/queue.hpp"

namespace hostless::gpu {

/// What follows the last block row of a phase.
enum class Ending {
  nothing,
  keep,        ///< its sums wait in memory
  decide,      ///< its sums are delivered and decided on
  decide_late  ///< those that wait in memory are
};

HOSTLESS_HOST_DEVICE constexpr bool decides(Ending ending) {
  return ending == Ending::decide || ending == Ending::decide_late;
}

/// Where the totals of a sum go, of any width.
struct Delivery {
  int width = 0;
  int to[widest_sum] = {};  ///< scalar indices
};
template <int K>
Delivery delivery(Into<K> into) {
  Delivery delivery;
  delivery.width = K;
  for (int k = 0; k < K; ++k) delivery.to[k] = into.to[k];
  return delivery;
}

template <class Body, class Decision>
struct PhaseCall {
  PhaseMemory memory;
  Tiling tiling;
  Gate gate;
  Loop loop;
  Delivery delivery;
  double const* sent;                 ///< the field whose ghosts other ranks have, or null
  std::int32_t const* tile_of_block;  ///< of a part of a sweep; null: block u works on tile u
  Body body;
  Decision decide;
};

/// Of a block.
struct PhaseShared {
  alignas(16) std::uint32_t state_words[sizeof(State) / sizeof(std::uint32_t)];
  double warp_sum[widest_sum][warps];
  double total[widest_sum];
  double rank_total[widest_sum][most_ranks];
  std::uint32_t stop_of[most_ranks];
  bool last, stop, lost;
  __device__ State& state() { return *reinterpret_cast<State*>(state_words); }
};
static_assert(sizeof(State) % sizeof(std::uint32_t) == 0);

/// Fields of phases live in memory: said again where the compiler can see it. Those of a right-hand side lie
/// `offset` behind the first one's.
HOSTLESS_HOST_DEVICE Field in_memory(Field field, std::int64_t offset) {
  return {field.memory + offset, 0, 0};
}
HOSTLESS_HOST_DEVICE ReadOnly in_memory(ReadOnly view, std::int64_t offset) {
  return {in_memory(view.field, offset)};
}
HOSTLESS_HOST_DEVICE Field in_memory(HaloSource view, std::int64_t offset) {
  return in_memory(view.field, offset);
}

/// use(batch) for all block rows of this thread in a tile. falling: from the last one on, of a phase without
/// sums: it begins with what the phase before has left in the second-level cache, and ends with what the next
/// one begins with.
template <int S, bool falling = false, class Use>
__device__ __forceinline__ void each_batch(Tiling const& tiling, int tile, Use const& use) {
  int const thread = static_cast<int>(threadIdx.x);
  int const slice = tile * slices_of_block + thread / Tiling::accumulators;
  if (slice >= tiling.slices) return;
  Batch<S> b{slice, 0, thread % Tiling::accumulators, static_cast<std::int32_t>(tiling.first(slice)),
             static_cast<std::int32_t>(tiling.first(slice + 1))};
  if constexpr (falling) {
    constexpr int rows = S * Tiling::accumulators;
    for (b.slot = (b.last - b.first + rows - 1) / rows * S - S; b.slot >= 0; b.slot -= S) use(b);
  } else {
    for (; b.first + b.slot * Tiling::accumulators < b.last; b.slot += S) use(b);
  }
}

/// The sums over the block's threads, into shared.total.
template <int K>
__device__ __forceinline__ void add_threads(double const (&sum)[K], PhaseShared& shared) {
  int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  HOSTLESS_UNROLL
  for (int k = 0; k < K; ++k) {
    double const value = add_lanes<32>(sum[k]);
    if (lane == 0) shared.warp_sum[k][warp] = value;
  }
  __syncthreads();
  if (warp < K) {  // a warp for each sum
    double const value = add_lanes<warps>(shared.warp_sum[warp][lane % warps]);
    if (lane == 0) shared.total[warp] = value;
  }
  __syncthreads();
}

/// The sums over all tiles, into shared.total: a thread has neighbours, one of each sum in most plans.
constexpr int phase_levels = 13;
template <int K>
__device__ __forceinline__ void add_tiles(PhaseMemory const& memory, int column, PhaseShared& shared) {
  double sum[K];
  int const count = memory.tiles_a_thread, first = static_cast<int>(threadIdx.x) * count;
  HOSTLESS_UNROLL
  for (int k = 0; k < K; ++k) {
    double const* const from = memory.partial_of(column) + static_cast<std::int64_t>(k) * memory.tiles;
    if (count == 1) {
      sum[k] = first < memory.tiles ? from[first] : 0.0;
    } else {
      double waiting[phase_levels] = {};
      for (int i = 0; i < count; ++i)
        sum[k] = join(waiting, first + i < memory.tiles ? from[first + i] : 0.0, i);
    }
  }
  add_threads(sum, shared);
}

/// What the blocks have added up where the order is free, into shared.total; zeros for the next phase.
template <int K>
__device__ __forceinline__ void take_sums(PhaseMemory const& memory, int column, PhaseShared& shared) {
  if (threadIdx.x < K) {
    double* const from = memory.partial_of(column) + threadIdx.x;
    shared.total[threadIdx.x] = *from;
    *from = 0.0;
  }
  __syncthreads();
}

/// By one thread, on the copy of the state in shared memory.
template <class Body, class Decision>
__device__ __forceinline__ void deliver(PhaseCall<Body, Decision> const& call, State& state,
                                        double const (&total)[widest_sum], bool stop) {
  for (int k = 0; k < call.delivery.width; ++k) state.at(call.delivery.to[k]) = total[k];
  if (stop) state.stop = true;
  call.decide(state);
  if (call.loop.exists && call.memory.columns == 1)
    set_condition(call.loop.condition, state.open(call.loop.gate));
}

/// By one thread, once for each right-hand side of a phase that decides, after its state is in memory or
/// where it has none to change: the last one tells the loop.
template <class Body, class Decision>
__device__ __forceinline__ void tell_loop(PhaseCall<Body, Decision> const& call) {
  PhaseMemory const& memory = call.memory;
  if (!call.loop.exists || memory.columns == 1) return;
  __threadfence();
  if (atomicAdd(memory.decided, 1u) != static_cast<std::uint32_t>(memory.columns) - 1) return;
  __threadfence();
  *memory.decided = 0;
  set_condition(call.loop.condition, loop_goes_on(memory.state, memory.columns, call.loop.gate));
}

/// True for all threads of the last of so many blocks that comes here: all have read the state, and what
/// they wrote before is visible.
__device__ __forceinline__ bool arrive(PhaseMemory const& memory, int column, int blocks, bool& last) {
  __syncthreads();
  if (threadIdx.x == 0) {
    fence_ranks(memory.peers);
    last = atomicAdd(memory.arrived + column, 1u) == static_cast<std::uint32_t>(blocks) - 1;
    fence_ranks(memory.peers);
    if (last) memory.arrived[column] = 0;  // for the next phase
  }
  __syncthreads();
  return last;
}

/// By all threads of the last block: the sums in shared.total become those of all ranks, and what the phase
/// has stored anywhere is visible everywhere. Sets shared.stop, and shared.lost.
template <int K>
__device__ __forceinline__ void barrier_of_ranks(PhaseMemory const& memory, PhaseShared& shared) {
  PeerView const& peers = *memory.peers;
  int const thread = static_cast<int>(threadIdx.x), other = thread / (K + 1), k = thread % (K + 1);
  std::uint32_t const epoch = next_epoch(*memory.epoch);
  int const parity = parity_of(epoch) * phase_flagged_words_of_parity(peers.ranks);
  bool const is_silent = memory.orders->silent_from - 1u < epoch;  // as a lost rank would be
  if (thread == 0) {
    shared.stop = false;
    shared.lost = is_silent;
  }
  __syncthreads();
  if (other < peers.ranks && !is_silent) {
    FlaggedWord* const there = peers.phase_flagged_words[other] + parity + peers.rank * (widest_sum + 1);
    fence_system();
    if (k < K) {
      put_value(there + k, shared.total[k], epoch);
    } else {
      store_flagged_word(there + K, memory.orders->stop, 0, epoch);
    }
    FlaggedWord word{};
    std::uint64_t const most =
        memory.orders->awaits_first != 0 ? memory.first_cycles : memory.deadline_cycles;
    bool const whole = await_flagged_word(
        peers.phase_flagged_words[peers.rank] + parity + other * (widest_sum + 1) + k, word, epoch, most);
    if (!whole) {
      shared.lost = true;
      for (int both = 0; both < 2; ++both)  // whoever waits for this rank need not wait on
        store_flagged_word(peers.phase_flagged_words[other] +
                               both * phase_flagged_words_of_parity(peers.ranks) +
                               peers.rank * (widest_sum + 1) + k,
                           0, 0, poison);
    } else if (k < K) {
      shared.rank_total[k][other] = value_of(word);
    } else if (word.part[0] != 0) {
      shared.stop = true;
    }
    fence_system();
  }
  __syncthreads();
  if (thread == 0) {
    *memory.epoch = epoch;
    memory.orders->awaits_first = 0;
  }
  if (thread < K)
    shared.total[thread] =
        tree_of_ranks(peers.ranks, [&](int rank) { return shared.rank_total[thread][rank]; });
  __syncthreads();
}

/// A rank is lost: the solve ends here, and so do the loops around this phase.
template <class Body, class Decision>
__device__ __forceinline__ void lose(PhaseCall<Body, Decision> const& call) {
  if (threadIdx.x != 0) return;
  call.memory.state->status = Status::peer_lost;
  if (call.loop.exists) set_condition(call.loop.condition, false);
}

template <int K, Ending ending, class Body, class Decision>
__device__ __forceinline__ void conclude(PhaseCall<Body, Decision> const& call, int column, int tile,
                                         double const (&sum)[K == 0 ? 1 : K]) {
  if (ending != Ending::nothing || call.memory.peers != nullptr) {
    __shared__ PhaseShared shared;
    PhaseMemory const& memory = call.memory;
    int const thread = static_cast<int>(threadIdx.x);
    if constexpr (K > 0) {
      add_threads<K>(sum, shared);
      if (thread < K) {
        if (memory.free_order) {
          atomicAdd(memory.partial_of(column) + thread, shared.total[thread]);
        } else {
          memory.partial_of(column)[static_cast<std::int64_t>(thread) * memory.tiles + tile] =
              shared.total[thread];
        }
      }
    }
    if (!arrive(memory, column, memory.tiles, shared.last)) return;  // of both parts of a sweep
    auto* const state = reinterpret_cast<std::uint32_t*>(memory.state + column);
    constexpr int words = sizeof(State) / sizeof(std::uint32_t);
    if (decides(ending) && thread < words) shared.state_words[thread] = state[thread];
    if constexpr (K > 0) {
      if (memory.free_order) {
        take_sums<K>(memory, column, shared);
      } else {
        add_tiles<K>(memory, column, shared);
      }
    } else {
      if (decides(ending) && thread < call.delivery.width)
        shared.total[thread] = memory.total_of(column)[thread];
      __syncthreads();
    }
    if (memory.peers == nullptr) {
      if (decides(ending) && thread == 0)
        shared.stop = memory.orders->stop != 0;  // read by this thread alone
    } else {
      barrier_of_ranks<K>(memory, shared);
      if (shared.lost) return lose(call);
    }
    if constexpr (ending == Ending::keep) {
      if (thread < K) memory.total_of(column)[thread] = shared.total[thread];
    } else if constexpr (decides(ending)) {
      if (thread == 0) deliver(call, shared.state(), shared.total, shared.stop);
      __syncthreads();
      if (thread < words) state[thread] = shared.state_words[thread];
      if (memory.columns > 1) {
        __syncthreads();
        if (thread == 0) tell_loop(call);
      }
    }
  }
}

/// A block of a right-hand side whose gate is closed.
template <Ending ending, class Body, class Decision>
__device__ __forceinline__ void stay_closed(PhaseCall<Body, Decision> const& call, int tile) {
  if (decides(ending) && tile == 0 && threadIdx.x == 0) tell_loop(call);
}

/// Block rows of so many fields that a phase of rows has in flight: those that 64 registers hold.
template <int B, int fields>
HOSTLESS_HOST_DEVICE constexpr int batch_of_fields() {
  constexpr int most = 16 / (B * fields);
  return most < 1 ? 1 : most < batch_block_rows<B> ? most : batch_block_rows<B>;
}

/// Two blocks a multiprocessor: what one waits for, the other one uses the time of.
template <int B, int K, Ending ending, class Body, class Decision, class... Views>
__global__ void HOSTLESS_LAUNCH_BOUNDS(block_threads, 2)
    rows_kernel(HOSTLESS_PARAMETER PhaseCall<Body, Decision> const call, Views... views) {
  constexpr int batch = batch_of_fields<B, sizeof...(Views)>();
  int const block = static_cast<int>(blockIdx.x), columns = call.memory.columns;
  int const tile = columns == 1 ? block : block / columns;  // side by side: what they share is read once
  int const column = block - tile * columns;
  State const state = call.memory.state[column];
  if (!state.open(call.gate)) return stay_closed<ending>(call, tile);
  double sum[K == 0 ? 1 : K] = {};
  std::int64_t const offset = column * call.memory.column_stride;
  concretely(in_column(call.body, offset), [&](auto const& body) {
    each_batch<batch, K == 0>(call.tiling, tile, [&](Batch<batch> const& b) {
      full_or_not(b, [&](auto const& some) {
        rows_of_batch<B, batch, K>(state, some, 0, sum, body, in_memory(views, offset)...);
      });
    });
  });
  if (call.sent != nullptr) {
    __syncthreads();
    int const first = tile * slices_of_block, last = first + slices_of_block;
    std::int32_t const* const items = call.memory.peers->first_of_slice;
    send_items(*call.memory.peers, call.sent, items[first],
               items[last < call.tiling.slices ? last : call.tiling.slices]);
  }
  conclude<K, ending>(call, column, tile, sum);
}

/// What a plan with several rounds hands on in one of them.
template <int B>
__global__ void __launch_bounds__(block_threads, 1)
    round_kernel(HOSTLESS_PARAMETER PhaseCall<int, NoDecision> const call, int round) {
  if (!call.memory.state->open(call.gate)) return;
  double const sum[1] = {};
  send_round(*call.memory.peers, call.sent, round);
  conclude<0, Ending::nothing>(call, 0, static_cast<int>(blockIdx.x), sum);
}

/// After a sum whose parts were gathered: the ranks' totals are added, delivered and decided on. One block.
template <class Decision>
__global__ void __launch_bounds__(block_threads, 1)
    gathered_kernel(HOSTLESS_PARAMETER PhaseCall<int, Decision> const call, double const* all, int ranks) {
  if (!call.memory.state->open(call.gate)) return;
  __shared__ PhaseShared shared;
  int const thread = static_cast<int>(threadIdx.x), sums = call.delivery.width;
  auto* const state = reinterpret_cast<std::uint32_t*>(call.memory.state);
  constexpr int words = sizeof(State) / sizeof(std::uint32_t);
  static_assert(words <= block_threads);
  if (thread < words) shared.state_words[thread] = state[thread];
  if (thread < sums) shared.total[thread] = sum_of_ranks(all, ranks, sums, thread);
  if (thread == 0) shared.stop = any_stops(all, ranks, sums);
  __syncthreads();
  if (thread == 0) deliver(call, shared.state(), shared.total, shared.stop);
  __syncthreads();
  if (thread < words) state[thread] = shared.state_words[thread];
}

template <int B, class Inner, int K, Ending ending, class Body, class Decision, class... Views>
__global__ void __launch_bounds__(block_threads, 1)
    sweep_kernel(HOSTLESS_PARAMETER PhaseCall<Body, Decision> const call,
                 HOSTLESS_PARAMETER RowsView const rows, Field p, Views... views) {
  constexpr int batch = batch_block_rows<B>;
  State const state = *call.memory.state;
  if (!state.open(call.gate)) return;
  double sum[K == 0 ? 1 : K] = {};
  int const tile =
      call.tile_of_block == nullptr ? static_cast<int>(blockIdx.x) : call.tile_of_block[blockIdx.x];
  each_batch<batch>(call.tiling, tile, [&](Batch<batch> const& b) {
    products_of_batch<B, batch, K, Inner, false>(
        state, {rows, state.multiplies_rounded(call.gate), false, nullptr}, b, 0, sum, in_memory(p, 0),
        call.body, in_memory(views, 0)...);
  });
  conclude<K, ending>(call, 0, tile, sum);
}

}  // namespace hostless::gpu
