// What the coefficients of the steps say of the eigenvalues, held against eigenvalues that are known.
#include "solve/setup/condition.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "systems.hpp"

namespace hostless::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The coefficients of a symmetric positive definite tridiagonal matrix: T = L D L'.
std::vector<StepRecord> steps_of(std::vector<double> const& diagonal, std::vector<double> const& beside) {
  std::vector<StepRecord> steps;
  double pivot = diagonal[0];
  steps.push_back({0, 1 / pivot, 0, 0});
  for (std::size_t k = 1; k < diagonal.size(); ++k) {
    double const l = beside[k - 1] / pivot;
    pivot = diagonal[k] - l * beside[k - 1];
    steps.push_back({0, 1 / pivot, l * l, 0});
  }
  return steps;
}

void expect_values(std::vector<StepRecord> const& steps, double smallest, double largest) {
  auto const values = extreme_ritz_values(steps);
  ASSERT_TRUE(values);
  EXPECT_NEAR(values->smallest, smallest, 3e-6 * smallest);
  EXPECT_NEAR(values->largest, largest, 3e-6 * largest);
}

// Where doubles have no digits left between two of them.
TEST(RitzValues, OfDenormalsEnd) {
  std::vector<StepRecord> const steps{{0, 1e308, 0, 0}, {0, 1e308, 1e6, 0}};
  auto const values = extreme_ritz_values(steps);
  if (values) {
    EXPECT_LE(values->smallest, values->largest);
  }
}

TEST(RitzValues, OfOneStep) { expect_values({{0, 0.25, 0, 0}}, 4, 4); }

// 2 - 2 cos(k pi / (n + 1)).
TEST(RitzValues, OfThePath) {
  for (std::size_t n : {2u, 3u, 10u, 1000u, 30000u}) {
    auto const steps = steps_of(std::vector<double>(n, 2.0), std::vector<double>(n - 1, -1.0));
    double const angle = std::numbers::pi / (2 * (static_cast<double>(n) + 1));
    expect_values(steps, 4 * std::sin(angle) * std::sin(angle), 4 * std::cos(angle) * std::cos(angle));
  }
}

// The condition 1e14 is told although the entries, added up, would have lost the small one.
TEST(RitzValues, OfSmallEigenvalues) {
  double const small = 1e-14;  // of [[1, 1], [1, 1 + 2 small]], but for small^2
  expect_values({{0, 1, 0, 0}, {0, 1 / (2 * small), 1, 0}}, small, 2);
}

TEST(RitzValues, AfterABetaOfZeroAreOfAnotherProcess) {
  expect_values({{0, 0.5, 7, 0}, {0, 0.125, 0, 0}, {0, 4, 0, 0}}, 0.25,
                8);  // what lies before the first is not there
}

TEST(RitzValues, OfWhatIsNoProcess) {
  EXPECT_FALSE(extreme_ritz_values({}));
  for (double bad : {0.0, -1.0, infinity, std::nan(""), 1e-320}) {
    std::vector<StepRecord> const steps{{0, 1, 0, 0}, {0, bad, 1, 0}, {0, 1, 1, 0}};
    EXPECT_FALSE(extreme_ritz_values(steps)) << bad;
  }
  for (double bad : {-1.0, infinity, std::nan("")}) {
    std::vector<StepRecord> const steps{{0, 1, 0, 0}, {0, 1, bad, 0}, {0, 1, 1, 0}};
    EXPECT_FALSE(extreme_ritz_values(steps)) << bad;
  }
}

// Two processes, whose recurrences ended at 1e-3 and at 1e-6 where the true residuals were 1e-2 and 1e-6.
TEST(TrustedSteps, AreAboveTheGap) {
  std::vector<StepRecord> const steps{
      {1e-1, 1, 0, 1}, {1e-3, 2, 1, 1}, {1e-6, 3, 1, 1}, {1e-5, 4, 0, 1e-4}, {1e-12, 5, 1, 1e-4}};
  std::vector<double> alpha;
  for (StepRecord const& step : trusted_steps(steps, 1e-12)) alpha.push_back(step.alpha);
  EXPECT_EQ(alpha, (std::vector<double>{1, 2, 4, 5}));  // the third was made from 0.03, of a gap of 0.009
  EXPECT_EQ(trusted_steps(steps, std::nan("")).size(), 4);
  EXPECT_TRUE(trusted_steps({}, 1).empty());
}

// ---- of whole solves

struct Where {
  Method method;
  RunChoice run;
};
class Condition : public testing::TestWithParam<Where> {
 protected:
  Setting setting() const {
    Setting p;
    p.ranks = 2;
    p.solve.method = GetParam().method;
    p.solve.rtol = 1e-10;
    use(p, GetParam().run);
    return p;
  }
};
std::vector<Where> everywhere() {
  std::vector<Where> all;
  for (Method method : methods_that([](MethodFacts const& one) { return one.makes_lanczos_steps; }))
    for (RunChoice const& run : all_runs()) all.push_back({method, run});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Condition, testing::ValuesIn(everywhere()), [](auto const& one) {
  std::string text = name(one.param.method);
  std::replace(text.begin(), text.end(), '-', '_');
  return text + "_" + one.param.run.name;
});

double smallest_of_path(double n) { return 2 - 2 * std::cos(std::numbers::pi / (n + 1)); }
double largest_of_path(double n) { return 2 + 2 * std::cos(std::numbers::pi / (n + 1)); }

void expect_condition(Result const& result, double smallest, double largest, double tolerance) {
  EXPECT_NEAR(result.smallest_eigenvalue, smallest, tolerance * smallest);
  EXPECT_NEAR(result.largest_eigenvalue, largest, tolerance * largest);
  EXPECT_EQ(result.condition_estimate, result.largest_eigenvalue / result.smallest_eigenvalue);
}

TEST_P(Condition, OfAMatrixThatIsUsedUp) {
  System const a = System::path(40);
  auto const e = solve_on_threads(a, random_vector(40, 3), setting());
  ASSERT_EQ(e.result.status, Status::converged);
  expect_condition(e.result, smallest_of_path(40), largest_of_path(40), 1e-5);
  for (Result const& one : e.by_rank) EXPECT_EQ(one.condition_estimate, e.result.condition_estimate);
}

// S A S with the diagonal 2 S S: by Jacobi's method half the path again.
TEST_P(Condition, IsOfThePreconditionedMatrix) {
  System a = System::path(40);
  for (std::int64_t i = 0; i < 40; ++i)
    for (std::int64_t j = std::max<std::int64_t>(i - 1, 0); j < std::min<std::int64_t>(i + 2, 40); ++j)
      a.at(i, j) *= std::exp2(i % 7) * std::exp2(j % 7);
  Setting p = setting();
  p.solve.preconditioner = PreconditionerKind::jacobi;
  auto const e = solve_on_threads(a, random_vector(40, 3), p);
  ASSERT_EQ(e.result.status, Status::converged);
  expect_condition(e.result, smallest_of_path(40) / 2, largest_of_path(40) / 2, 1e-5);
}

// Restarts from the true residual, of which there are some where the tolerance is out of reach, do not spoil
// it.
TEST_P(Condition, AfterRestarts) {
  Setting p = setting();
  p.solve.rtol = 1e-17;
  auto const e = solve_on_threads(System::path(40), random_vector(40, 3), p);
  ASSERT_GE(e.result.restarts, 1);
  expect_condition(e.result, smallest_of_path(40), largest_of_path(40), 1e-5);
}

// The recurrence goes on far below what x can reach: the pipelined method's coefficients are of no matrix
// there.
TEST_P(Condition, WhereTheToleranceIsOutOfReach) {
  int known = 0;
  for (std::int64_t n : {60, 100, 250}) {
    for (double rtol : {1e-10, 1e-13, 1e-17}) {
      Setting p = setting();
      p.solve.rtol = rtol;
      auto const e = solve_on_threads(System::path(n), random_vector(n, 3), p);
      auto const size = static_cast<double>(n);
      double const exact = largest_of_path(size) / smallest_of_path(size);
      std::string const what = std::to_string(n) + ": " + name(e.result.status);
      bool const fails = e.result.status != Status::converged && e.result.status != Status::stagnated;
      EXPECT_EQ(std::isnan(e.result.condition_estimate), fails) << what;
      if (fails) continue;  // the pipelined method may, so far below what it can reach
      ++known;
      EXPECT_LE(e.result.condition_estimate, 1.001 * exact) << what;
      EXPECT_GE(e.result.condition_estimate, 0.9 * exact) << what;
    }
  }
  EXPECT_GE(known, 6);
}

// Never from outside, and closer with every step.
TEST_P(Condition, OfFewSteps) {
  double before = 0;
  for (std::int64_t steps : {1, 2, 5, 10, 20}) {
    Setting p = setting();
    p.solve.max_iterations = steps;
    auto const e = solve_on_threads(System::path(60), random_vector(60, 3), p);
    ASSERT_EQ(e.result.status, Status::iteration_limit);
    EXPECT_GE(e.result.smallest_eigenvalue, smallest_of_path(60));
    EXPECT_LE(e.result.largest_eigenvalue, largest_of_path(60));
    EXPECT_GE(e.result.condition_estimate, before);
    before = e.result.condition_estimate;
  }
  EXPECT_GT(before, 10);
}

TEST_P(Condition, WhereThereIsNone) {
  Setting p = setting();
  p.solve.max_iterations = 0;
  EXPECT_TRUE(
      std::isnan(solve_on_threads(System::path(9), random_vector(9, 3), p).result.condition_estimate));
  p = setting();
  auto const e = solve_on_threads(System::diagonal({2, -1}), {2, 1}, p);
  ASSERT_EQ(e.result.status, Status::indefinite_matrix);
  EXPECT_TRUE(std::isnan(e.result.condition_estimate));
}

// The runs make the same steps.
TEST_P(Condition, HasTheSameBitsInEveryRun) {
  Setting p = setting();
  Setting host = p;
  host.solve.run = RunOptions{};
  System const a = System::problem(problem("poisson2d", 9, 8, 1));
  auto const b = random_vector(a.rows(), 3);
  EXPECT_EQ(solve_on_threads(a, b, p).result.condition_estimate,
            solve_on_threads(a, b, host).result.condition_estimate);
}

// A bound that is too low makes another polynomial of it: only the last one's steps count. For degree 1 over
// none q(l) l is a parabola, so the eigenvalues are known.
TEST(ConditionOfAPolynomial, IsOfTheLastOne) {
  double const n = 40;
  Setting p;
  p.solve.rtol = 1e-10;
  p.solve.preconditioner = PreconditionerKind::chebyshev;
  p.solve.chebyshev.inner = PreconditionerKind::none;
  p.solve.chebyshev.degree = 1;
  p.solve.chebyshev.ratio = 4;
  p.solve.chebyshev.upper = 1.5;  // of 4
  auto const e = solve_on_threads(System::path(40), random_vector(40, 3), p);
  ASSERT_EQ(e.result.status, Status::converged);
  double upper = 0;
  for (auto const& [key, value] : e.result.choices)
    if (key == "chebyshev_upper") upper = std::stod(value);
  ASSERT_GT(upper, 1.5) << "it was not raised";
  double const theta = (upper + upper / 4) / 2, delta = (upper - upper / 4) / 2;
  auto const t2 = [](double x) { return 2 * x * x - 1; };
  double smallest = infinity, largest = 0;
  for (int k = 1; k <= 40; ++k) {
    double const l = 2 - 2 * std::cos(k * std::numbers::pi / (n + 1));
    double const value = 1 - t2((theta - l) / delta) / t2(theta / delta);
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  expect_condition(e.result, smallest, largest, 1e-4);
}

}  // namespace
}  // namespace hostless::test
