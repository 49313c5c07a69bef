#pragma once
// The verbs on the host. `host` is one thread; `persistent` is several threads that execute the same text and
// wait after every phase; `graph` (graph_run.impl.hpp) records these verbs and replays them.

#include <optional>
#include <type_traits>
#include <utility>

#include "hostless/base/rows.hpp"
#include "run/engine.hpp"
#include "run/formed_ahead.hpp"
#include "run/fused_slices.impl.hpp"

namespace hostless::host {

class ThreadRun {
 public:
  ThreadRun(Engine& engine, int thread, int count)
      : e_(engine),
        thread_(thread),
        threads_(count),
        room_(engine.multiplier.matrix, static_cast<int>(engine.columns.size())) {
    if (engine.forms_ahead()) ahead_.emplace(*engine.multiplier.matrix, engine.order, thread, count);
  }

  InMemory keep(double* values) const { return {values}; }
  InMemory scratch(double* values) const { return {values}; }
  InMemory gathered(double* values) const { return {values}; }
  void save(InMemory, double*) const {}  // the fields live where they are saved to

  /// Forms the gathered field by a body and starts its exchange.
  template <class Body, class... Views>
  void publish(InMemory p, Body const& body, Views... views) {
    if (!open()) return;
    Stopwatch watch(*this, &PhaseTimes::publish_s);
    each<0>(body, p, views...);
    barrier([&] { start_exchange(); });
  }
  /// As publish, and begins a sum of what the body contributes; `finish` awaits it.
  template <int K, class Body, class... Views>
  void begin(InMemory p, Into<K>, Body const& body, Views... views) {
    if (!open()) return;
    Stopwatch watch(*this, &PhaseTimes::publish_s);
    each<K>(body, p, views...);
    barrier([&] {
      start_exchange();
      e_.begin_sum(gate_, K);
    });
  }
  /// Awaits the sum that `begin` began, and decides.
  template <int K, class Decision>
  void finish(Into<K> into, Decision const& decide) {
    if (!open()) return;
    barrier([&] { e_.finish_sum(gate_, into, decide); });
  }
  /// Multiplies the gathered field by A: body(state, block row, sums, products, p, views...), then sum and
  /// decision.
  template <int K, class Body, class Decision, class... Views>
  void sweep(InMemory p, Into<K> into, Body const& body, Decision const& decide, Views... views) {
    if (!open()) return;
    Stopwatch watch(*this, &PhaseTimes::sweep_s);
    products<K>(p, body, NothingBetween{}, p, views...);
    end_sweep<K>(into, decide);
  }
  /// Forms the gathered field first. Several right-hand sides: in the sweep, each slice before it is read, and
  /// x is advanced on the way by what it is owed of the direction that is overwritten.
  template <class Former, class View, int K, class Body, class Decision, class... Views>
  void sweep(Fused<InMemory, Former, View> const& formed, Into<K> into, Body const& body,
             Decision const& decide, Views... views) {
    InMemory const p = formed.field;
    if (!ahead_) {
      publish(p, formed.body, formed.view);
      sweep(p, into, body, decide, views...);
      return;
    }
    if (!open()) return;
    Stopwatch watch(*this, &PhaseTimes::sweep_s);
    std::uint32_t const forms = open_columns();
    auto const form = [&](std::int64_t first, int count) {
      form_rows(e_, gate_, deferred_, {first, count}, formed.body, p, formed.view);
    };
    ahead_->form_early(form);
    if (e_.exchange.moves()) {  // before a loss can show: no field is left half formed
      ahead_->form_all(form);
      deferred_.columns &= ~forms;
    }
    barrier([&] { start_exchange(); });
    if (!open()) return;
    products<K>(p, body, FormsBetween<decltype(form)>{*ahead_, form}, p, views...);
    deferred_.columns &= ~forms;
    forms_by_sweep_ = true;
    end_sweep<K>(into, decide);
  }
  template <class... Rest>
  void sweep(Begun<InMemory> begun, Rest... rest) {
    sweep(begun.field, rest...);
  }
  /// Row by row, no neighbours: body(state, block row, sums, views...), then sum and decision.
  template <int K, class Body, class Decision, class... Views>
  void rows(Into<K> into, Body const& body, Decision const& decide, Views... views) {
    if (!open()) return;
    all_rows<K>(into, body, decide, views...);
  }
  /// Where the sweep forms the direction, x waits until then for its step along it.
  template <int K, DeferrableUpdate Body, class Decision>
  void rows(Into<K> into, Body const& body, Decision const& decide, InMemory x, InMemory r, InMemory q,
            InMemory p) {
    if (!open()) return;
    if (!forms_by_sweep_ || e_.x_is_observed) return all_rows<K>(into, body, decide, x, r, q, p);
    deferred_.x = x;
    deferred_.p = p;
    for_each_column([&](int column, State const& state, std::int64_t) {
      deferred_.step[column] = Body::step(state);
      deferred_.columns |= 1u << column;
    });
    all_rows<K>(into, body.now(), decide, r, q);
  }
  template <int K, class Body, class Decision, class... Views>
  void all_rows(Into<K> into, Body const& body, Decision const& decide, Views... views) {
    Stopwatch watch(*this, &PhaseTimes::rows_s);
    each<K>(body, views...);
    barrier([&] {
      if constexpr (K > 0) {
        e_.begin_sum(gate_, K);
        e_.finish_sum(gate_, into, decide);
      } else {
        e_.check();
      }
    });
  }
  /// A user's host function over all rows of the rank, called by one thread; of one right-hand side.
  template <class Function>
  void apply(Function const& function, InMemory from, InMemory to) {
    if (!open()) return;
    barrier([&] { function(from.values, to.values); });
  }
  template <class Text>
  void only(Gate gate, Text const& text) {
    Gate const outer = std::exchange(gate_, gate);
    if (open()) text();
    gate_ = outer;
  }
  template <class Text>
  void repeat(Gate gate, Text const& text) {
    Gate const outer = std::exchange(gate_, gate);
    while (e_.goes_on(gate_)) {
      std::uint32_t const open = open_columns();
      for (int k = 0; k < e_.options.check_interval; ++k) text();  // closed phases skip themselves
      if (deferred_.columns != 0 && (open_columns() != open || !e_.goes_on(gate_))) apply_deferred();
    }
    gate_ = outer;
  }

 protected:
  // Thread 0 keeps the time of its rank.
  class Stopwatch {
   public:
    Stopwatch(ThreadRun& run, double PhaseTimes::*to) : run_(run), to_(to) {
      if (run_.thread_ == 0) begin_ = Clock::now();
    }
    ~Stopwatch() {
      if (run_.thread_ == 0) run_.e_.times.*to_ += Engine::seconds_since(begin_);
    }
    Stopwatch(Stopwatch const&) = delete;
    Stopwatch& operator=(Stopwatch const&) = delete;

   private:
    ThreadRun& run_;
    double PhaseTimes::*to_;
    Clock::time_point begin_;
  };

  bool open() const { return e_.open(gate_); }
  /// use(column, its state, how far its vectors lie behind the first one's) for those that this phase is of.
  template <class Use>
  void for_each_column(Use const& use) const {
    for (std::size_t c = 0; c < e_.columns.size(); ++c)
      if (e_.columns[c].open(gate_))
        use(static_cast<int>(c), e_.columns[c], static_cast<std::int64_t>(c) * e_.column_stride);
  }
  /// use(slice) for this thread's share of the slices, where nobody multiplies.
  template <class Use>
  void for_each_of_rows(Use const& use) const {
    int const end = static_cast<int>(piece(thread_ + 1, threads_, e_.tiling.slices));
    for (int s = static_cast<int>(piece(thread_, threads_, e_.tiling.slices)); s < end; ++s) use(s);
  }

  template <class Completion>
  void barrier(Completion const& completion) {
    e_.disturb(thread_);
    if (threads_ == 1) {
      completion();
    } else {
      e_.barrier.arrive(completion);
    }
  }
  void start_exchange() {
    ++e_.ghosts_wanted;
    if (!e_.exchange.lost()) e_.exchange.start();
    e_.check();
  }

  /// Slice after slice, each for all columns: what these share (a preconditioner) comes from memory once.
  template <int K, class Body, class... Views>
  void each(Body const& body, Views... views) {
    concretely(body, [&](auto const& concrete) {
      using Concrete = std::remove_cvref_t<decltype(concrete)>;
      for_each_of_rows([&](int s) {
        for_each_column([&](int column, State const& state, std::int64_t offset) {
          auto const call = [&](int slice, double* partial) __attribute__((always_inline)) {
            rows_of_slice<K, coupled_rows<Concrete>()>(
                e_.tiling, slice, state, partial, in_column(concrete, offset), views.in_column(offset)...);
          };
          run_slice(call, s, e_.partial(s, column));
        });
      });
    });
  }

  std::uint32_t open_columns() const {
    std::uint32_t open = 0;
    for_each_column([&](int column, State const&, std::int64_t) { open |= 1u << column; });
    return open;
  }
  /// x of all columns to where it belongs, before anybody reads it or overwrites the direction.
  void apply_deferred() {
    for_each_of_rows([&](int slice) { apply_deferred_update(e_, deferred_, slice); });
    deferred_.columns = 0;
    barrier([] {});  // the direction is overwritten by the sweep's shares of the slices, which are others
  }
  template <int K, class Decision>
  void end_sweep(Into<K> into, Decision const& decide) {
    barrier([&] {
      static_cast<void>(e_.exchange.wait());  // a loss shows in the sum
      if constexpr (K > 0) {
        e_.begin_sum(gate_, K);
        e_.finish_sum(gate_, into, decide);
      } else {
        e_.check();
      }
    });
  }

  template <class Form>
  struct FormsBetween {
    FormedAhead& ahead;
    Form const& form;
    void before_slot() const { ahead.form_for_slot(form); }
    void between(int left) const { ahead.form_share(left, form); }
  };
  template <int K, class Body, class Between, class... Views>
  void products(InMemory p, Body const& body, Between const& between, InMemory own, Views... views) {
    if (e_.function) call_operator(p);
    Multiplied const multiplied = multiplied_columns(p);
    concretely(body, [&](auto const& concrete) {
      using Concrete = std::remove_cvref_t<decltype(concrete)>;
      auto const call = [&](int slice, double* partial) __attribute__((always_inline)) {
        sweep_of_slice<K, coupled_rows<Concrete>()>(e_.tiling, slice, partial, multiplied, between, concrete,
                                                    own, views...);
      };
      int polled = 0;
      e_.order.for_each_of(e_.order.interior, thread_, threads_, [&](int s) {
        run_slice(call, s, e_.partial(s));
        if (thread_ == 0 && (++polled & 7) == 0) e_.exchange.test();
      });
      // A window of several columns holds what lies between the columns of a slice, too.
      if (threads_ > 1 || multiplied.is_wide()) await_ghosts();
      room_.begin_sweep();  // what of ghosts lies in a window is old
      e_.order.for_each_of(e_.order.boundary, thread_, threads_, [&](int s) {
        if (threads_ == 1 && !multiplied.is_wide()) await_ghosts_of(s);
        run_slice(call, s, e_.partial(s));
      });
    });
    if (multiplied.past_caches) end_of_stores_past_caches();
  }

  Multiplied multiplied_columns(InMemory p) {
    Multiplied multiplied;
    room_.begin_sweep();
    multiplied.room = &room_;
    multiplied.past_caches = e_.past_caches;
    multiplied.partials_apart = static_cast<std::int64_t>(e_.tiling.slices) * Engine::widest_sum;
    for_each_column([&](int column, State const& state, std::int64_t offset) {
      multiplied.column[multiplied.count++] = {&state,
                                               e_.multiplier.of(state.multiplies_rounded(gate_), offset),
                                               p.values + offset, offset, column};
      Multiplier const& by = multiplied.column[multiplied.count - 1].by;
      if (by.matrix != multiplied.column[0].by.matrix || by.ready != nullptr)
        multiplied.shares_matrix = false;
    });
    return multiplied;
  }

  // Thread 0 carries the exchange; the others wait for its word, also those that read no ghost: at the barrier
  // they would give up before thread 0 does, which may wait for the first time.
  void await_ghosts() {
    if (thread_ == 0) {
      auto const begin = Clock::now();
      e_.finish_exchange();
      e_.times.ghosts_s += Engine::seconds_since(begin);
      e_.ghosts_ready.store(e_.ghosts_wanted, std::memory_order_release);
      return;
    }
    await_word([&] { return e_.ghosts_ready.load(std::memory_order_acquire) == e_.ghosts_wanted; });
  }
  template <class HasCome>
  void await_word(HasCome const& has_come) {
    auto const waited = wait_for(
        has_come, [&] { return e_.barrier.broken(); },
        Deadline::after(e_.limits.first_s + e_.limits.later_s));
    if (waited == Waited::done) return;
    e_.barrier.break_up();
    throw ThreadLost{};
  }
  void await_ghosts_of(int slice) {
    auto const& needs = e_.sweep.needs[static_cast<std::size_t>(slice)];
    if (e_.exchange.unpacked(needs)) return;
    auto const begin = Clock::now();
    if (!e_.exchange.wait([&] { return e_.exchange.unpacked(needs); }))
      e_.failed.store(true, std::memory_order_release);
    e_.times.ghosts_s += Engine::seconds_since(begin);
  }
  void call_operator(InMemory p) {
    barrier([&] {
      e_.finish_exchange();
      if (e_.failed.load(std::memory_order_acquire)) return;
      for_each_column([&](int, State const&, std::int64_t offset) {
        e_.function(p.values + offset, e_.product.data() + offset);
      });
    });
  }

  Engine& e_;
  int thread_, threads_;
  SidesRoom room_;
  Gate gate_ = Gate::solve;
  std::optional<FormedAhead> ahead_;  // of several right-hand sides
  bool forms_by_sweep_ = false;       // the direction at hand was formed by the sweep that read it
  DeferredUpdate deferred_;
};

}  // namespace hostless::host
