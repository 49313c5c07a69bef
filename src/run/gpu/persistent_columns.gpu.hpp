#pragma once
// A method's text for several right-hand sides as one kernel (decision 0017): as persistent.gpu.hpp, with a
// state and gates for each, products that read the matrix once for all, and sums that travel together. Of one
// rank.
//
// While it runs, entries of the same row lie beside each other: a thread loads those of all sides at once,
// and memory has a quarter of the places open. What shared memory has room for of the fields that are kept
// lies there. A side whose gate is closed is computed with the others, and neither stored nor decided on.
//
// x is advanced by two iterations at once (DeferrableUpdate): the direction is formed in two places by turns,
// and the phase that would overwrite one of which x is owed reads and writes x for both. 12 bytes a row and
// iteration less. What x is owed is settled where the loop is left, and where a side's gate closes.

#include "run/deferred_update.hpp"
#include "run/gpu/grid_barrier.gpu.hpp"
#include "run/gpu/sides.gpu.hpp"

namespace hostless::gpu {

/// W: sides that there is room for; values: how many of a State's are used; by_turns: the text says
/// `fused_update`, and puts off what x is advanced by.
template <int B, int W, int values, bool by_turns>
class ColumnsRun {
 public:
  using Block = SharedOf<W, most_wide_turns>;
  using Barrier = GridBarrier<Ranks::one, Block>;

  __device__ ColumnsRun(Block& shared, RowsView const& rows, Layout const& layout, Barrier& barrier,
                        FieldsOfSides const& fields, DeferredUpdate<W>& owed)
      : shared_(shared),
        left_(layout.shared_values),
        rows_(rows),
        layout_(layout),
        barrier_(barrier),
        fields_(fields),
        deferred_(owed) {
    if (by_turns && threadIdx.x == 0) {
      deferred_.here = 0;
      deferred_.older = deferred_.newer = 0;
      deferred_.turned = false;
    }
  }

  __device__ __forceinline__ Field keep(double* memory) {
    Field const field = scratch(memory);
    if (memory != nullptr) copy<true>(memory, field);
    return field;
  }
  __device__ __forceinline__ Field scratch(double* memory) {
    int const slot_values = W * B * block_threads, all = layout_.turns * layout_.slots;
    int const room = left_ / slot_values, on_chip = memory == nullptr ? 0 : room < all ? room : all;
    Field const field{together_of(memory), layout_.shared_values - left_, on_chip};
    left_ -= on_chip * slot_values;
    return field;
  }
  /// Neighbours may read it before it is shown again.
  __device__ __forceinline__ Field gathered(double* memory) {
    Field const field{together_of(memory), 0, 0};
    copy<true>(memory, field);
    if constexpr (by_turns) {  // of sides that have ended either place is saved
      copy<true>(memory, Field{fields_.turned, 0, 0});
      if (threadIdx.x == 0) {
        deferred_.array[0] = field.memory;
        deferred_.array[1] = fields_.turned;
      }
    }
    barrier_.template barrier_reduce<0>(
        Phase::publish, Visible::here, [] {}, [](std::uint32_t) {});
    return field;
  }
  __device__ __forceinline__ void save(Field field, double* memory) { copy<false>(memory, field); }

  template <class Body, class... Views>
  __device__ __forceinline__ void publish(Field p, Body const& body, Views... views) {
    std::uint32_t const open = open_sides();
    if (open == 0) return;
    each<0>(open, body, p, views...);
    barrier_.template barrier_reduce<0>(
        Phase::publish, Visible::here, [] {}, [](std::uint32_t) {});
  }
  template <int K, class Body, class... Views>
  __device__ __forceinline__ void begin(Field p, Into<K>, Body const& body, Views... views) {
    std::uint32_t const open = open_sides();
    if (open == 0) return;
    each<K>(open, body, p, views...);
    barrier_.template barrier_reduce<W * K>(
        Phase::begin, Visible::here, [] {}, [](std::uint32_t) {});
  }
  template <int K, class Decision>
  __device__ __forceinline__ void finish(Into<K> into, Decision const& decide) {
    std::uint32_t const open = open_sides();
    __syncthreads();  // all have looked at the states before they change
    if (open == 0) return;
    if (threadIdx.x < W) deliver(open, into, decide, barrier_.all_orders());
    __syncthreads();
  }
  template <int K, class Body, class Decision, class... Views>
  __device__ __forceinline__ void sweep(Field p, Into<K> into, Body const& body, Decision const& decide,
                                        Views... views) {
    std::uint32_t const open = open_sides();
    if (open == 0) return;
    std::uint32_t const stored = stored_sides(open);
    State state[W];
    copy_states(state);
    each_turn<K>([&](int turn, double(&sum)[W][K == 0 ? 1 : K]) {
      each_slot(turn, [&](Batch<1> const& b, int slot) {
        Wide<W> product[1][B];
        multiply<B, 1, double, SharedRows>(rows_, b, SideBySide<W>{p.memory}, product);
        if (!b.valid(0)) return;
        auto const products = [&](int c) {
          return [&product, c](BlockRow<B>, int j) { return product[0][j].of[c]; };
        };
        HOSTLESS_UNROLL
        for (int first = 0; first < W; first += together<1 + sizeof...(Views)>)
          work_on<together<1 + sizeof...(Views)>, K>(state, Sides{first, stored}, b.block_row(0), slot, sum,
                                                     body, products, reads(p), views...);
      });
    });
    barrier_.template barrier_reduce<W * K>(
        Phase::sweep, Visible::nothing, [] {},
        [&](std::uint32_t orders) { deliver(open, into, decide, orders); });
  }
  /// Formed in its other place. Where x is owed of that, it is of both, and of all sides that are open.
  template <class Former, class FormerView, class... Rest>
  __device__ __forceinline__ void sweep(Fused<Field, Former, FormerView> const& f, Rest... rest) {
    static_assert(by_turns);
    std::uint32_t const open = open_sides();
    if (open == 0) return;
    Field const from = f.field;
    f.field.memory = deferred_.array[1 - deferred_.here];
    bool const advances = deferred_.older != 0;
    if (advances) {
      each_advancing(open, f.body, Turned{from, f.field}, f.view);
    } else {
      each<0>(open, f.body, Turned{from, f.field}, f.view);
    }
    barrier_.template barrier_reduce<0>(
        Phase::publish, Visible::here, [] {}, [](std::uint32_t) {});
    if (threadIdx.x == 0) {
      deferred_.here = 1 - deferred_.here;
      deferred_.older = advances ? 0 : deferred_.newer;
      deferred_.newer = 0;
      deferred_.turned = true;
    }
    sweep(f.field, rest...);
  }
  template <class... Rest>
  __device__ __forceinline__ void sweep(Begun<Field> const& begun, Rest... rest) {
    sweep(begun.field, rest...);
  }
  template <int K, class Body, class Decision, class... Views>
  __device__ __forceinline__ void rows(Into<K> into, Body const& body, Decision const& decide,
                                       Views... views) {
    std::uint32_t const open = open_sides();
    if (open == 0) return;
    each<K>(open, body, views...);
    barrier_.template barrier_reduce<W * K>(
        Phase::rows, Visible::nothing, [] {},
        [&](std::uint32_t orders) { deliver(open, into, decide, orders); });
  }
  template <int K, DeferrableUpdate Body, class Decision, class X, class R, class Q, class P>
  __device__ __forceinline__ void rows(Into<K> into, Body const& body, Decision const& decide, X x, R r, Q q,
                                       P) {
    static_assert(by_turns);
    std::uint32_t const open = open_sides();
    if (open == 0) return;
    if (int const c = static_cast<int>(threadIdx.x); c < W) {
      deferred_.step[deferred_.here][c] = Body::step(shared_.state(c));
      if (c == 0) {
        deferred_.newer = open;
        deferred_.x = x.memory;
        deferred_.x_shared = x.shared;
        deferred_.x_on_chip = x.on_chip;
      }
    }
    rows(into, body.now(), decide, r, q);
  }
  /// A function of the host: refused before a kernel is launched.
  template <class Function>
  __device__ __forceinline__ void apply(Function const&, Field, Field) {}
  template <class Text>
  __device__ __forceinline__ void only(Gate gate, Text const& text) {
    Gate const outer = gate_;
    gate_ = gate;
    if (open_sides() != 0) text();
    gate_ = outer;
  }
  template <class Text>
  __device__ __forceinline__ void repeat(Gate gate, Text const& text) {
    Gate const outer = gate_;
    gate_ = gate;
    bool goes_on = loop_goes_on(shared_.states(), W, gate);
    while (goes_on) {
      std::uint32_t const open = open_sides();
      text();
      goes_on = loop_goes_on(shared_.states(), W, gate);
      if (by_turns && gate == Gate::iterate && (!goes_on || open_sides() != open)) apply_deferred();
    }
    gate_ = outer;
  }

 private:
  /// Sides of which the rows of so many fields are in registers at once.
  template <int fields>
  static constexpr int together = B* fields* W <= 24 ? W : 2;

  /// A bit for each side whose gate is open.
  __device__ __forceinline__ std::uint32_t open_sides() const {
    std::uint32_t open = 0;
    HOSTLESS_UNROLL
    for (int c = 0; c < W; ++c) open |= (shared_.state(c).open(gate_) ? 1u : 0u) << c;
    return open;
  }
  /// Of those that are open; of sides that there are not, anything is.
  __device__ __forceinline__ std::uint32_t stored_sides(std::uint32_t open) const {
    return (open | ~((1u << shared_.count) - 1u)) & ((1u << W) - 1u);
  }
  /// Copies whose address nobody has: scalars stay in registers.
  __device__ __forceinline__ void copy_states(State (&to)[W]) const {
    HOSTLESS_UNROLL
    for (int c = 0; c < W; ++c) to[c] = shared_.state(c);
  }
  __device__ __forceinline__ double* together_of(double const* apart) const {
    for (int k = 0; k < FieldsOfSides::most; ++k)
      if (apart != nullptr && fields_.apart[k] == apart) return fields_.together[k];
    return nullptr;
  }
  /// Of a vector that is apart; sides that there are not read another one's.
  __device__ __forceinline__ std::int64_t offset_of(int side) const {
    return (side < shared_.count ? side : shared_.count - 1) * fields_.stride;
  }
  /// All sides that there are, to where they lie together (coming) or back.
  template <bool coming>
  __device__ __forceinline__ void copy(double* apart, Field field) {
    for (int c = 0; c < shared_.count; ++c) {
      for (int turn = 0; turn < layout_.turns; ++turn) {
        each_slot(turn, [&](Batch<1> const& b, int slot) {
          if (!b.valid(0)) return;
          HOSTLESS_UNROLL
          for (int j = 0; j < B; ++j) {
            std::int64_t const row = static_cast<std::int64_t>(b.block_row(0)) * B + j;
            double& one = slot < field.on_chip
                              ? pool()[field.shared + ((slot * B + j) * W + c) * block_threads + threadIdx.x]
                              : field.memory[row * W + c];
            double& other = apart[c * fields_.stride + row];
            (coming ? one : other) = coming ? other : one;
          }
        });
      }
    }
  }

  /// By thread c, of its side.
  template <int K, class Decision>
  __device__ __forceinline__ void deliver(std::uint32_t open, Into<K> into, Decision const& decide,
                                          std::uint32_t orders) {
    int const c = static_cast<int>(threadIdx.x);
    if ((open >> c & 1u) == 0) return;
    State state;  // a copy: scalars in registers
    state.copy_scalars<values>(shared_.state(c));
    HOSTLESS_UNROLL
    for (int k = 0; k < K; ++k) state.at(into.to[k]) = shared_.total[c * K + k];
    if ((orders & order_stop) != 0) state.stop = true;
    if ((orders & order_pause) != 0 && (state.pause_at < 0 || state.pause_at > state.iteration + 1))
      state.pause_at = state.iteration + 1;
    decide(state);
    shared_.state(c).template copy_scalars<values>(state);
  }

  /// use(block row of this thread, slot in shared memory) for all in a turn; falling: from the last one on,
  /// of a phase without sums, which begins with what the phase before has left in the second-level cache, and
  /// ends with what the next one begins with.
  template <bool falling = false, class Use>
  __device__ __forceinline__ void each_slot(int turn, Use const& use) const {
    int const tile = turn * layout_.blocks + static_cast<int>(blockIdx.x);
    int const half = static_cast<int>(threadIdx.x) / Tiling::accumulators;
    int const slice = tile * slices_of_block + half;
    if (slice >= layout_.tiling.slices) return;
    Batch<1> b{slice, 0, static_cast<std::int32_t>(threadIdx.x) % Tiling::accumulators,
               shared_.first_block_row[turn][half], shared_.first_block_row[turn][half + 1]};
    if constexpr (falling) {
      for (b.slot = (b.last - b.first + Tiling::accumulators - 1) / Tiling::accumulators - 1; b.slot >= 0;
           --b.slot)
        use(b, turn * layout_.slots + b.slot);
    } else {
      for (; b.first + b.slot * Tiling::accumulators < b.last; ++b.slot)
        use(b, turn * layout_.slots + b.slot);
    }
  }
  /// use(turn, sums) for all turns, and what the threads have added up on its way.
  template <int K, class Use>
  __device__ __forceinline__ void each_turn(Use const& use) {
    constexpr int width = K == 0 ? 1 : K;
    double sum[W][width] = {};
    for (int turn = 0; turn < layout_.turns; ++turn) {
      use(turn, sum);
      int const partial = turn + layout_.partials_a_block - layout_.turns;
      if (partial < 0) continue;  // lanes go on adding
      HOSTLESS_UNROLL
      for (int at = 0; at < W * K; ++at) {
        barrier_.contribute(partial, at, sum[at / width][at % width], W * K);
        sum[at / width][at % width] = 0.0;
      }
    }
  }
  template <int K, class Body, class... Views>
  __device__ __forceinline__ void each(std::uint32_t open, Body const& body, Views... views) {
    constexpr int G = together<sizeof...(Views)>;
    std::uint32_t const stored = stored_sides(open);
    State state[W];
    copy_states(state);
    auto const nothing_before = [](int) { return NoProducts{}; };
    each_turn<K>([&](int turn, double(&sum)[W][K == 0 ? 1 : K]) {
      concretely(body, [&](auto const& concrete) {
        each_slot<K == 0>(turn, [&](Batch<1> const& b, int slot) {
          if (!b.valid(0)) return;
          HOSTLESS_UNROLL
          for (int first = 0; first < W; first += G)
            work_on<G, K>(state, Sides{first, stored}, b.block_row(0), slot, sum, concrete, nothing_before,
                          views...);
        });
      });
    });
  }
  /// As `each` of p and the view, behind x advanced along what was in p's new place, then in its old one.
  template <class Body, class View>
  __device__ __forceinline__ void each_advancing(std::uint32_t open, Body const& body, Turned p, View view) {
    constexpr int G = together<4>;
    std::uint32_t const stored = stored_sides(open);
    State state[W];
    copy_states(state);
    Field const x_field = deferred_.field_of_x();
    double const* const step = deferred_.step[deferred_.here];
    double const* const older_step = deferred_.step[1 - deferred_.here];
    for (int turn = 0; turn < layout_.turns; ++turn) {
      concretely(body, [&](auto const& concrete) {
        each_slot<true>(turn, [&](Batch<1> const& b, int slot) {
          if (!b.valid(0)) return;
          HOSTLESS_UNROLL
          for (int first = 0; first < W; first += G) {
            StagedSides<B, W, G> x, older, newer, other;
            x.load(x_field, first, slot, b.block_row(0));
            older.load(p.to, first, slot, b.block_row(0));
            newer.load(p.from, first, slot, b.block_row(0));
            other.load(view, first, slot, b.block_row(0));
            HOSTLESS_UNROLL
            for (int g = 0; g < G; ++g) {
              BlockRow<B> const here{static_cast<std::int64_t>(b.block_row(0)) * B, 0};
              Side<B, W, G> const x_of{x, g}, newer_of{newer, g};
              advance(older_step[first + g], here, x_of, Side<B, W, G>{older, g});
              advance(step[first + g], here, x_of, newer_of);
              concrete(state[first + g], here, Contribution<1>{nullptr}, newer_of, Side<B, W, G>{other, g});
            }
            x.store(x_field, first, slot, b.block_row(0), stored);
            newer.store(p.to, first, slot, b.block_row(0), stored);
          }
        });
      });
    }
  }
  /// x is owed nothing any more, and both places hold the same, whichever is saved of a side that has ended.
  /// Each thread works on its own rows, as in all phases: no barrier.
  __device__ __forceinline__ void apply_deferred() {
    __syncthreads();  // where a barrier was lost, none has been behind what was written
    if (!deferred_.turned) return;
    constexpr int G = together<3>;
    std::uint32_t const all = (1u << W) - 1u, older_of = deferred_.older, newer_of = deferred_.newer;
    Field const x_field = deferred_.field_of_x(), there{deferred_.array[1 - deferred_.here], 0, 0};
    for (int turn = 0; turn < layout_.turns; ++turn) {
      each_slot(turn, [&](Batch<1> const& b, int slot) {
        if (!b.valid(0)) return;
        for (int first = 0; first < W; first += G) {
          StagedSides<B, W, G> x, older, newer;
          older.load(there, first, slot, b.block_row(0));
          newer.load(Field{deferred_.array[deferred_.here], 0, 0}, first, slot, b.block_row(0));
          if ((older_of | newer_of) != 0) x.load(x_field, first, slot, b.block_row(0));
          HOSTLESS_UNROLL
          for (int g = 0; g < G; ++g) {
            int const c = first + g;
            BlockRow<B> const here{static_cast<std::int64_t>(b.block_row(0)) * B, 0};
            Side<B, W, G> const x_of{x, g};
            if ((older_of >> c & 1u) != 0)
              advance(deferred_.step[1 - deferred_.here][c], here, x_of, Side<B, W, G>{older, g});
            if ((newer_of >> c & 1u) != 0)
              advance(deferred_.step[deferred_.here][c], here, x_of, Side<B, W, G>{newer, g});
          }
          if ((older_of | newer_of) != 0) x.store(x_field, first, slot, b.block_row(0), older_of | newer_of);
          newer.store(there, first, slot, b.block_row(0), all);
        }
      });
    }
    __syncthreads();  // all have looked
    if (threadIdx.x == 0) {
      deferred_.older = deferred_.newer = 0;
      deferred_.turned = false;
    }
    __syncthreads();
  }
  struct NoProducts {};
  /// From which on, and a bit for each that is stored.
  struct Sides {
    int first;
    std::uint32_t stored;
  };
  /// Loads of G sides, then their bodies, then what they have changed.
  template <int G, int K, class Body, class Products, class... Views>
  __device__ __forceinline__ void work_on(State const (&state)[W], Sides sides, std::int32_t block_row,
                                          int slot, double (&sum)[W][K == 0 ? 1 : K], Body const& body,
                                          Products const& products, Views... views) {
    auto const work = [&](auto&&... staged) {
      (staged.load(views, sides.first, slot, block_row), ...);
      HOSTLESS_UNROLL
      for (int g = 0; g < G; ++g) {
        int const c = sides.first + g;
        BlockRow<B> const here{static_cast<std::int64_t>(block_row) * B, 0};
        auto const mine = in_column(body, offset_of(c));
        if constexpr (std::is_same_v<decltype(products(c)), NoProducts>) {
          mine(state[c], here, Contribution<1>{sum[c]}, Side<B, W, G>{staged, g}...);
        } else {
          mine(state[c], here, Contribution<1>{sum[c]}, products(c), Side<B, W, G>{staged, g}...);
        }
      }
      (staged.store(views, sides.first, slot, block_row, sides.stored), ...);
    };
    work(staged_for<G>(views)...);
  }
  template <int G, class View>
  __device__ static __forceinline__ StagedSides<B, W, G> staged_for(View const&) {
    return {};
  }

  Block& shared_;
  int left_;
  RowsView const& rows_;
  Layout const& layout_;
  Barrier& barrier_;
  FieldsOfSides const& fields_;
  DeferredUpdate<W>& deferred_;
  Gate gate_ = Gate::solve;
};

/// As persistent_kernel, for `count` right-hand sides, at most W, whose states follow each other.
template <int B, int W, class Data>
__global__ void __launch_bounds__(block_threads, 1)
    columns_kernel(HOSTLESS_PARAMETER Data const data, HOSTLESS_PARAMETER RowsView const rows,
                   HOSTLESS_PARAMETER Layout const layout, HOSTLESS_PARAMETER Control const control,
                   HOSTLESS_PARAMETER FieldsOfSides const fields, FlaggedWord* flagged_words,
                   std::uint32_t* epoch, State* states, int count) {
  using Run = ColumnsRun<B, W, Data::Descriptor::values, Data::Descriptor::offers.fuses>;
  __shared__ typename Run::Block shared;
  __shared__ DeferredUpdate<W> owed;
  __shared__ PeersOnChip<Ranks::one> alone;
  enter_kernel(shared, alone, layout, nullptr, states, count);
  typename Run::Barrier barrier(shared, layout, control, alone, flagged_words, *epoch);
  {
    Run run(shared, rows, layout, barrier, fields, owed);
    run_text(run, data);
  }
  leave_kernel(shared, barrier.epoch(), states, *epoch, count);
}

}  // namespace hostless::gpu
