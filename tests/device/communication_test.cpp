// Barriers and halos alone, in kernels of one and of several ranks: every sum and every ghost is compared on
// the GPU, so that a run that ends well has shown the protocol. What must be noticed is noticed: a ghost that
// is another one, a rank that falls silent or never comes; epochs begin again and change nothing.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "bench/device_communication.hpp"
#include "bound_case.hpp"
#include "gpu_cells.hpp"
#include "transport/peer/epochs.hpp"

namespace hostless::test {
namespace {

struct Case {
  char const* name;
  System system;
  Route route = Route::direct;
  int ranks_per_node = 0;
};

std::vector<Case> cases() {
  return {{"path", System::path(20'000)},
          {"poisson7", System::problem(problem("poisson7", 12, 13, 40))},
          {"elasticity", System::problem(problem("elasticity-hex8", 6, 7, 20))},
          {"two_step", System::problem(problem("poisson7", 12, 13, 40)), Route::two_step, 2},
          {"three_step", System::problem(problem("poisson7", 12, 13, 40)), Route::three_step, 2},
          {"split", System::problem(problem("poisson7", 12, 13, 40)), Route::split, 2},
          {"leader", System::problem(problem("poisson7", 12, 13, 40)), Route::leader, 2}};
}

Matrix matrix_of(Transport& transport, Case const& one) {
  int const ranks = transport.group().size();
  Share const mine = share_of(one.system, ranks, transport.group().rank(), false);
  MatrixOptions options;
  options.partition = MatrixOptions::Partition::contiguous;
  options.slices = 32;  // so few that all ranks' blocks fit on one GPU side by side
  options.gpus = gpus_of(ranks);
  options.route = one.route;
  options.ranks_per_node = one.ranks_per_node;
  return Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value, options);
}

RunOptions run_of(int ranks) {
  RunOptions run;
  run.kind = RunKind::persistent;
  share_gpus(run, ranks);
  return run;
}

bench::Protocol brief(int steps) {
  bench::Protocol protocol;
  protocol.warm_up = 3;
  protocol.steps = under_a_tool() ? 3 : steps;
  protocol.repeat = 2;
  return protocol;
}

int most_ranks_here() { return under_a_tool() ? std::min(2, gpu::library().devices()) : most_ranks; }

void expect_times(bench::DeviceTiming const& timing) {
  for (bench::Timing const& one : {timing.by_clock, timing.by_events}) {
    ASSERT_EQ(one.step_s.size(), 2u);
    EXPECT_GT(one.best(), 3e-7);  // a barrier is no faster than memory: 1 us was the least
    if (!under_a_tool()) {
      EXPECT_LT(one.worst(), 1e-3);
    }
  }
  EXPECT_LT(timing.by_clock.best(), 1.5 * timing.by_events.worst())
      << "the kernel was longer than its launch";
  EXPECT_FALSE(timing.phases.empty());
}

class GpuCommunication : public Gpu {};

TEST_F(GpuCommunication, SumsOfAllWidths) {
  for (int ranks = 1; ranks <= most_ranks_here(); ++ranks) {
    run_with_threads_transport(ranks, [&](Transport& transport) {
      Matrix const matrix = bench::uncoupled_matrix(transport, gpus_of(ranks));
      for (int values = 1; values <= gpu::widest_sum; ++values) {
        auto const timing = bench::device_steps(matrix, run_of(ranks), {values, 1, false}, brief(500));
        if (transport.group().rank() != 0) continue;
        expect_times(timing);
        std::printf("%d ranks, %d values: %.2f us by the clock, %.2f by events\n", ranks, values,
                    1e6 * timing.by_clock.best(), 1e6 * timing.by_events.best());
      }
    });
  }
}

TEST_F(GpuCommunication, HalosOfAllWays) {
  std::mutex mutex;
  std::set<std::string> ways;
  for (int ranks : {1, 2, most_ranks}) {
    for (Case const& one : cases()) {
      if (one.ranks_per_node >= ranks) continue;  // one node: no other route
      run_with_threads_transport(ranks, [&](Transport& transport) {
        Matrix const matrix = matrix_of(transport, one);
        for (int sums : {1, 2}) {
          auto const timing = bench::device_steps(matrix, run_of(ranks), {2, sums, true}, brief(300));
          if (transport.group().rank() != 0) continue;
          expect_times(timing);
          std::printf("%s, %d ranks, %d sums: %.2f us; %s\n", one.name, ranks, sums,
                      1e6 * timing.by_clock.best(), timing.kernel.c_str());
          std::lock_guard const lock(mutex);
          ways.insert(timing.kernel.substr(timing.kernel.find("; ")));
        }
      });
    }
  }
  using gpu::GhostWay;
  for (GhostWay way : {GhostWay::with_only_sum, GhostWay::as_flagged_words, GhostWay::before_sums})
    EXPECT_TRUE(ways.count(std::string("; ") + describe(way))) << describe(way);
}

/// One rank's kernel without a clock around it.
class Bound {
 public:
  Bound(Matrix const& matrix, gpu::Communication what, double deadline_s)
      : gpu_solver_(matrix, options(matrix, deadline_s), 0, &what) {
    gpu_solver_.bind();
    std::vector<double> numbers;
    for (std::int64_t row = 0; row < matrix.owned(); ++row)
      numbers.push_back(static_cast<double>(matrix.global_row(row)));
    gpu_solver_.refresh(numbers, 0);
  }
  State run(std::int64_t steps) {
    State state = start(steps);
    gpu_solver_.communicate(state);
    return state;
  }
  /// Without a barrier of the hosts before.
  State run_alone(std::int64_t steps) {
    State state = start(steps);
    gpu_solver_.bound().run(
        state, [] { return false; }, nullptr);
    return state;
  }
  gpu::BoundSolve& bound() { return gpu_solver_.bound(); }

 private:
  static SolveOptions options(Matrix const& matrix, double deadline_s) {
    SolveOptions wanted;
    wanted.run = run_of(matrix.plan().ranks);
    wanted.limits = {deadline_s, deadline_s};
    return wanted;
  }
  static State start(std::int64_t steps) {
    State state;
    state.limit = steps;
    state.wants_true_residual = false;
    return state;
  }
  gpu::GpuSolver gpu_solver_;
};

// A ghost whose row another rank numbers otherwise: all ranks hear of it, with how many there are.
TEST_F(GpuCommunication, OtherGhostsAreNoticedByAll) {
  constexpr int ranks = 2;
  for (Case const& one : cases()) {
    if (one.ranks_per_node > 0) continue;
    for (int sums : {1, 2}) {
      run_with_threads_transport(ranks, [&](Transport& transport) {
        Matrix const matrix = matrix_of(transport, one);
        Bound kernel(matrix, {2, sums, true}, 10);
        ExchangePlan const& plan = matrix.plan();
        std::vector<double> numbers(static_cast<std::size_t>(plan.owned + plan.ghosts), -7.0);
        for (std::int64_t row = 0; row < plan.owned; ++row)
          numbers[static_cast<std::size_t>(plan.ghosts_below + row)] =
              static_cast<double>(matrix.global_row(row));
        ASSERT_GT(plan.ghosts, 0);
        if (transport.group().rank() == 1) kernel.bound().put_preconditioner_data(numbers);
        State const state = kernel.run(50);
        EXPECT_EQ(state.status, Status::breakdown) << one.name;
        auto const mistaken =
            transport.group().max(transport.group().rank() == 1 ? static_cast<double>(plan.ghosts) : 0);
        EXPECT_EQ(state.rr - state.value[ScalarIndex::measured], mistaken) << one.name;
        EXPECT_LE(state.iteration, 1) << "it was told late; " << one.name;
      });
    }
  }
}

TEST_F(GpuCommunication, EpochsBeginAgain) {
  int const steps = under_a_tool() ? 12 : 40;
  for (int ranks : std::set<int>{1, std::min(2, most_ranks_here()), most_ranks_here()}) {
    for (Case const& one : cases()) {
      if (one.ranks_per_node >= ranks) continue;
      run_with_threads_transport(ranks, [&](Transport& transport) {
        Matrix const matrix = matrix_of(transport, one);
        for (int sums : {1, 2}) {
          Bound kernel(matrix, {1, sums, true}, 10);
          for (std::uint32_t before : {1u, 2u, 7u, 8u, 40u}) {
            if (under_a_tool() && before != 7) continue;
            transport.group().barrier();
            kernel.bound().forget_barriers(gpu::poison - before);
            State const state = kernel.run(steps);
            EXPECT_EQ(state.status, Status::iteration_limit)
                << one.name << ", " << before << " before the end";
            EXPECT_EQ(state.iteration, steps);
          }
        }
      });
    }
  }
}

// Kernels that return by themselves, all at the same step.
TEST_F(GpuCommunication, PausesLoseNothing) {
  for (int ranks : {1, 2}) {
    run_with_threads_transport(ranks, [&](Transport& transport) {
      Matrix const matrix = matrix_of(transport, cases()[1]);
      Bound kernel(matrix, {2, 2, true}, 10);
      auto const before = kernel.bound().cost();
      State const state = kernel.run(1'000'000);  // longer than a launch
      EXPECT_EQ(state.status, Status::iteration_limit);
      EXPECT_EQ(state.iteration, 1'000'000);
      EXPECT_GT(kernel.bound().cost().launches - before.launches, 1) << "nothing was paused";
      EXPECT_GT(kernel.bound().cost().clock_s, 0.5 * kernel.bound().cost().device_s);
    });
  }
}

// Each rank in turn falls silent, at its first, a middle or its last block; the same kernels go on.
TEST_F(GpuCommunication, SilentRanksAreFoundByAll) {
  constexpr double deadline_s = 0.3;
  for (int ranks : {2, most_ranks}) {
    for (int sums : {1, 2}) {
      run_with_threads_transport(ranks, [&](Transport& transport) {
        Group& group = transport.group();
        Matrix const matrix = matrix_of(transport, cases()[1]);
        Bound kernel(matrix, {2, sums, true}, deadline_s);
        for (int victim = 0; victim < ranks; ++victim) {
          for (int block : {0, 7, 15}) {
            if (group.rank() == victim) kernel.bound().silence({block, 5});
            group.barrier();
            auto const begin = Clock::now();
            EXPECT_EQ(kernel.run(100).status, Status::peer_lost);
            EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), deadline_s + grace_s);
            kernel.bound().silence({});
            group.barrier();
            EXPECT_EQ(kernel.run(100).status, Status::iteration_limit) << "afterwards";
          }
        }
      });
    }
  }
}

TEST_F(GpuCommunication, ARankThatNeverComesIsFound) {
  constexpr double deadline_s = 0.3;
  run_with_threads_transport(2, [&](Transport& transport) {
    Group& group = transport.group();
    Matrix const matrix = matrix_of(transport, cases()[1]);
    Bound kernel(matrix, {1, 2, true}, deadline_s);
    EXPECT_EQ(kernel.run(10).status, Status::iteration_limit);
    group.barrier();
    if (group.rank() == 0) {
      auto const begin = Clock::now();
      EXPECT_EQ(kernel.run_alone(10).status, Status::peer_lost);
      double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      EXPECT_GT(seconds, 0.5 * deadline_s) << "nobody waited";
      EXPECT_LT(seconds, deadline_s + grace_s);
    }
    group.barrier();
    kernel.bound().forget_barriers(0);
    group.barrier();
    EXPECT_EQ(kernel.run(10).status, Status::iteration_limit) << "afterwards";
  });
}

// Between two GPUs where there are, and between two kernels of one: every value is compared there.
TEST_F(GpuCommunication, MessagesOfAllSizes) {
  int const devices = gpu::library().devices();
  for (int second = 0; second < std::min(devices, 2); ++second) {
    auto const timings = bench::device_ping_pong(0, second, {8, 16, 4096, 16'384, 1'000'008}, brief(200));
    ASSERT_EQ(timings.size(), 10u);
    for (bench::DevicePingPong const& one : timings) {
      EXPECT_GT(one.by_clock.best(), 2e-7);
      if (!under_a_tool()) {  // one block at each end: 0.7 us for a word over NVLink, gigabytes a second at
                              // least
        EXPECT_LT(one.by_clock.best(), 5e-5 + static_cast<double>(one.bytes) / 1e9);
      }
      EXPECT_LT(one.bytes_per_s(), 2e12);
      std::printf("GPU 0 and %d, %zu bytes %s: %.2f us one way\n", second, one.bytes,
                  one.by_flagged_words ? "as words" : "behind fences", 1e6 * one.by_clock.best());
    }
  }
  EXPECT_THROW(bench::device_ping_pong(0, devices, {8}, brief(1)), Error);
  EXPECT_THROW(bench::device_ping_pong(0, 0, {12}, brief(1)), Error);
}

}  // namespace
}  // namespace hostless::test
