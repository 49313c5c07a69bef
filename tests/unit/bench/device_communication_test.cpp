// What is told of kernels' barriers, without a kernel; and what is refused without a GPU.
#include "bench/device_communication.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "solve/gpu_solver/gpu_loader.hpp"

namespace hostless::bench {
namespace {

gpu::TraceEntry entry(gpu::Phase phase, std::uint64_t begin, std::uint64_t work, std::uint64_t together,
                      std::uint64_t words, std::uint64_t decision) {
  gpu::TraceEntry e;
  e.phase = phase;
  e.begin = begin;
  e.arrived = begin + work;
  e.together = e.arrived + together;
  e.met = e.together + words;
  e.end = e.met + decision;
  return e;
}

TEST(DevicePhases, AreMediansOfTheBarriersThatWereReached) {
  gpu::Trace trace;
  trace.blocks = 2;
  trace.hertz = 1e6;
  for (int block = 0; block < 2; ++block) {
    std::uint64_t const late = block == 0 ? 0 : 4;
    trace.entries.push_back(entry(gpu::Phase::begin, 100, 9999, 9999, 9999, 9999));  // waits for launches
    trace.entries.push_back(entry(gpu::Phase::rows, 100, 7777, 7777, 7777, 7777));   // and for who was late
    for (std::uint64_t k : {1, 2, 3})
      trace.entries.push_back(entry(gpu::Phase::rows, 200, k, 10 + late, 20, 30));
    trace.entries.push_back(entry(gpu::Phase::publish, 500, 40, 50, 60, 70));
    trace.entries.push_back({});  // not reached
  }
  auto const phases = phases_of(trace);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].phase, gpu::Phase::publish);
  EXPECT_EQ(phases[0].barriers, 2);
  EXPECT_DOUBLE_EQ(phases[0].decision_s, 70e-6);
  EXPECT_EQ(phases[1].phase, gpu::Phase::rows);
  EXPECT_EQ(phases[1].barriers, 6);
  EXPECT_DOUBLE_EQ(phases[1].work_s, 2e-6);
  EXPECT_DOUBLE_EQ(phases[1].together_s, 14e-6);
  EXPECT_DOUBLE_EQ(phases[1].flagged_words_s, 20e-6);
  EXPECT_DOUBLE_EQ(phases[1].decision_s, 30e-6);
  EXPECT_TRUE(phases_of(gpu::Trace{}).empty());
}

TEST(DeviceSteps, UncoupledRanksHaveARowForEachAccumulatorAndNoHalo) {
  run_with_threads_transport(3, [](Transport& transport) {
    Matrix const matrix = uncoupled_matrix(transport, 1);
    Tiling const tiling = matrix.sweep().tiling;
    EXPECT_EQ(matrix.owned(), std::int64_t{tiling.slices} * Tiling::accumulators);
    EXPECT_EQ(matrix.global_row(0), transport.group().rank() * matrix.owned());
    EXPECT_EQ(matrix.plan().ghosts, 0);
    EXPECT_EQ(matrix.plan().items_sent(), 0);
    EXPECT_NE(matrix.device_rows(), nullptr);
  });
}

ErrorCode code_of(std::function<void()> const& use) {
  try {
    use();
  } catch (Error const& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was refused";
  return ErrorCode::usage;
}

TEST(DeviceSteps, RefusesWhatCannotBe) {
  Protocol brief;
  brief.steps = brief.repeat = 1;
  run_with_threads_transport(2, [&](Transport& transport) {
    Matrix const matrix = uncoupled_matrix(transport, 1);
    RunOptions run;
    run.gpus = 1;
    auto const with = [&](int values, bool oversubscribe) {
      run.oversubscribe = oversubscribe;
      return code_of([&] { device_steps(matrix, run, {values, 1, false}, brief); });
    };
    EXPECT_EQ(with(5, true), ErrorCode::usage);
    EXPECT_EQ(with(0, true), ErrorCode::usage);
    EXPECT_EQ(with(1, false), ErrorCode::usage);
    for (gpu::Found const& found : gpu::libraries())
      if (found.problem.empty()) return;
    EXPECT_EQ(with(1, true), ErrorCode::environment);
    EXPECT_EQ(code_of([&] { device_ping_pong(0, 1, {8}, brief); }), ErrorCode::environment);
  });
}

}  // namespace
}  // namespace hostless::bench
