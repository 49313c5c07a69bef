#pragma once
// A method's text as one kernel: every block executes all of it; phases are separated by barriers that carry
// the sums. 512 threads a block, a block a multiprocessor, an accumulator each; sums by row, then the tree.

#include <type_traits>
#include <utility>

#include "run/gpu/grid_barrier.gpu.hpp"

namespace hostless::gpu {

/// Inner: float where iterations multiply with a rounded matrix. values: how many of a State's are used.
template <int B, class Inner, Ranks ranks, int values>
class PersistentRun {
 public:
  static constexpr int batch = batch_block_rows<B>;
  static constexpr bool several = ranks != Ranks::one;

  __device__ PersistentRun(Shared& shared, RowsView const& rows, Layout const& layout,
                           GridBarrier<ranks>& barrier)
      : shared_(shared),
        left_(layout.shared_values - layout.matrix_values - layout.window_values),
        rows_(rows),
        layout_(layout),
        barrier_(barrier) {}

  /// Copies the diagonals into shared memory, if they are to live there: entry d of slot n of a thread at
  /// (n * count + d) * block_threads + thread. Of both matrices it is the one that iterations begin with.
  __device__ void keep_matrix() {
    if constexpr (B == 1) {
      DiagonalsView const& a = rows_.diagonals;
      if (layout_.matrix_values == 0) return;
      each_batch([&](Batch<batch> const& b, int first_slot, int) {
        for (int s = 0; s < batch; ++s) {
          for (int d = 0; d < a.count; ++d) {
            int const from = b.block_row(s) + (d < a.mirrored ? a.offset[d] : 0);
            pool()[((first_slot + s) * a.count + d) * block_threads + threadIdx.x] =
                static_cast<double>(load_once(values_of<Inner>(a) + a.plane[d] * a.stride + from));
          }
        }
      });
    }
  }

  __device__ __forceinline__ Field keep(double* memory) {
    Field const field = scratch(memory);
    each_batch([&](Batch<batch> const& b, int first_slot, int) {
      if (first_slot < field.on_chip)
        Staged<B, batch>(Field{memory, 0, 0}, b, first_slot).store(field, b, first_slot);
    });
    return field;
  }
  __device__ __forceinline__ Field scratch(double* memory) {
    int const slot_values = B * block_threads;
    int on_chip = left_ / slot_values / batch * batch;
    int const all = layout_.turns * layout_.slots;
    on_chip = memory == nullptr ? 0 : on_chip < all ? on_chip : all;
    Field const field{memory, layout_.shared_values - left_, on_chip,
                      fuses() && !flagged_words()};  // the matrix comes first
    left_ -= on_chip * slot_values;
    return field;
  }
  /// Where neighbours' values are formed, the field lives in the window, which a pause has not kept. Flagged
  /// words belong to a barrier, and so do values of other ranks.
  __device__ __forceinline__ Field gathered(double* memory) {
    Field field{memory, 0, 0};
    if (!fuses()) return field;
    if (several || flagged_words()) {
      HaloSource const halo_source{Field{const_cast<double*>(layout_.halo_source), 0, 0}};
      barrier_.send_apart(memory);
      send_halo_source(halo_source);
      barrier_.template barrier_reduce<0>(
          Phase::publish, several ? Visible::everywhere : Visible::nothing,
          [&] { send_halo_flagged_words(halo_source); }, [](std::uint32_t) {});
    }
    field.windowed = true;
    field.window = layout_.matrix_values - window_row(0);
    fill_window(field, 0);
    return field;
  }
  __device__ __forceinline__ void save(Field field, double* memory) {
    each_batch([&](Batch<batch> const& b, int first_slot, int) {
      if (first_slot < field.on_chip || field.windowed || field.memory != memory)
        Staged<B, batch>(field, b, first_slot).store(Field{memory, 0, 0}, b, first_slot);
    });
  }

  template <class Body, class... Views>
  __device__ __forceinline__ void publish(Field p, Body const& body, Views... views) {
    if (!open()) return;
    each<0>(body, p, views...);
    for (int round = 0; round < barrier_.rounds(); ++round) {
      barrier_.send(p.memory, round);
      barrier_.template barrier_reduce<0>(
          Phase::publish, Visible::everywhere, [] {}, [](std::uint32_t) {});
    }
  }
  template <int K, class Body, class... Views>
  __device__ __forceinline__ void begin(Field p, Into<K>, Body const& body, Views... views) {
    if (!open()) return;
    each<K>(body, p, views...);
    if (flagged_words()) {
      HaloSource const halo_source{p};
      return barrier_.template barrier_reduce<K>(
          Phase::begin, Visible::nothing, [&] { send_halo_flagged_words(halo_source); },
          [](std::uint32_t) {});
    }
    barrier_.send(p.memory);
    barrier_.template barrier_reduce<K>(
        Phase::begin, Visible::everywhere, [] {}, [](std::uint32_t) {});
    for (int round = 1; round < barrier_.rounds(); ++round) {
      barrier_.send(p.memory, round);
      barrier_.template barrier_reduce<0>(
          Phase::begin, Visible::everywhere, [] {}, [](std::uint32_t) {});
    }
  }
  template <int K, class Decision>
  __device__ __forceinline__ void finish(Into<K> into, Decision const& decide) {
    bool const is_open = open();
    __syncthreads();  // all have looked at the state before one thread changes it
    if (!is_open) return;
    if (threadIdx.x == 0) deliver(into, decide, barrier_.all_orders());
    __syncthreads();
  }
  template <int K, class Body, class Decision, class... Views>
  __device__ __forceinline__ void sweep(Field p, Into<K> into, Body const& body, Decision const& decide,
                                        Views... views) {
    if (!open()) return;
    State const state = shared_.state();
    each_turn<K>(
        [&](int turn) {  // a true residual is seldom: one product less to compile
          return B > 1 && layout_.window_values > 0 && gate_ != Gate::true_residual ? fill_window(p, turn)
                                                                                    : nullptr;
        },
        [&](Batch<batch> const& b, int first_slot, double(&sum)[K == 0 ? 1 : K], double const* window) {
          products_of_batch<B, batch, K, Inner, false>(
              state, {rows_, state.multiplies_rounded(gate_), multiplies_on_chip(state), window}, b,
              first_slot, sum, p, body, views...);
        });
    barrier_.template barrier_reduce<K>(
        Phase::sweep, send_halo_source(views...), [&] { send_halo_flagged_words(views...); },
        [&](std::uint32_t orders) { deliver(into, decide, orders); });
  }
  /// With a window of its shared memory, each block forms the field there: its own rows, and those of its
  /// neighbours once more, from what the window holds of the old field and from the view, which their phases
  /// have shown. One barrier less, and the field never leaves the block.
  template <class Former, class FormerView, int K, class Body, class Decision, class... Views>
  __device__ __forceinline__ void sweep(Fused<Field, Former, FormerView> const& f, Into<K> into,
                                        Body const& body, Decision const& decide, Views... views) {
    if (!fuses() || (everything_on_chip() && !multiplies_on_chip(shared_.state()))) {
      publish(f.field, f.body, f.view);
      return sweep(f.field, into, body, decide, views...);
    }
    if (!open()) return;
    State const state = shared_.state();
    double const* const window = form_window(state, f);
    __syncthreads();
    each_turn<K>([&](Batch<batch> const& b, int first_slot, double(&sum)[K == 0 ? 1 : K]) {
      if constexpr (B == 1) {
        if (everything_on_chip())
          return window_products_of_batch<batch, K>(state, rows_, b, first_slot, sum, window, body, views...);
      }
      products_of_batch<B, batch, K, Inner, true>(state,
                                                  {rows_, state.multiplies_rounded(gate_), false, window}, b,
                                                  first_slot, sum, f.field, body, views...);
    });
    barrier_.template barrier_reduce<K>(
        Phase::sweep, send_halo_source(views...), [&] { send_halo_flagged_words(views...); },
        [&](std::uint32_t orders) { deliver(into, decide, orders); });
  }
  /// With everything on chip, what neighbours have begun came as flagged words of the barrier that carried
  /// the sum. No barrier follows: nobody stores to these flagged words again before all have met once more.
  template <class Body, class... Views>
  __device__ __forceinline__ void sweep(Begun<Field> const& begun, Into<0> into, Body const& body,
                                        NoDecision const& decide, Views... views) {
    if (!flagged_words()) return sweep(begun.field, into, body, decide, views...);
    if (!open()) return;
    if constexpr (B == 1) {
      State const state = shared_.state();
      double* const window = pool() + begun.field.window;
      each_shown([&](std::int32_t row, double value) { window[row] = value; });
      __syncthreads();
      each_turn<0>([&](Batch<batch> const& b, int first_slot, double(&sum)[1]) {
        window_products_of_batch<batch, 0>(state, rows_, b, first_slot, sum, window, body, views...);
      });
      __syncthreads();  // the next phase may form it anew
    }
  }
  template <int K, class Body, class Decision, class... Views>
  __device__ __forceinline__ void rows(Into<K> into, Body const& body, Decision const& decide,
                                       Views... views) {
    if (!open()) return;
    each<K>(body, views...);
    barrier_.template barrier_reduce<K>(
        Phase::rows, send_halo_source(views...), [&] { send_halo_flagged_words(views...); },
        [&](std::uint32_t orders) { deliver(into, decide, orders); });
  }
  /// A function of the host: refused before a kernel is launched.
  template <class Function>
  __device__ __forceinline__ void apply(Function const&, Field, Field) {}
  template <class Text>
  __device__ __forceinline__ void only(Gate gate, Text const& text) {
    Gate const outer = gate_;
    gate_ = gate;
    if (open()) text();
    gate_ = outer;
  }
  template <class Text>
  __device__ __forceinline__ void repeat(Gate gate, Text const& text) {
    Gate const outer = gate_;
    gate_ = gate;
    while (open()) text();
    gate_ = outer;
  }

 private:
  __device__ __forceinline__ bool everything_on_chip() const { return layout_.matrix_values > 0; }
  /// Whether the matrix in shared memory is the one that this phase multiplies with.
  __device__ __forceinline__ bool multiplies_on_chip(State const& state) const {
    return everything_on_chip() && (std::is_same_v<Inner, double> || state.multiplies_rounded(gate_));
  }
  /// The window holds all that a block reads.
  __device__ __forceinline__ bool fuses() const { return layout_.fuses; }
  /// What others form from travels as flagged words, to other blocks too; to other ranks alone.
  __device__ __forceinline__ bool flagged_words() const {
    return B == 1 && everything_on_chip() && layout_.halo_source_flagged_words[0] != nullptr;
  }
  __device__ __forceinline__ bool ghost_flagged_words() const {
    return several && !everything_on_chip() && layout_.halo_source_flagged_words[0] != nullptr;
  }
  /// The first row in the window: as far before the block's own as diagonals reach.
  __device__ __forceinline__ std::int32_t window_row(int turn) const {
    return shared_.first_block_row[turn][0] * B - layout_.reach;
  }
  /// The gathered field's entries that this block reads, once from memory; row r is at [r] of what is
  /// returned.
  __device__ __forceinline__ double const* fill_window(Field p, int turn) {
    std::int32_t const first = window_row(turn);
    double* const window = pool() + (layout_.matrix_values - first);
    std::int32_t const begin = -layout_.ghosts_below;
    std::int32_t const end = static_cast<std::int32_t>(layout_.tiling.rows()) + layout_.ghosts_above;
    std::int32_t const last = shared_.first_block_row[turn][slices_of_block] * B + layout_.reach;
    if (turn > 0) __syncthreads();  // nobody reads the turn before any more
    HOSTLESS_UNROLL_BY_4
    for (std::int32_t row = first + static_cast<std::int32_t>(threadIdx.x); row < last; row += block_threads)
      window[row] =
          row >= begin && row < end ? p.memory[row] : 0.0;  // rows that do not exist are multiplied by zeros
    __syncthreads();
    return window;
  }

  /// Forms all that this block reads in its window, in place: own rows, and those of its neighbours once
  /// more.
  template <class Former, class FormerView>
  __device__ __forceinline__ double const* form_window(State const& state,
                                                       Fused<Field, Former, FormerView> const& f) {
    double* const window = pool() + f.field.window;
    if constexpr (B == 1) {
      if (flagged_words()) {
        form_rows(state, f, window);
        return window;
      }
    }
    form_block_rows(state, f, window);
    return window;
  }
  /// use(row, value) for what neighbours of this block have shown as flagged words of the last barrier.
  template <class Use>
  __device__ __forceinline__ void each_shown(Use const& use) {
    constexpr int together = 2;
    std::uint32_t const epoch = barrier_.epoch();
    FlaggedWord const* const halo_source = layout_.halo_source_flagged_words[parity_of(epoch)];
    std::int32_t const begin = -layout_.ghosts_below;
    std::int32_t const end = static_cast<std::int32_t>(layout_.tiling.rows()) + layout_.ghosts_above;
    int const lane = static_cast<int>(threadIdx.x) % 32;
    for (int first = static_cast<int>(threadIdx.x);
         first - lane < 2 * layout_.reach;  // a warp stays together
         first += together * block_threads) {
      FlaggedWord flagged_word[together];
      std::int32_t row[together];
      std::uint32_t exists = 0;
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u) {
        int const at = first + u * block_threads;
        row[u] = at < layout_.reach ? window_row(0) + at
                                    : shared_.first_block_row[0][slices_of_block] + at - layout_.reach;
        if (at < 2 * layout_.reach && row[u] >= begin && row[u] < end) exists |= 1u << u;
      }
      barrier_.await_halo_source([&](int u) { return halo_source + row[u]; }, exists, flagged_word);
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u)
        if ((exists >> u & 1u) != 0) use(row[u], value_of(flagged_word[u]));
    }
  }
  /// Everything is on chip: what own rows are formed from, too; that of neighbours comes by flagged words.
  template <class Former, class FormerView>
  __device__ __forceinline__ void form_rows(State const& state, Fused<Field, Former, FormerView> const& f,
                                            double* window) {
    each_shown([&](std::int32_t row, double value) {
      window[row] = formed(state, f.body, row, window[row], value);
    });
    each_batch([&](Batch<batch> const& b, int first_slot, int) {
      Staged<B, batch> const own(f.field, b, first_slot), other(f.view, b, first_slot);
      HOSTLESS_UNROLL
      for (int s = 0; s < batch; ++s) {
        if (!b.valid(s)) continue;
        BlockRow<B> const block_row{b.block_row(s), s};
        f.body(state, block_row, Contribution<1>{nullptr}, own, other);
        window[b.block_row(s)] = own(block_row, 0);
      }
    });
  }
  /// What leaves are formed from is in memory: own ones and neighbours' are formed alike, several of a thread
  /// at once.
  template <class Former, class FormerView>
  __device__ __forceinline__ void form_block_rows(State const& state,
                                                  Fused<Field, Former, FormerView> const& f, double* window) {
    constexpr int together = B == 1 ? 8 : B <= 3 ? 4 : B == 4 ? 2 : 1;
    double const* const view = ViewTraits<FormerView>::field(f.view).memory;
    auto const block_rows = static_cast<std::int32_t>(layout_.tiling.block_rows), reach = layout_.reach / B;
    std::int32_t const own = shared_.first_block_row[0][0],
                       own_end = shared_.first_block_row[0][slices_of_block];
    std::int32_t const first = ghost_flagged_words() ? 0 : -layout_.ghosts_below / B;
    std::int32_t const last = ghost_flagged_words() ? block_rows : block_rows + layout_.ghosts_above / B;
    std::int32_t const begin = own - reach > first ? own - reach : first;
    std::int32_t const end = own_end + reach < last ? own_end + reach : last;
    for (std::int32_t at = begin + static_cast<std::int32_t>(threadIdx.x); at < end;
         at += together * block_threads) {
      Held<B, together> const other(view, at, end);
      HOSTLESS_UNROLL
      for (int s = 0; s < together; ++s) {
        std::int32_t const block_row = at + s * block_threads;
        if (block_row >= end) break;
        f.body(state, BlockRow<B>{static_cast<std::int64_t>(block_row) * B, s}, Contribution<1>{nullptr},
               InMemory{window}, other);
      }
    }
    if constexpr (several) {
      if (ghost_flagged_words()) form_ghosts(state, f, window);
    }
  }
  /// Those of other ranks, by flagged words of the last barrier.
  template <class Former, class FormerView>
  __device__ __forceinline__ void form_ghosts(State const& state, Fused<Field, Former, FormerView> const& f,
                                              double* window) {
    constexpr int together = B == 1 ? 2 : 1;
    auto const block_rows = static_cast<std::int32_t>(layout_.tiling.block_rows), reach = layout_.reach / B;
    std::int32_t const begin = shared_.first_block_row[0][0] - reach, below = -layout_.ghosts_below / B;
    std::int32_t const end = shared_.first_block_row[0][slices_of_block] + reach;
    std::int32_t const above = block_rows + layout_.ghosts_above / B;
    std::int32_t const first = begin > below ? begin : below, last = end < above ? end : above;
    std::int32_t const before = first < 0 ? -first : 0, after = last > block_rows ? last - block_rows : 0;
    FlaggedWord const* const halo_source = layout_.halo_source_flagged_words[parity_of(barrier_.epoch())];
    std::int32_t const lane = static_cast<std::int32_t>(threadIdx.x) % 32;
    for (std::int32_t from = static_cast<std::int32_t>(threadIdx.x); from - lane < before + after;
         from += together * block_threads) {
      FlaggedWord flagged_word[together * B];
      std::uint32_t exists = 0;
      auto const block_row = [&](int s) {
        std::int32_t const at = from + s * block_threads;
        return at < before ? at - before : block_rows + at - before;
      };
      HOSTLESS_UNROLL
      for (int s = 0; s < together; ++s) {
        if (from + s * block_threads < before + after) exists |= ((1u << B) - 1u) << (s * B);
      }
      barrier_.await_halo_source(
          [&](int u) { return halo_source + static_cast<std::int64_t>(block_row(u / B)) * B + u % B; },
          exists, flagged_word);
      Held<B, together> other;
      HOSTLESS_UNROLL
      for (int s = 0; s < together; ++s) {
        if ((exists >> (s * B) & 1u) == 0) continue;
        HOSTLESS_UNROLL
        for (int j = 0; j < B; ++j) other.value[s][j] = value_of(flagged_word[s * B + j]);
        f.body(state, BlockRow<B>{static_cast<std::int64_t>(block_row(s)) * B, s}, Contribution<1>{nullptr},
               InMemory{window}, other);
      }
    }
  }

  /// Of the views, what neighbours on this rank and on others form what they read from: where it lies in
  /// memory, others get it now, and it must be visible after the next barrier.
  template <class... Views>
  __device__ __forceinline__ Visible send_halo_source(Views...) {
    if (!(false || ... || ViewTraits<Views>::halo_source) || !fuses() || flagged_words())
      return Visible::nothing;
    if (ghost_flagged_words()) return Visible::here;
    barrier_.send(layout_.halo_source);
    return Visible::everywhere;
  }
  /// Where it travels as flagged words, meanwhile.
  template <class... Views>
  __device__ __forceinline__ void send_halo_flagged_words(Views... views) {
    if constexpr ((false || ... || ViewTraits<Views>::halo_source)) {
      if constexpr (B == 1) {
        if (flagged_words()) (put_words(views), ...);
      }
      if constexpr (several) {
        if (ghost_flagged_words())
          barrier_.send_flagged_words([&](std::int32_t row) { return layout_.halo_source[row]; });
      }
    }
  }
  template <class View>
  __device__ __forceinline__ void put_words(View view) {
    if constexpr (ViewTraits<View>::halo_source) {
      std::uint32_t const epoch = barrier_.epoch();
      FlaggedWord* const to = layout_.halo_source_flagged_words[parity_of(epoch)];
      Field const field = view.field;
      each_batch([&](Batch<batch> const& b, int first_slot, int) {
        Staged<B, batch> const own(field, b, first_slot);
        HOSTLESS_UNROLL
        for (int s = 0; s < batch; ++s)
          if (b.valid(s)) put_value(to + b.block_row(s), own.value[s][0], epoch);
      });
      barrier_.send_flagged_words([&](std::int32_t row) { return own_value(field, row); });
    }
  }
  /// Of any own row of this block, which works one turn.
  __device__ __forceinline__ double own_value(Field const& field, std::int32_t row) const {
    if (field.windowed) return pool()[field.window + row];
    int const half = row < shared_.first_block_row[0][1] ? 0 : 1;
    std::int32_t const at = row - shared_.first_block_row[0][half], slot = at / Tiling::accumulators;
    return slot < field.on_chip ? pool()[field.shared + slot * block_threads + half * Tiling::accumulators +
                                         at % Tiling::accumulators]
                                : field.memory[row];
  }
  __device__ bool open() const { return shared_.state().open(gate_); }

  template <int K, class Decision>
  __device__ __forceinline__ void deliver(Into<K> into, Decision const& decide, std::uint32_t orders) {
    State state;  // a copy: scalars in registers
    state.copy_scalars<values>(shared_.state());
    HOSTLESS_UNROLL
    for (int k = 0; k < K; ++k) state.at(into.to[k]) = shared_.total[k];
    if ((orders & order_stop) != 0) state.stop = true;
    if ((orders & order_pause) != 0 && (state.pause_at < 0 || state.pause_at > state.iteration + 1))
      state.pause_at = state.iteration + 1;
    decide(state);
    shared_.state().template copy_scalars<values>(state);
  }

  /// use(batch, first slot in shared memory, turn) for all block rows of this thread.
  template <class Use>
  __device__ __forceinline__ void each_batch(Use const& use) const {
    for (int turn = 0; turn < layout_.turns; ++turn) each_batch_of(turn, use);
  }
  template <class Use>
  __device__ __forceinline__ void each_batch_of(int turn, Use const& use) const {
    int const tile = turn * layout_.blocks + static_cast<int>(blockIdx.x);
    int const slice = tile * slices_of_block + static_cast<int>(threadIdx.x) / Tiling::accumulators;
    if (slice >= layout_.tiling.slices) return;
    int const half = static_cast<int>(threadIdx.x) / Tiling::accumulators;
    Batch<batch> b{slice, 0, static_cast<std::int32_t>(threadIdx.x) % Tiling::accumulators,
                   shared_.first_block_row[turn][half], shared_.first_block_row[turn][half + 1]};
    for (; b.first + b.slot * Tiling::accumulators < b.last; b.slot += batch)
      use(b, turn * layout_.slots + b.slot, turn);
  }
  /// The same with sums, after `begin(turn)`: use(batch, slot, sum, what begin returned).
  template <int K, class Begin, class Use>
  __device__ __forceinline__ void each_turn(Begin const& begin, Use const& use) {
    double sum[K == 0 ? 1 : K] = {};
    for (int turn = 0; turn < layout_.turns; ++turn) {
      auto const begun = begin(turn);
      each_batch_of(turn,
                    [&](Batch<batch> const& b, int first_slot, int) { use(b, first_slot, sum, begun); });
      int const partial = turn + layout_.partials_a_block - layout_.turns;
      if (partial < 0) continue;  // lanes go on adding
      HOSTLESS_UNROLL
      for (int k = 0; k < K; ++k) {
        barrier_.contribute(partial, k, sum[k], K);
        sum[k] = 0.0;
      }
    }
  }
  template <int K, class Use>
  __device__ __forceinline__ void each_turn(Use const& use) {
    each_turn<K>([](int turn) { return turn; },
                 [&](Batch<batch> const& b, int first_slot, double(&sum)[K == 0 ? 1 : K], int) {
                   use(b, first_slot, sum);
                 });
  }
  template <int K, class Body, class... Views>
  __device__ __forceinline__ void each(Body const& body, Views... views) {
    State const state = shared_.state();
    each_turn<K>([&](Batch<batch> const& b, int first_slot, double(&sum)[K == 0 ? 1 : K]) {
      rows_of_batch<B, batch, K>(state, b, first_slot, sum, body, views...);
    });
  }

  Shared& shared_;
  int left_;
  RowsView const& rows_;
  Layout const& layout_;
  GridBarrier<ranks>& barrier_;
  Gate gate_ = Gate::solve;
};

}  // namespace hostless::gpu
