// The life of a solver on a GPU: pauses, checkpoints, new values, other right-hand sides, many solves, other
// solvers beside it.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "bound_case.hpp"

namespace hostless::test {
namespace {

namespace fs = std::filesystem;

class GpuLife : public GpuWith<Method> {
 protected:
  Setting setting(std::int64_t iterations) const {
    Setting p;
    p.solve.method = GetParam();
    p.solve.rtol = 0;
    p.solve.max_iterations = iterations;
    return p;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GpuLife, testing::ValuesIn(all_methods()), [](auto const& one) {
  return "method_" + std::to_string(static_cast<int>(one.param));
});

// A kernel that returns every few milliseconds: x, residuals and the ending are those of the host.
TEST_P(GpuLife, PausesChangeNoBit) {
  System const a = System::path(20'000);
  auto const b = random_vector(a.rows(), 21);
  contract::Outcome const expected = solve(a, b, setting(12'000));
  for (double seconds : {0.9, 0.004}) {
    Setting p = on_gpu(setting(12'000));
    p.solve.run.longest_launch_s = seconds;
    Ending const ended = solve_on_threads(a, b, random_vector(a.rows(), 99), p);
    EXPECT_EQ(outcome_of(ended).difference(expected), "") << seconds;
    EXPECT_GT(ended.result.launches, seconds < 0.1 ? 5 : 0) << "nothing was paused";
  }
}

// More than two seconds of kernel time: paused by itself, resumed, with the bits of a run that paused
// elsewhere.
TEST(GpuLongSolve, PausesByItself) {
  if (std::string const why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  System const a = System::path(700'000);
  auto const b = random_vector(a.rows(), 22);
  Setting p;
  p.solve.rtol = 0;
  p.solve.max_iterations = 400'000;
  Ending const by_itself = solve_on_threads(a, b, on_gpu(p));
  EXPECT_GT(by_itself.result.time_device_s, 2) << "choose more iterations";
  EXPECT_GE(by_itself.result.launches, 3);
  EXPECT_LT(by_itself.result.time_device_s / static_cast<double>(by_itself.result.launches), 1.0)
      << "seconds a launch";
  Setting often = on_gpu(p);
  often.solve.run.longest_launch_s = 0.07;
  Ending const other = solve_on_threads(a, b, often);
  EXPECT_GT(other.result.launches, 5 * by_itself.result.launches);
  EXPECT_EQ(outcome_of(other).difference(outcome_of(by_itself)), "");
}

// ------------------------------------------------------------------------------------------- checkpoints
class GpuCheckpoint : public GpuLife {
 protected:
  void SetUp() override {
    need_gpu();
    file_ = fs::temp_directory_path() / ("hostless-device-" + std::to_string(getpid()) + ".checkpoint");
  }
  void TearDown() override { fs::remove(file_); }
  fs::path file_;
};
INSTANTIATE_TEST_SUITE_P(All, GpuCheckpoint, testing::ValuesIn(all_methods()), [](auto const& one) {
  return "method_" + std::to_string(static_cast<int>(one.param));
});

TEST_P(GpuCheckpoint, GoesOnAnywhere) {
  System const a = System::problem(problem("poisson7", 14, 15, 16));
  auto const b = random_vector(a.rows(), 23);
  for (PreconditionerKind kind : gpu_preconditioners(GetParam())) {
    auto const at = [&](bool gpu, std::int64_t iterations) {
      Setting p = setting(iterations);
      p.solve.preconditioner = kind;
      return gpu ? on_gpu(p) : p;
    };
    contract::Outcome const expected = solve(a, b, at(false, 40));
    for (bool first : {true, false}) {
      Setting writer = at(first, 22);
      writer.solve.checkpoint_file = file_.string();
      writer.solve.checkpoint_every = 7;
      Ending const half = solve_on_threads(a, b, random_vector(a.rows(), 99), writer);
      // a processor writes one of the last iteration too
      EXPECT_EQ(half.result.checkpoints, first ? 3 : 4);
      EXPECT_EQ(outcome_of(half).difference(solve(a, b, at(false, 22))), "") << "pauses for checkpoints";
      for (bool second : {true, false}) {
        if (!first && !second) continue;
        Setting reader = at(second, 40);
        reader.solve.resume_file = file_.string();
        Ending const whole = solve_on_threads(a, b, reader);
        EXPECT_EQ(whole.result.resumed_at, first ? 21 : 22);
        EXPECT_EQ(outcome_of(whole).difference(expected), "")
            << name(kind) << (first ? ", GPU" : ", host") << (second ? " to GPU" : " to host");
      }
    }
  }
}

// Both kinds of pauses in one solve.
TEST_P(GpuCheckpoint, BesidePausesOfTheKernel) {
  System const a = System::path(20'000);
  auto const b = random_vector(a.rows(), 24);
  Setting p = on_gpu(setting(6000));
  p.solve.run.longest_launch_s = 0.004;
  p.solve.checkpoint_file = file_.string();
  p.solve.checkpoint_every = 1000;
  Ending const ended = solve_on_threads(a, b, random_vector(a.rows(), 99), p);
  EXPECT_EQ(outcome_of(ended).difference(solve(a, b, setting(6000))), "");
  EXPECT_EQ(ended.result.checkpoints, 5);  // where the sixth would be written, the solve ends
  EXPECT_GT(ended.result.launches, 6);
}

// ------------------------------------------------------------------------------------------- used again
TEST_P(GpuLife, NewValues) {
  System a = System::problem(problem("poisson7", 9, 10, 11));
  auto const b = random_vector(a.rows(), 25), x0 = random_vector(a.rows(), 99);
  for (PreconditionerKind kind : gpu_preconditioners(GetParam())) {
    for (char const* format : {"diagonals", "sell", "csr"}) {
      Setting host = setting(15);
      host.solve.preconditioner = kind;
      Setting const gpu = on_gpu(host, format);
      with_matrix(a, gpu.matrix, [&](Matrix& matrix) {
        Solver solver(matrix, gpu.solve);
        for (double factor : {1.0, 0.3, 7.0}) {
          System const other = with_other_values(a, factor);
          matrix.update_values(other.offset, other.column, other.value);
          EXPECT_EQ(solve(solver, b, x0).difference(solve(other, b, host)), "")
              << name(kind) << ' ' << format << ' ' << factor;
        }
      });
    }
  }
}

TEST_P(GpuLife, ManySolvesOfTwoSolversInTurn) {
  System const one = System::problem(problem("poisson7", 12, 12, 12)),
               two = System::problem(problem("elasticity-hex8", 4, 5, 6));
  std::vector<std::vector<double>> const b = {random_vector(one.rows(), 26), random_vector(one.rows(), 27),
                                              random_vector(two.rows(), 28)};
  auto const x_one = random_vector(one.rows(), 99), x_two = random_vector(two.rows(), 99);
  contract::Outcome const expected[] = {solve(one, b[0], setting(10)), solve(one, b[1], setting(10)),
                                        solve(two, b[2], setting(10))};
  with_matrix(one, on_gpu(setting(10)).matrix, [&](Matrix const& first) {
    with_matrix(two, on_gpu(setting(10)).matrix, [&](Matrix const& second) {
      Solver a(first, on_gpu(setting(10)).solve), c(second, on_gpu(setting(10)).solve);
      int wrong = 0;
      for (int round = 0; round < 60; ++round) {
        wrong += solve(a, b[0], x_one).difference(expected[0]).empty() ? 0 : 1;
        wrong += solve(c, b[2], x_two).difference(expected[2]).empty() ? 0 : 1;
        wrong += solve(a, b[1], x_one).difference(expected[1]).empty() ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0) << "of 180 solves";
    });
  });
}

// Solvers that go leave no memory behind: a vector lost with each of them would be more than the slack.
TEST_P(GpuLife, SolversThatGoLeaveTheirMemory) {
  System const a = System::problem(problem("poisson7", 20, 20, 20));
  auto const b = random_vector(a.rows(), 29);
  std::int64_t before = 0;
  for (int round = 0; round < 30; ++round) {
    solve(a, b, on_gpu(setting(3)));
    std::int64_t const now = gpu::library().facts(0).free_bytes;
    if (round == 2) before = now;
  }
  constexpr std::int64_t slack = 27 * 8000 * 8;
  EXPECT_GT(gpu::library().facts(0).free_bytes, before - slack);
}

// ------------------------------------------------------------------------------------------- guard bytes
class GpuGuard : public Gpu {
 protected:
  void SetUp() override {
    need_gpu();
    if (char const* const value = std::getenv("HOSTLESS_GPU_GUARD")) before_ = value;
    setenv("HOSTLESS_GPU_GUARD", "1", 1);
  }
  void TearDown() override { setenv("HOSTLESS_GPU_GUARD", before_.c_str(), 1); }
  std::string before_;
};

TEST_F(GpuGuard, SeesAByteTooMuch) {
  System const a = System::path(500);
  Setting const p = on_gpu(Setting{});
  with_matrix(a, p.matrix, [&](Matrix const& matrix) {
    constexpr std::int64_t limit = 4;
    BoundCase bound(matrix, p.solve, limit);
    auto const b = random_vector(a.rows(), 30);
    EXPECT_EQ(bound.run(b, b).status, Status::iteration_limit);
    std::vector<StepRecord> const too_many(limit + 2, {1.0, 1.0, 1.0, 1.0});
    bound.bound().put_history(too_many.data(), limit + 2);
    EXPECT_THROW(bound.run(b, b), Error);
  });
}

}  // namespace
}  // namespace hostless::test
