#pragma once
// The minimal residual method, for symmetric matrices that need not be definite.

#include "solve/methods/minres_decisions.impl.hpp"
#include "solve/methods/preconditioners.hpp"

namespace hostless {

struct MinresMethod;

/// MINRES (Paige and Saunders 1975), with a positive definite M (Choi, Paige and Saunders 2011, section 6).
/// Beside x it carries the residual r of x: with an M the method itself knows only its norm in M. The update
/// of x for a step is made where the next Lanczos vector is formed. Bytes an iteration beside the matrix:
/// publish 88 m, sweep 40, rows 32 m; 8 or 8 b more for each use of M. Two sums, one exchange, three phases.
template <class M = ByRows<>>
struct Minres {
  using Descriptor = MinresMethod;
  M m;                   ///< of preconditioners.hpp
  double const* b;       ///< [owned]
  double *x, *r;         ///< [owned]
  double *w, *w_before;  ///< [owned] directions of the last two steps
  double *y, *y_before;  ///< [owned] Lanczos vectors before they are scaled and M is applied
  double* v;             ///< [owned] M y / beta, bound to the exchange, ghosts around it
};

/// y = r, and nothing before it; sums (r, M r). Where the recurrence goes on all stays as it is.
template <class M>
struct LanczosBegin : Preconditioned<LanczosBegin, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE LanczosBegin(LanczosBegin<Other> const&, M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit LanczosBegin(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class Y, class Before, class W, class WBefore, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, Y const& y,
                                       Before const& y_before, W const& w, WBefore const& w_before,
                                       R const& r) const {
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) {
      double const rj = r(block_row, j);
      if (!minres::is(s, minres::agreement)) {
        y(block_row, j) = rj;
        y_before(block_row, j) = w(block_row, j) = w_before(block_row, j) = 0;
      }
      sum.add(0, rj * z[j]);
    }
  }
};

/// The step before: w = (v - delta w - epsilon w_before) / gamma, x, r. Then v = M y / beta.
template <class M>
struct MinresStep : Preconditioned<MinresStep, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE MinresStep(MinresStep<Other> const&, M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit MinresStep(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class V, class X, class R, class W, class Before, class Y>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const&, V const& v, X const& x,
                                       R const& r, W const& w, Before const& w_before, Y const& y) const {
    double z[L::rows];
    m.apply(block_row, y, z);
    for (int j = 0; j < L::rows; ++j) {
      if (!s.fresh) {
        double direction = __builtin_fma(-s.value[minres::epsilon], w_before(block_row, j), v(block_row, j));
        direction = __builtin_fma(-s.value[minres::delta], w(block_row, j), direction);
        direction *= s.value[minres::inverse_gamma];
        w_before(block_row, j) = w(block_row, j);
        w(block_row, j) = direction;
        x(block_row, j) = __builtin_fma(s.value[minres::step], direction, x(block_row, j));
        r(block_row, j) =
            __builtin_fma(s.value[minres::keep], r(block_row, j), -s.value[minres::take] * y(block_row, j));
      }
      v(block_row, j) = s.value[minres::inverse_beta] * z[j];
    }
  }
};

/// y_before becomes A v - (beta / beta_before) y_before, which it is already where v had to give its place to
/// a true residual and the recurrence goes on; sums (v, y_before), (r, r) and (x, x).
struct LanczosProduct {
  template <class L, class Sums, class Products, class V, class Y, class R, class X>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, Products const& a_v,
                                       V const& v, Y const& y_before, R const& r, X const& x) const {
    for (int j = 0; j < L::rows; ++j) {
      double const before = y_before(block_row, j);
      double const next = minres::is(s, minres::agreement)
                              ? before
                              : __builtin_fma(-s.value[minres::by_before], before, a_v(block_row, j));
      double const rj = r(block_row, j), xj = x(block_row, j);
      y_before(block_row, j) = next;
      sum.add(0, v(block_row, j) * next);
      sum.add(1, rj * rj);
      sum.add(2, xj * xj);
    }
  }
};
/// y = y_before - (diagonal / beta) y, and y_before what y was; sums (y, M y).
template <class M>
struct LanczosNext : Preconditioned<LanczosNext, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE LanczosNext(LanczosNext<Other> const&, M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit LanczosNext(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class Y, class Before>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, Y const& y,
                                       Before const& y_before) const {
    for (int j = 0; j < L::rows; ++j) {
      double const now = y(block_row, j);
      y(block_row, j) = __builtin_fma(-s.value[minres::by_newest], now, y_before(block_row, j));
      y_before(block_row, j) = now;
    }
    double z[L::rows];
    m.apply(block_row, y, z);
    for (int j = 0; j < L::rows; ++j) sum.add(0, y(block_row, j) * z[j]);
  }
};

struct MinresMethod {
  static constexpr Method method = Method::minres;
  static constexpr char const* name = "minres";
  static constexpr char const* title = "minimal residuals (Paige and Saunders)";
  static constexpr FieldFacts fields[] = {kept("x"), kept("r"),        kept("w"),    kept("w before"),
                                          kept("y"), kept("y before"), gathered("v")};
  static constexpr int values = minres::values;
  static constexpr Offers offers{.apart = true};
  static constexpr Demands demands = Demands::symmetric;
  static constexpr bool makes_lanczos_steps = false;
  static constexpr int square_in_m = minres::square;
  static constexpr CurvatureSum curvature{};
  static constexpr Breakdown breakdown{
      "A M r = 0", "where r is not 0 (A is singular along M r: no x reaches that part of b)"};
  static constexpr Method steadier = method;
  static constexpr double divergence_limit = symmetric_divergence_limit;
  using Late = NoDecision;

  static constexpr IterationTraffic traffic(Variant, TrafficRequest const& request) {
    return {.vector_bytes = 88 + 40 + 32 + 2 * request.preconditioner_bytes,
            .sums = 2,
            .kernels = 3,
            .barriers = 3,
            .fused_barriers = 3};
  }

  template <class In, class M>
  static auto bind(In const& in, M m) {
    double* const* const f = in.field;
    return Minres<M>{m, in.b, f[0], f[1], f[2], f[3], f[4], f[5], f[6]};
  }

  // =================================================================== the one text
  template <class Run, class M>
  HOSTLESS_TEXT static void text(Run& run, Minres<M> d) {
    auto y = run.keep(d.y);
    auto y_before = run.keep(d.y_before);
    auto r = run.keep(d.r);
    auto w = run.keep(d.w);
    auto w_before = run.keep(d.w_before);
    auto x = run.keep(d.x);
    auto v = run.gathered(d.v);
    auto m = d.m.begin(run);
    run.repeat(Gate::solve, [&]() HOSTLESS_INLINED {
      run.only(Gate::true_residual, [&]() HOSTLESS_INLINED {
        run.publish(v, Copy{}, reads(x));
        run.sweep(v, into(ScalarIndex::rr, minres::square), TrueResidual{m.rows, d.b}, ComparedResidual{},
                  r);  // r = b - A x
      });
      run.only(Gate::begin, [&]() HOSTLESS_INLINED {
        run.rows(into(minres::square), LanczosBegin{m.rows}, LanczosBegun<false>{}, y, y_before, w, w_before,
                 reads(r));
        m.square(run, y, into(minres::square), LanczosBegun<true>{});
      });
      run.repeat(Gate::iterate, [&]() HOSTLESS_INLINED {
        run.publish(v, MinresStep{m.rows}, x, r, w, w_before, reads(y));  // x, r; v = M y / beta
        run.sweep(v, into(minres::diagonal, ScalarIndex::rr, minres::x_square), LanczosProduct{},
                  MinresResidual{}, y_before, reads(r), reads(x));
        run.rows(into(minres::square), LanczosNext{m.rows}, MinresRotation<false>{}, y, y_before);
        m.square(run, y, into(minres::square), MinresRotation<true>{});
      });
    });
    run.save(x, d.x);
    run.save(r, d.r);
    run.save(w, d.w);
    run.save(w_before, d.w_before);
    run.save(y, d.y);
    run.save(y_before, d.y_before);
    run.save(v, d.v);
    m.end(run);
  }
  // ===================================================================
};

}  // namespace hostless
