// Several right-hand sides at once: a loss, a time limit and a signal are endings of each of them, and the C
// interface tells of each.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "hostless/hostless.h"
#include "systems.hpp"

namespace hostless::test {
namespace {

constexpr int columns = 3, rows = 4;

// A rank that fails where the others have just found that their guess is the answer: what they then do
// together, after the last sum, has nobody to do it with.
int solve_the_solved(hostless_transport* transport, void* seen) {
  int const rank = hostless_rank(transport), first = rank * rows;
  std::vector<std::int64_t> offset{0}, column;
  std::vector<double> const value(rows, 2.0), b(rows * columns, 6.0);
  for (std::int64_t i = first; i < first + rows; ++i) {
    column.push_back(i);
    offset.push_back(i - first + 1);
  }
  hostless_options options;
  hostless_default_options(&options);
  options.rhs_columns = columns;
  if (rank == 1)
    options.callback = [](std::int64_t, double, void*) -> int { throw std::runtime_error("a fault"); };
  hostless_matrix* matrix = nullptr;
  hostless_solver* solver = nullptr;
  if (hostless_matrix_from_rows(transport, first, rows, offset.data(), column.data(), value.data(), &options,
                                &matrix) != 0 ||
      hostless_solver_create(matrix, &options, &solver) != 0)
    return HOSTLESS_ENVIRONMENT;
  std::vector<double> x(b.size(), 3.0);
  hostless_result result;
  int const code = hostless_solve(solver, b.data(), x.data(), &result);
  if (rank == 0) {
    EXPECT_EQ(code, HOSTLESS_OK) << hostless_last_error();
    EXPECT_EQ(result.status, HOSTLESS_STATUS_PEER_LOST);
    for (int c = 0; c < columns; ++c) {
      hostless_result one;
      EXPECT_EQ(hostless_result_of_column(solver, c, &one), HOSTLESS_OK) << hostless_last_error();
      EXPECT_EQ(one.status, HOSTLESS_STATUS_PEER_LOST);
      EXPECT_EQ(one.iterations, 0);
      EXPECT_EQ(one.history_length, 1);  // |b - A x| of the guess is known
      double norm = -1;
      EXPECT_EQ(hostless_history_of_column(solver, c, &norm, 1), HOSTLESS_OK);
      EXPECT_EQ(norm, 0);
    }
    *static_cast<int*>(seen) += 1;
  }
  hostless_solver_free(solver);
  hostless_matrix_free(matrix);
  return code;
}

TEST(ColumnsInC, EachIsToldOfAfterALoss) {
  int seen = 0;
  EXPECT_NE(hostless_run_threads(2, solve_the_solved, &seen), HOSTLESS_OK);
  EXPECT_EQ(seen, 1);
}

// Nothing but what ends it ends such a solve; what it has come to is there.
void expect_all_aborted(SolveOptions const& options, std::string const& message) {
  System const a = System::problem(problem("poisson2d", 200, 150, 1, 1e6));
  std::vector<Result> results(2);
  run_with_threads_transport(2, [&](Transport& transport) {
    int const rank = transport.group().rank();
    Share const mine = share_of(a, 2, rank, true);
    Matrix const matrix = Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value);
    Solver solver(matrix, options);
    solver.manufacture(7);
    results[static_cast<std::size_t>(rank)] = solver.solve();
    for (int c = 0; c < columns; ++c)
      for (double const entry : solver.x(c)) EXPECT_LE(std::abs(entry), 1);
  });
  for (Result const& whole : results) {
    EXPECT_EQ(whole.status, Status::aborted);
    ASSERT_EQ(whole.columns.size(), static_cast<std::size_t>(columns));
    for (Result const& one : whole.columns) {
      EXPECT_EQ(one.status, Status::aborted);
      EXPECT_NE(one.message.find(message), std::string::npos) << one.message;
      EXPECT_EQ(one.iterations, whole.iterations);
      EXPECT_EQ(one.residual_history.size(),
                std::min<std::size_t>(static_cast<std::size_t>(one.iterations) + 1, 1000000));
      EXPECT_TRUE(same_bits(
          one.residual_history,
          results[0].columns[static_cast<std::size_t>(&one - whole.columns.data())].residual_history));
    }
  }
}
SolveOptions endless() {
  SolveOptions options;
  options.rhs_columns = columns;
  options.rtol = 0;
  options.max_iterations = std::int64_t{1} << 40;
  return options;
}

TEST(Columns, ATimeLimitEndsEach) {
  SolveOptions options = endless();
  options.time_limit_s = 0.05;
  expect_all_aborted(options, "the time limit of 0.05 s was reached");
}

std::atomic<int> asked = 0;  // read by threads that the signal did not interrupt
TEST(Columns, ASignalEndsEach) {
  auto* const before = std::signal(SIGTERM, [](int) { asked = 1; });
  SolveOptions options = endless();
  options.callback = [](Progress const& progress) {
    if (progress.iteration == 5 && progress.column == 1) std::raise(SIGTERM);
    return false;
  };
  options.run.stop_requested = [] { return asked != 0; };
  options.run.stop_reason = [] { return "asked to end by SIGTERM"; };
  expect_all_aborted(options, "asked to end by SIGTERM");
  std::signal(SIGTERM, before);
}

}  // namespace
}  // namespace hostless::test
