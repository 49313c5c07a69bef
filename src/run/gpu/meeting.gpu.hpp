#pragma once
// Where the blocks of a persistent kernel meet: a sum is the barrier. Every block publishes its partial sums
// as words, every block awaits the words of all and adds them in the order of the plan, so nothing is
// broadcast and nobody is special. Values are added: lanes of a warp, warps of a pair of slices, pairs;
// always t[i] = t[2 i] + t[2 i + 1].
//
// Words are double-buffered by the parity of the epoch: a block that writes epoch e + 2 has seen all of e +
// 1, which everybody published after reading all of e.
//
// With several ranks every block stores its words into the memory of all GPUs and awaits those of all blocks
// of all ranks in its own, so that a sum over ranks costs no second meeting: the tree's upper levels are the
// ranks.

#include "device/runtime.hpp"
#include "hostless/base/order.hpp"
#include "hostless/run/state.hpp"
#include "run/gpu/fields.gpu.hpp"
#include "run/gpu/launch.hpp"
#include "run/gpu/peers.gpu.hpp"
#include "run/gpu/tree.gpu.hpp"
#include "run/gpu/words.gpu.hpp"

namespace hostless::gpu {

constexpr std::uint32_t order_stop = 1, order_pause = 2;

/// Words of one copy: for each sum the ranks' `padded` partials, rank after rank, then the orders of every
/// rank's block 0.
HOSTLESS_ANYWHERE int padded_partials(int partials) { return power_of_two(partials < 32 ? 32 : partials); }
HOSTLESS_ANYWHERE int words_of_copy(int partials, int ranks) {
  return widest_sum * power_of_two(ranks) * padded_partials(partials) + ranks;
}
/// Every word is stored several times, and each block polls one copy: all blocks at one line of the cache
/// stand in a queue. A lane stores each copy of each rank: 16 lanes know a sum.
constexpr int most_copies = 4;
HOSTLESS_ANYWHERE int copies_of(int ranks) {
  return warps / power_of_two(ranks) < most_copies ? warps / power_of_two(ranks) : most_copies;
}

/// Where the words of this rank's blocks go, and those of all ranks come; the same all the time, hence no
/// registers.
struct Places {
  Word* target[warps];  ///< the copies that lanes store, of the first parity; null: none for this lane
  Word* words;          ///< of this rank, where it awaits them
  int ranks, copies, padded, shift, sum_words, copy_words;  ///< padded: words of a rank in a sum, 2^shift
  int partials[most_ranks], blocks[most_ranks];             ///< of each rank; 0 where there is none
  int first;                                                ///< this rank's first word of a sum
  std::uint64_t deadline, begun, looked;
  std::int32_t send[most_rounds][2];  ///< what this block sends of each of its pairs: most send nothing
  bool sends, reads;                  ///< anything to other ranks; what they have sent
};

/// What a block knows of the other ranks, in shared memory: it is looked at all the time.
template <bool several>
struct PeersNear {
  static_assert(sizeof(PeerView) % sizeof(std::uint32_t) == 0);
  alignas(16) std::uint32_t part[several ? sizeof(PeerView) / sizeof(std::uint32_t) : 1];
  __device__ void copy(PeerView const* from) {
    if constexpr (several) {
      auto const* const words = reinterpret_cast<std::uint32_t const*>(from);
      for (int at = static_cast<int>(threadIdx.x); at < static_cast<int>(sizeof part / sizeof part[0]);
           at += block_threads)
        part[at] = words[at];
    }
  }
  __device__ PeerView const* view() const {
    return several ? reinterpret_cast<PeerView const*>(part) : nullptr;
  }
};

/// What the threads of a block share beside the fields.
struct Shared {
  Places places;
  alignas(16) unsigned char state_bytes[sizeof(State)];
  double warp_sum[most_rounds * widest_sum][warps];
  double level[widest_sum * most_pairs / 32];  ///< sums of 32 neighbours
  double total[widest_sum];
  std::int32_t first_leaf[most_rounds][slices_of_block + 1];  ///< of this block's slices
  std::uint32_t orders[most_ranks];                           ///< of every rank's block 0
  std::uint32_t own_orders;
  int lost;
  __device__ State& state() { return *reinterpret_cast<State*>(state_bytes); }
};

/// By all threads, first of all.
template <bool several>
__device__ __forceinline__ void enter_kernel(Shared& shared, PeersNear<several>& near, Layout const& layout,
                                             PeerView const* peers, State const& state) {
  near.copy(peers);
  if (threadIdx.x == 0) {
    shared.state() = state;
    if (blockIdx.x != 0) shared.state().history = nullptr;  // one block writes it
    shared.own_orders = 0;
    shared.lost = 0;
  }
  for (int at = static_cast<int>(threadIdx.x); at < layout.rounds * (slices_of_block + 1);
       at += block_threads) {
    int const round = at / (slices_of_block + 1), which = at % (slices_of_block + 1);
    int const slice = (round * layout.blocks + static_cast<int>(blockIdx.x)) * slices_of_block + which;
    shared.first_leaf[round][which] = static_cast<std::int32_t>(
        layout.tiling.first(slice < layout.tiling.slices ? slice : layout.tiling.slices));
  }
  __syncthreads();
}

/// `several`: ranks. A kernel of its own for one rank keeps its registers.
template <bool several>
class Meeting {
 public:
  /// `peers`: null with one rank.
  __device__ Meeting(Shared& shared, Layout const& layout, Control const& control, PeerView const* peers,
                     Word* words, std::uint32_t epoch)
      : shared_(shared), layout_(layout), control_(control), epoch_(epoch) {
    if constexpr (several) peers_ = peers;
    if (threadIdx.x < warps) place(static_cast<int>(threadIdx.x), words);
    if (several && threadIdx.x == block_threads - 1) look_around();
    begun_phase_ = cycles();
    __syncthreads();
  }

  /// Adds this thread's contribution to sum k of a round (one of the block's partials) to its warp's.
  __device__ __forceinline__ void contribute(int round, int k, double value, int width) {
    value = add_lanes<32>(value);
    if (threadIdx.x % 32 == 0) shared_.warp_sum[round * width + k][threadIdx.x / 32] = value;
  }

  /// All blocks of all ranks meet. With K sums, their totals are delivered into Shared::total;
  /// `finish(orders)` is then called by one thread of every block, with the orders that block 0 gave. `data`:
  /// what was written before is visible after. All threads call `meanwhile()` once the block's own sums are
  /// on their way.
  template <int K, class Meanwhile, class Finish>
  __device__ __forceinline__ void meet(Phase phase, bool data, Meanwhile const& meanwhile,
                                       Finish const& finish) {
    bool const traced = threadIdx.x == 0 && traced_ < control_.trace_meetings;
    std::uint64_t const arrived = traced ? cycles() : 0;
    epoch_ = next_epoch(epoch_);
    __syncthreads();
    if (is_silent() || shared_.lost != 0) return leave();
    std::uint64_t const together = traced ? cycles() : 0;
    if constexpr (K == 0) {
      if (Word* const to = threadIdx.x < warps ? target() : nullptr; to != nullptr) {
        if (data) fence(shared_.places.sends);
        put(to + shared_.places.first + static_cast<int>(blockIdx.x), 0.0);
      }
    } else {
      int const k = static_cast<int>(threadIdx.x) / 32;  // a warp for each sum
      if (k < K) publish<K>(k, data);
      if (blockIdx.x == 0 && threadIdx.x >= block_threads - 32) put_orders();
    }
    meanwhile();
    if (!(await_words<K>())) shared_.lost = 1;
    if (data && static_cast<int>(threadIdx.x) < polling_threads<K>())  // those that have polled
      fence(shared_.places.reads);
    __syncthreads();
    bool const whole = shared_.lost == 0;
    if (K > 0 && threadIdx.x < 32) add_levels<K>();
    std::uint64_t const met = traced ? cycles() : 0;
    if (threadIdx.x == 0) {
      if (!whole) {
        lose();
      } else {
        shared_.places.deadline = control_.deadline_cycles;
        finish(K > 0 ? all_orders() : 0u);
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
  /// Of all ranks, with the last sum.
  __device__ std::uint32_t all_orders() const {
    std::uint32_t orders = shared_.orders[0];
    if constexpr (several)
      for (int rank = 1; rank < shared_.places.ranks; ++rank) orders |= shared_.orders[rank];
    return orders;
  }

  /// How many meetings a plan takes to bring the ghosts of a field.
  __device__ __forceinline__ int levels() const { return several ? peers()->levels : 1; }
  /// Level 0: sends what others read of a field, whose own rows this block has written; a meeting with `data`
  /// must follow. Later levels: what others have sent is handed on.
  __device__ __forceinline__ void send(double const* memory, int level = 0) {
    if constexpr (several) {
      if (level > 0) return send_level(*peers(), memory, level);
      if (!shared_.places.sends) return;
      __syncthreads();
      for (int round = 0; round < layout_.rounds; ++round) {
        std::int32_t const first = shared_.places.send[round][0], end = shared_.places.send[round][1];
        if (first < end) send_items(*peers(), memory, first, end);
      }
    }
  }
  /// use(row) for the own rows of this block that others read, once for each of their readers.
  template <class Use>
  __device__ __forceinline__ void each_sent(Use const& use) {
    if constexpr (several) {
      for (int round = 0; round < layout_.rounds; ++round)
        for (std::int32_t at = shared_.places.send[round][0] + static_cast<std::int32_t>(threadIdx.x);
             at < shared_.places.send[round][1]; at += block_threads)
          use(peers()->item[at].from);
    }
  }
  /// The same as words of this meeting; value(row) of own rows. In the one round of this block, meanwhile.
  template <class Value>
  __device__ __forceinline__ void send_words(Value const& value) {
    if constexpr (several) {
      std::int32_t const end = shared_.places.send[0][1];
      for (std::int32_t at = shared_.places.send[0][0] + static_cast<std::int32_t>(threadIdx.x); at < end;
           at += block_threads) {
        PeerCopy const item = peers()->item[at];
        put_value(peers()->shown_words[parity_of(epoch_)][item.target] + item.to, value(item.from), epoch_);
      }
    }
  }
  /// A word of the last meeting. Where it does not come, this block is lost at the next one.
  __device__ __forceinline__ void await_shown(Word const* from, Word& word) {
    if (!await_word(from, word)) shared_.lost = 1;
  }

 private:
  __device__ __forceinline__ PeerView const* peers() const {
    if constexpr (several) {
      return peers_;
    } else {
      return nullptr;
    }
  }
  /// A fence of the whole system waits for all that has been stored to other GPUs: only where it must.
  __device__ static __forceinline__ void fence(bool of_system) {
    if (several && of_system) {
      fence_system();
    } else {
      fence_gpu();
    }
  }
  /// By one thread: what this block sends, and whether its rows read ghosts. What is handed on concerns all.
  __device__ void look_around() {
    Places& p = shared_.places;
    Tiling const& tiling = layout_.tiling;
    int const slices = tiling.slices;
    p.sends = p.reads = peers()->levels > 1;
    for (int round = 0; round < layout_.rounds; ++round) {
      int const first = (round * layout_.blocks + static_cast<int>(blockIdx.x)) * slices_of_block;
      int const last = first + slices_of_block < slices ? first + slices_of_block : slices;
      p.send[round][0] = first < slices ? peers()->first_of_slice[first] : 0;
      p.send[round][1] = first < slices ? peers()->first_of_slice[last] : 0;
      if (first >= slices) continue;
      std::int32_t const begin = shared_.first_leaf[round][0],
                         end = shared_.first_leaf[round][slices_of_block];
      p.sends = p.sends || p.send[round][0] < p.send[round][1];
      p.reads = p.reads || (layout_.ghosts_below > 0 && begin < layout_.farthest) ||
                (layout_.ghosts_above > 0 && end + layout_.farthest > tiling.leaves);
    }
  }
  template <int K>
  __device__ __forceinline__ bool await_words() {
    if constexpr (several) {
      return await_ranks<K>();
    } else {
      return await<K>();
    }
  }
  __device__ void place(int lane, Word* words) {
    int const ranks = several ? peers()->ranks : 1, copies = copies_of(ranks);
    int const padded = padded_partials(several ? most_of(peers()->partials, ranks) : layout_.partials);
    int const copy_words = words_of_copy(padded, ranks);
    Places& p = shared_.places;
    Word* const there = !several ? words : lane / copies < ranks ? peers()->words[lane / copies] : nullptr;
    p.target[lane] = lane < copies * ranks ? there + lane % copies * copy_words : nullptr;
    if (several && lane < most_ranks) {
      p.partials[lane] = lane < ranks ? peers()->partials[lane] : 0;
      p.blocks[lane] = lane < ranks ? peers()->blocks[lane] : 0;
    }
    if (lane != 0) return;
    p.words = words;
    p.ranks = ranks;
    p.copies = copies;
    p.padded = padded;
    p.shift = 31 - __clz(padded);
    p.sum_words = power_of_two(ranks) * padded;
    p.copy_words = copy_words;
    p.first = several ? peers()->rank * padded : 0;
    p.deadline = control_.first_cycles;
    p.begun = p.looked = cycles();
  }
  __device__ __forceinline__ int parity_words() const {
    return parity_of(epoch_) * shared_.places.copies * shared_.places.copy_words;
  }
  /// The copy of this parity that this lane stores, or null.
  __device__ __forceinline__ Word* target() const {
    Word* const to = shared_.places.target[threadIdx.x % warps];
    return to == nullptr ? nullptr : to + parity_words();
  }
  /// The copy that this block polls.
  __device__ __forceinline__ Word const* here() const {
    Places const& p = shared_.places;
    return p.words + parity_words() + static_cast<int>(blockIdx.x) % p.copies * p.copy_words;
  }
  __device__ static int most_of(int const* of, int count) {
    int most = 0;
    for (int k = 0; k < count; ++k) most = of[k] > most ? of[k] : most;
    return most;
  }
  __device__ __forceinline__ void put(Word* to, double value) const { put_value(to, value, epoch_); }
  __device__ __forceinline__ bool is_silent() const {
    return static_cast<int>(blockIdx.x) == control_.silence.block && epoch_ >= control_.silence.meeting;
  }

  // A warp adds the warps' sums of each pair and publishes them.
  template <int K>
  __device__ __forceinline__ void publish(int k, bool data) {
    int const lane = static_cast<int>(threadIdx.x) % 32;
    Word* const to = target();
    for (int base = 0; base < layout_.partials_a_block;
         base += 32 / warps) {  // all lanes go along: they exchange
      int const round = base + lane / warps;
      double value = round < layout_.partials_a_block ? shared_.warp_sum[round * K + k][lane % warps] : 0.0;
      value = add_lanes<warps>(value);
      int const pair = round * layout_.blocks + static_cast<int>(blockIdx.x);
      if (to != nullptr && round < layout_.partials_a_block && pair < layout_.partials) {  // all hold the sum
        if (data) fence(shared_.places.sends);
        put(to + k * shared_.places.sum_words + shared_.places.first + pair, value);
      }
    }
  }

  // Block 0 looks at the host's orders and at its clock a few thousand times a second, and tells all with the
  // sum. By its last warp.
  __device__ void put_orders() {
    std::uint64_t const now = cycles();
    Places& p = shared_.places;
    if (threadIdx.x == block_threads - 1 && now - p.looked > control_.look_cycles) {
      p.looked = now;
      if (load_host(&control_.orders->stop) != 0) shared_.own_orders |= order_stop;
      if (now - p.begun > control_.pause_cycles) shared_.own_orders |= order_pause;
      State const& state = shared_.state();
      control_.progress->rr = state.rr;
      control_.progress->iteration = state.iteration;
    }
    meet_lanes();
    Word* const to = threadIdx.x < block_threads - 32 + warps ? target() : nullptr;
    if (to != nullptr)
      store_word(to + widest_sum * p.sum_words + (several ? peers()->rank : 0), shared_.own_orders, 0,
                 epoch_);
  }

  __device__ __forceinline__ bool await_word(Word const* from, Word& word) const {
    return gpu::await_word(from, word, epoch_, shared_.places.deadline);
  }

  template <int K>
  __device__ __forceinline__ int polling_threads() const {
    return K == 0 && !several ? layout_.blocks : (K == 0 ? 1 : K) * shared_.places.sum_words;
  }
  /// Every thread awaits one word of all sums, or of all blocks, or more when there are more than threads; a
  /// warp has 32 neighbours of one sum and adds them.
  template <int K>
  __device__ __forceinline__ bool await() {
    int const thread = static_cast<int>(threadIdx.x);
    Word const* const from = here();
    if constexpr (K == 0) {
      bool whole = true;
      for (int block = thread; block < layout_.blocks; block += block_threads) {
        Word word;
        whole = whole && await_word(from + block, word);
      }
      return whole;
    } else {
      int const padded = shared_.places.padded;
      bool whole = true;
      for (int at = thread; at - thread % 32 < K * padded; at += block_threads) {  // a warp stays together
        double value = 0.0;
        if (at < K * padded && (at & (padded - 1)) < layout_.partials) {
          Word word{};
          whole = whole && await_word(from + at, word);  // one deadline for all
          value = value_of(word);
        }
        value = add_lanes<32>(value);
        if (thread % 32 == 0) shared_.level[at / 32] = value;
      }
      if (thread == block_threads - 1) {  // it has the fewest words
        Word orders{};
        whole = whole && await_word(from + widest_sum * padded, orders);
        shared_.orders[0] = orders.part[0];
      }
      return whole;
    }
  }
  /// The same for the blocks of all ranks: several words a thread, whose loads are in flight together.
  template <int K>
  __device__ __forceinline__ bool await_ranks() {
    constexpr int together = 4, sums = K == 0 ? 1 : K;
    int const thread = static_cast<int>(threadIdx.x);
    Places const& p = shared_.places;
    int const sum_words = p.sum_words, padded = p.padded;
    Word const* const from = here();
    int const* const counts = K == 0 ? p.blocks : p.partials;
    bool whole = true;
    for (int base = 0; base < sums * sum_words; base += together * block_threads) {
      Word word[together];
      bool exists[together];
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u) {
        int const at = base + u * block_threads + thread, inside = at & (sum_words - 1);
        exists[u] = at < sums * sum_words && (inside & (padded - 1)) < counts[inside >> p.shift];
        if (exists[u]) word[u] = load_word(from + at);
      }
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u) {
        int const at = base + u * block_threads + thread;
        if (at - thread % 32 >= sums * sum_words) break;  // a warp stays together
        double value = 0.0;
        if (exists[u]) {
          if (!matches(word[u], epoch_)) whole = whole && await_word(from + at, word[u]);
          value = value_of(word[u]);
        }
        if constexpr (K > 0) {
          value = add_lanes<32>(value);
          if (thread % 32 == 0) shared_.level[at / 32] = value;
        }
      }
    }
    if (K > 0 && thread >= block_threads - p.ranks) {
      int const rank = block_threads - 1 - thread;
      Word orders{};
      whole = whole && await_word(from + widest_sum * sum_words + rank, orders);
      shared_.orders[rank] = orders.part[0];
    }
    return whole;
  }
  /// The tree over what the warps of `await` have added: up to 128 neighbours of each sum.
  template <int K>
  __device__ __forceinline__ void add_levels() {
    int const lane = static_cast<int>(threadIdx.x), count = shared_.places.sum_words / 32;
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
  // Whoever fails tells everybody at once: poison in every word that this block would ever write, on all
  // ranks.
  __device__ void lose() {
    State& state = shared_.state();
    if (state.status == Status::running) state.status = Status::peer_lost;
    if (is_silent()) return;  // a lost block tells nobody
    Places const& p = shared_.places;
    for (int rank = 0; rank < (several ? peers()->ranks : 1); ++rank) {
      Word* const words = (several ? peers()->words[rank] : p.words) + p.first;
      for (int copy = 0; copy < 2 * p.copies; ++copy) {  // of both parities
        Word* const mine = words + copy * p.copy_words;
        for (int round = 0; round < layout_.partials_a_block; ++round) {
          int const pair = round * layout_.blocks + static_cast<int>(blockIdx.x);
          if (pair >= layout_.partials) break;
          for (int k = 0; k < widest_sum; ++k) store_word(mine + k * p.sum_words + pair, 0, 0, poison);
        }
      }
    }
  }

  Shared& shared_;
  Layout const& layout_;
  Control const& control_;
  PeerView const* peers_ = nullptr;
  std::uint32_t epoch_;
  std::uint64_t begun_phase_;  // of the trace
  std::int32_t traced_ = 0;
};

/// Last of all: nobody reads the state or the epoch any more, every block has passed its last meeting, or was
/// lost.
template <bool several>
__device__ __forceinline__ void leave_kernel(Shared& shared, Meeting<several> const& meeting, State& state,
                                             std::uint32_t& epoch) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    double* const history = state.history;
    state = shared.state();
    state.history = history;
    epoch = meeting.epoch();
  }
}

}  // namespace hostless::gpu
