// Mathematics as the oracle: the methods in long double, and theorems.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <stdexcept>

#include "hostless/files/matrix_file.hpp"
#include "systems.hpp"

namespace hostless::test {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

std::vector<ProblemOptions> generators() {
  return {problem("poisson1d", 60, 1, 1),      problem("poisson2d", 12, 11, 1),
          problem("poisson7", 6, 5, 5),        problem("poisson27", 5, 5, 5),
          problem("poisson2d-tri", 11, 10, 1), problem("elasticity-hex8", 4, 5, 4),
          problem("elasticity-tet4", 4, 5, 4), problem("monodomain", 6, 6, 6),
          problem("circuit", 12, 12, 1)};
}

class Generators : public testing::TestWithParam<ProblemOptions> {};
INSTANTIATE_TEST_SUITE_P(All, Generators, testing::ValuesIn(generators()), [](auto const& one) {
  std::string text = one.param.kind;
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
});

std::vector<double> diagonal_of(System const& a) {
  std::vector<double> d(static_cast<std::size_t>(a.rows()));
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    auto const at = static_cast<std::size_t>(i);
    for (auto k = a.offset[at]; k < a.offset[at + 1]; ++k)
      if (a.column[static_cast<std::size_t>(k)] == i) d[at] = a.value[static_cast<std::size_t>(k)];
  }
  return d;
}

// Long double arithmetic that keeps a tape of its operations. Read backwards, the tape gives the derivative
// of a result by the rounding of each of them, hence how far double arithmetic may be away: to first order at
// most sum |derivative| |value| u (Higham, Accuracy and Stability of Numerical Algorithms, 3.3; here adjoint,
// so that errors that cancel are not counted twice).
class Tape {
 public:
  struct Number {
    long double value = 0;
    std::size_t at = 0;  // 0: exact
  };
  Number op(long double value, std::initializer_list<std::pair<Number, long double>> by, int roundings = 1) {
    Node node{static_cast<long double>(roundings) * std::abs(value), operands_.size()};
    for (auto const& [number, partial] : by)
      if (number.at != 0) operands_.push_back({number.at, partial});
    nodes_.push_back(node);
    return {value, nodes_.size() - 1};
  }
  Number product(Number a, Number b, int roundings = 1) {
    return op(a.value * b.value, {{a, b.value}, {b, a.value}}, roundings);
  }
  Number ratio(Number a, Number b) {
    long double const value = a.value / b.value;
    return op(value, {{a, 1 / b.value}, {b, -value / b.value}});
  }
  Number difference(Number a, Number b) { return op(a.value - b.value, {{a, 1}, {b, -1}}); }
  Number root(Number a) {
    long double const value = std::sqrt(a.value);
    return op(value, {{a, 1 / (2 * value)}});
  }
  /// y + sign a x, rounded once.
  Number fused(Number a, Number x, Number y, int sign = 1) {
    return op(y.value + sign * a.value * x.value, {{a, sign * x.value}, {x, sign * a.value}, {y, 1}});
  }
  /// What is rounded already, added up: the roundings of the additions belong to the terms.
  Number sum(std::vector<Number> const& terms) {
    Number total = op(0, {}, 0);
    for (Number const& t : terms) {
      total.value += t.value;
      operands_.push_back({t.at, 1});
    }
    return total;
  }
  /// First-order bound of the error of `result` in double arithmetic.
  long double bound(Number result) const {
    std::vector<long double> derivative(nodes_.size());
    derivative[result.at] = 1;
    long double error = 0;
    for (std::size_t k = result.at; k > 0; --k) {
      error += std::abs(derivative[k]) * nodes_[k].size;
      std::size_t const end = k + 1 < nodes_.size() ? nodes_[k + 1].first : operands_.size();
      for (std::size_t e = nodes_[k].first; e < end; ++e)
        derivative[operands_[e].first] += derivative[k] * operands_[e].second;
    }
    return error * eps / 2;
  }

 private:
  struct Node {
    long double size;   // of its roundings, in units
    std::size_t first;  // of its operands
  };
  std::vector<Node> nodes_{{0, 0}};
  std::vector<std::pair<std::size_t, long double>> operands_;  // operands, and derivatives by them
};

// The methods with Jacobi, and their residual norms: the same numbers in the papers' order.
class TapedMethods {
 public:
  using Number = Tape::Number;
  using Vector = std::vector<Number>;
  TapedMethods(System const& a, std::vector<double> const& b) : a_(a), r_(b.size()), inverse_(b.size()) {
    auto const d = diagonal_of(a);
    for (std::size_t i = 0; i < b.size(); ++i) {
      r_[i].value = b[i];
      inverse_[i] = tape.ratio({1}, {d[i]});
    }
  }

  Vector solve(Method method, int steps) {
    switch (method) {
      case Method::cg:
      case Method::single_reduction_cg:
      case Method::pipelined_cg:
        return conjugate_gradients(method, steps);
      case Method::bicgstab:
        return bicgstab(steps);
      case Method::minres:
        return minres(steps);
      case Method::cr:
        return conjugate_residuals(steps);
    }
    throw std::logic_error(std::string("nobody has taped: ") + name(method));
  }

  Tape tape;

 private:
  Vector conjugate_gradients(Method method, int steps) {
    Vector history{norm_of(r_)};
    Vector u = scaled(r_), w, p = u, s, z;
    bool const one = method != Method::cg, pipelined = method == Method::pipelined_cg;
    if (one) s = w = times(u);
    if (pipelined) z = times(scaled(w));
    Number gamma = dot(r_, u), alpha = one ? tape.ratio(gamma, dot(w, u)) : gamma;
    for (int k = 0; k < steps; ++k) {
      if (!one) {
        s = times(p);
        alpha = tape.ratio(gamma, dot(p, s));
      }
      subtract(r_, alpha, s);
      if (pipelined) subtract(w, alpha, z);
      history.push_back(norm_of(r_));
      u = scaled(r_);
      if (one && !pipelined) w = times(u);
      Number const next = dot(r_, u), beta = tape.ratio(next, gamma);
      if (one) {
        Number const lost = tape.ratio(tape.product(beta, next), alpha);
        alpha = tape.ratio(next, tape.difference(dot(w, u), lost));
      }
      gamma = next;
      if (pipelined) direct(z, beta, times(scaled(w)));
      if (one) direct(s, beta, w);
      direct(p, beta, u);
    }
    return history;
  }

  Vector bicgstab(int steps) {
    Vector history{norm_of(r_)};
    Vector const shadow = r_;
    Vector p = r_;
    Number rho = dot(r_, r_);
    for (int k = 0; k < steps; ++k) {
      Vector const v = times(scaled(p));
      Number const alpha = tape.ratio(rho, dot(shadow, v));
      subtract(r_, alpha, v);
      Vector const t = times(scaled(r_));
      Number const omega = tape.ratio(dot(t, r_), dot(t, t));
      subtract(r_, omega, t);
      history.push_back(norm_of(r_));
      Number const next = dot(shadow, r_);
      Number const beta = tape.product(tape.ratio(next, rho), tape.ratio(alpha, omega));
      rho = next;
      subtract(p, omega, v);
      direct(p, beta, r_);
    }
    return history;
  }
  // As Paige and Saunders have it; the residual by the reflections (docs/references.md).
  Vector minres(int steps) {
    Vector history{norm_of(r_)};
    Vector y = r_, before(r_.size()), z = scaled(y);
    Number beta = tape.root(dot(y, z)), by_before, residual = beta;
    Number cosine{-1}, sine, delta_next;
    for (int k = 0; k < steps; ++k) {
      Number const scale = tape.ratio({1}, beta);
      Vector v(z.size());
      for (std::size_t i = 0; i < z.size(); ++i) v[i] = tape.product(scale, z[i]);
      Vector next = times(v);
      subtract(next, by_before, before);
      Number const diagonal = dot(v, next);
      subtract(next, tape.product(diagonal, scale), y);
      before = y;
      y = next;
      z = scaled(y);
      Number const beta_next = tape.root(dot(y, z));
      Number const gamma_bar =
          tape.difference(tape.product(sine, delta_next), tape.product(cosine, diagonal));
      delta_next = tape.difference({0}, tape.product(cosine, beta_next));
      Number const gamma = tape.root(tape.difference(
          tape.product(gamma_bar, gamma_bar), tape.difference({0}, tape.product(beta_next, beta_next))));
      cosine = tape.ratio(gamma_bar, gamma);
      sine = tape.ratio(beta_next, gamma);
      Number const keep = tape.product(sine, sine);
      Number const take = tape.ratio(tape.product(residual, cosine), gamma);
      residual = tape.product(sine, residual);
      by_before = tape.ratio(beta_next, beta);
      beta = beta_next;
      for (std::size_t i = 0; i < r_.size(); ++i)
        r_[i] = tape.difference(tape.product(keep, r_[i]), tape.product(take, y[i]));
      history.push_back(norm_of(r_));
    }
    return history;
  }
  Vector conjugate_residuals(int steps) {
    Vector history{norm_of(r_)};
    Vector z = scaled(r_), q = times(z);
    Number zw = dot(z, q);
    for (int k = 0; k < steps; ++k) {
      subtract(r_, tape.ratio(zw, dot(q, scaled(q))), q);
      history.push_back(norm_of(r_));
      z = scaled(r_);
      Vector const w = times(z);
      Number const next = dot(z, w);
      direct(q, tape.ratio(next, zw), w);
      zw = next;
    }
    return history;
  }
  // In a tree: an accumulator adds its few rows (here at most 2 block rows of 3), 256 accumulators, slices
  // and ranks are paired.
  Number dot(Vector const& u, Vector const& v) {
    constexpr int additions = 6 + 8 + 9 + 1;
    Vector terms;
    for (std::size_t i = 0; i < u.size(); ++i) terms.push_back(tape.product(u[i], v[i], 1 + additions));
    return tape.sum(terms);
  }
  Number norm_of(Vector const& v) { return tape.root(dot(v, v)); }
  Vector scaled(Vector const& v) {
    Vector z(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) z[i] = tape.product(inverse_[i], v[i]);
    return z;
  }
  Vector times(Vector const& x) {
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      for (auto k = static_cast<std::size_t>(a_.offset[i]); k < static_cast<std::size_t>(a_.offset[i + 1]);
           ++k)
        y[i] = tape.fused({a_.value[k]}, x[static_cast<std::size_t>(a_.column[k])], y[i]);
    return y;
  }
  void subtract(Vector& y, Number a, Vector const& x) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = tape.fused(a, x[i], y[i], -1);
  }
  void direct(Vector& y, Number b, Vector const& x) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = tape.fused(b, y[i], x[i]);
  }

  System const& a_;
  Vector r_, inverse_;
};

// Every residual of the first steps lies within the bound that its own method's rounding errors allow; and
// the bound says something: far below the residual itself.
TEST_P(Generators, FirstResidualsAgreeWithLongDouble) {
  System const a = System::problem(GetParam());
  auto const b = random_vector(a.rows(), 5);
  constexpr int steps = 8;
  for (Method method : all_methods()) {
    Setting setting;
    setting.ranks = 2;
    setting.aligned = true;
    setting.solve.method = method;
    setting.solve.preconditioner = PreconditionerKind::jacobi;
    setting.solve.max_iterations = steps;
    auto const e = solve_on_threads(a, b, setting);
    ASSERT_EQ(e.result.residual_history.size(), steps + 1u);
    TapedMethods exact(a, b);
    auto const history = exact.solve(method, steps);
    for (std::size_t k = 0; k <= steps; ++k) {
      long double const away = std::abs(e.result.residual_history[k] - history[k].value);
      long double const bound = exact.tape.bound(history[k]);
      EXPECT_LE(away, bound) << name(method) << " step " << k;
      EXPECT_LE(bound, 1e-9L * history[k].value) << name(method) << " step " << k;
    }
  }
}

// Solution of A x = b to long double accuracy.
std::vector<long double> exact_solution(System const& a, std::vector<double> const& b) {
  auto const n = b.size();
  std::vector<long double> x(n, 0.0L), r(b.begin(), b.end()), z(n), p(n, 0.0L);
  auto const d = diagonal_of(a);
  long double rz = 1;
  for (std::size_t k = 0; k < 20 * n; ++k) {
    long double next = 0;
    for (std::size_t i = 0; i < n; ++i) next += r[i] * (z[i] = r[i] / d[i]);
    if (next == 0) break;
    for (std::size_t i = 0; i < n; ++i) p[i] = z[i] + (k == 0 ? 0 : next / rz) * p[i];
    rz = next;
    auto const q = a.times(p);
    long double pq = 0;
    for (std::size_t i = 0; i < n; ++i) pq += p[i] * q[i];
    if (!(pq > 0)) break;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] += rz / pq * p[i];
      r[i] -= rz / pq * q[i];
    }
  }
  return x;
}

// Conjugate gradients minimise the error in the norm of A over growing spaces. Rounding perturbs the square
// of it by no more than what the residual gap eps cond can hide; the check stops at 1e-6 of the first error.
TEST_P(Generators, ErrorFallsInTheNormOfA) {
  System const a = System::problem(GetParam());
  auto const b = random_vector(a.rows(), 6);
  auto const solution = exact_solution(a, b);
  for (Method method : definite_methods()) {
    double first = 0, before = std::numeric_limits<double>::infinity();
    for (int k = 0; k <= 24; k += 2) {
      Setting setting;
      setting.solve.method = method;
      setting.solve.preconditioner = PreconditionerKind::jacobi;
      setting.solve.max_iterations = k;
      auto const e = solve_on_threads(a, b, setting);
      std::vector<long double> error(b.size());
      for (std::size_t i = 0; i < b.size(); ++i) error[i] = solution[i] - e.x[i];
      auto const image = a.times(error);
      long double square = 0;
      for (std::size_t i = 0; i < b.size(); ++i) square += error[i] * image[i];
      double const now = std::sqrt(static_cast<double>(square));
      if (k == 0) first = now;
      if (now < 1e-6 * first) break;
      EXPECT_LT(now, before) << name(method) << " after " << k;
      before = now;
    }
  }
}

// MINRES has the smallest residual of the same spaces: it falls always, and is below that of conjugate
// gradients. So have conjugate residuals where A is positive definite: the same ones.
TEST_P(Generators, MinimalResidualsAreMinimal) {
  System const a = System::problem(GetParam());
  auto const b = random_vector(a.rows(), 6);
  auto const history = [&](Method method) {
    Setting setting;
    setting.solve.method = method;
    setting.solve.max_iterations = 24;
    return solve_on_threads(a, b, setting).result.residual_history;
  };
  auto const minimal = history(Method::minres), conjugate = history(Method::cg), same = history(Method::cr);
  ASSERT_GT(minimal.size(), 10u);
  ASSERT_EQ(minimal.size(), same.size());
  for (std::size_t k = 0; k < std::min(minimal.size(), conjugate.size()); ++k) {
    EXPECT_LE(minimal[k], conjugate[k] * (1 + 1e-9)) << k;
    if (k > 0) EXPECT_LE(minimal[k], minimal[k - 1] * (1 + 1e-12)) << k;
    EXPECT_NEAR(same[k], minimal[k], 1e-6 * minimal[k]) << k;
  }
}

TEST_P(Generators, EveryMethodReachesTenDigits) {
  System const a = System::problem(GetParam());
  auto const b = random_vector(a.rows(), 7);
  for (Method method : all_methods()) {
    for (int ranks : {1, 2}) {
      Setting setting;
      setting.ranks = ranks;
      setting.aligned = true;
      setting.solve.method = method;
      setting.solve.preconditioner = PreconditionerKind::jacobi;
      setting.solve.rtol = 1e-10;
      auto const e = solve_on_threads(a, b, setting);
      ASSERT_TRUE(e.result.status == Status::converged || e.result.status == Status::stagnated)
          << name(method) << ": " << name(e.result.status);
      double const true_residual = residual_of(a, b, e.x);
      // The true residual the library reports is |b - A x| rounded: rows of fma, then a sum.
      EXPECT_NEAR(true_residual, e.result.true_residual, 1e-3 * true_residual + 64 * eps * norm(b));
      if (e.result.status == Status::converged) {
        EXPECT_LE(e.result.true_relative_residual, 1e-10);
        EXPECT_LE(e.result.restarts, 3);
      }
      EXPECT_TRUE(method != Method::cg || e.result.status == Status::converged);
    }
  }
}

// k distinct eigenvalues: the residual is zero, but for rounding, after k steps.
TEST(Theorems, FiniteTermination) {
  for (int distinct : {1, 2, 3, 5}) {
    std::vector<double> d;
    for (int i = 0; i < 60; ++i) d.push_back(1 + i % distinct);
    System const a = System::diagonal(d);
    auto const b = random_vector(60, 8);
    for (Method method : all_methods()) {
      Setting setting;
      setting.ranks = 3;
      setting.solve.method = method;
      setting.solve.rtol = 1e-12;
      auto const e = solve_on_threads(a, b, setting);
      EXPECT_EQ(e.result.status, Status::converged);
      EXPECT_LE(e.result.iterations, distinct) << name(method);
      EXPECT_EQ(e.result.iterations, distinct) << name(method);
    }
  }
}

// An exaggerated diagonal: eigenvalues in 1e6 [1 - 4e-6, 1 + 4e-6], so three steps are plenty.
TEST(Theorems, ExaggeratedDiagonal) {
  System a = System::problem(problem("poisson2d", 20, 20, 1, 1.0));
  for (std::int64_t i = 0; i < a.rows(); ++i) a.at(i, i) = 1e6;
  auto const b = random_vector(a.rows(), 9);
  for (Method method : all_methods()) {
    Setting setting;
    setting.solve.method = method;
    setting.solve.rtol = 1e-12;
    auto const e = solve_on_threads(a, b, setting);
    EXPECT_EQ(e.result.status, Status::converged);
    EXPECT_LE(e.result.iterations, 3);
  }
}

class Collection : public testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(All, Collection, testing::Values("bcsstk13", "bcsstk16"));

TEST_P(Collection, IsSolvedWithJacobi) {
  auto const path = std::filesystem::path(HOSTLESS_MATRICES) / (std::string(GetParam()) + ".mtx.gz");
  for (int ranks : {1, 2, 4}) {
    for (Method method : definite_methods()) {
      Status status = Status::running;
      double true_residual = 1;
      run_with_threads_transport(ranks, [&](Transport& transport) {
        auto const source = read_matrix(transport.group(), path.string());
        Matrix const matrix = Matrix::from_source(transport, *source);
        SolveOptions options;
        options.method = method;
        options.preconditioner = PreconditionerKind::jacobi;
        options.rtol = 1e-8;
        Solver solver(matrix, options);
        solver.manufacture();
        Result const result = solver.solve();
        if (transport.group().rank() == 0) {
          status = result.status;
          true_residual = result.true_relative_residual;
        }
      });
      if (method == Method::cg || std::string(GetParam()) == "bcsstk16") {
        EXPECT_EQ(status, Status::converged) << name(method) << " on " << ranks;
      } else {  // condition 1e10: the recurrences of the others may give up, but may not lie
        EXPECT_TRUE(status == Status::converged || status == Status::stagnated)
            << name(method) << " on " << ranks << ": " << name(status);
      }
      EXPECT_TRUE(status != Status::converged || true_residual <= 1e-8);
    }
  }
}

}  // namespace
}  // namespace hostless::test
