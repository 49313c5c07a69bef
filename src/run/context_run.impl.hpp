#pragma once
// The verbs of texts with a context (context.hpp), beside all others: `publish` and `send` of a gathered
// field of the context, and sweeps that name their operator. Rows may be of another tiling than the method's;
// sums are of the method's rows, hence in `rows` and in sweeps with the method's own matrix.

#include <vector>

#include "run/context.hpp"
#include "run/graph_run.impl.hpp"
#include "run/host_run.impl.hpp"

namespace hostless::host {

/// What a slice of an operator's rows multiplies.
template <class Matrix>
struct OperatorProducts {
  Matrix const* matrix;
  double* ring;
  double const* gathered;
  HOSTLESS_HOST_DEVICE Product products(int slice, std::int64_t block_row, int block_rows, std::int64_t row,
                                        double* room) const {
    matrix->multiply(slice, block_row, block_rows, gathered, room, ring);
    return {room, row};
  }
};

class ContextRun : public ThreadRun {
 public:
  using ThreadRun::gathered, ThreadRun::publish, ThreadRun::sweep, ThreadRun::ThreadRun;

  InContext gathered(GatheredField& field) const { return {&field}; }

  /// Forms it by a body and starts its exchange.
  template <class Body, class... Views>
  void publish(InContext g, Body const& body, Views... views) {
    if (!open()) return;
    Stopwatch watch(*this, &PhaseTimes::publish_s);
    GatheredField& field = *g.field;
    over_rows(
        body,
        field.tiling(), [&](auto const& concrete, int slice, double* partial) __attribute__((always_inline)) {
          rows_of_slice<0, coupled_rows<std::remove_cvref_t<decltype(concrete)>>()>(
              field.tiling(), slice, e_.state, partial, concrete, own(g), views...);
        });
    barrier([&] { start(field); });
  }
  /// Starts the exchange of what a sweep has left in it.
  void send(InContext g) {
    if (!open()) return;
    barrier([&] { start(*g.field); });
  }
  /// The operator's rows: body(state, block row, sums, products, own rows of the field, views...).
  template <class Matrix, class Body, class... Views>
  void sweep(By<Matrix> by, Into<0>, Body const& body, NoDecision const&, Views... views) {
    if (!open()) return;
    Stopwatch watch(*this, &PhaseTimes::sweep_s);
    Operator<Matrix> const& a = *by.with;
    GatheredField& field = *a.field;
    OperatorProducts<Matrix> const products{a.matrix, ring_of(*a.matrix), field.values()};
    concretely(body, [&](auto const& concrete) {
      constexpr int coupled = coupled_rows<std::remove_cvref_t<decltype(concrete)>>();
      auto const call = [&](int slice, double*) __attribute__((always_inline)) {
        operator_of_slice<coupled>(a.tiling, slice, e_.state, products, concrete, own_rows<Matrix>(field),
                                   views...);
      };
      SweepOrder const& order = a.matrix->order();
      order.for_each_of(order.interior, thread_, threads_, [&](int s) { run_slice(call, s, nullptr); });
      if (threads_ > 1) await(field);
      order.for_each_of(order.boundary, thread_, threads_, [&](int s) {
        if (threads_ == 1) await(field, a.needs[static_cast<std::size_t>(s)]);
        run_slice(call, s, nullptr);
      });
    });
    barrier([&] { finish(field); });
  }

 private:
  // It grows with the operators that come by: zeros between two sweeps, so that all of them share it.
  template <class Matrix>
  double* ring_of(Matrix const& matrix) {
    if constexpr (requires { matrix.ring(); }) {
      auto const wanted = static_cast<std::size_t>(matrix.ring());
      if (ring_.size() < wanted) ring_.resize(wanted);
    }
    return ring_.data();
  }
  template <class Matrix>
  static auto own_rows(GatheredField& field) {
    if constexpr (std::is_same_v<Matrix, LocalMatrix>) {
      return InMemory{field.values()};
    } else {
      return NoOwnRows{};
    }
  }
  template <class Body, class Work>
  void over_rows(Body const& body, Tiling const& tiling, Work const& work) {
    concretely(body, [&](auto const& concrete) {
      auto const call = [&](int slice, double* partial) __attribute__((always_inline)) {
        work(concrete, slice, partial);
      };
      auto const last = static_cast<int>(piece(thread_ + 1, threads_, tiling.slices));
      for (auto s = static_cast<int>(piece(thread_, threads_, tiling.slices)); s < last; ++s)
        run_slice(call, s, nullptr);
    });
  }
  void start(GatheredField& field) {
    ++field.wanted;
    if (!field.exchange().lost()) field.exchange().start();
    e_.check();
  }
  // Of a field, complete or lost.
  void finish(GatheredField& field) {
    bool const complete = field.exchange().wait();
    if (!complete) e_.failed.store(true, std::memory_order_release);
    e_.check();
  }
  void await(GatheredField& field, std::vector<StageId> const& needs) {
    if (field.exchange().unpacked(needs)) return;
    auto const begin = Clock::now();
    if (!field.exchange().wait([&] { return field.exchange().unpacked(needs); }))
      e_.failed.store(true, std::memory_order_release);
    e_.times.ghosts_s += Engine::seconds_since(begin);
  }
  // Thread 0 carries the exchange; the others wait for its word (ThreadRun::await_ghosts).
  void await(GatheredField& field) {
    if (thread_ == 0) {
      auto const begin = Clock::now();
      bool const complete = field.exchange().wait();
      if (!complete) e_.failed.store(true, std::memory_order_release);
      e_.times.ghosts_s += Engine::seconds_since(begin);
      field.ready.store(field.wanted, std::memory_order_release);
      return;
    }
    await_word([&] { return field.ready.load(std::memory_order_acquire) == field.wanted; });
  }
  std::vector<double> ring_;  ///< what halved operators keep between block rows
};

}  // namespace hostless::host
