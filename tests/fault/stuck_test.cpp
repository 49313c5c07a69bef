// A rank that never wakes, in a function that does not return: the others end with `peer_lost` within the
// deadline, and a program that asked for it ends with exit code 4, as the command does.
#include "hostless/base/stuck.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "systems.hpp"

#if HOSTLESS_THREAD_SANITIZER
// A thread that is left behind is what these tests are about.
extern "C" char const* __tsan_default_options() { return "report_thread_leaks=0"; }
#endif

namespace hostless::test {
namespace {

constexpr int ranks = 3;
constexpr double patience_s = 12;  // with machines that are busy

// Seconds that the others wait, and what the deadlines of set-up are scaled by.
struct Deadlines {
  double solve_s, setup_s;
  char const* scale;  // 600 s in set-up, 60 s until who is stuck is given up
};

struct Ended {
  std::atomic<int> lost{0}, otherwise{0}, late{0};
} ended;  // of those that are not stuck

[[noreturn]] void never_wake() {
  for (;;) pause();
}

enum class Where { callback, before_the_first_barrier };
// Who is stuck in a callback has come there with the others, within their deadline.
constexpr Deadlines deadlines_of(Where where) {
  return where == Where::callback ? Deadlines{1, 18, "0.03"} : Deadlines{0.2, 12, "0.02"};
}

// Does not return: a rank is stuck in it.
void solve_with_a_stuck_rank(int stuck, Where where) {
  Deadlines const deadlines = deadlines_of(where);
  setenv("HOSTLESS_DEADLINE_SCALE", deadlines.scale, 1);
  when_stuck([](std::string const& what) {
    std::fprintf(stderr, "lost %d, otherwise %d, late %d: %s", ended.lost.load(), ended.otherwise.load(),
                 ended.late.load(), what.c_str());
    _exit(4);
  });
  run_with_threads_transport(ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    System const a = System::path(6);
    Share const mine = share_of(a, ranks, rank, false);
    Matrix const matrix =
        Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value, MatrixOptions{});
    SolveOptions options;
    options.rtol = 1e-9;
    options.limits = {deadlines.solve_s, deadlines.solve_s};
    options.check_symmetry = false;
    if (rank == stuck && where == Where::callback) {
      options.callback = [](Progress const&) -> bool { never_wake(); };
    }
    Solver solver(matrix, options);
    std::fill(solver.b().begin(), solver.b().end(), 1.0);
    if (rank == stuck && where == Where::before_the_first_barrier) never_wake();
    auto const begin = Clock::now();
    Status const status = solver.solve().status;
    double const took_s = std::chrono::duration<double>(Clock::now() - begin).count();
    ++(status == Status::peer_lost ? ended.lost : ended.otherwise);
    if (took_s > (where == Where::callback ? deadlines.solve_s : deadlines.setup_s) + patience_s)
      ++ended.late;
    throw Error(ErrorCode::peer_lost, "a rank did not come (nothing can be solved without it). See why.");
  });
}

class Stuck : public testing::TestWithParam<std::tuple<int, Where>> {};

TEST_P(Stuck, TheOthersAndTheProcessEnd) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto const [rank, where] = GetParam();
  auto const begin = Clock::now();
  EXPECT_EXIT(solve_with_a_stuck_rank(rank, where), testing::ExitedWithCode(4),
              "lost 2, otherwise 0, late 0: 1 of 3 threads");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(240));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Stuck,
                         testing::Combine(testing::Values(0, 2),  // 0: the caller's own thread
                                          testing::Values(Where::callback, Where::before_the_first_barrier)),
                         [](auto const& one) {
                           return "rank" + std::to_string(std::get<0>(one.param)) +
                                  (std::get<1>(one.param) == Where::callback ? "_callback" : "_barrier");
                         });

}  // namespace
}  // namespace hostless::test
