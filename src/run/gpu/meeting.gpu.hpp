#pragma once
// Where the blocks of a persistent kernel meet: a sum is the barrier. Every block publishes its partial sums
// as words, every block awaits the words of all and adds them in the order of the plan, so nothing is
// broadcast and nobody is special. Values are added: lanes of a warp, warps of a pair of slices, pairs;
// always t[i] = t[2 i] + t[2 i + 1].
//
// Words are double-buffered by the parity of the epoch: a block that writes epoch e + 2 has seen all of e +
// 1, which everybody published after reading all of e.

#include "device/runtime.hpp"
#include "hostless/base/order.hpp"
#include "hostless/run/state.hpp"
#include "run/gpu/fields.gpu.hpp"
#include "run/gpu/launch.hpp"
#include "run/gpu/tree.gpu.hpp"

namespace hostless::gpu {

constexpr std::uint32_t poison = 0x80000000u;
constexpr std::uint32_t order_stop = 1, order_pause = 2;

/// Words of one parity: K sums of `padded` partials, then the orders of block 0.
HOSTLESS_ANYWHERE int padded_partials(int partials) { return power_of_two(partials < 32 ? 32 : partials); }
HOSTLESS_ANYWHERE int words_of_parity(int partials) { return widest_sum * padded_partials(partials) + 1; }
/// Every word is stored several times, and each block polls one copy: all blocks at one line of the cache
/// stand in a queue.
constexpr int copies = 4;

/// What the threads of a block share beside the fields.
struct Shared {
  alignas(16) unsigned char state_bytes[sizeof(State)];
  double warp_sum[most_rounds * widest_sum][warps];
  double level[widest_sum * most_pairs / 32];  ///< sums of 32 neighbours
  double total[widest_sum];
  std::int32_t first_leaf[most_rounds][slices_of_block + 1];  ///< of this block's slices
  std::uint32_t orders;
  int lost;
  __device__ State& state() { return *reinterpret_cast<State*>(state_bytes); }
};

class Meeting {
 public:
  __device__ Meeting(Shared& shared, Layout const& layout, Control const& control, Word* words,
                     std::uint32_t epoch)
      : shared_(shared), layout_(layout), control_(control), words_(words), epoch_(epoch) {
    padded_ = padded_partials(layout.partials);
    copy_words_ = widest_sum * padded_ + 1;
    begun_ = looked_ = begun_phase_ = cycles();
  }

  /// Adds this thread's contribution to sum k of a round (one of the block's partials) to its warp's.
  __device__ __forceinline__ void contribute(int round, int k, double value, int width) {
    value = add_lanes<32>(value);
    if (threadIdx.x % 32 == 0) shared_.warp_sum[round * width + k][threadIdx.x / 32] = value;
  }

  /// All blocks meet. With K sums, their totals are delivered into Shared::total; `finish(orders)` is then
  /// called by one thread of every block, with the orders that block 0 gave. `data`: what was written before
  /// is visible after.
  template <int K, class Finish>
  __device__ __forceinline__ void meet(Phase phase, bool data, Finish const& finish) {
    bool const traced = threadIdx.x == 0 && traced_ < control_.trace_meetings;
    std::uint64_t const arrived = traced ? cycles() : 0;
    epoch_ = epoch_ + 1 == poison ? 2 : epoch_ + 1;  // the parity alternates there too
    there_ = words_ + (epoch_ & 1u) * copies * copy_words_;
    here_ = there_ + blockIdx.x % copies * copy_words_;
    __syncthreads();
    if (is_silent()) return leave();
    std::uint64_t const together = traced ? cycles() : 0;
    if constexpr (K == 0) {
      if (threadIdx.x < copies) {
        if (data) fence_gpu();
        put(there_ + threadIdx.x * copy_words_ + blockIdx.x, 0.0);
      }
    } else {
      int const k = static_cast<int>(threadIdx.x) / 32;  // a warp for each sum
      if (k < K) publish<K>(k, data);
      if (blockIdx.x == 0 && threadIdx.x == block_threads - 1) put_orders();
    }
    if (!await<K>()) shared_.lost = 1;
    if (data && static_cast<int>(threadIdx.x) < polling_threads<K>()) fence_gpu();  // those that have polled
    __syncthreads();
    bool const whole = shared_.lost == 0;
    if (K > 0 && threadIdx.x < 32) add_levels<K>();
    std::uint64_t const met = traced ? cycles() : 0;
    if (threadIdx.x == 0) {
      if (!whole) {
        lose();
      } else {
        finish(K > 0 ? shared_.orders : 0u);
      }
    }
    __syncthreads();
    if (traced) {
      auto const iteration = static_cast<std::int32_t>(shared_.state().iteration);
      std::uint64_t const end = cycles();
      control_.trace[blockIdx.x * control_.trace_meetings + traced_++] =
          TraceEntry{begun_phase_, arrived, together, met, end, phase, iteration};
      begun_phase_ = end;
    }
  }

  __device__ std::uint32_t epoch() const { return epoch_; }

 private:
  __device__ __forceinline__ void put(Word* to, double value) const {
    auto const bits = static_cast<std::uint64_t>(__double_as_longlong(value));
    store_word(to, static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), epoch_);
  }
  __device__ static double value_of(Word const& word) {
    return __longlong_as_double(
        static_cast<long long>(static_cast<std::uint64_t>(word.part[2]) << 32 | word.part[0]));
  }
  __device__ __forceinline__ bool is_silent() const {
    return static_cast<int>(blockIdx.x) == control_.silence.block && epoch_ >= control_.silence.meeting;
  }

  // A warp adds the warps' sums of each pair and publishes them.
  template <int K>
  __device__ __forceinline__ void publish(int k, bool data) {
    int const lane = static_cast<int>(threadIdx.x) % 32;
    for (int base = 0; base < layout_.partials_a_block;
         base += 32 / warps) {  // all lanes go along: they exchange
      int const round = base + lane / warps;
      double value = round < layout_.partials_a_block ? shared_.warp_sum[round * K + k][lane % warps] : 0.0;
      value = add_lanes<warps>(value);
      int const pair = round * layout_.blocks + static_cast<int>(blockIdx.x);
      if (lane % warps < copies && round < layout_.partials_a_block &&
          pair < layout_.partials) {  // all hold the sum
        if (data) fence_gpu();
        put(there_ + lane % warps * copy_words_ + k * padded_ + pair, value);
      }
    }
  }

  // Block 0 looks at the host's orders and at its clock a few thousand times a second, and tells all with the
  // sum.
  __device__ void put_orders() {
    std::uint64_t const now = cycles();
    if (now - looked_ > control_.look_cycles) {
      looked_ = now;
      if (load_host(&control_.orders->stop) != 0) orders_ |= order_stop;
      if (now - begun_ > control_.pause_cycles) orders_ |= order_pause;
      State const& state = shared_.state();
      control_.progress->rr = state.rr;
      control_.progress->iteration = state.iteration;
    }
    for (int copy = 0; copy < copies; ++copy)
      store_word(there_ + copy * copy_words_ + widest_sum * padded_, orders_, 0, epoch_);
  }

  /// Polls until the word belongs to this epoch. False: poisoned, or the deadline passed.
  __device__ __forceinline__ bool await_word(Word const* from, Word& word) const {
    std::uint64_t const begin = cycles();
    for (std::uint32_t polls = 1;; ++polls) {
      word = load_word(from);
      if (matches(word)) return true;
      if (((word.part[1] | word.part[3]) & poison) != 0) return false;
      if (polls % 1024 == 0 && cycles() - begin > control_.deadline_cycles) return false;
    }
  }
  __device__ __forceinline__ bool matches(Word const& word) const {
    return word.part[1] == epoch_ && word.part[3] == epoch_;
  }

  template <int K>
  __device__ __forceinline__ int polling_threads() const {
    return K == 0 ? layout_.blocks : K * padded_;
  }
  /// Every thread awaits one word of all sums, or of all blocks, or more when there are more than threads; a
  /// warp has 32 neighbours of one sum and adds them.
  template <int K>
  __device__ __forceinline__ bool await() {
    int const thread = static_cast<int>(threadIdx.x);
    if constexpr (K == 0) {
      bool whole = true;
      for (int block = thread; block < layout_.blocks; block += block_threads) {
        Word word;
        whole = whole && await_word(here_ + block, word);
      }
      return whole;
    } else {
      bool whole = true;
      for (int at = thread; at - thread % 32 < K * padded_; at += block_threads) {  // a warp stays together
        double value = 0.0;
        if (at < K * padded_ && (at & (padded_ - 1)) < layout_.partials) {
          Word word{};
          whole = whole && await_word(here_ + at, word);  // one deadline for all
          value = value_of(word);
        }
        value = add_lanes<32>(value);
        if (thread % 32 == 0) shared_.level[at / 32] = value;
      }
      if (thread == block_threads - 1) {  // it has the fewest words
        Word orders{};
        whole = whole && await_word(here_ + widest_sum * padded_, orders);
        shared_.orders = orders.part[0];
      }
      return whole;
    }
  }
  /// The tree over what the warps of `await` have added: up to 128 neighbours of each sum.
  template <int K>
  __device__ __forceinline__ void add_levels() {
    int const lane = static_cast<int>(threadIdx.x), count = padded_ / 32;
    if (K * count <= 32) {  // side by side
      double sum = lane < K * count ? shared_.level[lane] : 0.0;
      for (int distance = 1; distance < count; distance *= 2) sum += exchange_lanes(sum, distance);
      if (lane < K * count && (lane & (count - 1)) == 0) shared_.total[lane / count] = sum;
    } else {  // one after the other, `count / 32` neighbours a lane
      for (int k = 0; k < K; ++k) {
        double const* const from = shared_.level + k * count;
        double sum = 0.0, waiting[3] = {};
        int const each = count < 32 ? 1 : count / 32;
        for (int i = 0; i < each; ++i)
          sum = join(waiting, lane * each < count ? from[lane * each + i] : 0.0, i);
        sum = add_lanes<32>(sum);
        if (lane == 0) shared_.total[k] = sum;
      }
    }
    meet_lanes();
  }

  __device__ void leave() {
    if (threadIdx.x == 0) lose();
    __syncthreads();
  }
  // Whoever fails tells everybody at once: poison in every word that this block would ever write.
  __device__ void lose() {
    State& state = shared_.state();
    if (state.status == Status::running) state.status = Status::peer_lost;
    if (is_silent()) return;                         // a lost block tells nobody
    for (int copy = 0; copy < 2 * copies; ++copy) {  // of both parities
      Word* const mine = words_ + copy * copy_words_;
      for (int round = 0; round < layout_.partials_a_block; ++round) {
        int const pair = round * layout_.blocks + static_cast<int>(blockIdx.x);
        if (pair >= layout_.partials) break;
        for (int k = 0; k < widest_sum; ++k) store_word(mine + k * padded_ + pair, 0, 0, poison);
      }
    }
  }

  Shared& shared_;
  Layout const& layout_;
  Control const& control_;
  Word *words_, *there_ = nullptr, *here_ = nullptr;  // all copies of this parity; the one to poll
  std::uint32_t epoch_;
  int padded_, copy_words_;
  std::uint64_t begun_, looked_;
  std::uint32_t orders_ = 0;
  std::uint64_t begun_phase_;  // of the trace
  std::int32_t traced_ = 0;
};

}  // namespace hostless::gpu
