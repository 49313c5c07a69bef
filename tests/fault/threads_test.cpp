// A thread or a rank stops at every barrier of a solve: all ranks end with `peer_lost` within the deadline
// and a second, or with an ending that a complete sum supports; afterwards new solvers work.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "environment.hpp"
#include "run/engine.hpp"
#include "sample.hpp"
#include "systems.hpp"

namespace hostless::test {
namespace {

enum class Fault { throws, sleeps };

struct Where {
  Method method;
  int ranks;
  RunChoice run;
  int rank, thread;  // who stops
  Fault fault;
  int columns = 1;
};

constexpr double silence_s = 0.05;  // deadline where a thread is silent
constexpr double loss_s = 600;  // deadline where one throws: not it ends the others, but that they are told
constexpr double patience_s = 120;  // with machines that are busy: less than any deadline that is not meant

std::vector<Where> all_stops(Fault fault) {
  RunChoice const host{"host", RunKind::host, 1, 1}, graph{"graph", RunKind::graph, 1, 2},
      two{"two", RunKind::persistent, 2, 1}, three{"three", RunKind::persistent, 3, 1};
  std::vector<Where> all;
  for (Method method : all_methods()) {
    all.push_back({method, 2, host, 1, 0, fault});
    all.push_back({method, 3, graph, 0, 0, fault});
    all.push_back({method, 2, two, 1, 1, fault});
    all.push_back({method, 1, three, 0, 2, fault});
    if (fault == Fault::throws) all.push_back({method, 2, three, 0, 0, fault});
  }
  all.push_back({Method::cg, 2, host, 1, 0, fault, 3});
  all.push_back({Method::cg, 3, two, 0, 1, fault, 2});
  return all;
}

std::string where_name(testing::TestParamInfo<Where> const& one) {
  std::string text = name(one.param.method);
  std::replace(text.begin(), text.end(), '-', '_');
  return text + "_" + one.param.run.name + "_" + std::to_string(one.param.ranks) + "_rank" +
         std::to_string(one.param.rank) + "_thread" + std::to_string(one.param.thread) +
         (one.param.columns > 1 ? "_columns" + std::to_string(one.param.columns) : "");
}

class Threads : public testing::TestWithParam<Where> {
 protected:
  Setting setting() const {
    Where const& w = GetParam();
    Setting p;
    p.ranks = w.ranks;
    p.solve.method = w.method;
    p.solve.rtol = 1e-9;
    p.solve.limits = {patience_s, patience_s};
    p.solve.rhs_columns = w.columns;
    use(p.solve, w.run);
    return p;
  }

  struct Seen {
    std::vector<double> seconds;  // that each rank's solve took; of a rank with a sleeper: after it awoke
    std::vector<Result> results;
    int barriers = 0;  // of the thread that is to stop
  };

  // Solves; the thread stops at its barrier number `at` (none: a negative number). Where nobody is there whose
  // end could be awaited, it sleeps so long.
  Seen solve(System const& a, std::vector<double> const& b, int at, double sleep_s = 2 * silence_s) const {
    Where const& w = GetParam();
    Seen seen;
    seen.seconds.resize(static_cast<std::size_t>(w.ranks));
    seen.results.resize(static_cast<std::size_t>(w.ranks));
    std::atomic<int> barriers{0}, ended{0};
    Clock::time_point awake;
    Setting p = setting();
    if (at >= 0)
      p.solve.limits.first_s = p.solve.limits.later_s = w.fault == Fault::throws ? loss_s : silence_s;
    run_with_threads_transport(w.ranks, [&](Transport& transport) {
      int const rank = transport.group().rank();
      Share const mine = share_of(a, w.ranks, rank, false);
      Matrix const matrix =
          Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value, p.matrix);
      SolveOptions options = p.solve;
      if (rank == w.rank) {
        options.run.disturb = [&](int thread) {
          if (thread != w.thread || barriers.fetch_add(1) != at) return;
          if (w.fault == Fault::throws) throw host::ThreadLost{};
          std::this_thread::sleep_for(std::chrono::duration<double>(w.ranks == 1 ? sleep_s : 0));
          wait_for([&] { return ended.load() == w.ranks - 1; }, [] { return false; },
                   Deadline::after(2 * patience_s));
          awake = Clock::now();
        };
      }
      Solver solver(matrix, options);
      auto const rows = static_cast<std::size_t>(mine.last - mine.first);
      std::vector<double> mine_of_b;
      for (std::size_t k = 0; k < rows * static_cast<std::size_t>(w.columns); ++k)
        mine_of_b.push_back(b[(static_cast<std::size_t>(mine.first) + k % rows + k / rows) % b.size()]);
      std::vector<double> x(mine_of_b.size(), 0.0);
      auto const begin = Clock::now();
      auto const index = static_cast<std::size_t>(rank);
      seen.results[index] = solver.solve(mine_of_b, x);
      bool const slept = rank == w.rank && awake > begin;
      seen.seconds[index] = std::chrono::duration<double>(Clock::now() - (slept ? awake : begin)).count();
      ++ended;
    });
    seen.barriers = barriers.load();
    return seen;
  }

 private:
  // Set-up collectives take their deadline from the environment: 60 s and 10 s, times this.
  Environment const short_deadlines_{"HOSTLESS_DEADLINE_SCALE", "0.05"};
};

// Of several right-hand sides each has an ending, and one that was complete before the loss keeps it.
void expect_endings_of_columns(Result const& result, int columns) {
  ASSERT_EQ(result.columns.size(), columns == 1 ? 0U : static_cast<std::size_t>(columns));
  bool is_one_lost = false;
  for (Result const& one : result.columns) {
    EXPECT_TRUE(one.status == Status::peer_lost || one.status == Status::converged) << name(one.status);
    is_one_lost = is_one_lost || one.status == Status::peer_lost;
  }
  EXPECT_EQ(result.status == Status::peer_lost,
            columns > 1 ? is_one_lost : result.status != Status::converged);
}

/// The barriers at which it stops: all, or of a sample every third, and the last three.
std::vector<int> stops(int barriers) {
  std::vector<int> all;
  for (int at = 0; at < barriers; ++at)
    if (is_tried(static_cast<std::size_t>(at), 3) || at + 3 >= barriers) all.push_back(at);
  return all;
}

class ThreadsThatThrow : public Threads {};
INSTANTIATE_TEST_SUITE_P(All, ThreadsThatThrow, testing::ValuesIn(all_stops(Fault::throws)), where_name);
class ThreadsThatSleep : public Threads {};
INSTANTIATE_TEST_SUITE_P(All, ThreadsThatSleep, testing::ValuesIn(all_stops(Fault::sleeps)), where_name);

// Every barrier of a whole solve, the last included: a rank that is lost after its last word may leave others
// with an ending that their sums support, and that ending is then true.
TEST_P(ThreadsThatThrow, AtEveryBarrier) {
  System const a = System::path(4);
  std::vector<double> const b{1, 0, 0, 2};
  Seen const whole = solve(a, b, -1);
  ASSERT_EQ(whole.results[0].status, Status::converged);
  ASSERT_GT(whole.barriers, 8);
  int lost = 0;
  for (int const at : stops(whole.barriers)) {
    Seen const seen = solve(a, b, at);
    for (std::size_t r = 0; r < seen.results.size(); ++r) {
      EXPECT_LT(seen.seconds[r], patience_s) << "rank " << r << ", stopped at barrier " << at;
      Status const status = seen.results[r].status;
      expect_endings_of_columns(seen.results[r], GetParam().columns);
      if (static_cast<int>(r) == GetParam().rank) {
        EXPECT_EQ(status, Status::peer_lost) << "the rank that failed, at barrier " << at;
      } else if (status != Status::peer_lost) {
        EXPECT_EQ(status, whole.results[r].status) << "rank " << r << " at barrier " << at;
        EXPECT_GE(at, whole.barriers - 2) << "no sum was complete at barrier " << at;
      }
      lost += status == Status::peer_lost ? 1 : 0;
    }
  }
  EXPECT_GE(lost, static_cast<int>(stops(whole.barriers).size()));
  EXPECT_EQ(solve(a, b, -1).results[0].status, Status::converged);
}

// Silent, until all others have given up: only the deadline can end their wait, and it does so for all.
TEST_P(ThreadsThatSleep, AtEveryBarrier) {
  System const a = System::path(4);
  std::vector<double> const b{1, 0, 0, 2};
  Seen const whole = solve(a, b, -1);
  ASSERT_EQ(whole.results[0].status, Status::converged);
  ASSERT_GT(whole.barriers, 8);
  int at_once = 0;
  for (int const at : stops(whole.barriers)) {
    Seen seen = solve(a, b, at);
    at_once += seen.results[0].status == Status::peer_lost;
    // On a busy machine the threads that wait for it may have come late themselves.
    for (double sleep_s = 1;
         GetParam().ranks == 1 && seen.results[0].status != Status::peer_lost && sleep_s < 20; sleep_s *= 4)
      seen = solve(a, b, at, sleep_s);
    for (std::size_t r = 0; r < seen.results.size(); ++r) {
      EXPECT_EQ(seen.results[r].status, Status::peer_lost) << "rank " << r << " at barrier " << at;
      std::string const& says = seen.results[r].message;  // nobody can lose a rank who is alone
      EXPECT_EQ(says.find("threads of the rank waited for each other past the deadline") == 0,
                GetParam().ranks == 1)
          << says;
      expect_endings_of_columns(seen.results[r], GetParam().columns);
      EXPECT_LT(seen.seconds[r], silence_s + patience_s) << "rank " << r << " at barrier " << at;
    }
  }
  EXPECT_GT(at_once, 0) << "none of " << stops(whole.barriers).size()
                        << " barriers within the deadline: it is a longer one";
  EXPECT_EQ(solve(a, b, -1).results[0].status, Status::converged);
}

// A delay below the deadline is no loss.
TEST_P(ThreadsThatThrow, WithinTheDeadlineNothingIsLost) {
  System const a = System::path(8);
  Setting p = setting();
  p.solve.rhs_columns = 1;
  std::atomic<int> barriers{0};
  auto const e = solve_on_threads(a, std::vector<double>(8, 1.0), p, [&](int rank, SolveOptions& options) {
    if (rank != GetParam().rank) return;
    options.run.disturb = [&](int thread) {
      if (thread == GetParam().thread && barriers.fetch_add(1) % 4 == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
  });
  EXPECT_EQ(e.result.status, Status::converged);
}

}  // namespace
}  // namespace hostless::test
