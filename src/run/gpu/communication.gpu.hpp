#pragma once
// The communication of an iteration as a persistent kernel: the barriers, flagged words and stores of methods
// (grid_barrier.gpu.hpp, peers.gpu.hpp), and nothing between them. Threads: 512 a block, one block a
// multiprocessor. Sums are of whole numbers: exact in any order, and added in the plan's.

#include "run/gpu/communication.hpp"
#include "run/gpu/grid_barrier.gpu.hpp"

namespace hostless::gpu {

/// Beside what every persistent kernel is told.
struct CommunicationCall {
  Communication what;
  GhostWay way = GhostWay::none;
  double const* id = nullptr;  ///< [rows], row 0: every row's number in the whole matrix, those of ghosts too
  double* field = nullptr;     ///< row 0 of what is sent where it lies in memory
  std::uint64_t* clock = nullptr;  ///< grows by the cycles of all steps
};

/// K: values of a sum.
template <int K, Ranks ranks>
class CommunicationRun {
 public:
  __device__ CommunicationRun(Shared& shared, Layout const& layout, CommunicationCall const& call,
                              GridBarrier<ranks>& barrier, int rank)
      : shared_(shared), layout_(layout), call_(call), barrier_(barrier), rank_(rank) {
    __shared__ GhostShare share;
    __shared__ double parts;
    if (threadIdx.x == 0) {
      share = ghost_share(layout, barrier.rounds(), static_cast<int>(blockIdx.x));
      parts = known_parts(barrier.partials(), shared.word_layout.ranks);
    }
    __syncthreads();
    share_ = share;
    parts_ = parts;
  }

  /// Steps from the state's iteration on to its limit. The step after the last one has only a sum: what was
  /// read last is told with it.
  __device__ void operator()() {
    barrier_.template barrier_reduce<0>(
        Phase::begin, Visible::nothing, [] {}, [](std::uint32_t) {});  // ranks do not start together
    std::uint64_t const begun = cycles();
    while (runs()) {
      State const& state = shared_.state();
      std::int64_t const step = state.iteration;
      bool const closes = step >= state.limit || state.stop || step == state.pause_at;
      if (closes && blockIdx.x == 0 && threadIdx.x == 0) *call_.clock += cycles() - begun;
      for (int sum = closes ? call_.what.sums - 1 : 0; sum < call_.what.sums && runs(); ++sum)
        barrier_with_sum(step, sum + 1 == call_.what.sums, closes);
      if (!closes && call_.way != GhostWay::none) finish_exchange(step);
    }
  }

 private:
  __device__ __forceinline__ bool runs() const { return shared_.state().status == Status::running; }
  __device__ static __forceinline__ Visible visible(bool sends) {
    return sends ? Visible::everywhere : Visible::nothing;
  }
  __device__ __forceinline__ bool is_in_memory() const {
    return call_.way == GhostWay::with_only_sum || call_.way == GhostWay::with_sum;
  }

  __device__ __forceinline__ void barrier_with_sum(std::int64_t step, bool last, bool closes) {
    for (int turn = 0; turn < layout_.turns; ++turn) {
      int const tile = turn * layout_.blocks + static_cast<int>(blockIdx.x);
      double const part = known_part(static_cast<int>(threadIdx.x) % 32, tile, rank_);
      HOSTLESS_UNROLL
      for (int k = 0; k < K; ++k) {
        double const found = turn == 0 && k == 0 ? static_cast<double>(wrong_) : 0.0;
        barrier_.contribute(turn, k, __builtin_fma(part, step_weight(k, step), found), K);
      }
    }
    wrong_ = 0;
    bool const brings_ghosts = last && !closes;
    if (brings_ghosts && is_in_memory()) send_own(step);
    barrier_.template barrier_reduce<K>(
        Phase::rows, visible(brings_ghosts && is_in_memory()),
        [&] {
          if (brings_ghosts && call_.way == GhostWay::as_flagged_words)
            barrier_.send_flagged_words([&](std::int32_t row) { return known_ghost(call_.id[row], step); });
        },
        [&](std::uint32_t orders) { check_step(step, last, closes, orders); });
  }
  /// By one thread of each block, alike.
  __device__ __forceinline__ void check_step(std::int64_t step, bool last, bool closes,
                                             std::uint32_t orders) {
    State& state = shared_.state();
    for (int k = 0; k < K; ++k) {
      double const expected = parts_ * step_weight(k, step);
      if (shared_.total[k] == expected) continue;
      state.rr = shared_.total[k];
      state.value[ScalarIndex::measured] = expected;
      state.status = Status::breakdown;
      return;
    }
    if ((orders & order_stop) != 0) state.stop = true;
    if ((orders & order_pause) != 0 && state.pause_at < 0) state.pause_at = step + 1;
    if (!last) return;
    if (closes) {
      state.status = state.stop            ? Status::aborted
                     : step >= state.limit ? Status::iteration_limit
                                           : Status::paused;
    } else {
      ++state.iteration;
    }
  }

  /// The barriers that bring ghosts beside those of sums, and a look at every one of them.
  __device__ __forceinline__ void finish_exchange(std::int64_t step) {
    bool const is_own = call_.way == GhostWay::before_sums, is_apart = call_.way == GhostWay::with_only_sum;
    int const first = is_own ? 0 : 1,
              rounds = call_.way == GhostWay::as_flagged_words ? 1 : barrier_.rounds();
    for (int round = first; round < rounds + (is_apart ? 1 : 0) && runs(); ++round) {
      if (round == rounds) look(step);  // before others may store again
      if (round == 0) send_own(step);
      if (round > 0 && round < rounds) barrier_.send(call_.field, round);
      barrier_.template barrier_reduce<0>(
          Phase::publish, visible(round < rounds), [] {}, [](std::uint32_t) {});
    }
    if (!is_apart && runs()) look(step);
  }
  __device__ __forceinline__ void send_own(std::int64_t step) {
    barrier_.each_sent([&](std::int32_t row) { call_.field[row] = known_ghost(call_.id[row], step); });
    barrier_.send(call_.field);
  }
  __device__ __forceinline__ void look(std::int64_t step) {
    if (share_.mine < 0) return;
    std::uint32_t const epoch = barrier_.epoch();
    FlaggedWord const* const flagged_words = layout_.halo_source_flagged_words[parity_of(epoch)];
    std::int32_t const ghosts = layout_.ghosts_below + layout_.ghosts_above;
    std::int32_t const lane = static_cast<std::int32_t>(threadIdx.x) % 32;
    for (std::int32_t ghost = share_.mine * block_threads + static_cast<std::int32_t>(threadIdx.x);
         ghost - lane < ghosts; ghost += share_.readers * block_threads) {  // a warp stays together
      std::int32_t const row = ghost_row(layout_, ghost);
      FlaggedWord flagged_word[1];
      bool const exists = ghost < ghosts, is_flagged_word = call_.way == GhostWay::as_flagged_words;
      if (is_flagged_word)
        barrier_.await_halo_source([&](int) { return flagged_words + row; }, exists ? 1u : 0u, flagged_word);
      if (!exists) continue;
      double const value = is_flagged_word ? value_of(flagged_word[0]) : call_.field[row];
      wrong_ += value == known_ghost(call_.id[row], step) ? 0 : 1;
    }
  }

  Shared& shared_;
  Layout const& layout_;
  CommunicationCall const& call_;
  GridBarrier<ranks>& barrier_;
  int rank_;
  GhostShare share_;
  double parts_;
  std::uint32_t wrong_ = 0;  // ghosts, of this thread
};

template <int K, Ranks ranks>
__global__ void __launch_bounds__(block_threads, 1)
    communication_kernel(HOSTLESS_PARAMETER CommunicationCall const call,
                         HOSTLESS_PARAMETER Layout const layout, HOSTLESS_PARAMETER Control const control,
                         PeerView const* peers, FlaggedWord* flagged_words, std::uint32_t* epoch,
                         State* state) {
  __shared__ Shared shared;
  __shared__ PeersOnChip<ranks> on_chip;
  enter_kernel(shared, on_chip, layout, peers, state);
  GridBarrier<ranks> barrier(shared, layout, control, on_chip, flagged_words, *epoch);
  CommunicationRun<K, ranks>(shared, layout, call, barrier, barrier.several ? on_chip.view()->rank : 0)();
  leave_kernel(shared, barrier.epoch(), state, *epoch);
}

}  // namespace hostless::gpu
