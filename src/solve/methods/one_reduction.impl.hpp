#pragma once
// The two methods whose inner products need one reduction an iteration, and the decision they share.

#include "solve/methods/bodies.impl.hpp"
#include "solve/methods/cg_values.hpp"

namespace hostless {

/// alpha and beta from gamma = (r, u), delta = (A u, u) with u = M r: beta = gamma / gamma', and
/// alpha = gamma / (delta - beta gamma / alpha') (Chronopoulos and Gear). The sums belong to the r of the
/// iteration that has just been completed, or to the true residual of a fresh start.
struct OneReduction {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    double const gamma = s.value[cg::rz], delta = s.value[cg::pq];
    if (!s.fresh) {
      ++s.iteration;
      log_step(s, s.value[cg::alpha], s.value[cg::beta]);
    }
    if (!is_finite(s.rr) || !is_finite(gamma) || !is_finite(delta)) {
      s.status = Status::not_finite;
    } else if (gamma < 0) {
      s.status = Status::indefinite_preconditioner;
    } else if (!s.fresh && (proposes_end(s) || gamma == 0)) {
      ask_for_true_residual(s);
    } else if (delta < 0) {
      s.status = Status::indefinite_matrix;
    } else if (delta == 0) {
      if (s.fresh) s.status = Status::breakdown;
      ask_for_true_residual(s);
    } else {
      go_on(s, gamma, delta);
    }
  }

 private:
  HOSTLESS_HOST_DEVICE static void go_on(State& s, double gamma, double delta) {
    s.value[cg::beta] = s.fresh ? 0.0 : gamma / s.value[cg::rz_before];
    double const divisor = s.fresh ? delta : delta - s.value[cg::beta] * gamma / s.value[cg::alpha];
    if (!(divisor > 0))
      return ask_for_true_residual(s);  // (p, A p) of the recurrence lost its sign to rounding: start anew
    s.value[cg::alpha] = gamma / divisor;
    s.value[cg::rz_before] = gamma;
    s.fresh = false;
    if (s.iteration == s.pause_at) s.status = Status::paused;
  }
};

/// Single-reduction conjugate gradients (Chronopoulos and Gear 1989).
/// Bytes an iteration beside the matrix: publish 88 m, sweep 24 m. One sum, one exchange, two phases.
template <class M = AnyPreconditioner>
struct SingleReduction {
  M m;
  double const* b;            ///< [owned]
  double *x, *r, *p, *s, *w;  ///< [owned]
  double* u;                  ///< [owned], bound to the exchange, ghosts around it
};

/// p = u + beta p; s = w + beta s; x += alpha p; r -= alpha s; u = M r. A fresh start only forms u.
template <class M>
struct SingleReductionStep : Preconditioned<SingleReductionStep, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE SingleReductionStep(SingleReductionStep<Other> const&, M preconditioner)
      : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit SingleReductionStep(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class U, class X, class R, class P, class S, class W>
  HOSTLESS_HOST_DEVICE void operator()(State const& state, L block_row, Sums const&, U const& u, X const& x,
                                       R const& r, P const& p, S const& s, W const& w) const {
    if (!state.fresh) {
      for (int j = 0; j < L::rows; ++j) {
        p(block_row, j) = __builtin_fma(state.value[cg::beta], p(block_row, j), u(block_row, j));
        s(block_row, j) = __builtin_fma(state.value[cg::beta], s(block_row, j), w(block_row, j));
        x(block_row, j) = __builtin_fma(state.value[cg::alpha], p(block_row, j), x(block_row, j));
        r(block_row, j) = __builtin_fma(-state.value[cg::alpha], s(block_row, j), r(block_row, j));
      }
    }
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) u(block_row, j) = z[j];
  }
};

/// w = A u; sums (r, r), (r, u), (w, u).
struct ThreeDots {
  template <class L, class Sums, class Products, class U, class R, class W>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, Products const& a_u,
                                       U const& u, R const& r, W const& w) const {
    for (int j = 0; j < L::rows; ++j) {
      double const uj = u(block_row, j), rj = r(block_row, j), wj = a_u(block_row, j);
      w(block_row, j) = wj;
      sum.add(0, rj * rj);
      sum.add(1, rj * uj);
      sum.add(2, wj * uj);
    }
  }
};

// ===================================================================== the one text
template <class Run, class M>
HOSTLESS_TEXT void single_reduction_cg(Run& run, SingleReduction<M> d) {
  auto x = run.keep(d.x);
  auto r = run.keep(d.r);
  auto p = run.keep(d.p);
  auto s = run.keep(d.s);
  auto w = run.keep(d.w);
  auto u = run.gathered(d.u);
  run.repeat(Gate::solve, [&]() HOSTLESS_INLINED {
    run.only(Gate::true_residual, [&]() HOSTLESS_INLINED {
      run.publish(u, Copy{}, reads(x));
      run.sweep(u, into(ValueIndex::rr, cg::rz), TrueResidual{d.m, d.b}, ConvergenceTest<cg::rz>{}, r);
    });
    run.repeat(Gate::iterate, [&]() HOSTLESS_INLINED {
      run.publish(u, SingleReductionStep{d.m}, x, r, p, s, reads(w));
      run.sweep(u, into(ValueIndex::rr, cg::rz, cg::pq), ThreeDots{}, OneReduction{}, reads(r), w);
    });
  });
  run.save(x, d.x);
  run.save(r, d.r);
  run.save(p, d.p);
  run.save(s, d.s);
  run.save(w, d.w);
  run.save(u, d.u);
}
// =====================================================================

/// Pipelined conjugate gradients (Ghysels and Vanroose, algorithm 3; with an M local to block rows algorithm
/// 4, whose u = M r and q = M s are formed where they are needed instead of being carried along: two vectors
/// and two roundings less). Bytes an iteration beside the matrix: begin 112 m, sweep 16 m. One sum,
/// overlapped with the sweep.
template <class M = AnyPreconditioner>
struct Pipelined {
  M m;
  double const* b;                    ///< [owned]
  double *x, *r, *w, *p, *s, *z, *n;  ///< [owned]
  double* g;                          ///< [owned] M w, bound to the exchange, ghosts around it
};

/// z = n + beta z; s = w + beta s; p = M r + beta p; x += alpha p; r -= alpha s; w -= alpha z; then g = M w
/// and the sums (r, r), (r, M r), (w, M r). A fresh start only forms g and the sums.
template <class M>
struct PipelinedStep : Preconditioned<PipelinedStep, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE PipelinedStep(PipelinedStep<Other> const&, M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit PipelinedStep(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class G, class X, class R, class W, class P, class S, class Z, class N>
  HOSTLESS_HOST_DEVICE void operator()(State const& state, L block_row, Sums const& sum, G const& g,
                                       X const& x, R const& r, W const& w, P const& p, S const& s, Z const& z,
                                       N const& n) const {
    double u[L::rows];
    if (!state.fresh) {
      m.apply(block_row, r, u);
      for (int j = 0; j < L::rows; ++j) {
        z(block_row, j) = __builtin_fma(state.value[cg::beta], z(block_row, j), n(block_row, j));
        s(block_row, j) = __builtin_fma(state.value[cg::beta], s(block_row, j), w(block_row, j));
        p(block_row, j) = __builtin_fma(state.value[cg::beta], p(block_row, j), u[j]);
        x(block_row, j) = __builtin_fma(state.value[cg::alpha], p(block_row, j), x(block_row, j));
        r(block_row, j) = __builtin_fma(-state.value[cg::alpha], s(block_row, j), r(block_row, j));
        w(block_row, j) = __builtin_fma(-state.value[cg::alpha], z(block_row, j), w(block_row, j));
      }
    }
    m.apply(block_row, r, u);
    for (int j = 0; j < L::rows; ++j) {
      double const rj = r(block_row, j);
      sum.add(0, rj * rj);
      sum.add(1, rj * u[j]);
      sum.add(2, w(block_row, j) * u[j]);
    }
    m.apply(block_row, w, u);
    for (int j = 0; j < L::rows; ++j) g(block_row, j) = u[j];
  }
};

/// g = M r.
template <class M>
struct ApplyPreconditioner : Preconditioned<ApplyPreconditioner, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE ApplyPreconditioner(ApplyPreconditioner<Other> const&, M preconditioner)
      : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit ApplyPreconditioner(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class G, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const&, G const& g, R const& r) const {
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) g(block_row, j) = z[j];
  }
};

// ===================================================================== the one text
template <class Run, class M>
HOSTLESS_TEXT void pipelined_cg(Run& run, Pipelined<M> d) {
  auto x = run.keep(d.x);
  auto r = run.keep(d.r);
  auto w = run.keep(d.w);
  auto p = run.keep(d.p);
  auto s = run.keep(d.s);
  auto z = run.keep(d.z);
  auto n = run.keep(d.n);
  auto g = run.gathered(d.g);
  run.repeat(Gate::solve, [&]() HOSTLESS_INLINED {
    run.only(Gate::true_residual, [&]() HOSTLESS_INLINED {
      run.publish(g, Copy{}, reads(x));
      run.sweep(g, into(ValueIndex::rr, cg::rz), TrueResidual{d.m, d.b}, ConvergenceTest<cg::rz>{}, r);
    });
    run.only(Gate::begin, [&]() HOSTLESS_INLINED {
      run.publish(g, ApplyPreconditioner{d.m}, reads(r));
      run.sweep(g, nothing(), Store{}, NoDecision{}, w);  // w = A M r
    });
    run.repeat(Gate::iterate, [&]() HOSTLESS_INLINED {
      run.begin(g, into(ValueIndex::rr, cg::rz, cg::pq), PipelinedStep{d.m}, x, r, w, p, s, z, reads(n));
      run.sweep(begun(g), nothing(), Store{}, NoDecision{}, n);  // n = A g, while the sums travel
      run.finish(into(ValueIndex::rr, cg::rz, cg::pq), OneReduction{});
    });
  });
  run.save(x, d.x);
  run.save(r, d.r);
  run.save(w, d.w);
  run.save(p, d.p);
  run.save(s, d.s);
  run.save(z, d.z);
  run.save(n, d.n);
}
// =====================================================================

}  // namespace hostless
