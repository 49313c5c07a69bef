// The verbs of the runs, the barrier of threads, the order of sums inside a rank.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>

#include "hostless/base/order.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/plan/routes.hpp"
#include "run/graph_run.impl.hpp"
#include "run/on_threads.impl.hpp"
#include "run/told_column.hpp"

namespace hostless::host {
namespace {

TEST(ToldColumn, IsTheFirstThatGoesOn) {
  State columns[3];
  EXPECT_EQ(told_column(columns, 3), -1);
  EXPECT_EQ(furthest_iteration(columns, 3), 0);
  columns[0].status = Status::not_finite;  // has not even begun
  columns[1].begun = columns[2].begun = true;
  columns[1].iteration = columns[2].iteration = 7;
  EXPECT_EQ(told_column(columns, 3), 1);
  columns[1].status = Status::converged;
  columns[2].iteration = 9;
  EXPECT_EQ(told_column(columns, 3), 2);
  EXPECT_EQ(furthest_iteration(columns, 3), 9);
  columns[2].status = Status::aborted;
  EXPECT_EQ(told_column(columns, 3), 2);  // its last iteration is told, too
  EXPECT_EQ(told_column(columns, 2), 1);
  EXPECT_EQ(furthest_iteration(columns, 1), 0);
}

TEST(Tree, IsBalanced) {
  std::vector<double> v{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(tree(v.data(), 8), 36);
  std::vector<double> one{5};
  EXPECT_EQ(tree(one.data(), 1), 5);
  std::vector<double> big{1e16, 1, -1e16, 1};  // (1e16 + 1) + (-1e16 + 1) = 1e16 + (-1e16 + 1) = 2 or 0
  EXPECT_EQ(tree(big.data(), 4), (1e16 + 1.0) + (-1e16 + 1.0));
  for (int n : {1, 2, 3, 4, 5, 255, 256, 257}) {
    int const p = power_of_two(n);
    EXPECT_GE(p, n);
    EXPECT_LT(p, 2 * n);
    EXPECT_EQ(p & (p - 1), 0);
  }
}

// Every split of the rows into slices and accumulators, against a plain table of accumulators.
struct Contribute {
  double const* v;
  template <class L, class Sums>
  void operator()(State const&, L block_row, Sums const& sum) const {
    for (int j = 0; j < L::rows; ++j) {
      sum.add(0, v[block_row.row + j]);
      sum.add(1, -2 * v[block_row.row + j]);
    }
  }
};
struct ContributeBy3 : Contribute {
  static constexpr int coupled = 3;
};

double by_table(std::vector<double> const& v, Tiling const& t, int slice) {
  std::vector<double> accumulator(256, 0.0);
  for (std::int64_t block_row = t.first(slice); block_row < t.first(slice + 1); ++block_row)
    for (int j = 0; j < t.block; ++j)
      accumulator[static_cast<std::size_t>((block_row - t.first(slice)) % 256)] +=
          v[static_cast<std::size_t>(block_row * t.block + j)];
  for (std::size_t n = 256; n > 1; n /= 2)
    for (std::size_t i = 0; i < n / 2; ++i) accumulator[i] = accumulator[2 * i] + accumulator[2 * i + 1];
  return accumulator[0];
}

TEST(Slices, AddInTheOrderOfThePlan) {
  for (int block : {1, 2, 3, 4, 6}) {
    for (std::int64_t block_rows : {0, 1, 5, 255, 256, 257, 600, 1500}) {
      for (int slices : {1, 2, 7, 40}) {
        Tiling t;
        t.block_rows = block_rows;
        t.block = block;
        t.slices = slices;
        std::vector<double> v;
        for (std::int64_t i = 0; i < t.rows(); ++i)
          v.push_back(static_cast<double>(i % 7 - 3) * 1e10 + 1.0 / static_cast<double>(i + 1));
        std::int64_t covered = 0;
        for (int s = 0; s < slices; ++s) {
          double partial[2] = {-1, -1};
          rows_of_slice<2, 1>(t, s, State{}, partial, Contribute{v.data()});
          double const expected = by_table(v, t, s);
          ASSERT_EQ(partial[0], expected) << block << ' ' << block_rows << ' ' << s << '/' << slices;
          ASSERT_EQ(partial[1], -2 * expected);
          if (block == 3) {  // bodies that couple rows add in the same order
            rows_of_slice<2, 3>(t, s, State{}, partial, ContributeBy3{{v.data()}});
            ASSERT_EQ(partial[0], expected);
          }
          covered += t.first(s + 1) - t.first(s);
        }
        EXPECT_EQ(covered, block_rows);
      }
    }
  }
}

TEST(ThreadBarrier, EverybodyArrivesAndOneCompletes) {
  constexpr int threads = 4, rounds = 500;
  ThreadBarrier barrier(threads, {30, 30});
  int completed = 0;  // no atomic: only completions touch it, and barriers order them
  std::atomic<int> wrong{0};
  std::vector<std::thread> started;
  for (int thread = 0; thread < threads; ++thread) {
    started.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        barrier.arrive([&] { ++completed; });
        if (completed != round + 1) ++wrong;
        barrier.arrive([] {});
      }
    });
  }
  for (auto& t : started) t.join();
  EXPECT_EQ(completed, rounds);
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadBarrier, MissingThreadBreaksItForAll) {
  ThreadBarrier barrier(3, {0.1, 0.1});
  std::atomic<int> lost{0};
  auto const begin = Clock::now();
  std::vector<std::thread> started;
  for (int thread = 0; thread < 2; ++thread) {
    started.emplace_back([&] {
      try {
        barrier.arrive([] {});
      } catch (ThreadLost const&) {
        ++lost;
      }
    });
  }
  for (auto& t : started) t.join();
  EXPECT_EQ(lost.load(), 2);
  EXPECT_TRUE(barrier.broken());
  EXPECT_LT(Engine::seconds_since(begin), 120);
}

// A thread may stand still on its way there for longer than the limit: that is a loss, and another try.
TEST(ThreadBarrier, LongCompletionIsNoLoss) {
  constexpr double limit_s = 1;
  int tries = 0;
  for (bool all_passed = false; !all_passed && tries < 20; ++tries) {
    ThreadBarrier barrier(2, {limit_s, limit_s});
    std::atomic<int> there{0};
    std::atomic<bool> is_lost{false};
    std::atomic<Clock::time_point> all_came{Clock::time_point::max()};
    auto const arrive = [&] {
      ++there;
      while (there.load() < 2) Backoff::give_core_away();
      try {
        barrier.arrive([&] {
          all_came.store(Clock::now());
          std::this_thread::sleep_for(std::chrono::duration<double>(3 * limit_s));
        });
      } catch (ThreadLost const&) {
        is_lost.store(true);
        EXPECT_LT((Clock::now() - all_came.load()).count(), 0.5 * limit_s * Clock::period::den);
      }
    };
    std::thread other(arrive);
    arrive();
    other.join();
    all_passed = !is_lost.load();
    EXPECT_EQ(barrier.broken(), !all_passed);
  }
  EXPECT_LT(tries, 20);
}

// One rank, no ghosts: the verbs of every run on `rows` rows.
class Verbs : public testing::Test {
 protected:
  template <class Text>
  void run(RunKind kind, int threads, Text const& text) {
    run_with_threads_transport(1, [&](Transport& transport) {
      Pattern pattern;
      pattern.owned = 700;
      pattern.first = {0};
      ExchangePlan const plan = make_plan(Route::direct, {pattern}, NodeMap::blocks(1, 1), 0);
      SweepPlan const sweep = make_sweep(plan, {700, 1, 5});
      std::vector<double> gathered(700);
      Exchange exchange(transport, plan, gathered.data(), Reduction::ordered, {30, 30});
      RunOptions chosen;
      chosen.kind = kind;
      chosen.threads = threads;
      chosen.check_interval = check_interval;
      Engine engine(state, sweep, Multiplier{}, exchange, chosen, {30, 30});
      if (kind == RunKind::graph) {
        on_threads(engine, 1, [&](auto& thread) {
          GraphRun graph(thread);
          text(graph);
          nodes = graph.nodes();
          graph.launch();
        });
      } else {
        on_threads(engine, threads, text);
      }
    });
  }
  State state;
  int check_interval = 1;
  std::size_t nodes = 0;
};

struct AddOne {
  template <class L, class Sums, class X>
  void operator()(State const&, L block_row, Sums const& sum, X const& x) const {
    for (int j = 0; j < L::rows; ++j) sum.add(0, x(block_row, j) += 1);
  }
};
struct EndAt {
  double total;
  void operator()(State& s) const {
    ++s.iteration;
    if (s.rr >= total) s.iterate = false;
  }
};

// Each pass adds one to each of 700 rows; the gate closes after the fourth, whoever looks how often.
TEST_F(Verbs, OvershootingPhasesSkipThemselves) {
  for (auto const& [kind, threads, interval] : {std::tuple{RunKind::host, 1, 1},
                                                {RunKind::host, 1, 7},
                                                {RunKind::persistent, 3, 1},
                                                {RunKind::persistent, 2, 3},
                                                {RunKind::graph, 1, 1},
                                                {RunKind::graph, 1, 3}}) {
    std::vector<double> x(700, 0.0);
    state = State{};
    state.iterate = true;
    check_interval = interval;
    run(kind, threads, [&](auto& r) {
      auto const field = r.keep(x.data());
      r.repeat(Gate::iterate, [&r, field] { r.rows(into(ScalarIndex::rr), AddOne{}, EndAt{2800}, field); });
    });
    EXPECT_EQ(state.iteration, 4) << name(kind) << interval;
    EXPECT_EQ(state.rr, 2800);
    EXPECT_EQ(std::accumulate(x.begin(), x.end(), 0.0), 2800);
    EXPECT_TRUE(kind != RunKind::graph || nodes == 1);
  }
}

TEST_F(Verbs, GatedPartsFollowTheirGate) {
  std::vector<double> x(700, 0.0);
  state.wants_true_residual = false;
  for (RunKind kind : {RunKind::host, RunKind::graph}) {
    run(kind, 1, [&](auto& r) {
      auto const field = r.keep(x.data());
      r.only(Gate::true_residual,
             [&r, field] { r.rows(into(ScalarIndex::rr), AddOne{}, NoDecision{}, field); });
    });
    EXPECT_EQ(x[0], 0);
  }
  state.wants_true_residual = true;
  run(RunKind::graph, 1, [&](auto& r) {
    auto const field = r.keep(x.data());
    r.only(Gate::true_residual,
           [&r, field] { r.rows(into(ScalarIndex::rr), AddOne{}, NoDecision{}, field); });
  });
  EXPECT_EQ(x[0], 1);
}

TEST_F(Verbs, ApplyIsCalledOnceWhateverTheThreads) {
  for (auto const& [kind, threads] :
       {std::pair{RunKind::host, 1}, {RunKind::persistent, 3}, {RunKind::graph, 1}}) {
    std::vector<double> from(700, 2.0), to(700, 0.0);
    std::atomic<int> calls{0};
    std::function<void(double const*, double*)> const twice = [&](double const* a, double* b) {
      ++calls;
      for (std::size_t i = 0; i < 700; ++i) b[i] = 2 * a[i];
    };
    state = State{};
    run(kind, threads, [&](auto& r) { r.apply(twice, r.keep(from.data()), r.keep(to.data())); });
    EXPECT_EQ(calls.load(), 1);
    EXPECT_EQ(to[699], 4);
  }
}

}  // namespace
}  // namespace hostless::host
