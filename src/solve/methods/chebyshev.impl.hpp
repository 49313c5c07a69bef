#pragma once
// A polynomial of Chebyshev as preconditioner: z = q(M A) M r, with M one of preconditioner.impl.hpp (Saad,
// Iterative Methods for Sparse Linear Systems, 2nd edition, algorithm 12.1, from z = 0). Degree k costs k
// products with A and no sum over ranks but the one of (r, z), which the method needs anyway.
//
// 1 - l q(l) = T(k + 1, (theta - l) / delta) / T(k + 1, theta / delta), theta and delta being centre and half
// width of [upper / ratio, upper]: q > 0 on (0, upper + upper / ratio), and for even k everywhere.
//
// Bytes an application: M r 24 m, each step 32 m, each addition between two steps 24 m; 8 or 8 b more for
// each of the k + 1 uses of M.

#include "solve/methods/by_rows.impl.hpp"
#include "solve/methods/chebyshev_numbers.hpp"

namespace hostless {

/// Numbers of one block row, read as a field is.
template <int B>
struct BlockRowValues {
  double value[B];
  HOSTLESS_HOST_DEVICE double operator()(BlockRow<B>, int j) const { return value[j]; }
};

/// d = M r / theta; z = d.
template <class M>
struct ChebyshevStart : Preconditioned<ChebyshevStart, M> {
  M m;
  double first;
  template <class Other>
  HOSTLESS_HOST_DEVICE ChebyshevStart(ChebyshevStart<Other> const& same, M inner)
      : m(inner), first(same.first) {}
  HOSTLESS_HOST_DEVICE ChebyshevStart(M inner, double number) : m(inner), first(number) {}
  template <class L, class Sums, class Z, class R, class D>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const&, Z const& z, R const& r,
                                       D const& d) const {
    double scaled[L::rows];
    m.apply(block_row, r, scaled);
    double const by = first * s.value[chebyshev::inverse_upper];
    for (int j = 0; j < L::rows; ++j) z(block_row, j) = d(block_row, j) = by * scaled[j];
  }
};

/// z += d.
struct ChebyshevAdd {
  template <class L, class Sums, class Z, class D>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const&, Z const& z, D const& d) const {
    for (int j = 0; j < L::rows; ++j) z(block_row, j) += d(block_row, j);
  }
};

/// d = keep d + take M (r - A z).
template <class M>
struct ChebyshevStep : Preconditioned<ChebyshevStep, M> {
  M m;
  double keep, take;
  template <class Other>
  HOSTLESS_HOST_DEVICE ChebyshevStep(ChebyshevStep<Other> const& same, M inner)
      : m(inner), keep(same.keep), take(same.take) {}
  HOSTLESS_HOST_DEVICE ChebyshevStep(M inner, double keep_number, double take_number)
      : m(inner), keep(keep_number), take(take_number) {}
  template <class L, class Sums, class Products, class Z, class R, class D>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const&, Products const& a_z,
                                       Z const&, R const& r, D const& d) const {
    BlockRowValues<L::rows> left;
    for (int j = 0; j < L::rows; ++j) left.value[j] = r(block_row, j) - a_z(block_row, j);
    double scaled[L::rows];
    m.apply(block_row, left, scaled);
    double const by = take * s.value[chebyshev::inverse_upper];
    for (int j = 0; j < L::rows; ++j) d(block_row, j) = __builtin_fma(keep, d(block_row, j), by * scaled[j]);
  }
};

/// The last step, which also sums (r, z + d).
template <class M>
struct ChebyshevLastStep : Preconditioned<ChebyshevLastStep, M> {
  ChebyshevStep<M> step;
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE ChebyshevLastStep(ChebyshevLastStep<Other> const& same, M inner)
      : step(inner, same.step.keep, same.step.take), m(inner) {}
  HOSTLESS_HOST_DEVICE explicit ChebyshevLastStep(ChebyshevStep<M> const& last) : step(last), m(last.m) {}
  template <class L, class Sums, class Products, class Z, class R, class D>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, Products const& a_z,
                                       Z const& z, R const& r, D const& d) const {
    step(s, block_row, sum, a_z, z, r, d);
    for (int j = 0; j < L::rows; ++j) sum.add(0, r(block_row, j) * (z(block_row, j) + d(block_row, j)));
  }
};

/// p = (z + d) + beta p, and the gathered field, which holds z, takes p.
struct ChebyshevDirection {
  template <class L, class Sums, class Z, class D, class P>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const&, Z const& z, D const& d,
                                       P const& p) const {
    for (int j = 0; j < L::rows; ++j) {
      double const whole = z(block_row, j) + d(block_row, j);
      z(block_row, j) = p(block_row, j) =
          s.fresh ? whole : __builtin_fma(s.value[cg::beta], p(block_row, j), whole);
    }
  }
};

/// beta. Where (r, z) is not positive the polynomial is not: some eigenvalue lies above the upper bound,
/// which is raised, and the method starts anew from the true residual. After so many times that is not the
/// reason.
struct ChebyshevRatio {
  static constexpr int most_raises = 10;
  static constexpr double raise = 1.5;
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    if (!is_finite(s.value[cg::rz])) {
      s.status = Status::not_finite;
    } else if (s.value[cg::rz] > 0) {
      s.value[cg::beta] = s.fresh ? 0.0 : s.value[cg::rz] / s.value[cg::rz_before];
      pause_where_wanted(s);  // goes on by applying the polynomial again
    } else if (s.raises == most_raises) {
      s.status = Status::indefinite_preconditioner;
    } else {
      ++s.raises;
      s.raised = true;
      s.changed_at = s.iteration;
      s.value[chebyshev::upper] *= raise;
      s.value[chebyshev::inverse_upper] = 1.0 / s.value[chebyshev::upper];
      ask_for_true_residual(s);
    }
  }
};

/// z + d = q(M A) M r, where z is the gathered field; (r, z + d), and what follows from it.
template <class Run, class M, class Field>
HOSTLESS_TEXT void apply_chebyshev(Run& run, ChebyshevNumbers const& numbers, M const& m, Field z, Field r,
                                   Field d) {
  run.publish(z, ChebyshevStart<M>{m, numbers.first}, reads(r), d);
  double rho = 1.0 / numbers.sigma;
  auto const next_step = [&]() HOSTLESS_INLINED {
    double const next = 1.0 / (2 * numbers.sigma - rho), keep = next * rho;
    rho = next;
    return ChebyshevStep<M>{m, keep, next * numbers.later};
  };
  for (int k = 1; k < numbers.degree; ++k) {
    run.sweep(z, nothing(), next_step(), NoDecision{}, reads(r), d);
    run.publish(z, ChebyshevAdd{}, reads(d));
  }
  run.sweep(z, into(cg::rz), ChebyshevLastStep<M>{next_step()}, ChebyshevRatio{}, reads(r), d);
}

/// The polynomial with its fields: its products take the gathered field, so that p is kept elsewhere.
template <class M, class Field>
struct BoundChebyshev {
  ChebyshevNumbers numbers;
  M inner, rows;
  Field kept;
  double* memory;

  template <class Run>
  HOSTLESS_TEXT Field direction(Run& run, Field& p, Field& r, Field& work) const {
    apply_chebyshev(run, numbers, inner, p, r, work);         // p + work = M r; beta
    run.publish(p, ChebyshevDirection{}, reads(work), kept);  // p = M r + beta kept
    return p;
  }
  template <class Run>
  HOSTLESS_TEXT void end(Run& run) const {
    run.save(kept, memory);
  }
};

template <class M = AnyPreconditioner>
struct Chebyshev {
  ChebyshevNumbers numbers;
  M inner, rows;  ///< under the polynomial; none, for sums that come without the polynomial
  double* kept;   ///< [owned] the direction

  template <class Run>
  HOSTLESS_TEXT auto begin(Run& run) const {
    auto field = run.keep(kept);
    return BoundChebyshev<M, decltype(field)>{numbers, inner, rows, field, kept};
  }
};

/// Of methods with a vector more for it (`with_polynomial`), the last of their owned ones.
struct ChebyshevPreconditioner {
  static constexpr bool is_of(Variant variant) { return variant == Variant::polynomial; }
  template <class Method>
  static constexpr bool serves = Method::offers.polynomial;
  template <class M>
  static Chebyshev<M> of(MethodInput<M> const& in) {
    return {in.polynomial, in.m, M{}, in.kept_by_polynomial()};
  }
};

}  // namespace hostless
