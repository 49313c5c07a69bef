#pragma once
// The conjugate residual method, for symmetric matrices; made for positive definite ones.

#include "solve/methods/preconditioners.hpp"

namespace hostless {

struct ConjugateResidualMethod;

/// Conjugate residuals (Stiefel 1955; Saad 2003, algorithm 6.20), with a positive definite M. With z = M r,
/// w = A z and q = A p:
///
///     alpha = (z, w) / (q, M q)     x += alpha p     r -= alpha q
///     beta  = (z, w) / (z, w)'      p = z + beta p   q = w + beta q      (' of the iteration before)
///
/// so one product makes both A z and A p, and r has the smallest norm in M that x can give it in the span of
/// the p. The update of x and r for a step is made where the next z is formed. Of an indefinite A (z, w) may
/// vanish before r does: there is no next p then, and minres is what goes on. Bytes an iteration beside the
/// matrix: publish 56 m, sweep 24, rows 48 m; 8 or 8 b more for each use of M. Two sums, one exchange, three
/// phases. A function of the user is applied once an iteration: z -= alpha M q then is M r.
template <class M = ByRows<>>
struct ConjugateResidual {
  using Descriptor = ConjugateResidualMethod;
  M m;                        ///< of preconditioners.hpp
  double const* b;            ///< [owned]
  double *x, *r, *p, *q, *w;  ///< [owned]
  double* z;                  ///< [owned] M r, bound to the exchange, ghosts around it
};

namespace cr {
enum Value : int {
  rz,  ///< r' M r
  zw,  ///< z' A z
  qq,  ///< q' M q
  alpha,
  beta,
  zw_before,  ///< zw of the iteration before
  norm,       ///< largest |q| / |r| seen, both in M: about |M A|
  values
};
}  // namespace cr

/// The step before: x += alpha p; r -= alpha q. Then z = M r.
template <class M>
struct ConjugateResidualStep : Preconditioned<ConjugateResidualStep, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE ConjugateResidualStep(ConjugateResidualStep<Other> const&, M preconditioner)
      : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit ConjugateResidualStep(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class Z, class X, class R, class P, class Q>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const&, Z const& z, X const& x,
                                       R const& r, P const& p, Q const& q) const {
    double const alpha = s.value[cr::alpha];
    if (!s.fresh) {
      for (int j = 0; j < L::rows; ++j) {
        x(block_row, j) = __builtin_fma(alpha, p(block_row, j), x(block_row, j));
        r(block_row, j) = __builtin_fma(-alpha, q(block_row, j), r(block_row, j));
      }
    }
    double image[L::rows];
    m.apply(block_row, r, image);
    bool const is_of_q = s.apart && !s.fresh;
    for (int j = 0; j < L::rows; ++j)
      z(block_row, j) = is_of_q ? __builtin_fma(-alpha, image[j], z(block_row, j)) : image[j];
  }
};

/// w = A z; sums (r, r), (r, z), (z, w).
struct ConjugateResidualProduct {
  template <class L, class Sums, class Products, class Z, class W, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, Products const& a_z,
                                       Z const& z, W const& w, R const& r) const {
    for (int j = 0; j < L::rows; ++j) {
      double const zj = z(block_row, j), rj = r(block_row, j), wj = a_z(block_row, j);
      w(block_row, j) = wj;
      sum.add(0, rj * rj);
      sum.add(1, rj * zj);
      sum.add(2, zj * wj);
    }
  }
};
/// beta. The iteration before this product is complete: r is that of x. z may have left M r a little where M
/// is apart, so only a first (r, z) tells of that M.
struct ConjugateResidualBeta {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    double const rz = s.value[cr::rz], zw = s.value[cr::zw];
    if (!s.fresh) {
      ++s.iteration;
      log_step(s, 0, 0);
    }
    if (!is_finite(s.rr) || !is_finite(rz) || !is_finite(zw)) {
      s.status = Status::not_finite;
    } else if (s.fresh ? rz <= 0 : rz < 0 && !s.apart) {
      s.status = Status::indefinite_preconditioner;
    } else if (!s.fresh && (proposes_end(s) || rz <= 0)) {
      ask_for_true_residual(s);
    } else {
      s.value[cr::beta] = s.fresh ? 0.0 : zw / s.value[cr::zw_before];
      s.value[cr::zw_before] = zw;
    }
  }
};

/// p = z + beta p; q = w + beta q; sums (q, M q).
template <class M>
struct ConjugateResidualDirection : Preconditioned<ConjugateResidualDirection, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE ConjugateResidualDirection(ConjugateResidualDirection<Other> const&, M preconditioner)
      : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit ConjugateResidualDirection(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class P, class Q, class Z, class W>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, P const& p, Q const& q,
                                       Z const& z, W const& w) const {
    double const beta = s.value[cr::beta];
    for (int j = 0; j < L::rows; ++j) {
      double const zj = z(block_row, j), wj = w(block_row, j);
      p(block_row, j) = s.fresh ? zj : __builtin_fma(beta, p(block_row, j), zj);
      q(block_row, j) = s.fresh ? wj : __builtin_fma(beta, q(block_row, j), wj);
    }
    double image[L::rows];
    m.apply(block_row, q, image);
    for (int j = 0; j < L::rows; ++j) sum.add(0, q(block_row, j) * image[j]);
  }
};
/// alpha, or the end of the recurrence: with r orthogonal to M q, to rounding, no step along p makes r
/// smaller. |(z, w)| / (|r| |q|), both in M, is the sine by which the step turns r; of a positive definite
/// M A of condition k it is above 2 / sqrt(k), so only indefinite and singular matrices come below this.
///
/// Where A is singular and no x reaches b, what r has left of A's range vanishes, and (z, w) with it: then rounding of
/// A z, eps |A| |z|, is all that it is made of. Steps by such numbers throw x along null vectors, further from step to
/// step, until rounding of x spoils r; (z, w) does not become smaller, and r never orthogonal. Of a positive definite M A
/// of condition k (z, w) is above |M A| (r, z) / k, so only what fp64 cannot tell from singular comes here. Where that is
/// so of a true residual too it is the least one: |A z|^2 <= |A| (z, w) of a semidefinite A, and A z has vanished. Of an
/// indefinite one only the sum may have.
template <bool known>
struct ConjugateResidualAlpha {
  static constexpr double orthogonal = 1e-14;
  static constexpr double rounding = 0x1p-49;   ///< of (z, w) over |M A| (r, z): 8 eps
  static constexpr double vanishing = 0x1p-20;  ///< of |A z| over |M A| |z|: the root of that, with a margin
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    if (s.apart != known) return;
    double const qq = s.value[cr::qq];
    if (!is_finite(qq)) {
      s.status = Status::not_finite;
    } else if (qq < 0) {
      s.status = Status::indefinite_preconditioner;
    } else if (qq == 0) {
      if (s.fresh) s.status = Status::breakdown;
      ask_for_true_residual(s);
    } else {
      step(s, sqrt(s.value[cr::rz]), sqrt(qq));
    }
  }

 private:
  HOSTLESS_HOST_DEVICE static void step(State& s, double r, double q) {
    double const zw = s.value[cr::zw];
    s.value[cr::norm] = fmax(s.value[cr::norm], q / r);
    bool const is_rounding = fabs(zw) <= rounding * s.value[cr::norm] * s.value[cr::rz];
    if (is_rounding || fabs(zw) <= orthogonal * r * q) {
      bool const is_least = is_rounding && q <= vanishing * s.value[cr::norm] * r;
      if (s.fresh) s.status = is_least ? Status::stagnated : Status::breakdown;
      ask_for_true_residual(s);
    } else {
      s.value[cr::alpha] = zw / s.value[cr::qq];
      s.fresh = false;
      pause_where_wanted(s);
    }
  }
};

struct ConjugateResidualMethod {
  static constexpr Method method = Method::cr;
  static constexpr char const* name = "cr";
  static constexpr char const* title = "conjugate residuals (Stiefel)";
  static constexpr FieldFacts fields[] = {kept("x"), kept("r"),    kept("p"),
                                          kept("q"), scratch("w"), gathered("z")};
  static constexpr int values = cr::values;
  static constexpr Offers offers{.apart = true};
  static constexpr Demands demands = Demands::symmetric;
  static constexpr bool makes_lanczos_steps = false;
  static constexpr int square_in_m = cr::rz;
  static constexpr CurvatureSum curvature{};
  static constexpr Breakdown breakdown{
      "r'M A M r = 0",
      "where r is not 0 (A is singular or indefinite along M r, or squares underflow; method minres does not "
      "need that number)"};
  static constexpr Method steadier = Method::minres;
  static constexpr double divergence_limit = symmetric_divergence_limit;
  using Late = NoDecision;

  static constexpr IterationTraffic traffic(Variant, TrafficRequest const& request) {
    return {.vector_bytes = 56 + 24 + 48 + 2 * request.preconditioner_bytes,
            .sums = 2,
            .kernels = 3,
            .barriers = 3,
            .fused_barriers = 3};
  }

  template <class In, class M>
  static auto bind(In const& in, M m) {
    double* const* const f = in.field;
    return ConjugateResidual<M>{m, in.b, f[0], f[1], f[2], f[3], f[4], f[5]};
  }

  // =================================================================== the one text
  template <class Run, class M>
  HOSTLESS_TEXT static void text(Run& run, ConjugateResidual<M> d) {
    auto r = run.keep(d.r);
    auto x = run.keep(d.x);
    auto p = run.keep(d.p);
    auto q = run.keep(d.q);
    auto w = run.scratch(d.w);
    auto z = run.gathered(d.z);
    auto m = d.m.begin(run);
    run.repeat(Gate::solve, [&]() HOSTLESS_INLINED {
      run.only(Gate::true_residual, [&]() HOSTLESS_INLINED {
        run.publish(z, Copy{}, reads(x));
        run.sweep(z, into(ScalarIndex::rr, cr::rz), TrueResidual{m.rows, d.b}, ConvergenceTest<cr::rz>{},
                  r);  // r = b - A x
      });
      run.only(Gate::begin, [&]() HOSTLESS_INLINED { m.square(run, r, into(cr::rz), NoDecision{}); });
      run.repeat(Gate::iterate, [&]() HOSTLESS_INLINED {
        run.publish(z, ConjugateResidualStep{m.rows}, x, r, reads(p), reads(q));  // x, r; z = M r
        run.sweep(z, into(ScalarIndex::rr, cr::rz, cr::zw), ConjugateResidualProduct{},
                  ConjugateResidualBeta{}, w, reads(r));  // w = A z; beta
        run.rows(into(cr::qq), ConjugateResidualDirection{m.rows}, ConjugateResidualAlpha<false>{}, p, q,
                 reads(z), reads(w));  // p = z + beta p; q = w + beta q; alpha
        m.square(run, q, into(cr::qq), ConjugateResidualAlpha<true>{});
      });
    });
    run.save(x, d.x);
    run.save(r, d.r);
    run.save(p, d.p);
    run.save(q, d.q);
    run.save(z, d.z);
    m.end(run);
  }
  // ===================================================================
};

}  // namespace hostless
