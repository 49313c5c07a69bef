// Every body and every decision, on two rows and with numbers that are exact.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "solve/conjugate_gradient.impl.hpp"
#include "solve/one_reduction.impl.hpp"

namespace hostless {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using Pair = std::array<double, 2>;

// Rows 3 and 4 of a longer vector, so that a body that forgets the row is found out.
struct Field {
  std::array<double, 6> values;
  Field(double first, double second) : values{-99, -99, -99, first, second, -99} {}
  InMemory view() { return {values.data()}; }
  Pair pair() const {
    for (std::size_t i : {0u, 1u, 2u, 5u}) EXPECT_EQ(values[i], -99) << "a row of another leaf was written";
    return {values[3], values[4]};
  }
};

constexpr BlockRow<2> block_row{3, 0};

// Sums start from what earlier block rows of the accumulator left.
struct Sums {
  std::array<double, 4> values{100, 200, 300, 400};
  Contribution<1> view() { return {values.data()}; }
};

// M = diag(2, 4) by rows 3 and 4.
std::array<double, 6> const diagonal{0, 0, 0, 2, 4, 0};
Jacobi const jacobi{diagonal.data()};

TEST(Bodies, Copy) {
  Field to(0, 0), from(5, 6);
  Sums sums;
  Copy{}(State{}, block_row, sums.view(), to.view(), from.view());
  EXPECT_EQ(to.pair(), (Pair{5, 6}));
}

TEST(Bodies, Store) {
  Field q(0, 0), p(1, 1);
  Sums sums;
  Pair const products{7, 8};
  Store{}(State{}, block_row, sums.view(), Product{products.data(), 3}, p.view(), q.view());
  EXPECT_EQ(q.pair(), (Pair{7, 8}));
  EXPECT_EQ(p.pair(), (Pair{1, 1}));
}

TEST(Bodies, TrueResidual) {
  Field p(0, 0), r(0, 0), b(10, 20);
  Sums sums;
  Pair const products{7, 22};
  TrueResidual<Jacobi>(jacobi, b.values.data())(State{}, block_row, sums.view(), Product{products.data(), 3},
                                                p.view(), r.view());
  EXPECT_EQ(r.pair(), (Pair{3, -2}));
  EXPECT_EQ(sums.values, (std::array<double, 4>{100 + 9 + 4, 200 + 2 * 9 + 4 * 4, 300, 400}));
}

TEST(Bodies, Dot) {
  Field r(3, -2), z(5, 7);
  Sums sums;
  Dot{}(State{}, block_row, sums.view(), r.view(), z.view());
  EXPECT_EQ(sums.values[0], 100 + 15 - 14);
}

TEST(Bodies, Direction) {
  State s;
  s.beta = 0.5;
  Field p(4, 8), r(1, 1);
  Sums sums;
  s.fresh = true;  // whatever p held, even NaN, does not matter
  Field first(nan, nan);
  Direction<Jacobi>{jacobi}(s, block_row, sums.view(), first.view(), r.view());
  EXPECT_EQ(first.pair(), (Pair{2, 4}));
  s.fresh = false;
  Direction<Jacobi>{jacobi}(s, block_row, sums.view(), p.view(), r.view());
  EXPECT_EQ(p.pair(), (Pair{4, 8}));
}

TEST(Bodies, ProductDot) {
  Field p(2, 3), q(0, 0);
  Sums sums;
  Pair const products{5, 7};
  ProductDot{}(State{}, block_row, sums.view(), Product{products.data(), 3}, p.view(), q.view());
  EXPECT_EQ(q.pair(), (Pair{5, 7}));
  EXPECT_EQ(sums.values[0], 100 + 10 + 21);
}

TEST(Bodies, Update) {
  State s;
  s.alpha = 0.5;
  Field x(1, 1), r(4, 6), q(2, 4), p(8, 10);
  Sums sums;
  Update<Jacobi>{jacobi}(s, block_row, sums.view(), x.view(), r.view(), q.view(), p.view());
  EXPECT_EQ(x.pair(), (Pair{5, 6}));
  EXPECT_EQ(r.pair(), (Pair{3, 4}));
  EXPECT_EQ(sums.values, (std::array<double, 4>{100 + 25, 200 + 18 + 64, 300, 400}));
}

TEST(Bodies, UpdatesRoundOnce) {  // fma: (1 + e) (1 - e) - 1 = -e^2, which two roundings lose
  State s;
  double const e = 0x1p-30;
  s.alpha = 1 + e;
  Field x(-1, 0), r(1, 0), p(1 - e, 0), q(1 - e, 0);
  Sums sums;
  Update<NoPreconditioner>{NoPreconditioner{}}(s, block_row, sums.view(), x.view(), r.view(), q.view(),
                                               p.view());
  EXPECT_EQ(x.pair()[0], -e * e);
  EXPECT_EQ(r.pair()[0], e * e);
}

TEST(Bodies, SingleReductionStep) {
  State state;
  state.alpha = 2;
  state.beta = 3;
  Field u(1, 2), x(0, 0), r(10, 20), p(1, 1), s(2, 2), w(3, 4);
  Sums sums;
  state.fresh = false;
  SingleReductionStep<Jacobi>{jacobi}(state, block_row, sums.view(), u.view(), x.view(), r.view(), p.view(),
                                      s.view(), w.view());
  EXPECT_EQ(p.pair(), (Pair{4, 5}));    // u + 3 p
  EXPECT_EQ(s.pair(), (Pair{9, 10}));   // w + 3 s
  EXPECT_EQ(x.pair(), (Pair{8, 10}));   // x + 2 p
  EXPECT_EQ(r.pair(), (Pair{-8, 0}));   // r - 2 s
  EXPECT_EQ(u.pair(), (Pair{-16, 0}));  // M r
  state.fresh = true;
  SingleReductionStep<Jacobi>{jacobi}(state, block_row, sums.view(), u.view(), x.view(), r.view(), p.view(),
                                      s.view(), w.view());
  EXPECT_EQ(x.pair(), (Pair{8, 10}));
  EXPECT_EQ(u.pair(), (Pair{-16, 0}));
}

TEST(Bodies, ThreeDots) {
  Field u(2, 3), r(5, 7), w(0, 0);
  Sums sums;
  Pair const products{11, 13};
  ThreeDots{}(State{}, block_row, sums.view(), Product{products.data(), 3}, u.view(), r.view(), w.view());
  EXPECT_EQ(w.pair(), (Pair{11, 13}));
  EXPECT_EQ(sums.values, (std::array<double, 4>{100 + 25 + 49, 200 + 10 + 21, 300 + 22 + 39, 400}));
}

TEST(Bodies, PipelinedStep) {
  State state;
  state.alpha = 2;
  state.beta = 3;
  state.fresh = false;
  Field g(0, 0), x(0, 0), r(1, 2), w(5, 6), p(1, 1), s(2, 2), z(1, 2), n(7, 8);
  Sums sums;
  PipelinedStep<Jacobi>{jacobi}(state, block_row, sums.view(), g.view(), x.view(), r.view(), w.view(),
                                p.view(), s.view(), z.view(), n.view());
  EXPECT_EQ(z.pair(), (Pair{10, 14}));    // n + 3 z
  EXPECT_EQ(s.pair(), (Pair{11, 12}));    // w + 3 s
  EXPECT_EQ(p.pair(), (Pair{5, 11}));     // M r + 3 p
  EXPECT_EQ(x.pair(), (Pair{10, 22}));    // x + 2 p
  EXPECT_EQ(r.pair(), (Pair{-21, -22}));  // r - 2 s
  EXPECT_EQ(w.pair(), (Pair{-15, -22}));  // w - 2 z
  EXPECT_EQ(g.pair(), (Pair{-30, -88}));  // M w
  // u = M r = (-42, -88): (r, r), (r, u), (w, u)
  EXPECT_EQ(sums.values,
            (std::array<double, 4>{100 + 441 + 484, 200 + 882 + 1936, 300 + 15 * 42 + 22 * 88, 400}));
  Field before = x;
  state.fresh = true;
  PipelinedStep<Jacobi>{jacobi}(state, block_row, sums.view(), g.view(), x.view(), r.view(), w.view(),
                                p.view(), s.view(), z.view(), n.view());
  EXPECT_EQ(x.pair(), before.pair());
}

TEST(Bodies, ApplyPreconditioner) {
  Field g(0, 0), r(3, 5);
  Sums sums;
  ApplyPreconditioner<Jacobi>{jacobi}(State{}, block_row, sums.view(), g.view(), r.view());
  EXPECT_EQ(g.pair(), (Pair{6, 20}));
}

// ---- decisions

State iterating() {
  State s;
  s.wants_true_residual = false;
  s.iterate = true;
  s.fresh = false;
  s.begun = true;
  s.target = s.propose_at = 1e-3;
  s.limit = 100;
  s.first_rr = s.best_true_residual = 1;
  s.growth_at = 1e5;
  return s;
}

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
  s.rz = 6;
  s.pq = 3;
  s.fresh = true;
  Curvature{}(s);
  EXPECT_EQ(s.alpha, 2);
  EXPECT_EQ(s.rz_before, 6);
  EXPECT_FALSE(s.fresh);
  EXPECT_EQ(s.status, Status::running);
}

TEST(Curvature, SeesWhatIsNotPositive) {
  auto const ends = [](double pq, bool fresh) {
    State s = iterating();
    s.rz = 1;
    s.pq = pq;
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
      s.rz = s.rr = 1;
      s.pq = pq;
      s.fresh = fresh;
      Curvature{}(s);
      EXPECT_EQ(s.status, Status::running);
      EXPECT_TRUE(s.wants_true_residual);
      EXPECT_FALSE(s.iterate);
      EXPECT_EQ(s.exact_again, ExactAgain::curvature);
      EXPECT_EQ(s.changed_at, 7);
      EXPECT_TRUE(s.multiplies_rounded(Gate::iterate)) << "until the truth is judged";
      ConvergenceTest{}(s);
      EXPECT_FALSE(s.multiplies_rounded(Gate::iterate));
      EXPECT_TRUE(s.iterate && s.fresh);
      EXPECT_EQ(s.replace_at, 0);
      EXPECT_EQ(s.replacements, 1);
      EXPECT_EQ(s.restarts, 0);
      s.pq = -1;  // now it is the matrix
      Curvature{}(s);
      EXPECT_EQ(s.status, Status::indefinite_matrix);
    }
  }
  State s = iterating();
  s.rounded = true;
  s.pq = nan;
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
  s.rz_before = s.rz = 1;
  s.replace_at = 1e-2;
  s.rr = 1.1e-4;
  Residual{}(s);
  EXPECT_TRUE(s.iterate);
  s.rr = 0.9e-4;
  Residual{}(s);
  EXPECT_TRUE(s.wants_true_residual);
  EXPECT_FALSE(s.iterate);
  s = iterating();  // a target that is not so far away is met first
  s.rz_before = s.rz = 1;
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
  s.rz = 10;
  s.rz_before = 5;
  s.first_rr = 4;
  s.alpha = 0.25;  // of the step that is complete
  s.beta = 3;
  Residual{}(s);
  EXPECT_EQ(s.iteration, 1);
  EXPECT_EQ(history[1].rr, 4);
  EXPECT_EQ(history[1].alpha, 0.25);
  EXPECT_EQ(history[1].beta, 3);
  EXPECT_EQ(s.beta, 2);
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
                                         Proposal{"used_up", [](State& s) { s.rz = 0; }}),
                         [](auto const& one) { return std::string(one.param.why); });

TEST_P(Proposes, AnEndWhichTheTrueResidualDecides) {
  State s = iterating();
  s.rr = 1;
  s.rz = s.rz_before = 1;
  GetParam().change(s);
  State other = s;
  double const rr = s.rr;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::running);
  EXPECT_TRUE(s.wants_true_residual);
  EXPECT_FALSE(s.iterate);
  EXPECT_EQ(s.recurrence_rr, rr);
  other.pq = other.alpha = 1;
  OneReduction{}(other);
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
    s.rz = bad;
    Residual{}(s);
    EXPECT_EQ(s.status, Status::not_finite);
  }
  State s = iterating();
  s.rr = 1;
  s.rz = -1;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::indefinite_preconditioner);
  s = iterating();  // even when it would have been the end: a preconditioner like that is worth saying
  s.rr = 1e-8;
  s.rz = -1;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::indefinite_preconditioner);
  s = iterating();
  s.rr = s.rz = s.rz_before = 1;
  s.pause_at = 1;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::paused);
  EXPECT_EQ(s.beta, 1);
  s = iterating();  // nothing pauses a recurrence that has met its target
  s.rr = 1e-8;
  s.rz = s.rz_before = 1;
  s.pause_at = 1;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::running);
  EXPECT_TRUE(s.wants_true_residual);
}

TEST(Residual, WaitsForTheRatioOfAPreconditionerApart) {
  State s = iterating();
  s.apart = true;
  s.rr = 1;
  s.rz = -7;  // stands for nothing yet
  s.rz_before = 2;
  Residual{}(s);
  EXPECT_EQ(s.status, Status::running);
  s.rz = 6;
  Ratio{}(s);
  EXPECT_EQ(s.beta, 3);
  for (auto const& [rz, status] : {std::pair{-1.0, Status::indefinite_preconditioner},
                                   {nan, Status::not_finite},
                                   {0.0, Status::running}}) {
    State t = s;
    t.rz = rz;
    Ratio{}(t);
    EXPECT_EQ(t.status, status) << rz;
    EXPECT_EQ(t.wants_true_residual, rz == 0);
  }
  for (auto const& [rz, status] : {std::pair{-1.0, Status::indefinite_preconditioner},
                                   {0.0, Status::indefinite_preconditioner},
                                   {infinity, Status::not_finite},
                                   {1.0, Status::running}}) {
    State t = s;
    t.rz = rz;
    FirstRatio{}(t);
    EXPECT_EQ(t.status, status) << rz;
  }
}

TEST(OneReduction, FirstStepOfAStart) {
  State s = iterating();
  s.fresh = true;
  s.rr = 1;
  s.rz = 6;
  s.pq = 3;
  s.beta = 17;
  OneReduction{}(s);
  EXPECT_EQ(s.iteration, 0);
  EXPECT_EQ(s.alpha, 2);
  EXPECT_EQ(s.beta, 0);
  EXPECT_FALSE(s.fresh);
}

TEST(OneReduction, LaterSteps) {  // beta = 6 / 3 = 2; alpha = 6 / (20 - 2 6 / 1.5) = 0.5
  State s = iterating();
  s.rr = 1;
  s.rz = 6;
  s.rz_before = 3;
  s.pq = 20;
  s.alpha = 1.5;
  OneReduction{}(s);
  EXPECT_EQ(s.iteration, 1);
  EXPECT_EQ(s.beta, 2);
  EXPECT_EQ(s.alpha, 0.5);
  EXPECT_EQ(s.rz_before, 6);
}

TEST(OneReduction, Endings) {
  auto const ends = [](double rr, double gamma, double delta, bool fresh = false) {
    State s = iterating();
    s.fresh = fresh;
    s.rr = rr;
    s.rz = gamma;
    s.rz_before = s.alpha = 1;
    s.pq = delta;
    OneReduction{}(s);
    return s;
  };
  for (double bad : {nan, infinity}) {
    EXPECT_EQ(ends(bad, 1, 1).status, Status::not_finite);
    EXPECT_EQ(ends(1, bad, 1).status, Status::not_finite);
    EXPECT_EQ(ends(1, 1, bad).status, Status::not_finite);
  }
  EXPECT_EQ(ends(1, -1, 1).status, Status::indefinite_preconditioner);
  EXPECT_EQ(ends(1, 1, -1).status, Status::indefinite_matrix);
  EXPECT_EQ(ends(1, 1, -1, true).status, Status::indefinite_matrix);
  EXPECT_EQ(ends(1, 1, 0, true).status, Status::breakdown);
  EXPECT_TRUE(ends(1, 1, 0).wants_true_residual);
  EXPECT_EQ(ends(1, 1, 0).status, Status::running);
  EXPECT_TRUE(ends(1, 1, 1).wants_true_residual);    // divisor 1 - 1 1 / 1 = 0: starts anew
  EXPECT_TRUE(ends(1, 1, 0.5).wants_true_residual);  // and below zero
  EXPECT_FALSE(ends(1, 1, 2).wants_true_residual);
}

State tested(State s) {
  ConvergenceTest{}(s);
  return s;
}

TEST(ConvergenceTest, FirstTrueResidual) {
  State s;
  std::array<StepRecord, 1> history{};
  s.history = history.data();
  s.history_size = 1;
  s.limit = 10;
  s.rr = 4;
  s.rz = 8;
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
  s.limit = 10;
  s.rr = s.rz = 4;
  s = tested(s);
  EXPECT_TRUE(s.awaits_projection());
  EXPECT_FALSE(s.open(Gate::iterate) || s.open(Gate::true_residual));
  EXPECT_EQ(s.growth_at, 2e5);
  s.status = Status::running;
  s.wants_true_residual = true;
  s.rr = s.rz = 1e-8;
  s = tested(s);
  EXPECT_TRUE(s.awaits_projection());
  EXPECT_EQ(s.restarts, 1);
  EXPECT_EQ(s.growth_at, 1e5 * 1e-4);
  s.status = Status::running;
  s.wants_true_residual = true;
  s.rr = s.rz = 101;
  EXPECT_EQ(tested(s).status, Status::diverged);
  s.projects = false;
  s.rr = s.rz = 1e-8;
  EXPECT_FALSE(tested(s).awaits_projection());
}

TEST(ConvergenceTest, EndingsInTheirOrder) {
  State s = iterating();
  s.iterate = false;
  s.wants_true_residual = true;
  s.rr = s.rz = 1;
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
  EXPECT_EQ(with([](State& t) { t.rz = -1; }).status, Status::indefinite_preconditioner);
  EXPECT_EQ(with([](State& t) { t.rz = 0; }).status, Status::breakdown);
  EXPECT_EQ(with([](State& t) { t.rr = nan; }).status, Status::not_finite);
  EXPECT_EQ(with([](State& t) { t.rz = infinity; }).status, Status::not_finite);
  EXPECT_EQ(with([](State& t) { t.rz = nan, t.apart = true; }).status, Status::running);
  // None of these was a restart.
  for (double rr : {1e-6, 1.1e10}) EXPECT_EQ(with([&](State& t) { t.rr = rr; }).restarts, 0);
}

State rounded() {
  State s = iterating();
  s.rounded = true;
  s.iterate = false;
  s.wants_true_residual = true;
  s.rz = 1;
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
    s.rz = 1;
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

}  // namespace
}  // namespace hostless
