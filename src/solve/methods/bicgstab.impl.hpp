#pragma once
// The stabilised bi-conjugate gradient method, for matrices that need not be symmetric.

#include "solve/methods/preconditioners.hpp"

namespace hostless {

struct BicgstabMethod;

/// BiCGStab (van der Vorst 1992), preconditioned from the right, so that r is the residual of x. The shadow
/// residual is the true residual that the recurrence begins with. Bytes an iteration beside the matrix:
/// publish 40 m, sweep 24, publish 56 m, sweep 24, rows 56; 8 or 8 b more for each use of M. Two products and
/// exchanges, three sums, five phases.
template <class M = ByRows<>>
struct Bicgstab {
  using Descriptor = BicgstabMethod;
  M m;                                 ///< of preconditioners.hpp
  double const* b;                     ///< [owned]
  double *x, *r, *p, *v, *shadow, *t;  ///< [owned]
  double* g;                           ///< [owned] M p, then M s, bound to the exchange, ghosts around it
};

namespace bicgstab {
enum Value : int {
  rho,        ///< shadow' r, of the iteration that begins
  rho_next,   ///< of the next one
  curvature,  ///< shadow' v
  ts,
  tt,
  alpha,
  omega,
  beta,
  shadow_norm,  ///< |shadow|
  values
};
}  // namespace bicgstab

/// shadow = r; sums (r, r).
struct TakeShadow {
  template <class L, class Sums, class S, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, S const& shadow,
                                       R const& r) const {
    for (int j = 0; j < L::rows; ++j) {
      double const rj = r(block_row, j);
      shadow(block_row, j) = rj;
      sum.add(0, rj * rj);
    }
  }
};
struct ShadowTaken {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    if (!is_finite(s.value[bicgstab::rho])) s.status = Status::not_finite;
    s.value[bicgstab::shadow_norm] = sqrt(s.value[bicgstab::rho]);
  }
};

/// p = r + beta (p - omega v).
struct BicgstabSearch {
  template <class P, class R, class V>
  HOSTLESS_HOST_DEVICE static P const& result(P const& p, R const&, V const&) {
    return p;
  }
  template <class L, class Sums, class G, class P, class R, class V>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const&, G const&, P const& p,
                                       R const& r, V const& v) const {
    if (s.fresh) {
      for (int j = 0; j < L::rows; ++j) p(block_row, j) = r(block_row, j);
      return;
    }
    for (int j = 0; j < L::rows; ++j) {
      double const before = __builtin_fma(-s.value[bicgstab::omega], v(block_row, j), p(block_row, j));
      p(block_row, j) = __builtin_fma(s.value[bicgstab::beta], before, r(block_row, j));
    }
  }
};
/// v = A g; sums (shadow, v).
struct ShadowDot {
  template <class L, class Sums, class Products, class G, class V, class S>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, Products const& a_g,
                                       G const&, V const& v, S const& shadow) const {
    for (int j = 0; j < L::rows; ++j) {
      double const vj = a_g(block_row, j);
      v(block_row, j) = vj;
      sum.add(0, shadow(block_row, j) * vj);
    }
  }
};
/// alpha. Where v is orthogonal to the shadow residual there is none: another shadow residual may do.
struct BicgstabAlpha {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    double const alpha = s.value[bicgstab::rho] / s.value[bicgstab::curvature];
    if (!is_finite(s.value[bicgstab::curvature])) {
      s.status = Status::not_finite;
    } else if (!is_finite(alpha)) {
      if (s.fresh) s.status = Status::breakdown;  // the same shadow residual would come again
      ask_for_true_residual(s);
    } else {
      s.value[bicgstab::alpha] = alpha;
      s.fresh = false;
    }
  }
};

/// r -= alpha v, which makes it s; x += alpha g.
struct HalfStep {
  template <class X, class R, class V>
  HOSTLESS_HOST_DEVICE static R const& result(X const&, R const& r, V const&) {
    return r;
  }
  template <class L, class Sums, class G, class X, class R, class V>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const&, G const& g, X const& x,
                                       R const& r, V const& v) const {
    for (int j = 0; j < L::rows; ++j) {
      x(block_row, j) = __builtin_fma(s.value[bicgstab::alpha], g(block_row, j), x(block_row, j));
      r(block_row, j) = __builtin_fma(-s.value[bicgstab::alpha], v(block_row, j), r(block_row, j));
    }
  }
};
/// t = A g; sums (t, s), (t, t), (s, s), where s stands in r.
struct Stabilise {
  template <class L, class Sums, class Products, class G, class T, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, Products const& a_g,
                                       G const&, T const& t, R const& r) const {
    for (int j = 0; j < L::rows; ++j) {
      double const tj = a_g(block_row, j), sj = r(block_row, j);
      t(block_row, j) = tj;
      sum.add(0, tj * sj);
      sum.add(1, tj * tj);
      sum.add(2, sj * sj);
    }
  }
};
/// omega, or the end in the middle of the iteration: s is the residual of x, and small enough.
struct BicgstabOmega {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    double const omega = s.value[bicgstab::ts] / s.value[bicgstab::tt];
    if (!is_finite(s.value[bicgstab::ts]) || !is_finite(s.value[bicgstab::tt]) || !is_finite(s.rr)) {
      s.status = Status::not_finite;
    } else if (is_outside(s.rr, s.closes_at(), s.growth_at) || !is_finite(omega)) {
      ++s.iteration;
      log_step(s, 0, 0);
      ask_for_true_residual(s);
    } else {
      s.value[bicgstab::omega] = omega;
    }
  }
};

/// x += omega g; r = s - omega t; sums (r, r) and (shadow, r).
struct FullStep {
  template <class L, class Sums, class X, class R, class G, class T, class S>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, X const& x, R const& r,
                                       G const& g, T const& t, S const& shadow) const {
    for (int j = 0; j < L::rows; ++j) {
      x(block_row, j) = __builtin_fma(s.value[bicgstab::omega], g(block_row, j), x(block_row, j));
      double const rj = __builtin_fma(-s.value[bicgstab::omega], t(block_row, j), r(block_row, j));
      r(block_row, j) = rj;
      sum.add(0, rj * rj);
      sum.add(1, shadow(block_row, j) * rj);
    }
  }
};
/// beta, or the end of the recurrence: met its target, or r has become orthogonal to the shadow residual, or
/// t to s, to rounding. The true residual then brings another shadow residual.
struct BicgstabBeta {
  static constexpr double orthogonal = 1e-16;
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    double const next = s.value[bicgstab::rho_next];
    double const beta = next / s.value[bicgstab::rho] * (s.value[bicgstab::alpha] / s.value[bicgstab::omega]);
    ++s.iteration;
    log_step(s, 0, 0);
    if (!is_finite(s.rr) || !is_finite(next)) {
      s.status = Status::not_finite;
    } else if (proposes_end(s) || !is_finite(beta) || s.value[bicgstab::omega] == 0 ||
               fabs(next) <= orthogonal * sqrt(s.rr) * s.value[bicgstab::shadow_norm]) {
      ask_for_true_residual(s);
    } else {
      s.value[bicgstab::rho] = next;
      s.value[bicgstab::beta] = beta;
      pause_where_wanted(s);
    }
  }
};

struct BicgstabMethod {
  static constexpr Method method = Method::bicgstab;
  static constexpr char const* name = "bicgstab";
  static constexpr char const* title = "stabilised bi-conjugate gradients (van der Vorst)";
  static constexpr FieldFacts fields[] = {kept("x"),      kept("r"),    kept("p"),    kept("v"),
                                          kept("shadow"), scratch("t"), gathered("g")};
  static constexpr int values = bicgstab::values;
  static constexpr Offers offers{.apart = true};
  static constexpr Demands demands = Demands::nothing;
  static constexpr bool makes_lanczos_steps = false;
  static constexpr int square_in_m = ScalarIndex::none;
  static constexpr CurvatureSum curvature{};
  static constexpr Breakdown breakdown{
      "r'A M r = 0", "where r is not 0 (A is singular or skew-symmetric along M r, or squares underflow)"};
  static constexpr Method steadier = method;
  // Nothing bounds its residuals on their way. Beyond this rounding alone leaves as much as there was to begin with.
  static constexpr double divergence_limit = 1e16;
  using Late = NoDecision;

  static constexpr IterationTraffic traffic(Variant, TrafficRequest const& request) {
    return {.vector_bytes = 40 + 24 + 56 + 24 + 56 + 2 * request.preconditioner_bytes,
            .products = 2,
            .exchanges = 2,
            .sums = 3,
            .kernels = 5,
            .barriers = 5,
            .fused_barriers = 5};
  }

  template <class In, class M>
  static auto bind(In const& in, M m) {
    double* const* const f = in.field;
    return Bicgstab<M>{m, in.b, f[0], f[1], f[2], f[3], f[4], f[5], f[6]};
  }

  // =================================================================== the one text
  template <class Run, class M>
  HOSTLESS_TEXT static void text(Run& run, Bicgstab<M> d) {
    auto r = run.keep(d.r);
    auto x = run.keep(d.x);
    auto v = run.keep(d.v);
    auto p = run.keep(d.p);
    auto shadow = run.keep(d.shadow);
    auto t = run.scratch(d.t);
    auto g = run.gathered(d.g);
    auto m = d.m.begin(run);
    run.repeat(Gate::solve, [&]() HOSTLESS_INLINED {
      run.only(Gate::true_residual, [&]() HOSTLESS_INLINED {
        run.publish(g, Copy{}, reads(x));
        run.sweep(g, into(ScalarIndex::rr, bicgstab::rho), TrueResidual{m.rows, d.b},
                  ConvergenceTest<ScalarIndex::none>{}, r);  // r = b - A x
      });
      run.only(Gate::begin, [&]() HOSTLESS_INLINED {
        run.rows(into(bicgstab::rho), TakeShadow{}, ShadowTaken{}, shadow, reads(r));
      });
      run.repeat(Gate::iterate, [&]() HOSTLESS_INLINED {
        m.publish(run, g, p, BicgstabSearch{}, p, reads(r), reads(v));  // g = M p
        run.sweep(g, into(bicgstab::curvature), ShadowDot{}, BicgstabAlpha{}, v, reads(shadow));
        m.publish(run, g, r, HalfStep{}, x, r, reads(v));  // g = M s
        run.sweep(g, into(bicgstab::ts, bicgstab::tt, ScalarIndex::rr), Stabilise{}, BicgstabOmega{}, t,
                  reads(r));
        run.rows(into(ScalarIndex::rr, bicgstab::rho_next), FullStep{}, BicgstabBeta{}, x, r, reads(g),
                 reads(t), reads(shadow));
      });
    });
    run.save(x, d.x);
    run.save(r, d.r);
    run.save(p, d.p);
    run.save(v, d.v);
    run.save(shadow, d.shadow);
    m.end(run);
  }
  // ===================================================================
};

}  // namespace hostless
