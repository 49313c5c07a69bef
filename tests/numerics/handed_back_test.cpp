// Which x comes back of a solve that has not converged, of methods that take any matrix or any symmetric one.
#include <gtest/gtest.h>

#include <cmath>

#include "general.hpp"

namespace hostless::test {
namespace {

class HandedBack : public General {};
INSTANTIATE_TEST_SUITE_P(All, HandedBack, testing::ValuesIn(all_runs_of_each()), [](auto const& one) {
  return std::string(name(one.param.method)) + "_" + one.param.run.name;
});

// Neither its row nor its column has entries: x grows there without end, and no residual tells.
TEST_P(HandedBack, AnEmptyRowIsTheReasonAndXIsFinite) {
  System a;
  a.row({{0, 4.0}, {1, 1.0}});
  a.row({{0, 2.0}, {1, 5.0}});
  a.row({});
  a.row({{0, 1.0}, {3, 3.0}});
  if (facts_of(GetParam().method).needs_symmetric())
    a = System::dense({{4, 1, 0, 1}, {1, 5, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 3}});
  for (std::int64_t limit : {40, 4000}) {
    Setting p = setting();
    p.solve.max_iterations = limit;
    std::vector<double> const b(4, 1.0), guess{0, 0, 7, 0};
    auto const e = solve_on_threads(a, b, guess, p);
    EXPECT_NE(e.result.status, Status::converged);
    EXPECT_EQ(e.result.message.find("row 3 of A holds only zeros, and b is 1 there, which no x reaches."), 0U)
        << e.result.message;
    for (double const one : e.x) EXPECT_TRUE(std::isfinite(one)) << limit;
    if (e.result.status == Status::iteration_limit) continue;  // one may go on from that x
    EXPECT_LE(residual_of(a, b, e.x), residual_of(a, b, guess));
  }
}

System random_dense(unsigned n, unsigned seed) {
  std::vector<std::vector<double>> rows;
  for (unsigned i = 0; i < n; ++i) rows.push_back(random_vector(n, 100 * seed + i));
  return System::dense(rows);
}

// Most of these are beyond BiCGStab, whose x then leaves a residual up to 10^3 times the first.
TEST_P(HandedBack, NothingWorseThanTheGuessComesBack) {
  if (GetParam().method != Method::bicgstab) return;
  int given_back = 0, better = 0, limited = 0;
  for (unsigned seed = 1; seed <= 80; ++seed) {
    System const a = random_dense(30, seed);
    auto const b = random_vector(30, seed);
    auto const guess = seed % 2 == 0 ? std::vector<double>(30, 0.0) : random_vector(30, 50 + seed);
    Setting p = setting();
    p.solve.max_iterations = seed % 3 == 0 ? 45 : 3000;
    auto const e = solve_on_threads(a, b, guess, p);
    double const left = residual_of(a, b, e.x), first = residual_of(a, b, guess);
    EXPECT_NEAR(e.result.true_residual, left, 1e-12 * std::max(first, left));
    if (e.result.status == Status::iteration_limit) {  // one may go on from that x
      EXPECT_FALSE(same_bits(e.x, guess));
      ++limited;
      continue;
    }
    EXPECT_LE(left, first * (1 + 1e-12)) << seed << ' ' << e.result.message;
    bool const is_guess = same_bits(e.x, guess);
    EXPECT_EQ(is_guess, e.result.message.find("x is the guess") != std::string::npos) << e.result.message;
    (is_guess ? given_back : better) += 1;
  }
  EXPECT_GT(given_back, 0);
  EXPECT_GT(limited, 1);
  EXPECT_GT(better, 0);
}

// Whoever asks for the end has seen that x, and has it.
TEST_P(HandedBack, AnAskedEndKeepsItsX) {
  if (GetParam().method != Method::bicgstab) return;
  int worse = 0;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    System const a = random_dense(30, seed);
    std::vector<double> const b = random_vector(30, seed), guess(30, 0.0);
    auto const e = solve_on_threads(a, b, guess, setting(), [](int, SolveOptions& o) {
      o.callback = [](Progress const& now) { return now.iteration >= 40; };
    });
    EXPECT_EQ(e.result.status, Status::aborted);
    EXPECT_FALSE(same_bits(e.x, guess));
    worse += residual_of(a, b, e.x) > norm(b) ? 1 : 0;
  }
  EXPECT_GT(worse, 0);
}

}  // namespace
}  // namespace hostless::test
