#pragma once
// Conjugate gradients whose sums are one an iteration.

#include "solve/methods/one_reduction.impl.hpp"

namespace hostless {

struct SingleReductionMethod;

/// Single-reduction conjugate gradients (Chronopoulos and Gear 1989).
/// Bytes an iteration beside the matrix: publish 88 m, sweep 24 m. One sum, one exchange, two phases.
template <class M = ByRows<>>
struct SingleReduction {
  using Descriptor = SingleReductionMethod;
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

struct SingleReductionMethod {
  static constexpr Method method = Method::single_reduction_cg;
  static constexpr char const* name = "single-reduction-cg";
  static constexpr char const* title = "one sum an iteration (Chronopoulos and Gear)";
  static constexpr FieldFacts fields[] = {kept("x"), kept("r"), kept("p"),
                                          kept("s"), kept("w"), gathered("u")};
  static constexpr int values = cg::values;
  static constexpr Offers offers{};
  static constexpr Demands demands = Demands::positive_definite;
  static constexpr bool makes_lanczos_steps = true;
  static constexpr int square_in_m = cg::rz;
  static constexpr CurvatureSum curvature{cg::pq, "(M r)'A M r", "the sum has lost its sign to rounding"};
  static constexpr Breakdown breakdown{
      "p'A p = 0", "where p is not 0 (A is singular or indefinite along p, or squares underflow)"};
  static constexpr Method steadier = Method::cg;
  static constexpr double divergence_limit = symmetric_divergence_limit;
  using Late = NoDecision;

  static constexpr IterationTraffic traffic(Variant, TrafficRequest const& request) {
    return {.vector_bytes = 88 + 24 + request.preconditioner_bytes,
            .kernels = 2,
            .barriers = 2,
            .fused_barriers = 2};
  }

  template <class In, class M>
  static auto bind(In const& in, M m) {
    double* const* const f = in.field;
    return SingleReduction<M>{m, in.b, f[0], f[1], f[2], f[3], f[4], f[5]};
  }

  // =================================================================== the one text
  template <class Run, class M>
  HOSTLESS_TEXT static void text(Run& run, SingleReduction<M> d) {
    auto x = run.keep(d.x);
    auto r = run.keep(d.r);
    auto p = run.keep(d.p);
    auto s = run.keep(d.s);
    auto w = run.keep(d.w);
    auto u = run.gathered(d.u);
    auto m = d.m.begin(run);
    run.repeat(Gate::solve, [&]() HOSTLESS_INLINED {
      run.only(Gate::true_residual, [&]() HOSTLESS_INLINED {
        run.publish(u, Copy{}, reads(x));
        run.sweep(u, into(ScalarIndex::rr, cg::rz), TrueResidual{m.rows, d.b}, ConvergenceTest<cg::rz>{}, r);
      });
      run.repeat(Gate::iterate, [&]() HOSTLESS_INLINED {
        run.publish(u, SingleReductionStep{m.rows}, x, r, p, s, reads(w));
        run.sweep(u, into(ScalarIndex::rr, cg::rz, cg::pq), ThreeDots{}, OneReduction<false>{}, reads(r), w);
      });
    });
    run.save(x, d.x);
    run.save(r, d.r);
    run.save(p, d.p);
    run.save(s, d.s);
    run.save(w, d.w);
    run.save(u, d.u);
    m.end(run);
  }
  // ===================================================================
};

}  // namespace hostless
