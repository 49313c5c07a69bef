// Every body, on two rows and with numbers that are exact.
#include <gtest/gtest.h>

#include <array>

#include "no_numbers.hpp"
#include "solve/methods/conjugate_gradient.impl.hpp"
#include "solve/methods/pipelined.impl.hpp"
#include "solve/methods/single_reduction.impl.hpp"

namespace hostless {
namespace {

using test::infinity;
using test::nan;

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
  s.value[cg::beta] = 0.5;
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
  s.value[cg::alpha] = 0.5;
  Field x(1, 1), r(4, 6), q(2, 4), p(8, 10);
  Sums sums;
  Update<Jacobi>{jacobi}(s, block_row, sums.view(), x.view(), r.view(), q.view(), p.view());
  EXPECT_EQ(x.pair(), (Pair{5, 6}));
  EXPECT_EQ(r.pair(), (Pair{3, 4}));
  EXPECT_EQ(sums.values, (std::array<double, 4>{100 + 25, 200 + 18 + 64, 300, 400}));
}

// The half that a run may put off, and the other one.
TEST(Bodies, UpdateIsItsTwoHalves) {
  State s;
  s.value[cg::alpha] = 0.5;
  Field x(1, 1), r(4, 6), q(2, 4), p(8, 10);
  Sums sums;
  Update<Jacobi> const update{jacobi};
  update.now()(s, block_row, sums.view(), r.view(), q.view());
  EXPECT_EQ(r.pair(), (Pair{3, 4}));
  EXPECT_EQ(sums.values, (std::array<double, 4>{100 + 25, 200 + 18 + 64, 300, 400}));
  EXPECT_EQ(x.pair(), (Pair{1, 1}));
  double const step = Update<Jacobi>::step(s);
  s.value[cg::alpha] = 7;  // of the iteration after
  advance(step, block_row, x.view(), p.view());
  EXPECT_EQ(x.pair(), (Pair{5, 6}));
}

// x of two iterations at once has the bits of one after the other: each step rounds, the older one first.
TEST(Bodies, AdvanceByTwoStepsRoundsTwice) {
  double const e = 0x1p-53;
  Field x(1, 1), older(e, 1), newer(e, e);
  advance(1.0, block_row, x.view(), older.view());
  advance(1.0, block_row, x.view(), newer.view());
  EXPECT_EQ(x.pair()[0], 1.0);  // half a unit, lost twice; both together are a whole one
  EXPECT_EQ(x.pair()[1], 2.0);  // half a unit of 2
}

TEST(Bodies, UpdatesRoundOnce) {  // fma: (1 + e) (1 - e) - 1 = -e^2, which two roundings lose
  State s;
  double const e = 0x1p-30;
  s.value[cg::alpha] = 1 + e;
  Field x(-1, 0), r(1, 0), p(1 - e, 0), q(1 - e, 0);
  Sums sums;
  Update<NoPreconditioner>{NoPreconditioner{}}(s, block_row, sums.view(), x.view(), r.view(), q.view(),
                                               p.view());
  EXPECT_EQ(x.pair()[0], -e * e);
  EXPECT_EQ(r.pair()[0], e * e);
}

TEST(Bodies, SingleReductionStep) {
  State state;
  state.value[cg::alpha] = 2;
  state.value[cg::beta] = 3;
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
  state.value[cg::alpha] = 2;
  state.value[cg::beta] = 3;
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

}  // namespace
}  // namespace hostless
