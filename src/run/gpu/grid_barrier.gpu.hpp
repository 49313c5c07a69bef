#pragma once
// Where the blocks of a persistent kernel wait for each other: a sum is the barrier. Every block publishes
// its partial sums as flagged words, every block awaits the flagged words of all and adds them in the order
// of the plan, so nothing is broadcast and nobody is special. Values are added: lanes of a warp, warps of a
// tile, tiles; always t[i] = t[2 i] + t[2 i + 1].
//
// Flagged words are double-buffered by the parity of the epoch: a block that writes epoch e + 2 has seen all
// of e + 1, which everybody published after reading all of e.
//
// With several ranks every block stores its flagged words into the memory of all GPUs and awaits those of all
// blocks of all ranks in its own, so that a sum over ranks costs no second barrier: the tree's upper levels
// are the ranks.

#include "hostless/run/state.hpp"
#include "operate/gpu/tree.gpu.hpp"
#include "run/gpu/fields.gpu.hpp"
#include "run/gpu/shared.gpu.hpp"
#include "run/told_column.hpp"

namespace hostless::gpu {

constexpr std::uint32_t order_stop = 1, order_pause = 2;

/// What was written before a barrier is visible after it: nothing; what this rank's blocks have written; and
/// what they have stored to other ranks.
enum class Visible : std::uint8_t { nothing, here, everywhere };

/// Block: what the threads of a block share, of one right-hand side or of several.
template <Ranks ranks, class Block = Shared>
class GridBarrier {
 public:
  static constexpr bool several = ranks != Ranks::one, routed = ranks == Ranks::routed;

  /// By all threads. on_chip: what is known of the other ranks.
  __device__ GridBarrier(Block& shared, Layout const& layout, Control const& control,
                         PeersOnChip<ranks>& on_chip, FlaggedWord* flagged_words, std::uint32_t epoch)
      : shared_(shared), layout_(layout), control_(control), on_chip_(on_chip), epoch_(epoch) {
    if (threadIdx.x < warps) lay_out(static_cast<int>(threadIdx.x), flagged_words);
    if constexpr (several) {
      if (threadIdx.x < most_groups) lay_out_group(static_cast<int>(threadIdx.x));
    }
    if (several && threadIdx.x == block_threads - 1) look_around();
    if (threadIdx.x == 0) {
      shared_.begun_phase = cycles();
      shared_.traced = 0;
    }
    __syncthreads();
  }

  /// Adds this thread's contribution to sum k of a turn (one of the block's partials) to its warp's.
  __device__ __forceinline__ void contribute(int turn, int k, double value, int width) {
    value = add_lanes<32>(value);
    if (threadIdx.x % 32 == 0) shared_.warp_sum[turn * width + k][threadIdx.x / 32] = value;
  }

  /// A barrier of all blocks of all ranks. With K sums, their totals are delivered into Shared::total;
  /// `finish(orders)` is then called by one thread of every block for each right-hand side, with the orders
  /// that block 0 gave. All
  /// threads call `meanwhile()` once the block's own sums are on their way.
  template <int K, class Meanwhile, class Finish>
  HOSTLESS_LONG_KERNEL void barrier_reduce(Phase phase, Visible data, Meanwhile const& meanwhile,
                                           Finish const& finish) {
    if (threadIdx.x == 0) shared_.arrived = cycles();
    epoch_ = next_epoch(epoch_);
    __syncthreads();
    if (is_silent() || shared_.lost != 0) return leave();
    // All threads may read this, whatever they use it for: not before the barrier.
    bool const traced = threadIdx.x == 0 && shared_.traced < control_.trace_barriers;
    if (traced) {
      trace().arrived = shared_.arrived;
      trace().together = cycles();
    }
    if constexpr (K == 0) {
      if (FlaggedWord* const to = threadIdx.x < warps ? target() : nullptr; to != nullptr) {
        fence(data, shared_.word_layout.sends);
        put(to + shared_.word_layout.first + offset_of_partial(static_cast<int>(blockIdx.x)), 0.0);
      }
    } else {
      int const k = static_cast<int>(threadIdx.x) / 32;  // a warp for each sum
      if (k < K) publish<K>(k, data);
      if (blockIdx.x == 0 && threadIdx.x >= block_threads - 32) put_orders();
    }
    meanwhile();
    if (!(await_flagged_words<K>())) shared_.lost = 1;
    if (first_slot<K>() < end_slot<K>()) fence(data, shared_.word_layout.reads);  // those that have polled
    __syncthreads();
    bool const whole = shared_.lost == 0;
    if constexpr (K > 0) {
      if (threadIdx.x < 32) add_levels<K>();
    }
    if (traced) trace().met = cycles();
    if (!whole) poison_duties();
    if (threadIdx.x == 0) {
      if (!whole) {
        lose();
      } else {
        shared_.word_layout.deadline = control_.deadline_cycles;
      }
    }
    if (whole && threadIdx.x < Block::columns) finish(K > 0 ? all_orders() : 0u);
    __syncthreads();
    if (traced) {
      TraceEntry& entry = trace();
      entry.begin = shared_.begun_phase;
      entry.end = shared_.begun_phase = cycles();
      entry.phase = phase;
      entry.iteration = static_cast<std::int32_t>(told().iteration);
      ++shared_.traced;
    }
  }

  __device__ std::uint32_t epoch() const { return epoch_; }
  /// Of all ranks, with the last sum.
  __device__ std::uint32_t all_orders() const {
    static_assert(sizeof shared_.orders == sizeof(std::uint64_t));
    std::uint64_t orders = *reinterpret_cast<std::uint64_t const*>(shared_.orders);
    HOSTLESS_UNROLL
    for (int shift = 32; shift >= 8; shift /= 2) orders |= orders >> shift;
    return static_cast<std::uint32_t>(orders & 0xffu);
  }
  /// Of every rank.
  __device__ int const* partials() const { return several ? peers()->partials : &layout_.partials; }

  /// How many barriers a plan takes to bring the ghosts of a field.
  __device__ __forceinline__ int rounds() const { return several && !routed ? peers()->rounds : 1; }
  /// Round 0: sends what others read of a field, whose own rows this block has written; a barrier with `data`
  /// must follow. Later rounds: what others have sent is handed on. By duties all of that is done at once.
  __device__ __forceinline__ void send(double const* memory, int round = 0) {
    if constexpr (routed) {
      __syncthreads();
      int const which = sent_field(*peers(), memory);
      do_duties(
          next_epoch(epoch_), [&](std::int32_t row) { return memory[row]; },
          [&](PeerCopy const& item, double value) { *target_of(*peers(), item, which) = value; });
    } else if constexpr (several) {
      if (round > 0) return send_round(*peers(), memory, round);
      if (!shared_.word_layout.sends) return;
      __syncthreads();
      for (int turn = 0; turn < layout_.turns; ++turn) {
        std::int32_t const first = shared_.word_layout.send[turn][0], end = shared_.word_layout.send[turn][1];
        if (first < end) send_items(*peers(), memory, first, end);
      }
    }
  }
  /// Of a field that is sent beside another one, which by duties would go through the same staging memory.
  __device__ __forceinline__ void send_apart(double const* memory) {
    send(memory);
    if constexpr (routed) {
      barrier_reduce<0>(
          Phase::publish, Visible::everywhere, [] {}, [](std::uint32_t) {});
    }
  }
  /// use(row) for the own rows of this block that others read, once for each of their readers.
  template <class Use>
  __device__ __forceinline__ void each_sent(Use const& use) {
    if constexpr (several) {
      for (int turn = 0; turn < layout_.turns; ++turn)
        for (std::int32_t at = shared_.word_layout.send[turn][0] + static_cast<std::int32_t>(threadIdx.x);
             at < shared_.word_layout.send[turn][1]; at += block_threads)
          use(own_items()[at].from);
    }
  }
  /// The same as flagged words of this barrier; value(row) of own rows. In the one turn of this block,
  /// meanwhile.
  template <class Value>
  __device__ __forceinline__ void send_flagged_words(Value const& value) {
    if constexpr (routed) {
      FlaggedWord* const* const ghosts = peers()->halo_source_flagged_words[parity_of(epoch_)];
      do_duties(epoch_, value, [&](PeerCopy const& item, double here) {
        put_value(ghosts[item.target] + item.to, here, epoch_);
      });
    } else if constexpr (several) {
      std::int32_t const end = shared_.word_layout.send[0][1];
      for (std::int32_t at = shared_.word_layout.send[0][0] + static_cast<std::int32_t>(threadIdx.x);
           at < end; at += block_threads) {
        PeerCopy const item = peers()->item[at];
        put_value(peers()->halo_source_flagged_words[parity_of(epoch_)][item.target] + item.to,
                  value(item.from), epoch_);
      }
    }
  }
  /// Flagged words of the last barrier, by all lanes of a warp (await_flagged_words). Where they do not come,
  /// this block is lost at the next one.
  template <int together, class Address>
  __device__ __forceinline__ void await_halo_source(Address const& address, std::uint32_t wanted,
                                                    FlaggedWord (&flagged_word)[together]) {
    if (!gpu::await_flagged_words(address, wanted, flagged_word, epoch_, shared_.word_layout.deadline))
      shared_.lost = 1;
  }

 private:
  __device__ __forceinline__ auto const* peers() const { return on_chip_.view(); }
  /// Those that FlaggedWordLayout::send counts.
  __device__ __forceinline__ PeerCopy const* own_items() const {
    if constexpr (routed) {
      return peers()->copies;
    } else {
      return peers()->item;
    }
  }
  /// This block's part of an exchange, whose words are of this epoch: store(item, value) for what goes to a
  /// ghost, value(row) of own rows. What does not come loses this block at the next barrier.
  template <class Value, class Store>
  __device__ __forceinline__ void do_duties(std::uint32_t epoch, Value const& value, Store const& store) {
    FlaggedWord* const* const staged = peers()->staged[parity_of(epoch)];
    auto const deliver = [&](PeerCopy const& item, double here) {
      if (item.to_staging) {
        put_value(staged[item.target] + item.to, here, epoch);
      } else {
        store(item, here);
      }
    };
    for (std::int32_t at = on_chip_.first[0] + static_cast<std::int32_t>(threadIdx.x); at < on_chip_.first[1];
         at += block_threads) {
      PeerCopy const item = peers()->copies[at];
      deliver(item, value(item.from));
    }
    if (on_chip_.first[1] == on_chip_.first[peers()->levels] || any_lane(shared_.lost != 0)) return;
    if (!pass_on(*peers(), on_chip_.first, epoch, shared_.word_layout.deadline, deliver)) shared_.lost = 1;
  }
  /// In all words of duties, so that who awaits them is held up no longer.
  __device__ void poison_duties() const {
    if constexpr (routed) {
      if (is_silent()) return;
      for (std::int32_t at = on_chip_.first[0] + static_cast<std::int32_t>(threadIdx.x);
           at < on_chip_.first[peers()->levels]; at += block_threads) {
        PeerCopy const item = peers()->copies[at];
        for (int parity = 0; parity < 2; ++parity) {
          FlaggedWord* const to =
              (item.to_staging ? peers()->staged : peers()->halo_source_flagged_words)[parity][item.target];
          if (to != nullptr) store_flagged_word(to + item.to, 0, 0, poison);
        }
      }
    }
  }
  __device__ __forceinline__ TraceEntry& trace() const {
    return control_.trace[static_cast<std::int32_t>(blockIdx.x) * control_.trace_barriers + shared_.traced];
  }
  /// A fence of the whole system waits for all that has been stored to other GPUs: only blocks that store or
  /// read there need it.
  __device__ static __forceinline__ void fence(Visible data, bool concerns_others) {
    if (data == Visible::nothing) return;
    if (several && data == Visible::everywhere && concerns_others) {
      fence_system();
    } else {
      fence_gpu();
    }
  }
  /// By one thread: what this block sends, and whether its rows read ghosts. What is handed on concerns all.
  __device__ void look_around() {
    FlaggedWordLayout& p = shared_.word_layout;
    Tiling const& tiling = layout_.tiling;
    int const slices = tiling.slices;
    p.sends = p.reads = !routed && peers()->rounds > 1;
    for (int turn = 0; turn < layout_.turns; ++turn) {
      int const first = (turn * layout_.blocks + static_cast<int>(blockIdx.x)) * slices_of_block;
      int const last = first + slices_of_block < slices ? first + slices_of_block : slices;
      if constexpr (routed) {
        look_at_duties(turn);
      } else {
        p.send[turn][0] = first < slices ? peers()->first_of_slice[first] : 0;
        p.send[turn][1] = first < slices ? peers()->first_of_slice[last] : 0;
      }
      if (first >= slices) continue;
      std::int32_t const begin = shared_.first_block_row[turn][0],
                         end = shared_.first_block_row[turn][slices_of_block];
      p.sends = p.sends || p.send[turn][0] < p.send[turn][1];
      p.reads = p.reads || (layout_.ghosts_below > 0 && begin < layout_.farthest) ||
                (layout_.ghosts_above > 0 && end + layout_.farthest > tiling.block_rows);
    }
  }
  /// All own items are of the first turn.
  __device__ void look_at_duties(int turn) {
    int const levels = peers()->levels;
    for (int level = 0; level <= levels; ++level)
      on_chip_.first[level] = peers()->first[static_cast<int>(blockIdx.x) * levels + level];
    FlaggedWordLayout& p = shared_.word_layout;
    p.send[turn][0] = turn == 0 ? on_chip_.first[0] : 0;
    p.send[turn][1] = turn == 0 ? on_chip_.first[1] : 0;
    p.sends = on_chip_.first[0] < on_chip_.first[levels];
  }
  __device__ void lay_out(int lane, FlaggedWord* flagged_words) {
    int const count = several ? peers()->ranks : 1;
    int const groups = groups_of(several ? most_of(peers()->partials, count) : layout_.partials);
    int const parity_flagged_words =
        flagged_words_of_parity(group_flagged_words * groups, count, Block::columns);
    FlaggedWordLayout& p = shared_.word_layout;
    for (int parity = 0; parity < 2; ++parity) {
      FlaggedWord* const there = several && lane < count ? peers()->flagged_words[lane] : flagged_words;
      p.target[parity][lane] = lane < count ? there + parity * parity_flagged_words : nullptr;
      p.here[parity] = flagged_words + parity * parity_flagged_words;
    }
    if (lane != 0) return;
    p.ranks = count;
    p.groups = count * groups;
    p.sum_flagged_words = group_flagged_words * p.groups;
    p.levels = levels_of(group_flagged_words * groups, count);
    p.first = group_flagged_words * (1 + (several ? peers()->rank * groups : 0));
    p.deadline = control_.first_cycles;
    p.begun = p.looked = cycles();
  }
  /// What is known of group `at` of all ranks'.
  __device__ void lay_out_group(int at) {
    int const groups = groups_of(most_of(peers()->partials, peers()->ranks));
    int const rank = at / groups, inside = at % groups;
    if (rank >= peers()->ranks) return;
    on_chip_.group[at] = {share_of_group(peers()->partials[rank], inside),
                          share_of_group(peers()->blocks[rank], inside),
                          static_cast<std::uint8_t>(rank * power_of_two(groups) + inside), 0};
  }
  __device__ static std::uint8_t share_of_group(int flagged_words, int group) {
    int const rest = flagged_words - group * group_flagged_words;
    return static_cast<std::uint8_t>(rest < 0 ? 0 : rest < group_flagged_words ? rest : group_flagged_words);
  }
  /// Where this lane stores now, or null.
  __device__ __forceinline__ FlaggedWord* target() const {
    return shared_.word_layout.target[parity_of(epoch_)][threadIdx.x % warps];
  }
  __device__ static int most_of(int const* of, int count) {
    int most = 0;
    for (int k = 0; k < count; ++k) most = of[k] > most ? of[k] : most;
    return most;
  }
  __device__ __forceinline__ void put(FlaggedWord* to, double value) const { put_value(to, value, epoch_); }
  __device__ __forceinline__ bool is_silent() const {
    return static_cast<int>(blockIdx.x) == control_.silence.block && epoch_ >= control_.silence.barrier;
  }

  // A warp adds the warps' sums of each tile and publishes them.
  template <int K>
  __device__ __forceinline__ void publish(int k, Visible data) {
    int const lane = static_cast<int>(threadIdx.x) % 32;
    FlaggedWord* const to = target();
    for (int base = 0; base < layout_.partials_a_block;
         base += 32 / warps) {  // all lanes go along: they exchange
      int const turn = base + lane / warps;
      double value = turn < layout_.partials_a_block ? shared_.warp_sum[turn * K + k][lane % warps] : 0.0;
      value = add_lanes<warps>(value);
      int const tile = turn * layout_.blocks + static_cast<int>(blockIdx.x);
      if (to != nullptr && turn < layout_.partials_a_block && tile < layout_.partials) {  // all hold the sum
        fence(data, shared_.word_layout.sends);
        put(to + k * shared_.word_layout.sum_flagged_words + shared_.word_layout.first +
                offset_of_partial(tile),
            value);
      }
    }
  }

  /// The right-hand side that tells how far all are.
  __device__ State const& told() const {
    if constexpr (Block::columns == 1) {
      return shared_.state();
    } else {
      int const column = told_column(shared_.states(), Block::columns);
      return shared_.state(column < 0 ? 0 : column);
    }
  }
  // Block 0 looks at the host's orders and at its clock a few thousand times a second, and tells all with the
  // sum. By its last warp.
  __device__ void put_orders() {
    std::uint64_t const now = cycles();
    FlaggedWordLayout& p = shared_.word_layout;
    if (threadIdx.x == block_threads - 1 && now - p.looked > control_.look_cycles) {
      p.looked = now;
      if (load_host(&control_.orders->stop) != 0) shared_.own_orders |= order_stop;
      if (now - p.begun > control_.pause_cycles) shared_.own_orders |= order_pause;
      State const& state = told();
      control_.progress->column = static_cast<std::int32_t>(&state - shared_.states());
      control_.progress->rr = state.rr;
      control_.progress->iteration = state.iteration;
    }
    sync_lanes();
    FlaggedWord* const to = threadIdx.x < block_threads - 32 + warps ? target() : nullptr;
    if (to != nullptr) store_flagged_word(to + (several ? peers()->rank : 0), shared_.own_orders, 0, epoch_);
  }

  /// Slots are a warp's turns to await a group: 0 is the orders', which come with sums, then the groups of
  /// one sum after the other. The first warps have other work too, so they get less.
  template <int K>
  __device__ static __forceinline__ int first_slot() {
    return warps - 1 - static_cast<int>(threadIdx.x) / 32 + (K == 0 ? 1 : 0);
  }
  template <int K>
  __device__ __forceinline__ int end_slot() const {
    return 1 + (K == 0 ? 1 : K) * shared_.word_layout.groups;
  }
  /// How many flagged words of a slot are awaited; `level`: where their sum belongs.
  template <int K>
  __device__ __forceinline__ int flagged_words_of_slot(int slot, int& level) const {
    FlaggedWordLayout const& p = shared_.word_layout;
    if (K > 0 && slot == 0) return p.ranks;
    int at = slot - 1, before = 0;
    HOSTLESS_UNROLL
    for (int k = 1; k < K; ++k) {
      if (at < p.groups) break;
      at -= p.groups;
      before += p.levels;
    }
    if constexpr (several) {
      Group const group = on_chip_.group[at];
      level = before + group.level;
      return K == 0 ? group.blocks : group.partials;
    } else {
      level = before + at;
      return (K == 0 ? layout_.blocks : layout_.partials) - at * group_flagged_words;
    }
  }
  /// Every warp awaits its slots and adds the neighbours of each.
  template <int K>
  __device__ __forceinline__ bool await_flagged_words() {
    int const lane = static_cast<int>(threadIdx.x) % 32, end = end_slot<K>();
    for (std::uint64_t const begin = cycles(); cycles() - begin < control_.travel_cycles;) {
    }
    bool whole = true;
    for (int slot = first_slot<K>(); slot < end; slot += warps) {
      FlaggedWord flagged_word[flagged_words_of_lane];
      int level = 0;
      int const count = flagged_words_of_slot<K>(slot, level);
      bool const is_orders = K > 0 && slot == 0;  // those of ranks, a lane each
      std::uint32_t wanted = 0;
      HOSTLESS_UNROLL
      for (int u = 0; u < flagged_words_of_lane; ++u)
        if ((is_orders ? u * 32 + lane : lane * flagged_words_of_lane + u) < count) wanted |= 1u << u;
      FlaggedWord const* const from =
          shared_.word_layout.here[parity_of(epoch_)] + slot * group_flagged_words + lane;
      whole = whole &&
              gpu::await_flagged_words([&](int u) { return from + u * 32; }, wanted, flagged_word, epoch_,
                                       shared_.word_layout.deadline);  // one deadline for all
      if constexpr (K > 0) {
        if (is_orders) {
          if (wanted != 0) shared_.orders[lane] = static_cast<std::uint8_t>(flagged_word[0].part[0]);
          continue;
        }
        double value[flagged_words_of_lane];
        HOSTLESS_UNROLL
        for (int u = 0; u < flagged_words_of_lane; ++u)
          value[u] = (wanted >> u & 1u) != 0 ? value_of(flagged_word[u]) : 0.0;
        static_assert(flagged_words_of_lane == 2);
        double const sum = add_lanes<32>(value[0] + value[1]);
        if (lane == 0) shared_.level[level] = sum;
      }
    }
    return whole;
  }
  /// The tree over the groups' sums, by one warp.
  template <int K>
  __device__ __forceinline__ void add_levels() {
    static_assert(most_groups <= 2 * 32);
    int const lane = static_cast<int>(threadIdx.x), count = shared_.word_layout.levels;
    double sum[K];
    HOSTLESS_UNROLL
    for (int k = 0; k < K; ++k) {
      double const* const from = shared_.level + k * count;
      sum[k] = count > 32 ? from[2 * lane] + from[2 * lane + 1] : lane < count ? from[lane] : 0.0;
    }
    for (int distance = 1; distance < count && distance < 32; distance *= 2) {
      HOSTLESS_UNROLL
      for (int k = 0; k < K; ++k) sum[k] += exchange_lanes(sum[k], distance);
    }
    if (lane == 0) {
      HOSTLESS_UNROLL
      for (int k = 0; k < K; ++k) shared_.total[k] = sum[k];
    }
    sync_lanes();
  }

  __device__ void leave() {
    if (threadIdx.x == 0) lose();
    poison_duties();
    __syncthreads();
  }
  // Whoever fails tells everybody at once: poison in every flagged word that this block would ever write, on
  // all ranks.
  __device__ void lose() {
    for (int c = 0; c < Block::columns; ++c)
      if (shared_.state(c).status == Status::running) shared_.state(c).status = Status::peer_lost;
    if (is_silent()) return;  // a lost block tells nobody
    FlaggedWordLayout const& p = shared_.word_layout;
    for (int rank = 0; rank < p.ranks; ++rank) {
      for (int parity = 0; parity < 2; ++parity) {
        FlaggedWord* const mine = p.target[parity][rank] + p.first;
        for (int turn = 0; turn < layout_.partials_a_block; ++turn) {
          int const tile = turn * layout_.blocks + static_cast<int>(blockIdx.x);
          if (tile >= layout_.partials) break;
          for (int k = 0; k < Block::widest; ++k)
            store_flagged_word(mine + k * p.sum_flagged_words + offset_of_partial(tile), 0, 0, poison);
        }
      }
    }
  }

  Block& shared_;
  Layout const& layout_;
  Control const& control_;
  PeersOnChip<ranks>& on_chip_;
  std::uint32_t epoch_;
};

}  // namespace hostless::gpu
