// Every decision but the convergence test, with numbers that are exact.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "iterating.hpp"
#include "no_numbers.hpp"
#include "solve/methods/conjugate_gradient.impl.hpp"
#include "solve/methods/one_reduction.impl.hpp"

namespace hostless {
namespace {

using test::iterating;

using test::infinity;
using test::nan;

TEST(Gates, FollowTheState) {
  State s;
  EXPECT_TRUE(s.open(Gate::solve) && s.open(Gate::true_residual));
  EXPECT_FALSE(s.open(Gate::begin) || s.open(Gate::iterate));
  s = iterating();
  EXPECT_TRUE(s.open(Gate::solve) && s.open(Gate::iterate));
  EXPECT_FALSE(s.open(Gate::true_residual) || s.open(Gate::begin));
  s.fresh = true;
  EXPECT_TRUE(s.open(Gate::begin));
  for (Status status : {Status::paused, Status::converged, Status::peer_lost}) {
    s.status = status;
    for (Gate gate : {Gate::solve, Gate::true_residual, Gate::begin, Gate::iterate})
      EXPECT_FALSE(s.open(gate));
  }
}

TEST(Curvature, TakesTheStep) {
  State s = iterating();
  s.value[cg::rz] = 6;
  s.value[cg::pq] = 3;
  s.fresh = true;
  Curvature{}(s);
  EXPECT_EQ(s.value[cg::alpha], 2);
  EXPECT_EQ(s.value[cg::rz_before], 6);
  EXPECT_FALSE(s.fresh);
  EXPECT_EQ(s.status, Status::running);
}

TEST(Curvature, SeesWhatIsNotPositive) {
  auto const ends = [](double pq, bool fresh) {
    State s = iterating();
    s.value[cg::rz] = 1;
    s.value[cg::pq] = pq;
    s.fresh = fresh;
    Curvature{}(s);
    return s;
  };
  EXPECT_EQ(ends(-1e-300, false).status, Status::indefinite_matrix);
  EXPECT_EQ(ends(-1, true).status, Status::indefinite_matrix);
  for (double pq : {nan, infinity, -infinity}) EXPECT_EQ(ends(pq, false).status, Status::not_finite);
  for (double zero : {0.0, -0.0}) {
    EXPECT_EQ(ends(zero, true).status, Status::breakdown);
    State const later = ends(zero, false);
    EXPECT_EQ(later.status, Status::running);
    EXPECT_TRUE(later.wants_true_residual);
    EXPECT_FALSE(later.iterate);
  }
}

TEST(Curvature, OfARoundedMatrixAsksForTheTrueResidualAndTheExactOne) {
  for (double pq : {-1.0, -1e-300, 0.0, -0.0}) {
    for (bool fresh : {true, false}) {
      State s = iterating();
      s.rounded = true;
      s.iteration = 7;
      s.value[cg::rz] = s.rr = 1;
      s.value[cg::pq] = pq;
      s.fresh = fresh;
      Curvature{}(s);
      EXPECT_EQ(s.status, Status::running);
      EXPECT_TRUE(s.wants_true_residual);
      EXPECT_FALSE(s.iterate);
      EXPECT_EQ(s.exact_again, ExactAgain::curvature);
      EXPECT_EQ(s.changed_at, 7);
      EXPECT_TRUE(s.multiplies_rounded(Gate::iterate)) << "until the truth is judged";
      ConvergenceTest<cg::rz>{}(s);
      EXPECT_FALSE(s.multiplies_rounded(Gate::iterate));
      EXPECT_TRUE(s.iterate && s.fresh);
      EXPECT_EQ(s.replace_at, 0);
      EXPECT_EQ(s.replacements, 1);
      EXPECT_EQ(s.restarts, 0);
      s.value[cg::pq] = -1;  // now it is the matrix
      Curvature{}(s);
      EXPECT_EQ(s.status, Status::indefinite_matrix);
    }
  }
  State s = iterating();
  s.rounded = true;
  s.value[cg::pq] = nan;
  Curvature{}(s);
  EXPECT_EQ(s.status, Status::not_finite);
}

TEST(Gates, OnlyIterationsMultiplyRounded) {
  State s = iterating();
  EXPECT_FALSE(s.multiplies_rounded(Gate::iterate));
  s.rounded = true;
  EXPECT_TRUE(s.multiplies_rounded(Gate::iterate));
  for (Gate gate : {Gate::solve, Gate::true_residual, Gate::begin}) EXPECT_FALSE(s.multiplies_rounded(gate));
}

TEST(Residual, OfARoundedMatrixIsReplacedInTime) {
  State s = iterating();
  s.rounded = true;
  s.value[cg::rz_before] = s.value[cg::rz] = 1;
  s.replace_at = 1e-2;
  s.rr = 1.1e-4;
  Residual{}(s);
  EXPECT_TRUE(s.iterate);
  s.rr = 0.9e-4;
  Residual{}(s);
  EXPECT_TRUE(s.wants_true_residual);
  EXPECT_FALSE(s.iterate);
  s = iterating();  // a target that is not so far away is met first
  s.value[cg::rz_before] = s.value[cg::rz] = 1;
  s.replace_at = 1e-4;
  s.rr = 0.9e-6;
  Residual{}(s);
  EXPECT_TRUE(s.wants_true_residual);
}

TEST(Residual, GoesOn) {
  State s = iterating();
  std::array<StepRecord, 3> history{};
  s.history = history.data();
  s.history_size = 3;
  s.rr = 4;
  s.value[cg::rz] = 10;
  s.value[cg::rz_before] = 5;
  s.first_rr = 4;
  s.value[cg::alpha] = 0.25;  // of the step that is complete
  s.value[cg::beta] = 3;
  Residual{}(s);
  EXPECT_EQ(s.iteration, 1);
  EXPECT_EQ(history[1].rr, 4);
  EXPECT_EQ(history[1].alpha, 0.25);
  EXPECT_EQ(history[1].beta, 3);
  EXPECT_EQ(s.value[cg::beta], 2);
  EXPECT_TRUE(s.iterate);
  s.iteration = 7;  // beyond the history: not written
  Residual{}(s);
  EXPECT_EQ(s.iteration, 8);
}

// The quick answer is that of the roots, next to the bounds and where squares leave the range of doubles.
TEST(Residual, SquaresTellAsRootsDo) {
  std::array<double, 8> const bounds = {0, 1e-170, 2.3e-162, 1e-155, 0.1, 3, 1e154, 1.35e154};
  for (double low : bounds) {
    for (double high : bounds) {
      for (double middle : bounds) {
        double square = middle * middle;
        for (int step = 0; step < 4; ++step) square = std::nextafter(square, 0.0);
        for (int step = 0; step < 8; ++step, square = std::nextafter(square, 1e308)) {
          EXPECT_EQ(is_outside(square, low, high), std::sqrt(square) <= low || std::sqrt(square) > high)
              << low << ' ' << high << ' ' << square;
        }
      }
    }
  }
  EXPECT_FALSE(is_outside(std::nan(""), 1, 2));
}

struct Proposal {
  char const* why;
  void (*change)(State&);
};
class Proposes : public testing::TestWithParam<Proposal> {};
INSTANTIATE_TEST_SUITE_P(All, Proposes,
                         testing::Values(Proposal{"target", [](State& s) { s.rr = 1e-6; }},
                                         Proposal{"limit", [](State& s) { s.iteration = 99; }},
                                         Proposal{"stop", [](State& s) { s.stop = true; }},
                                         Proposal{"growth", [](State& s) { s.rr = 1.1e10; }},
                                         Proposal{"used_up", [](State& s) { s.value[cg::rz] = 0; }}),
                         [](auto const& one) { return std::string(one.param.why); });

TEST_P(Proposes, AnEndWhichTheTrueResidualDecides) {
  State s = iterating();
  s.rr = 1;
  s.value[cg::rz] = s.value[cg::rz_before] = 1;
  GetParam().change(s);
  State other = s;
  double const rr = s.rr;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::running);
  EXPECT_TRUE(s.wants_true_residual);
  EXPECT_FALSE(s.iterate);
  EXPECT_EQ(s.recurrence_rr, rr);
  other.value[cg::pq] = other.value[cg::alpha] = 1;
  OneReduction<false>{}(other);
  EXPECT_EQ(other.status, Status::running);
  EXPECT_TRUE(other.wants_true_residual);
  EXPECT_FALSE(other.iterate);
}

TEST(Residual, Endings) {
  for (double bad : {nan, infinity}) {
    State s = iterating();
    s.rr = bad;
    Residual{}(s);
    EXPECT_EQ(s.status, Status::not_finite);
    s = iterating();
    s.rr = 1;
    s.value[cg::rz] = bad;
    Residual{}(s);
    EXPECT_EQ(s.status, Status::not_finite);
  }
  State s = iterating();
  s.rr = 1;
  s.value[cg::rz] = -1;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::indefinite_preconditioner);
  s = iterating();  // even when it would have been the end: a preconditioner like that is worth saying
  s.rr = 1e-8;
  s.value[cg::rz] = -1;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::indefinite_preconditioner);
  s = iterating();
  s.rr = s.value[cg::rz] = s.value[cg::rz_before] = 1;
  s.pause_at = 1;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::paused);
  EXPECT_EQ(s.value[cg::beta], 1);
  s = iterating();  // nothing pauses a recurrence that has met its target
  s.rr = 1e-8;
  s.value[cg::rz] = s.value[cg::rz_before] = 1;
  s.pause_at = 1;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::running);
  EXPECT_TRUE(s.wants_true_residual);
}

TEST(Residual, WaitsForTheRatioOfAPreconditionerApart) {
  State s = iterating();
  s.apart = true;
  s.rr = 1;
  s.value[cg::rz] = -7;  // stands for nothing yet
  s.value[cg::rz_before] = 2;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::running);
  s.value[cg::rz] = 6;
  ApartRatio{}(s);
  EXPECT_EQ(s.value[cg::beta], 3);
  for (auto const& [rz, status] : {std::pair{-1.0, Status::indefinite_preconditioner},
                                   {nan, Status::not_finite},
                                   {0.0, Status::running}}) {
    State t = s;
    t.value[cg::rz] = rz;
    ApartRatio{}(t);
    EXPECT_EQ(t.status, status) << rz;
    EXPECT_EQ(t.wants_true_residual, rz == 0);
  }
  for (auto const& [rz, status] : {std::pair{-1.0, Status::indefinite_preconditioner},
                                   {0.0, Status::indefinite_preconditioner},
                                   {infinity, Status::not_finite},
                                   {1.0, Status::running}}) {
    State t = s;
    t.value[cg::rz] = rz;
    t.fresh = true;  // of a true residual
    ApartRatio{}(t);
    EXPECT_EQ(t.status, status) << rz;
    if (status == Status::running) {
      EXPECT_EQ(t.value[cg::beta], 0);
    }
  }
  s.pause_at = s.iteration;
  ApartRatio{}(s);
  EXPECT_EQ(s.status, Status::paused);
}

TEST(OneReduction, FirstStepOfAStart) {
  State s = iterating();
  s.fresh = true;
  s.rr = 1;
  s.value[cg::rz] = 6;
  s.value[cg::pq] = 3;
  s.value[cg::beta] = 17;
  OneReduction<false>{}(s);
  EXPECT_EQ(s.iteration, 0);
  EXPECT_EQ(s.value[cg::alpha], 2);
  EXPECT_EQ(s.value[cg::beta], 0);
  EXPECT_FALSE(s.fresh);
}

TEST(OneReduction, LaterSteps) {  // beta = 6 / 3 = 2; alpha = 6 / (20 - 2 6 / 1.5) = 0.5
  State s = iterating();
  s.rr = 1;
  s.value[cg::rz] = 6;
  s.value[cg::rz_before] = 3;
  s.value[cg::pq] = 20;
  s.value[cg::alpha] = 1.5;
  OneReduction<false>{}(s);
  EXPECT_EQ(s.iteration, 1);
  EXPECT_EQ(s.value[cg::beta], 2);
  EXPECT_EQ(s.value[cg::alpha], 0.5);
  EXPECT_EQ(s.value[cg::rz_before], 6);
}

TEST(OneReduction, Endings) {
  auto const ends_by = [](auto decide, double rr, double gamma, double delta, bool fresh) {
    State s = iterating();
    s.fresh = fresh;
    s.rr = rr;
    s.value[cg::rz] = gamma;
    s.value[cg::rz_before] = s.value[cg::alpha] = 1;
    s.value[cg::pq] = delta;
    decide(s);
    return s;
  };
  auto const ends = [&](double rr, double gamma, double delta, bool fresh = false) {
    return ends_by(OneReduction<false>{}, rr, gamma, delta, fresh);
  };
  for (double bad : {nan, infinity}) {
    EXPECT_EQ(ends(bad, 1, 1).status, Status::not_finite);
    EXPECT_EQ(ends(1, bad, 1).status, Status::not_finite);
    EXPECT_EQ(ends(1, 1, bad).status, Status::not_finite);
  }
  EXPECT_EQ(ends(1, -1, 1).status, Status::indefinite_preconditioner);
  EXPECT_EQ(ends(1, 1, -1).status, Status::indefinite_matrix);
  EXPECT_EQ(ends(1, 1, -1, true).status, Status::indefinite_matrix);
  // A sum of a recurrence says something of A at a fresh start only.
  EXPECT_EQ(ends_by(OneReduction<true>{}, 1, 1, -1, false).status, Status::running);
  EXPECT_TRUE(ends_by(OneReduction<true>{}, 1, 1, -1, false).wants_true_residual);
  EXPECT_EQ(ends_by(OneReduction<true>{}, 1, 1, -1, true).status, Status::indefinite_matrix);
  EXPECT_EQ(ends(1, 1, 0, true).status, Status::breakdown);
  EXPECT_TRUE(ends(1, 1, 0).wants_true_residual);
  EXPECT_EQ(ends(1, 1, 0).status, Status::running);
  EXPECT_TRUE(ends(1, 1, 1).wants_true_residual);    // divisor 1 - 1 1 / 1 = 0: starts anew
  EXPECT_TRUE(ends(1, 1, 0.5).wants_true_residual);  // and below zero
  EXPECT_FALSE(ends(1, 1, 2).wants_true_residual);
}

}  // namespace
}  // namespace hostless
