// Which run is bound after measuring: with a method that takes as long as the test says.
#include "solve/gpu_solver/gpu_tuning.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "hostless/base/error.hpp"

namespace hostless::gpu {
namespace {

/// Takes `fixed_s` a solve and `us` an iteration, by its own account.
class Stopwatch final : public BoundSolve {
 public:
  std::map<RunKind, double> us;       // runs that are not there do not fit
  std::int64_t ends_after = 1 << 30;  // by itself
  std::int64_t solves = 0, iterations = 0;
  RunKind kind = RunKind::persistent;
  std::string why = "model: persistent";
  std::set<int> put;

  PeerShape peer_shape() const override { return {}; }  // one rank is measured
  void make_run(std::vector<PeerShape> const&) override {}
  PeerMemory peer_memory() const override { return {}; }
  std::vector<StreamBuffers> message_buffers() const override { return {}; }
  void connect(std::vector<PeerMemory> const&) override {}
  void forget_barriers(std::uint32_t) override {}
  void put_rows(DeviceRows const&) override {}
  void use_column(int) override {}
  void put_preconditioner_data(std::vector<double> const&) override {}
  void put_rhs(double const*) override { put.insert(-1); }
  void put_field(int index, double const*) override { put.insert(index); }
  void get_field(int, double*) const override {}
  void take_rhs(GpuArray const&) override {}
  void take_field(int, GpuArray const&) override {}
  void give_field(int, GpuArray const&) const override {}
  void clear_field(int) override {}
  double largest_rhs() const override { return 0; }
  double largest_field(int) const override { return 0; }
  void put_history(StepRecord const*, std::int64_t) override {}
  void get_history(StepRecord*, std::int64_t) const override {}
  void run(State& state, std::function<bool()> const& stop,
           std::function<void(std::int64_t, double, int)> const&) override {
    EXPECT_EQ(state.target, 0);
    EXPECT_EQ(state.history, nullptr);
    EXPECT_TRUE(state.rounded);  // what the method was started with
    ++solves;
    state.iteration = std::min(state.limit, ends_after);
    state.status = stop()                           ? Status::aborted
                   : state.iteration == state.limit ? Status::iteration_limit
                                                    : Status::converged;
    iterations += state.iteration;
    cost_.device_s += 50e-6 + 1e-6 * us.at(kind) * static_cast<double>(state.iteration);
  }
  void multiply(double const*, double*) override {}
  void diagonal_blocks(double*) override {}
  Cost cost() const override { return cost_; }
  std::int64_t device_bytes() const override { return 0; }
  std::int64_t peak_bytes() const override { return 0; }
  RunKind run_kind() const override { return kind; }
  std::string why_run() const override { return why; }
  void use_run(RunKind wanted, std::string const& reason) override {
    if (us.count(wanted) == 0) throw Error(ErrorCode::usage, "too many slices");
    kind = wanted;
    why = reason;
  }
  std::string describe() const override { return {}; }
  std::string describe_sums() const override { return {}; }
  std::string describe_transport() const override { return {}; }
  Trace trace() const override { return {}; }
  void record(bool) override {}
  void silence(Silence) override {}

 private:
  Cost cost_;
};

class GpuTuning : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "hostless-tuning-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    request_.key = "key";
    request_.start.rounded = true;
    request_.owned = 7;
    request_.fields = 4;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string choose(Stopwatch& solve) { return choose_by_measuring(solve, request_, TuningCache(folder_)); }

  std::string folder_;
  TuningRequest request_;
};

TEST_F(GpuTuning, BindsTheFastestAndRemembers) {
  Stopwatch solve;
  solve.us = {{RunKind::persistent, 301}, {RunKind::graph, 289.7}, {RunKind::stream, 293}};
  EXPECT_EQ(choose(solve), "measured: graph 289.7 us, persistent 301.0 us an iteration");
  EXPECT_EQ(solve.kind, RunKind::graph);
  EXPECT_EQ(solve.why, "measured: graph 289.7 us, persistent 301.0 us an iteration");
  EXPECT_EQ(solve.put, (std::set<int>{-1, 0, 1, 2, 3}));
  Stopwatch again;
  again.us = solve.us;
  EXPECT_EQ(choose(again), "measured before (cache): graph 289.7 us, persistent 301.0 us an iteration");
  EXPECT_EQ(again.kind, RunKind::graph);
  EXPECT_EQ(again.solves, 0);
  request_.key = "another";
  EXPECT_EQ(choose(again).rfind("measured: ", 0), 0u);
}

TEST_F(GpuTuning, CountsIterationsOnly) {
  Stopwatch solve;  // 50 us a solve are not 12.5 us an iteration
  solve.us = {{RunKind::persistent, 2}, {RunKind::graph, 3}};
  EXPECT_EQ(choose(solve), "measured: persistent 2.0 us, graph 3.0 us an iteration");
}

TEST_F(GpuTuning, LeavesOutWhatDoesNotFit) {
  Stopwatch solve;
  solve.us = {{RunKind::graph, 20}, {RunKind::stream, 10}};
  solve.kind = RunKind::graph;
  EXPECT_EQ(choose(solve), "measured: graph 20.0 us an iteration; not persistent: too many slices");
  EXPECT_EQ(solve.kind, RunKind::graph);
  Stopwatch last;
  last.us = {{RunKind::stream, 10}};
  last.kind = RunKind::stream;
  request_.key = "last";
  EXPECT_EQ(
      choose(last),
      "measured: stream 10.0 us an iteration; not persistent: too many slices; not graph: too many slices");
}

TEST_F(GpuTuning, IgnoresAnEntryWhoseRunDoesNotFit) {
  TuningCache(folder_).keep("key", {{"persistent", 1}, {"graph", 2}});
  Stopwatch solve;
  solve.us = {{RunKind::graph, 20}};
  solve.kind = RunKind::graph;
  EXPECT_EQ(choose(solve).rfind("measured: graph 20.0 us", 0), 0u);
  TuningCache(folder_).keep("key", {{"warp", 1}});
  EXPECT_EQ(choose(solve).rfind("measured: graph 20.0 us", 0), 0u);
}

TEST_F(GpuTuning, LeavesTheModelsChoiceWhereTheMethodEndsBefore) {
  Stopwatch solve;
  solve.us = {{RunKind::persistent, 20}, {RunKind::graph, 10}};
  solve.ends_after = 3;
  EXPECT_EQ(choose(solve), "model: persistent (not measured: the method ended before)");
  EXPECT_EQ(solve.kind, RunKind::persistent);
  EXPECT_FALSE(TuningCache(folder_).find("key"));
  solve.ends_after = 1 << 30;
  request_.stop = [] { return true; };
  std::string const stopped = choose(solve);
  EXPECT_NE(stopped.find("(not measured: the method ended before)"), std::string::npos) << stopped;
  EXPECT_EQ(solve.kind, RunKind::persistent);
  EXPECT_FALSE(TuningCache(folder_).find("key"));
}

TEST_F(GpuTuning, SpendsLittle) {
  for (double us : {1.0, 300.0, 5e3}) {
    Stopwatch solve;
    solve.us = {{RunKind::persistent, us}, {RunKind::graph, us}};
    request_.key = std::to_string(us);
    choose(solve);
    EXPECT_LT(solve.cost().device_s, 2 * (request_.most_device_s + 17 * us * 1e-6)) << us;
  }
}

TEST_F(GpuTuning, SaysThatNothingCouldBeKept) {
  Stopwatch solve;
  solve.us = {{RunKind::persistent, 1}};
  std::string const why = choose_by_measuring(solve, request_, TuningCache("/proc/nowhere"));
  EXPECT_EQ(why,
            "measured: persistent 1.0 us an iteration; not graph: too many slices (not kept: "
            "/proc/nowhere/gpu-runs.jsonl cannot be written)");
}

TEST(GpuTuningKey, DiffersWithEachPart) {
  DeviceRows rows;
  rows.value.resize(8);
  rows.start = {0, 1, 2};
  rows.tiling = {};
  Problem problem;
  problem.rows = &rows;
  DeviceFacts facts;
  facts.name = "GPU";
  std::set<std::string> keys = {tuning_key(problem, facts, "library")};
  auto const add = [&](auto const& change) {
    DeviceRows const rows_before = rows;
    Problem const problem_before = problem;
    change();
    EXPECT_TRUE(keys.insert(tuning_key(problem, facts, "library")).second) << *keys.rbegin();
    rows = rows_before;
    problem = problem_before;
  };
  EXPECT_TRUE(keys.insert(tuning_key(problem, facts, "newer library")).second);
  add([&] { problem.text.method = Method::pipelined_cg; });
  add([&] { problem.text.variant = Variant::rounded; });
  add([&] { problem.preconditioner_data = PreconditionerData::jacobi; });
  add([&] { problem.polynomial.degree = 4; });
  add([&] { problem.free_order = true; });
  add([&] { problem.owned = 3; });
  add([&] { problem.matrix_bytes = 3; });
  add([&] { rows.format = DeviceFormat::sell; });
  add([&] { rows.value.resize(9); });
  add([&] { rows.tiling.block = 3; });
  add([&] { rows.tiling.slices = 5; });
  add([&] { rows.start[1] = 2; });
  add([&] { rows.farthest = 2; });
  add([&] { rows.tiling.threads_per_row = 2; });
  add([&] { rows.group.resize(1); });
  add([&] {
    rows.diagonals.count = 1;
    rows.diagonals.offset[0] = -1;
  });
  facts.name = "GPU 2";
  EXPECT_TRUE(keys.insert(tuning_key(problem, facts, "library")).second);
}

}  // namespace
}  // namespace hostless::gpu
