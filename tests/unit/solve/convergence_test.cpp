// The convergence test, with numbers that are exact.
#include <gtest/gtest.h>

#include <array>

#include "iterating.hpp"
#include "no_numbers.hpp"
#include "solve/methods/conjugate_gradient.impl.hpp"

namespace hostless {
namespace {

using test::iterating;

using test::infinity;
using test::nan;

State tested(State s) {
  ConvergenceTest<cg::rz>{}(s);
  return s;
}

TEST(ConvergenceTest, FirstTrueResidual) {
  State s;
  std::array<StepRecord, 1> history{};
  s.history = history.data();
  s.history_size = 1;
  s.limit = 10;
  s.rr = 4;
  s.value[cg::rz] = 8;
  s = tested(s);
  EXPECT_EQ(s.status, Status::running);
  EXPECT_TRUE(s.begun && s.iterate && s.fresh);
  EXPECT_FALSE(s.wants_true_residual);
  EXPECT_EQ(s.first_rr, 4);
  EXPECT_EQ(s.true_rr, 4);
  EXPECT_EQ(history[0].rr, 4);
  EXPECT_EQ(s.restarts, 0);
}

// With a null space whoever runs the text takes the mean off r behind every true residual; growth is that of
// the best x.
TEST(ConvergenceTest, PausesWhereTheResidualLosesItsMean) {
  State s;
  s.projects = true;
  s.growth_limit = 1e5;
  s.limit = 10;
  s.rr = s.value[cg::rz] = 4;
  s = tested(s);
  EXPECT_TRUE(s.awaits_projection());
  EXPECT_FALSE(s.open(Gate::iterate) || s.open(Gate::true_residual));
  EXPECT_EQ(s.growth_at, 2e5);
  s.status = Status::running;
  s.wants_true_residual = true;
  s.rr = s.value[cg::rz] = 1e-8;
  s = tested(s);
  EXPECT_TRUE(s.awaits_projection());
  EXPECT_EQ(s.restarts, 1);
  EXPECT_EQ(s.growth_at, 1e5 * 1e-4);
  s.status = Status::running;
  s.wants_true_residual = true;
  s.rr = s.value[cg::rz] = 101;
  EXPECT_EQ(tested(s).status, Status::diverged);
  s.projects = false;
  s.rr = s.value[cg::rz] = 1e-8;
  EXPECT_FALSE(tested(s).awaits_projection());
}

TEST(ConvergenceTest, EndingsInTheirOrder) {
  State s = iterating();
  s.iterate = false;
  s.wants_true_residual = true;
  s.rr = s.value[cg::rz] = 1;
  auto const with = [&](auto change) {
    State t = s;
    change(t);
    return tested(t);
  };
  EXPECT_EQ(with([](State& t) { t.rr = 1e-6; }).status, Status::converged);
  EXPECT_EQ(with([](State& t) { t.rr = 1e-6 * 1.01; }).status, Status::running);
  EXPECT_EQ(with([](State& t) { t.rr = 1e-6, t.stop = true; }).status, Status::converged);
  EXPECT_EQ(with([](State& t) { t.stop = true; }).status, Status::aborted);
  EXPECT_EQ(with([](State& t) { t.iteration = 100; }).status, Status::iteration_limit);
  EXPECT_EQ(with([](State& t) { t.rr = 1.1e10; }).status, Status::diverged);
  EXPECT_EQ(with([](State& t) { t.value[cg::rz] = -1; }).status, Status::indefinite_preconditioner);
  EXPECT_EQ(with([](State& t) { t.value[cg::rz] = 0; }).status, Status::breakdown);
  EXPECT_EQ(with([](State& t) { t.rr = nan; }).status, Status::not_finite);
  EXPECT_EQ(with([](State& t) { t.value[cg::rz] = infinity; }).status, Status::not_finite);
  EXPECT_EQ(with([](State& t) { t.value[cg::rz] = nan, t.apart = true; }).status, Status::running);
  // None of these was a restart.
  for (double rr : {1e-6, 1.1e10}) EXPECT_EQ(with([&](State& t) { t.rr = rr; }).restarts, 0);
}

State rounded() {
  State s = iterating();
  s.rounded = true;
  s.iterate = false;
  s.wants_true_residual = true;
  s.value[cg::rz] = 1;
  s.iteration = 9;
  return s;
}

TEST(ConvergenceTest, ReplacesTheResidualOfARoundedMatrix) {
  State s = rounded();
  s.rr = 0.25;
  s = tested(s);
  EXPECT_EQ(s.status, Status::running);
  EXPECT_TRUE(s.rounded && s.iterate && s.fresh);
  EXPECT_EQ(s.replace_at, 1e-5 * 0.5);
  EXPECT_EQ(s.replacements, 1);
  EXPECT_EQ(s.restarts, 0);
  EXPECT_EQ(s.best_true_residual, 0.25);
  s.rr = 1e-4;
  s = tested(s);
  EXPECT_EQ(s.replacements, 2);
  EXPECT_EQ(s.useless_restarts, 0);
  s.rr = 1e-6;  // the end is none
  s = tested(s);
  EXPECT_EQ(s.status, Status::converged);
  EXPECT_EQ(s.replacements, 2);
}

TEST(ConvergenceTest, LeavesARoundedMatrixThatGainsNothing) {
  for (double residual : {0.51, 1e3, 1e7}) {
    State s = rounded();
    s.rr = residual * residual;
    s = tested(s);
    EXPECT_EQ(s.status, Status::running) << "the growth is the rounding's";
    EXPECT_FALSE(s.rounded);
    EXPECT_TRUE(s.iterate && s.fresh);
    EXPECT_EQ(s.exact_again, ExactAgain::no_gain);
    EXPECT_EQ(s.changed_at, 9);
    EXPECT_EQ(s.replace_at, 0);
    EXPECT_EQ(s.replacements, 1);
    EXPECT_EQ(s.restarts, 0);
    EXPECT_EQ(s.useless_restarts, 0);
    EXPECT_EQ(s.best_true_residual, s.rr);
    s = tested(s);  // from here on it counts
    EXPECT_EQ(s.restarts, 1);
    EXPECT_EQ(s.useless_restarts, 1);
    EXPECT_EQ(s.replacements, 1);
  }
}

TEST(ConvergenceTest, ARoundedMatrixIsNotBlamedForWhatEndsTheSolve) {
  for (auto change : {+[](State& s) { s.stop = true; }, +[](State& s) { s.iteration = 100; }}) {
    State s = rounded();
    s.rr = 0.9;
    change(s);
    s = tested(s);
    EXPECT_NE(s.status, Status::running);
    EXPECT_EQ(s.exact_again, ExactAgain::no);
    EXPECT_EQ(s.replacements, 0);
  }
}

TEST(ConvergenceTest, ThreeUselessRestartsInARowStagnate) {
  State s = iterating();
  auto const again = [&](double residual) {
    s.rr = residual * residual;
    s.value[cg::rz] = 1;
    s = tested(s);
  };
  again(0.6);  // not half of 1
  again(0.6);
  EXPECT_EQ(s.useless_restarts, 2);
  again(0.25);  // half of 0.6: counts anew
  EXPECT_EQ(s.useless_restarts, 0);
  again(0.2);
  again(0.2);
  EXPECT_EQ(s.status, Status::running);
  again(0.3);
  EXPECT_EQ(s.status, Status::stagnated);
  EXPECT_EQ(s.restarts, 6);
  EXPECT_EQ(s.best_true_residual, 0.2 * 0.2);
}

// Less is asked than fp64 tells apart from |b| = 1: an x that was accurate is not lost.
TEST(ConvergenceTest, GrowthFromWhatRoundingLeavesStagnates) {
  constexpr double spacing = 0x1p-52;
  auto const after = [&](State& s, double residual) {
    s.rr = residual * residual;
    s.value[cg::rz] = 1;
    return (s = tested(s)).status;
  };
  for (double const best : {2 * spacing, 1024 * spacing}) {
    State s = iterating();
    s.target = 0;
    s.resolved_at = spacing;
    EXPECT_EQ(after(s, best), Status::running);
    EXPECT_DOUBLE_EQ(s.growth_at, best * (best < 4 * spacing ? 4 : best / spacing));
    State next = s;
    EXPECT_EQ(after(next, best / 4), Status::running);  // steps may still make it smaller
    EXPECT_EQ(after(s, 1.1 * s.growth_at), Status::stagnated);
  }
  State s = iterating();
  double const growth_at = s.growth_at;
  s.target = 0;
  s.resolved_at = spacing;
  EXPECT_EQ(after(s, 1e-7), Status::running);  // too much for rounding alone
  EXPECT_EQ(s.growth_at, growth_at);
  s.target = spacing;  // may be met
  EXPECT_EQ(after(s, 2 * spacing), Status::running);
  EXPECT_EQ(s.growth_at, growth_at);
}

}  // namespace
}  // namespace hostless
