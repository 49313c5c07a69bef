#include "solve/measure.hpp"

#include "solve/methods/run_text.impl.hpp"

namespace hostless {
namespace {

/// Sums (b, b) and b.
struct SquareAndSum {
  template <class L, class Sums, class B>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, B const& b) const {
    for (int j = 0; j < L::rows; ++j) {
      double const value = b(block_row, j);
      sum.add(0, value * value);
      sum.add(1, value);
    }
  }
};

/// Sums (r, r) and (r, M r).
template <class M>
struct Squares : Preconditioned<Squares, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE Squares(Squares<Other> const&, M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit Squares(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, R const& r) const {
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) {
      double const rj = r(block_row, j);
      sum.add(0, rj * rj);
      sum.add(1, rj * z[j]);
    }
  }
};

}  // namespace

void measure(host::Engine& engine, double* b) {
  run_text(engine, RunKind::host, [&](auto& run) {
    run.rows(into(ScalarIndex::rr, ScalarIndex::measured), SquareAndSum{}, NoDecision{}, run.keep(b));
  });
}

void measure_residual(host::Engine& engine, AnyPreconditioner const& m, double* r) {
  run_text(engine, RunKind::host, [&](auto& run) {
    run.rows(into(ScalarIndex::rr, ScalarIndex::measured), Squares<AnyPreconditioner>{m}, NoDecision{},
             run.keep(r));
  });
}

}  // namespace hostless
