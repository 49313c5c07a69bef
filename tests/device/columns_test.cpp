// Several right-hand sides at once on a GPU: each has the bits that it has alone on the processor.
#include "columns.hpp"

#include "gpu_setting.hpp"

namespace hostless::test {
namespace {

constexpr RunKind runs_of_columns[] = {RunKind::graph, RunKind::stream};

// One kernel for all iterations is compiled for so many columns, and for these methods.
constexpr int most_in_one_kernel = 4;
bool goes_into_one_kernel(Columns const& columns, Setting const& setting) {
  Method const method = setting.solve.method;
  return columns.count() <= most_in_one_kernel && (method == Method::cg || method == Method::pipelined_cg) &&
         setting.solve.preconditioner != PreconditionerKind::chebyshev;
}

Columns part_of(Columns const& all, int first, int count) {
  Columns part;
  for (int c = first; c < first + count; ++c) {
    part.b.push_back(all.b[static_cast<std::size_t>(c)]);
    part.x0.push_back(all.x0[static_cast<std::size_t>(c)]);
  }
  return part;
}

class GpuColumns : public Gpu {
 protected:
  static void expect_bits(System const& a, Columns const& columns, Setting const& setting,
                          std::string const& format, std::string const& what) {
    for (RunKind const run : runs_of_columns)
      expect_as_alone(a, columns, setting, on_gpu(setting, format, run),
                      what + ' ' + format + ' ' + name(run));
    if (goes_into_one_kernel(columns, setting))
      expect_as_alone(a, columns, setting, on_gpu(setting, format, RunKind::persistent),
                      what + ' ' + format + " in one kernel");
  }
};

TEST_F(GpuColumns, EveryMethodFormatAndBlockSize) {
  System const grid = System::problem(problem("poisson7", 12, 10, 9)),
               circuit = System::problem(problem("circuit", 60, 60, 1)),
               blocks = System::problem(problem("elasticity-hex8", 5, 4, 7));
  for (Method const method : all_methods()) {
    Setting setting;
    setting.solve.method = method;
    setting.solve.preconditioner = PreconditionerKind::block_jacobi;
    for (char const* const format : {"diagonals", "diagonals-full", "sell", "csr"})
      expect_bits(grid, random_columns(grid.rows(), 4), setting, format, name(method));
    expect_bits(circuit, random_columns(circuit.rows(), 3), setting, "sell", "circuit");
    for (int const block : {2, 3, 4, 6}) {
      setting.matrix.block = block;
      for (char const* const format : {"sell", "csr"})
        for (int const columns : {3, 5})
          expect_bits(blocks, random_columns(blocks.rows(), columns), setting, format, std::to_string(block));
    }
  }
}

TEST_F(GpuColumns, LongRowsAreShared) {
  System const a = System::problem(problem("poisson27", 9, 8, 7));
  Setting setting;
  setting.matrix.threads_per_row = 4;
  expect_bits(a, random_columns(a.rows(), 4), setting, "csr", "four accumulators a row");
}

TEST_F(GpuColumns, EachEndsByItself) {
  System const a = System::problem(problem("poisson2d", 16, 15, 1));
  for (Method const method : all_methods()) {
    Setting setting;
    setting.solve.method = method;
    Columns const all = columns_of_all_endings(a);
    expect_bits(a, all, setting, "auto", name(method));
    for (int const first : {0, 4})
      expect_bits(a, part_of(all, first, 4), setting, "auto", "from column " + std::to_string(first));
    setting.solve.max_iterations = 9;
    expect_bits(a, all, setting, "auto", "with a limit");
    expect_bits(a, part_of(all, 3, 3), setting, "auto", "three with a limit");
    setting.solve.max_iterations = -1;
    setting.solve.rtol = 1e-17;  // beyond the digits: restarts
    expect_bits(a, random_columns(a.rows(), 2), setting, "auto", "beyond the digits");
  }
}

TEST_F(GpuColumns, ChebyshevPolynomials) {
  System const a = System::problem(problem("poisson2d", 40, 33, 1));
  Setting setting;
  setting.solve.preconditioner = PreconditionerKind::chebyshev;
  for (double const upper : {0.0, 0.3}) {
    setting.solve.chebyshev.upper = upper;
    expect_bits(a, random_columns(a.rows(), 3), setting, "auto", "upper " + std::to_string(upper));
  }
}

// So many that a block adds sums of several tiles, and that rows are not on chip anywhere.
TEST_F(GpuColumns, ManyRows) {
  System const a = System::problem(problem("poisson2d", 700, 600, 1));
  Setting setting;
  setting.solve.max_iterations = 40;
  for (int const columns : {2, 4, 8})
    expect_bits(a, random_columns(a.rows(), columns), setting, "auto", std::to_string(columns) + " columns");
}

TEST_F(GpuColumns, WithoutWhileNodes) {
  Environment const replayed("HOSTLESS_GPU_WHILE", "0");
  System const a = System::problem(problem("poisson7", 9, 8, 7));
  expect_bits(a, random_columns(a.rows(), 4), Setting{}, "auto", "replayed");
}

// The first one is solved at once: another one tells of the solve, may stop it, and is what a trace is of.
TEST_F(GpuColumns, OneThatGoesOnTellsOfThemAndMayStopThem) {
  System const a = System::path(20000);
  Columns columns = random_columns(a.rows(), 3);
  columns.b[0].assign(columns.b[0].size(), 0.0);
  for (RunKind const run : runs_of_columns) {
    std::vector<Progress> told;
    Setting setting = on_gpu(Setting{}, "auto", run);
    setting.solve.run.trace = true;
    setting.solve.callback = [&told](Progress const& progress) {
      told.push_back(progress);
      return progress.iteration >= 40;
    };
    Result const whole = solve_together(a, columns, setting).whole;
    ASSERT_FALSE(told.empty()) << name(run);
    for (Progress const& one : told) EXPECT_EQ(one.column, 1) << name(run);
    EXPECT_EQ(whole.status, Status::aborted) << name(run) << ": " << whole.message;
    EXPECT_EQ(whole.columns[0].status, Status::converged) << name(run);
    EXPECT_LT(whole.iterations, a.rows() / 2) << name(run);
    EXPECT_EQ(whole.iteration_times.clock, IterationTimes::Clock::stamps) << name(run);
    EXPECT_GT(whole.iteration_times.computing_s, 0) << name(run);
    EXPECT_LE(whole.iteration_times.iterations, whole.iterations) << name(run);
  }
}

// The kernel ends by itself now and then, wherever each of them is.
TEST_F(GpuColumns, PausesChangeNothing) {
  System const a = System::problem(problem("poisson2d", 200, 150, 1));
  Columns columns = random_columns(a.rows(), 3);
  for (double& entry : columns.x0[1]) entry = 1e3;  // which then ends later than the others
  Setting paused = on_gpu(Setting{}, "auto", RunKind::persistent);
  paused.solve.run.longest_launch_s = 5e-4;
  expect_as_alone(a, columns, Setting{}, paused, "paused");
}

// Where they are one kernel the host hears of them while it runs.
TEST_F(GpuColumns, OneThatGoesOnMayStopThemInOneKernel) {
  System const a = System::path(20000);
  Columns columns = random_columns(a.rows(), 3);
  columns.b[0].assign(columns.b[0].size(), 0.0);
  std::vector<Progress> told;
  Setting setting = on_gpu(Setting{}, "auto", RunKind::persistent);
  setting.solve.callback = [&told](Progress const& progress) {
    told.push_back(progress);
    return progress.iteration >= 40;
  };
  Result const whole = solve_together(a, columns, setting).whole;
  ASSERT_FALSE(told.empty());
  for (Progress const& one : told) EXPECT_EQ(one.column, 1);
  EXPECT_EQ(whole.status, Status::aborted) << whole.message;
  EXPECT_EQ(whole.columns[0].status, Status::converged);
  EXPECT_LT(whole.iterations, a.rows() / 2);
}

void expect_refused(Setting const& setting, std::string const& text, int columns = 2) {
  System const a = System::problem(problem("poisson2d", 9, 8, 1));
  try {
    solve_together(a, random_columns(a.rows(), columns), setting);
    FAIL() << "taken: " << text;
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST_F(GpuColumns, WhatIsOfOneRightHandSideIsRefused) {
  expect_refused(on_gpu(Setting{}, "auto", RunKind::persistent),
                 "the persistent kernel with 5 right-hand sides at once", 5);
  Setting other;
  other.solve.method = Method::minres;
  expect_refused(on_gpu(other, "auto", RunKind::persistent),
                 "the persistent kernel of this method with 2 right-hand sides at once");
  Setting rounded;
  rounded.solve.matrix_precision = MatrixPrecision::fp32;
  expect_refused(on_gpu(rounded, "auto", RunKind::graph), "a matrix in fp32 on a GPU with 2");
  Setting hosted;
  hosted.solve.run.gpu_transport = GpuTransport::host;
  expect_refused(on_gpu(hosted, "auto", RunKind::stream), "a GPU transport other than peer");
}

}  // namespace
}  // namespace hostless::test
