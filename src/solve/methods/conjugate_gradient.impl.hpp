#pragma once
// The conjugate gradient method of Hestenes and Stiefel, preconditioned (Trotter et al. 2025, listing 2).
// Bytes an iteration beside the matrix: publish 24 m, sweep 16 m, rows 48 m; 8 or 8 b more for each use of M.
// Two sums an iteration, each of them the barrier between two phases; one exchange, overlapped with interior
// slices. With a Chebyshev polynomial as preconditioner: publish 40 m and what applying it costs
// (chebyshev.impl.hpp), no use of M elsewhere; still two sums, and one exchange more for each product.

#include "run/deferred_update.hpp"
#include "solve/methods/preconditioners.hpp"

namespace hostless {

struct ConjugateGradientMethod;

/// What the method works on: one rank's share, in the order of the plan.
template <class M = ByRows<>>
struct ConjugateGradient {
  using Descriptor = ConjugateGradientMethod;
  M m;                ///< of preconditioners.hpp
  double const* b;    ///< [owned]
  double *x, *r, *q;  ///< [owned]
  double* p;          ///< [owned], bound to the exchange, ghosts around it
};

/// q = A p; sums (p, q).
struct ProductDot {
  template <class L, class Sums, class Products, class P, class Q>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, Products const& a_p,
                                       P const& p, Q const& q) const {
    for (int j = 0; j < L::rows; ++j) {
      double const t = a_p(block_row, j);
      q(block_row, j) = t;
      sum.add(0, p(block_row, j) * t);
    }
  }
};

/// r -= alpha q; sums (r, r) and (r, M r).
template <class M>
struct Reduce : Preconditioned<Reduce, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE Reduce(Reduce<Other> const&, M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit Reduce(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class R, class Q>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, R const& r,
                                       Q const& q) const {
    for (int j = 0; j < L::rows; ++j)
      r(block_row, j) = __builtin_fma(-s.value[cg::alpha], q(block_row, j), r(block_row, j));
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) {
      double const rj = r(block_row, j);
      sum.add(0, rj * rj);
      sum.add(1, rj * z[j]);
    }
  }
};

/// x += alpha p; r -= alpha q; sums (r, r) and (r, M r). Nothing waits for its first half before x is read: a
/// run may put that off (decision 0017).
template <class M>
struct Update : Preconditioned<Update, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE Update(Update<Other> const&, M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit Update(M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE static double step(State const& s) { return s.value[cg::alpha]; }
  HOSTLESS_HOST_DEVICE Reduce<M> now() const { return Reduce<M>(m); }
  template <class L, class Sums, class X, class R, class Q, class P>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, X const& x, R const& r,
                                       Q const& q, P const& p) const {
    advance(step(s), block_row, x, p);
    now()(s, block_row, sum, r, q);
  }
};

/// alpha = (r, z) / (p, q), if p sees positive curvature.
struct Curvature {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    if (!is_finite(s.value[cg::pq])) {
      s.status = Status::not_finite;
    } else if (s.rounded && s.value[cg::pq] <= 0) {
      leave_rounded(s, ExactAgain::curvature);
      ask_for_true_residual(s);
    } else if (s.value[cg::pq] < 0) {
      s.status = Status::indefinite_matrix;
    } else if (s.value[cg::pq] ==
               0) {  // from the true residual on: A is singular along p; later: the recurrence is used up
      if (s.fresh) s.status = Status::breakdown;
      ask_for_true_residual(s);
    } else {
      s.value[cg::alpha] = s.value[cg::rz] / s.value[cg::pq];
      if (s.fresh) s.value[cg::beta] = 0;  // that of a recurrence that is over
      s.value[cg::rz_before] = s.value[cg::rz];
      s.fresh = false;
    }
  }
};

/// (r, M r) of a step that goes on must be positive.
HOSTLESS_HOST_DEVICE bool preconditioner_fails(State const& s) { return !s.apart && s.value[cg::rz] < 0; }

/// beta, or the end of the recurrence. With M apart, (r, z) is not known yet: the preconditioner finishes the
/// work.
struct Ratio {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    if (!is_finite(s.value[cg::rz])) {
      s.status = Status::not_finite;
    } else if (s.value[cg::rz] < 0) {
      s.status = Status::indefinite_preconditioner;
    } else if (s.value[cg::rz] == 0) {
      ask_for_true_residual(s);
    } else {
      s.value[cg::beta] = s.value[cg::rz] / s.value[cg::rz_before];
      pause_where_wanted(s);
    }
  }
};
struct Residual {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    ++s.iteration;
    log_step(s, s.value[cg::alpha], s.value[cg::beta]);
    if (s.apart) s.value[cg::rz] = s.value[cg::rz_before];  // finite and positive until it is known
    if (!is_finite(s.rr)) {
      s.status = Status::not_finite;
    } else if (!preconditioner_fails(s) && (proposes_end(s) || s.value[cg::rz] == 0)) {
      ask_for_true_residual(s);
    } else if (!s.apart) {
      Ratio{}(s);
    }
  }
};

struct ConjugateGradientMethod {
  static constexpr Method method = Method::cg;
  static constexpr char const* name = "cg";
  static constexpr char const* title = "conjugate gradients (Hestenes and Stiefel)";
  static constexpr FieldFacts fields[] = {kept("x"), kept("r"), scratch("q"),
                                          with_polynomial(kept("direction")), gathered("p")};
  static constexpr int values = cg::values;
  static constexpr Offers offers{
      .apart = true, .polynomial = true, .rounded = true, .spans_ranks = true, .fuses = true};
  static constexpr Demands demands = Demands::positive_definite;
  static constexpr bool makes_lanczos_steps = true;
  static constexpr int square_in_m = cg::rz;
  static constexpr CurvatureSum curvature{cg::pq, "p'A p", "the sum has lost its sign to rounding"};
  static constexpr Breakdown breakdown{
      "p'A p = 0", "where p is not 0 (A is singular or indefinite along p, or squares underflow)"};
  static constexpr Method steadier = method;
  static constexpr double divergence_limit = symmetric_divergence_limit;
  using Late = NoDecision;

  static constexpr IterationTraffic traffic(Variant variant, TrafficRequest const& request) {
    std::int64_t const m = request.preconditioner_bytes;
    if (variant != Variant::polynomial)
      return {
          .vector_bytes = 24 + 16 + 48 + 2 * m, .sums = 2, .kernels = 3, .barriers = 3, .fused_barriers = 2};
    int const products = request.degree + 1;
    int const phases = 2 * products + 1;  // a publish and a sweep a step; those of the direction; rows
    return {
        chebyshev_vector_bytes(request.degree, m) + 16 + 48, products, products, 2, phases, phases, phases};
  }

  template <class In, class M>
  static auto bind(In const& in, M m) {
    double* const* const f = in.field;
    return ConjugateGradient<M>{m, in.b, f[0], f[1], f[2], in.gathered()};
  }

  // =================================================================== the one text
  template <class Run, class M>
  HOSTLESS_TEXT static void text(Run& run, ConjugateGradient<M> d) {
    auto r = run.keep(d.r);  // first: what is used most is kept nearest
    auto x = run.keep(d.x);
    auto q = run.scratch(d.q);
    auto p = run.gathered(d.p);
    auto m = d.m.begin(run);
    run.repeat(Gate::solve, [&]() HOSTLESS_INLINED {
      run.only(Gate::true_residual, [&]() HOSTLESS_INLINED {
        run.publish(p, Copy{}, reads(x));  // only p ever has ghosts
        run.sweep(p, into(ScalarIndex::rr, cg::rz), TrueResidual{m.rows, d.b}, ConvergenceTest<cg::rz>{},
                  halo_source(r));  // r = b - A x
      });
      run.repeat(Gate::iterate, [&]() HOSTLESS_INLINED {
        run.sweep(m.direction(run, p, r, q), into(cg::pq), ProductDot{}, Curvature{},
                  fills(q));  // p = M r + beta p, whose exchange starts; q = A p; alpha
        run.rows(into(ScalarIndex::rr, cg::rz), Update{m.rows}, Residual{}, x, halo_source(r), reads(q),
                 reads(p));  // x += alpha p; r -= alpha q; beta
      });
    });
    run.save(x, d.x);
    run.save(r, d.r);
    run.save(p, d.p);
    m.end(run);
  }
  // ===================================================================
};

}  // namespace hostless
