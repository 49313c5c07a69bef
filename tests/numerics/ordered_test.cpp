// The promise that equal plans give equal bits, against a second writing of its text (ordered_reference.hpp):
// whole solves of every method, with partitions, blocks and slices of all kinds.
#include <gtest/gtest.h>

#include <array>

#include "ordered_reference.hpp"

namespace hostless::test {
namespace {

struct Case {
  char const* name;
  ProblemOptions problem;
  int block, slices, ranks;
  MatrixOptions::Partition partition;
  double rtol = 1e-7;
  int threads_per_row = 1;
};

// Solves both ways; the ending of the library.
Ending compare(System const& a, Case const& c, Method method, PreconditionerKind preconditioner) {
  auto const b = random_vector(a.rows(), 17);
  std::string const what = std::string(c.name) + " " + name(method) + " " + name(preconditioner);
  Setting setting;
  setting.matrix.block = c.block;
  setting.matrix.slices = c.slices;
  setting.matrix.threads_per_row = c.threads_per_row;
  setting.matrix.partition = c.partition;
  setting.solve.method = method;
  setting.solve.rtol = c.rtol;
  setting.solve.max_iterations = 1000000;  // the second writing has no limit
  setting.solve.preconditioner = preconditioner;
  OrderedPlan plan;
  Ending const got = solve_aligned(a, c.ranks, setting, b, plan);
  EXPECT_TRUE(c.block == 0 || plan.block == c.block) << what;
  EXPECT_TRUE(c.slices == 0 || plan.slices == c.slices) << what;
  EXPECT_EQ(plan.threads_per_row, c.threads_per_row) << what;
  OrderedSolve const expected = OrderedMethods(a, plan, b, preconditioner, c.rtol).solve(method);
  EXPECT_EQ(got.result.status, expected.status) << what;
  EXPECT_EQ(got.result.restarts, expected.restarts) << what;
  EXPECT_EQ(static_cast<std::size_t>(got.result.iterations) + 1, expected.history.size()) << what;
  EXPECT_TRUE(same_bits(got.result.residual_history, expected.history)) << what;
  EXPECT_TRUE(same_bits(got.x, expected.x)) << what;
  EXPECT_TRUE(same_bits({got.result.true_residual}, {expected.true_residual})) << what;
  return got;
}

constexpr std::array preconditioners{PreconditionerKind::none, PreconditionerKind::jacobi,
                                     PreconditionerKind::block_jacobi};

class OrderOfSums : public testing::TestWithParam<Case> {};

TEST_P(OrderOfSums, IsWhatTheTextSays) {
  System const a = System::problem(GetParam().problem);
  for (Method method : all_methods()) {
    for (PreconditionerKind preconditioner : preconditioners) {
      Ending const got = compare(a, GetParam(), method, preconditioner);
      EXPECT_EQ(got.result.status, Status::converged) << name(method);
    }
  }
}

using P = MatrixOptions::Partition;
INSTANTIATE_TEST_SUITE_P(
    All, OrderOfSums,
    testing::Values(
        Case{"one_rank", problem("poisson7", 6, 6, 6), 1, 0, 1, P::contiguous},
        Case{"three_ranks", problem("poisson2d", 14, 9, 1), 1, 4, 3, P::contiguous},
        Case{"five_ranks_metis", problem("poisson2d", 14, 9, 1), 1, 7, 5, P::metis},
        Case{"blocks_of_2", problem("poisson7", 6, 4, 6), 2, 5, 2, P::contiguous},
        Case{"blocks_of_3", problem("elasticity-hex8", 3, 4, 4, 10.0), 3, 3, 3, P::metis, 1e-5},
        Case{"blocks_of_4", problem("poisson7", 6, 4, 6), 4, 3, 2, P::metis},
        Case{"blocks_of_6", problem("elasticity-hex8", 4, 3, 4, 10.0), 6, 2, 2, P::contiguous, 1e-5},
        Case{"two_row_lanes", problem("poisson2d", 14, 9, 1), 1, 4, 3, P::contiguous, 1e-7, 2},
        Case{"blocks_of_3_and_8_row_lanes", problem("elasticity-hex8", 3, 4, 4, 10.0), 3, 3, 3, P::metis,
             1e-5, 8},
        Case{"32_row_lanes", problem("elasticity-hex8", 3, 4, 3, 10.0), 1, 0, 1, P::contiguous, 1e-5, 32},
        Case{"more_slices_than_leaves", problem("poisson1d", 30, 1, 1, 4.0), 3, 40, 2, P::contiguous},
        Case{"more_than_256_leaves_a_slice", problem("poisson2d", 30, 31, 1, 4.0), 1, 1, 1, P::contiguous},
        Case{"more_than_512_leaves_a_slice", problem("poisson2d", 40, 36, 1, 4.0), 2, 1, 1, P::contiguous}),
    [](auto const& one) { return std::string(one.param.name); });

// Tolerances that the recurrences pass long before the true residual does: restarts, and both endings they
// may have.
TEST(Ordered, RestartsAreWhatTheTextSays) {
  int restarts = 0, converged = 0, stagnated = 0;
  for (Case const& c : {Case{"lattice", problem("poisson2d", 14, 9, 1, 1e4), 1, 4, 3, P::contiguous},
                        Case{"blocks", problem("elasticity-hex8", 3, 3, 4, 1e2), 3, 3, 2, P::metis}}) {
    System const a = System::problem(c.problem);
    for (double rtol : {1e-9, 1e-11, 1e-13, 1e-15}) {
      Case tight = c;
      tight.rtol = rtol;
      for (Method method : all_methods()) {
        for (PreconditionerKind preconditioner : preconditioners) {
          Result const result = compare(a, tight, method, preconditioner).result;
          restarts += static_cast<int>(result.restarts);
          converged += result.status == Status::converged && result.restarts > 0 ? 1 : 0;
          stagnated += result.status == Status::stagnated ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(restarts, 20);
  EXPECT_GT(converged, 3) << "after a restart";
  EXPECT_GT(stagnated, 3);
}

// 300 block rows of two rows in one slice: accumulator 0 holds block row 0 and block row 256, and so on. One
// large and one tiny value in one accumulator cancel differently than anywhere else.
TEST(Ordered, SecondWritingKnowsItsText) {
  System const a = System::diagonal(std::vector<double>(600, 1.0));
  OrderedPlan plan;
  plan.rows.emplace_back();
  for (int i = 0; i < 600; ++i) plan.rows[0].push_back(i);
  plan.block = 2;
  Ordered const ordered(a, plan);
  Ordered::Values v{std::vector<double>(600, 0.0)};
  v[0][0] = 1e16;   // block row 0: accumulator 0, slot 0
  v[0][512] = 1.0;  // block row 256: accumulator 0, slot 1: lost in 1e16
  v[0][513] = 1.0;  // the same block row, added after it: lost too
  v[0][2] = -1e16;  // block row 1: accumulator 1
  EXPECT_EQ(ordered.sum(v), 0.0);
  v[0][512] = v[0][513] = 0;
  v[0][4] = v[0][6] = 1.0;  // accumulators 2 and 3 meet before they meet accumulators 0 and 1
  EXPECT_EQ(ordered.sum(v), 2.0);
}

}  // namespace
}  // namespace hostless::test
