#pragma once
// Conjugate gradients whose one sum an iteration travels beside the product.

#include "solve/methods/one_reduction.impl.hpp"

namespace hostless {

struct PipelinedMethod;

/// Pipelined conjugate gradients (Ghysels and Vanroose, algorithm 3; with an M local to block rows algorithm
/// 4, whose u = M r and q = M s are formed where they are needed instead of being carried along: two vectors
/// and two roundings less). Bytes an iteration beside the matrix: begin 112 m, sweep 16 m. One sum,
/// overlapped with the sweep.
template <class M = ByRows<>>
struct Pipelined {
  using Descriptor = PipelinedMethod;
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

struct PipelinedMethod {
  static constexpr Method method = Method::pipelined_cg;
  static constexpr char const* name = "pipelined-cg";
  static constexpr char const* title = "one sum an iteration, beside the product (Ghysels and Vanroose)";
  static constexpr FieldFacts fields[] = {kept("x"), kept("r"), kept("w"), kept("p"),
                                          kept("s"), kept("z"), kept("n"), gathered("g")};
  static constexpr int values = cg::values;
  static constexpr Offers offers{.spans_ranks = true, .begins = true};
  static constexpr Demands demands = Demands::positive_definite;
  static constexpr bool makes_lanczos_steps = true;
  static constexpr int square_in_m = cg::rz;
  static constexpr CurvatureSum curvature{cg::pq, "(M r)'A M r",
                                          "the sum has lost its sign to rounding or underflow"};
  static constexpr Breakdown breakdown{
      "p'A p = 0", "where p is not 0 (A is singular or indefinite along p, or squares underflow)"};
  static constexpr Method steadier = Method::cg;
  static constexpr double divergence_limit = symmetric_divergence_limit;
  using Late = OneReduction<true>;

  static constexpr IterationTraffic traffic(Variant, TrafficRequest const& request) {
    return {.vector_bytes = 112 + 16 + request.preconditioner_bytes,
            .kernels = 2,
            .barriers = 2,
            .fused_barriers = 1};
  }

  template <class In, class M>
  static auto bind(In const& in, M m) {
    double* const* const f = in.field;
    return Pipelined<M>{m, in.b, f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]};
  }

  // =================================================================== the one text
  template <class Run, class M>
  HOSTLESS_TEXT static void text(Run& run, Pipelined<M> d) {
    auto x = run.keep(d.x);
    auto r = run.keep(d.r);
    auto w = run.keep(d.w);
    auto p = run.keep(d.p);
    auto s = run.keep(d.s);
    auto z = run.keep(d.z);
    auto n = run.keep(d.n);
    auto g = run.gathered(d.g);
    auto m = d.m.begin(run);
    run.repeat(Gate::solve, [&]() HOSTLESS_INLINED {
      run.only(Gate::true_residual, [&]() HOSTLESS_INLINED {
        run.publish(g, Copy{}, reads(x));
        run.sweep(g, into(ScalarIndex::rr, cg::rz), TrueResidual{m.rows, d.b}, ConvergenceTest<cg::rz>{}, r);
      });
      run.only(Gate::begin, [&]() HOSTLESS_INLINED {
        run.publish(g, ApplyPreconditioner{m.rows}, reads(r));
        run.sweep(g, nothing(), Store{}, NoDecision{}, w);  // w = A M r
      });
      run.repeat(Gate::iterate, [&]() HOSTLESS_INLINED {
        run.begin(g, into(ScalarIndex::rr, cg::rz, cg::pq), PipelinedStep{m.rows}, x, r, w, p, s, z,
                  reads(n));
        run.sweep(begun(g), nothing(), Store{}, NoDecision{}, n);  // n = A g, while the sums travel
        run.finish(into(ScalarIndex::rr, cg::rz, cg::pq), Late{});
      });
    });
    run.save(x, d.x);
    run.save(r, d.r);
    run.save(w, d.w);
    run.save(p, d.p);
    run.save(s, d.s);
    run.save(z, d.z);
    run.save(n, d.n);
    m.end(run);
  }
  // ===================================================================
};

}  // namespace hostless
