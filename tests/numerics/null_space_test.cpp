// Systems that are singular, or are said to be: what --null-space promises, and what happens without it. For
// all methods, on the ranks and runs of breakdown_settings.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "breakdown_case.hpp"

namespace hostless::test {
namespace {

TEST_P(Breakdown, SingularConsistent) {
  Setting p = setting();
  p.solve.null_space_constant = true;
  p.solve.rtol = 1e-12;
  System const a = System::path(6, true);
  std::vector<double> const solution{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5};  // mean zero
  auto const e = solve_on_threads(a, a.times(solution), std::vector<double>(6, 7.0), p);
  EXPECT_EQ(e.result.status, Status::converged);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(e.x[i], solution[i], 1e-11);
}

TEST_P(Breakdown, SingularInconsistentIsProjected) {
  Setting p = setting();
  p.solve.null_space_constant = true;
  p.solve.rtol = 1e-12;
  System const a = System::path(6, true);
  std::vector<double> const solution{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5};
  auto b = a.times(solution);
  for (double& v : b) v += 3;
  auto const e = solve_on_threads(a, b, p);
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_NEAR(e.result.null_space_removed, 3 * std::sqrt(6.0), 1e-14);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(e.x[i], solution[i], 1e-11);
}

TEST_P(Breakdown, ConstantRightHandSideOfASingularMatrixIsProjectedToZero) {
  Setting p = setting();
  p.solve.null_space_constant = true;
  auto const e = solve_on_threads(System::path(6, true), std::vector<double>(6, 3.0), {1, 2, 3, 4, 5, 6}, p);
  EXPECT_EQ(e.result.status, Status::converged);
  EXPECT_TRUE(same_bits(e.x, std::vector<double>(6, 0.0)));
}

// The x that is returned has mean zero, and the true residual that was told is of that one.
void expect_tested(Ending const& e, System const& a, std::vector<double> b, double rtol,
                   std::string const& what) {
  double const n = static_cast<double>(b.size());
  double const mean = std::accumulate(b.begin(), b.end(), 0.0) / n;
  for (double& v : b) v -= mean;
  double const true_residual = residual_of(a, b, e.x);
  EXPECT_NEAR(e.result.true_residual, true_residual, 1e-3 * true_residual + 1e-14 * norm(b)) << what;
  if (e.result.status == Status::converged) {
    EXPECT_LE(true_residual, 1.001 * rtol * norm(b) + 1e-15) << what;
  }
  EXPECT_LE(std::abs(std::accumulate(e.x.begin(), e.x.end(), 0.0)), 1e-12 * n * norm(e.x)) << what;
}

// A 1 = d in one row, too small to be refused: the solution has x = 0 there and a mean of 2.5. That of mean
// zero has d |x| = 2.5e-9 in its residual, whatever is iterated.
TEST_P(Breakdown, NullSpaceThatIsAlmostOne) {
  System a = System::path(6, true);
  a.at(0, 0) += 1e-9;
  std::vector<double> const solution{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5};
  auto const b = System::path(6, true).times(solution);
  for (double guess : {0.0, 7.0, 1e7, 1e12}) {
    for (double rtol : {1e-6, 1e-12}) {
      Setting p = setting();
      p.solve.null_space_constant = true;
      p.solve.rtol = rtol;
      std::vector<double> x0(6, guess);
      x0[2] += 1;
      std::string const what = "guess " + std::to_string(guess) + ", rtol " + std::to_string(rtol * 1e12);
      auto const e = solve_on_threads(a, b, x0, p);
      bool const gives_up_late =  // its restarts are long
          p.solve.method == Method::bicgstab && e.result.status == Status::iteration_limit;
      EXPECT_TRUE(e.result.status == (rtol > 1e-9 ? Status::converged : Status::stagnated) ||
                  (rtol < 1e-9 && gives_up_late))
          << what;
      expect_tested(e, a, b, rtol, what);
      for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(e.x[i], solution[i], 1e-5) << what;
    }
  }
}

// What the guess has of the null space says nothing, and rounding of it would drown the rest.
TEST_P(Breakdown, GuessFarOffInTheNullSpace) {
  System const a = System::path(6, true);
  std::vector<double> const solution{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5};
  auto const b = a.times(solution);
  for (double guess : {1e6, -1e10, 1e15}) {
    Setting p = setting();
    p.solve.null_space_constant = true;
    p.solve.rtol = 1e-12;
    std::vector<double> x0(6);
    for (std::size_t i = 0; i < 6; ++i) x0[i] = guess + 0.37 * static_cast<double>(i);
    auto const e = solve_on_threads(a, b, x0, p);
    EXPECT_EQ(e.result.status, Status::converged) << guess;
    expect_tested(e, a, b, 1e-12, std::to_string(guess));
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(e.x[i], solution[i], 1e-11) << guess;
  }
}

// Where threads hand over to each other a solve takes a hundred times as long: there one right-hand side will do.
std::vector<unsigned> seeds(BreakdownSetting const& setting) {
  bool const alone = setting.ranks == 1 && setting.run.kind == RunKind::host;
  return alone ? std::vector<unsigned>{1, 2, 3} : std::vector<unsigned>{1};
}

// Beyond what can be reached only the constant that rounding has left in r would be worked on: without end,
// and x would become worse and worse.
TEST_P(Breakdown, NullSpaceBeyondWhatCanBeReached) {
  System const a = System::path(200, true);
  for (unsigned seed : seeds(GetParam())) {
    auto const b = random_vector(200, seed);
    Setting p = setting();
    p.solve.null_space_constant = true;
    p.solve.rtol = 1e-15;
    auto const e = solve_on_threads(a, b, p);
    if (p.solve.method ==
        Method::cg) {  // the others lose more digits, and pipelined-cg the sign of (M r)'A M r
      EXPECT_EQ(e.result.status, Status::stagnated) << seed;
      EXPECT_LT(e.result.true_relative_residual, 1e-11) << seed;
    }
    EXPECT_LT(e.result.true_relative_residual, 1e-7) << seed;
    expect_tested(e, a, b, 1e-15, std::to_string(seed));
  }
}

// Where the limit ends it, the residual is that of what is returned.
TEST_P(Breakdown, NullSpaceAtTheIterationLimit) {
  System a = System::path(12, true);
  a.at(3, 3) += 2e-9;
  auto const b = System::path(12, true).times(random_vector(12, 5));
  for (std::int64_t limit : {0, 1, 4}) {
    Setting p = setting();
    p.solve.null_space_constant = true;
    p.solve.rtol = 1e-12;
    p.solve.max_iterations = limit;
    auto const e = solve_on_threads(a, b, std::vector<double>(12, 1e9), p);
    EXPECT_EQ(e.result.status, Status::iteration_limit);
    EXPECT_EQ(e.result.iterations, limit);
    expect_tested(e, a, b, 1e-12, std::to_string(limit));
  }
}

// b = (1, 0) = (1/2, 1/2) + (1/2, -1/2), the first in the null space. Each start makes one step of length 1,
// then sees p' A p = 0; the true residual is |r| = 1 every time.
TEST_P(DefiniteBreakdown, SingularInconsistent) {
  auto const e = solve_on_threads(System::path(2, true), {1, 0}, setting());
  EXPECT_EQ(e.result.status, Status::stagnated);
  EXPECT_EQ(e.result.restarts, 3);
  EXPECT_EQ(e.result.iterations, 3);
  EXPECT_EQ(e.x, (std::vector<double>{2, 1}));
  EXPECT_EQ(e.result.true_residual, 1);
}

TEST_P(Breakdown, RightHandSideInTheNullSpace) {
  auto const e = solve_on_threads(System::path(2, true), {1, 1}, setting());
  EXPECT_EQ(e.result.status, Status::breakdown);
  EXPECT_EQ(e.x, (std::vector<double>{0, 0}));
}

// Two parts that nothing connects.
System beside(System whole, System const& part) {
  std::int64_t const first = whole.rows();
  for (std::size_t i = 0; i + 1 < part.offset.size(); ++i) {
    std::vector<std::pair<std::int64_t, double>> row;
    for (auto k = static_cast<std::size_t>(part.offset[i]); k < static_cast<std::size_t>(part.offset[i + 1]);
         ++k)
      row.emplace_back(part.column[k] + first, part.value[k]);
    whole.row(row);
  }
  return whole;
}

// Steps that have become null vectors end it, long before the limit of ten times as many as there are rows.
TEST_P(DefiniteBreakdown, NullVectorsBesideTheConstantOneAreTold) {
  ProblemOptions const large = problem("poisson2d", 14, 12, 1, 100.0, Boundary::neumann),
                       small = problem("poisson2d", 9, 11, 1, 100.0, Boundary::neumann);
  System const a = beside(System::problem(large), System::problem(small));
  Setting p = setting();
  p.solve.null_space_constant = true;
  p.solve.rtol = 1e-8;
  for (auto kind : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
    p.solve.preconditioner = kind;
    for (unsigned seed : seeds(GetParam())) {
      auto const e = solve_on_threads(a, random_vector(static_cast<std::size_t>(a.rows()), seed), p);
      EXPECT_NE(e.result.status, Status::converged);
      if (p.solve.run.gpus > 0) continue;  // nobody hears of its steps on the way
      EXPECT_EQ(e.result.status, Status::stagnated) << e.result.message;
      EXPECT_LT(e.result.iterations, 5 * a.rows());
      EXPECT_NE(e.result.message.find("A has null vectors beside the constant one"), std::string::npos)
          << e.result.message;
    }
    // What nothing is wrong with converges as ever.
    auto const whole = System::problem(large);
    auto const e = solve_on_threads(whole, random_vector(static_cast<std::size_t>(whole.rows()), 5), p);
    EXPECT_EQ(e.result.status, Status::converged) << e.result.message;
  }
}

// Steps that go on behind the last digit follow what rounding has left of b outside of A's range, or what b has there
// from the start: x would grow without bound. It is handed back as it was before, and rounding is not called indefinite.
void expect_x_stays(System const& a, std::vector<double> const& b, bool has_solution, Setting const& p) {
  auto const e = solve_on_threads(a, b, p);
  std::string const what = std::to_string(b.size()) + ' ' + name(p.solve.preconditioner) +
                           (p.solve.null_space_constant ? " told: " : ": ") + name(e.result.status) + ", " +
                           e.result.message;
  double largest = 0;
  for (double const one : e.x) largest = std::max(largest, std::abs(one));
  EXPECT_LE(largest, 1e4) << what;
  EXPECT_LE(e.result.true_relative_residual, has_solution ? 1e-9 : 1) << what;
  EXPECT_TRUE(!has_solution || e.result.status == Status::stagnated || e.result.status == Status::converged)
      << what;
  if (p.solve.null_space_constant) expect_tested(e, a, b, 0, what);
}

TEST(NullVectors, DoNotCarryXAway) {
  std::int64_t const side = 12;
  for (System const& a :
       {System::path(60, true), System::problem(problem("poisson2d", 8, 8, 1, 100.0, Boundary::neumann)),
        System::problem(problem("circuit", side, side, 1, 100.0, Boundary::neumann))}) {
    std::vector<double> ends(static_cast<std::size_t>(a.rows()), 0.0);
    ends.front() = 1, ends.back() = -1;
    for (auto const kind :
         {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::chebyshev})
      for (bool const told : {false, true}) {
        Setting p;
        p.ranks = told ? 1 : 2;
        p.solve.rtol = 0;
        p.solve.preconditioner = kind;
        p.solve.null_space_constant = told;
        expect_x_stays(a, ends, true, p);
        expect_x_stays(a, random_vector(a.rows(), 7), told, p);
        if (!told) expect_x_stays(a, std::vector<double>(ends.size(), 1.0), false, p);
      }
  }
}

// Two parts, each with a null vector of its own: b is balanced as a whole, and in neither part.
TEST_P(Breakdown, SeveralNullVectors) {
  System const two = beside(System::path(4, true), System::path(4, true));
  for (double slope : {0.0, 1.0}) {
    std::vector<double> const b{1, 1, 1 + slope, 1 - slope, -1, -1, -1 + slope, -1 - slope};
    auto const e = solve_on_threads(two, b, setting());
    EXPECT_NE(e.result.status, Status::converged);
    EXPECT_NE(e.result.message.find("b has no constant part"), std::string::npos) << e.result.message;
    Setting p = setting();
    p.solve.null_space_constant = true;
    EXPECT_NE(solve_on_threads(two, b, p).result.status, Status::converged);
  }
  std::vector<double> const high(8, 3.0);
  auto const e = solve_on_threads(two, high, setting());
  EXPECT_NE(e.result.message.find("constant part of 1.0e+00 |b|"), std::string::npos) << e.result.message;
}

// Whose squares underflow, it says nothing of b that these are zero: of a constant alone nothing is left.
TEST_P(Breakdown, NullSpaceAndASmallRightHandSide) {
  Setting p = setting();
  p.solve.null_space_constant = true;
  for (double const scale : {1e-160, 1e-300}) {
    std::vector<double> b{1, 2, 4, 8, -3};
    for (double& value : b) value *= scale;
    auto const e = solve_on_threads(System::path(5, true), b, p);
    EXPECT_EQ(e.result.status, Status::breakdown) << scale << ": " << e.result.message;
    EXPECT_NE(e.result.message.find("|b|^2 underflows"), std::string::npos) << e.result.message;
    for (double const constant : {1.0, 0.1, -3.3}) {
      auto const c = solve_on_threads(System::path(5, true), std::vector<double>(5, constant * scale), p);
      EXPECT_EQ(c.result.status, Status::converged) << constant * scale << ": " << c.result.message;
      EXPECT_NE(c.result.message.find("b was constant"), std::string::npos) << c.result.message;
      EXPECT_EQ(c.x, std::vector<double>(5, 0.0));
    }
  }
}

// Nothing is left of b, so nobody would see that there is no preconditioner to iterate with.
TEST_P(Breakdown, NullSpaceOfARowOfZeros) {
  for (PreconditionerKind const kind : {PreconditionerKind::jacobi, PreconditionerKind::block_jacobi}) {
    Setting p = setting();
    p.solve.null_space_constant = true;
    p.solve.preconditioner = kind;
    for (double const scale : {1.0, 1e-200}) {
      auto const e = solve_on_threads(beside(System::path(4, true), System::diagonal({0.0})),
                                      std::vector<double>(5, scale), p);
      if (e.result.status == Status::converged) {
        EXPECT_EQ(e.x, std::vector<double>(5, 0.0));
      } else {
        EXPECT_NE(e.result.message.find("row 5"), std::string::npos) << e.result.message;
      }
    }
  }
}

TEST_P(Breakdown, NullSpaceThatIsNone) {
  Setting p = setting();
  p.solve.null_space_constant = true;
  try {
    solve_on_threads(System::path(6), std::vector<double>(6, 1.0), p);
    FAIL() << "accepted";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input) << e.what();
  }
}

}  // namespace
}  // namespace hostless::test
