// Mathematics as the oracle: a conjugate gradient method in long double, and theorems.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

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

struct Exact {
  std::vector<long double> history;
  long double amplification = 0;  ///< the largest product of condition-like factors of one step, see below
};

// Conjugate gradients in long double with Jacobi. Besides, how much one step can magnify a relative error of
// its input: alpha |A| |p| / |r| for r, and the same for beta |p| / |z| for p. Both come from the run itself.
Exact exact_cg(System const& a, std::vector<double> const& b, int steps) {
  using Wide = std::vector<long double>;
  auto const n = b.size();
  auto const dot = [](Wide const& u, Wide const& v) {
    long double s = 0;
    for (std::size_t i = 0; i < u.size(); ++i) s += u[i] * v[i];
    return s;
  };
  System absolute = a;
  for (double& v : absolute.value) v = std::abs(v);
  auto const d = diagonal_of(a);
  Wide r(b.begin(), b.end()), z(n), p(n, 0.0L);
  Exact out;
  long double rz = 1;
  out.history.push_back(std::sqrt(dot(r, r)));
  for (int k = 0; k < steps; ++k) {
    for (std::size_t i = 0; i < n; ++i) z[i] = r[i] / d[i];
    long double const next = dot(r, z), beta = k == 0 ? 0 : next / rz;
    long double const before = std::sqrt(dot(p, p));
    for (std::size_t i = 0; i < n; ++i) p[i] = z[i] + beta * p[i];
    long double const grown_p = (std::sqrt(dot(z, z)) + beta * before) / std::sqrt(dot(p, p));
    rz = next;
    Wide const q = a.times(p);
    Wide size(n);
    for (std::size_t i = 0; i < n; ++i) size[i] = std::abs(p[i]);
    size = absolute.times(size);
    long double const pq = dot(p, q), alpha = rz / pq;
    long double sum_of_sizes = 0;
    for (std::size_t i = 0; i < n; ++i) sum_of_sizes += std::abs(p[i]) * size[i];
    long double const r_before = std::sqrt(dot(r, r));
    for (std::size_t i = 0; i < n; ++i) r[i] -= alpha * q[i];
    out.history.push_back(std::sqrt(dot(r, r)));
    long double const grown_r = (r_before + alpha * std::sqrt(dot(size, size))) / out.history.back();
    out.amplification =
        std::max(out.amplification, std::max(grown_p, grown_r) * std::max(1.0L, sum_of_sizes / pq));
  }
  return out;
}

// The relative error of |r_k| obeys e_{k + 1} <= g (e_k + c eps), where c eps bounds the roundings of one
// step (n-term sums in a tree: 3 + log2 n, rows of m entries: m + 2, a handful of scalars: 8) and g = 1 + the
// largest amplification of one step that the long double run itself saw. Hence e_k <= c eps k g^k, k small.
TEST_P(Generators, FirstResidualsAgreeWithLongDouble) {
  System const a = System::problem(GetParam());
  auto const b = random_vector(a.rows(), 5);
  constexpr int steps = 4;
  Exact const exact = exact_cg(a, b, steps);
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < a.offset.size(); ++i)
    longest = std::max(longest, a.offset[i] - a.offset[i - 1]);
  double const c = static_cast<double>(longest) + 2 + 3 + std::log2(static_cast<double>(a.rows())) + 8;
  for (Method method : all_methods()) {
    Place place;
    place.ranks = 2;
    place.aligned = true;
    place.solve.method = method;
    place.solve.preconditioner = PreconditionerKind::jacobi;
    place.solve.max_iterations = steps;
    auto const e = solve_on_threads(a, b, place);
    ASSERT_EQ(e.result.residual_history.size(), steps + 1u);
    double const g = 1 + static_cast<double>(exact.amplification);
    for (int k = 0; k <= steps; ++k) {
      double const bound = c * eps * (k + 1) * std::pow(g, k);
      auto const expected = static_cast<double>(exact.history[static_cast<std::size_t>(k)]);
      EXPECT_LE(std::abs(e.result.residual_history[static_cast<std::size_t>(k)] / expected - 1), bound)
          << name(method) << " step " << k << " bound " << bound;
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
  for (Method method : all_methods()) {
    double first = 0, before = std::numeric_limits<double>::infinity();
    for (int k = 0; k <= 24; k += 2) {
      Place place;
      place.solve.method = method;
      place.solve.preconditioner = PreconditionerKind::jacobi;
      place.solve.max_iterations = k;
      auto const e = solve_on_threads(a, b, place);
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

TEST_P(Generators, EveryMethodReachesTenDigits) {
  System const a = System::problem(GetParam());
  auto const b = random_vector(a.rows(), 7);
  for (Method method : all_methods()) {
    for (int ranks : {1, 2}) {
      Place place;
      place.ranks = ranks;
      place.aligned = true;
      place.solve.method = method;
      place.solve.preconditioner = PreconditionerKind::jacobi;
      place.solve.rtol = 1e-10;
      auto const e = solve_on_threads(a, b, place);
      ASSERT_TRUE(e.result.status == Status::converged || e.result.status == Status::stagnated)
          << name(method) << ": " << name(e.result.status);
      double const truth = residual_of(a, b, e.x);
      // The truth the library reports is |b - A x| rounded: rows of fma, then a sum.
      EXPECT_NEAR(truth, e.result.true_residual, 1e-3 * truth + 64 * eps * norm(b));
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
      Place place;
      place.ranks = 3;
      place.solve.method = method;
      place.solve.rtol = 1e-12;
      auto const e = solve_on_threads(a, b, place);
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
    Place place;
    place.solve.method = method;
    place.solve.rtol = 1e-12;
    auto const e = solve_on_threads(a, b, place);
    EXPECT_EQ(e.result.status, Status::converged);
    EXPECT_LE(e.result.iterations, 3);
  }
}

class Collection : public testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(All, Collection, testing::Values("bcsstk13", "bcsstk16"));

TEST_P(Collection, IsSolvedWithJacobi) {
  auto const path = std::filesystem::path(HOSTLESS_SOURCE_DIR) / ".." / "shared" / "data" /
                    (std::string(GetParam()) + ".mtx.gz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  for (int ranks : {1, 2, 4}) {
    for (Method method : all_methods()) {
      Status status = Status::running;
      double truth = 1;
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
          truth = result.true_relative_residual;
        }
      });
      if (method == Method::cg || std::string(GetParam()) == "bcsstk16") {
        EXPECT_EQ(status, Status::converged) << name(method) << " on " << ranks;
      } else {  // condition 1e10: the recurrences of the others may give up, but may not lie
        EXPECT_TRUE(status == Status::converged || status == Status::stagnated)
            << name(method) << " on " << ranks << ": " << name(status);
      }
      EXPECT_TRUE(status != Status::converged || truth <= 1e-8);
    }
  }
}

}  // namespace
}  // namespace hostless::test
