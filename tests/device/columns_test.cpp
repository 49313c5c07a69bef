// Several right-hand sides at once on a GPU: each has the bits that it has alone on the processor.
#include "columns.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "cuda_runtime.hpp"
#include "gpu_setting.hpp"

namespace hostless::test {
namespace {

// All memory of a GPU but so many bytes, in pieces of 32 MiB and more.
class FullGpu {
 public:
  FullGpu(CudaRuntime const& cuda, std::size_t but) : cuda_(cuda) {
    void* hole = nullptr;
    CudaRuntime::check(cuda.allocate(&hole, but), "cudaMalloc");
    for (std::size_t bytes = std::size_t{16} << 30; bytes >= std::size_t{32} << 20;) {
      void* piece = nullptr;
      if (cuda.allocate(&piece, bytes) == 0) {
        pieces_.push_back(piece);
      } else {
        bytes /= 2;
      }
    }
    CudaRuntime::check(cuda.release(hole), "cudaFree");
  }
  FullGpu(FullGpu const&) = delete;
  FullGpu& operator=(FullGpu const&) = delete;
  ~FullGpu() {
    for (void* const piece : pieces_) static_cast<void>(cuda_.release(piece));
  }

 private:
  CudaRuntime const& cuda_;
  std::vector<void*> pieces_;
};

constexpr RunKind runs_of_columns[] = {RunKind::graph, RunKind::stream};

// One kernel for all iterations is compiled for so many columns, and for these methods.
constexpr int most_in_one_kernel = 4, most_turns_in_one_kernel = 4;
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

// In one kernel x is advanced by two iterations at once: odd and even numbers of them, and one alone.
TEST_F(GpuColumns, AnyNumberOfIterations) {
  System const grid = System::problem(problem("poisson7", 12, 10, 9)),
               blocks = System::problem(problem("elasticity-hex8", 5, 4, 7));
  Setting setting;
  setting.solve.preconditioner = PreconditionerKind::jacobi;
  for (int const limit : {1, 2, 3, 4, 7}) {
    setting.solve.max_iterations = limit;
    for (int const columns : {2, 3, 4})
      expect_bits(grid, random_columns(grid.rows(), columns), setting, "auto",
                  std::to_string(limit) + " iterations");
    setting.matrix.block = 3;
    expect_bits(blocks, random_columns(blocks.rows(), 4), setting, "auto",
                std::to_string(limit) + " of blocks");
    setting.matrix.block = Setting{}.matrix.block;
  }
}

// Beside each other they end after other numbers of iterations, restart, and find out in the middle of an
// iteration that the matrix is indefinite.
TEST_F(GpuColumns, EachEndsAfterAnotherNumberOfIterations) {
  System const a = System::problem(problem("poisson2d", 40, 30, 1));
  Columns columns = random_columns(a.rows(), 4);
  for (int const c : {1, 2, 3}) {  // guesses that are ever better
    auto const at = static_cast<std::size_t>(c);
    columns.x0[at] = solve_on_threads(a, columns.b[at], columns.x0[at], Setting{}).x;
    std::vector<double> const off = random_vector(a.rows(), 40 + static_cast<unsigned>(c));
    for (std::size_t i = 0; i < off.size(); ++i) columns.x0[at][i] += std::pow(10.0, -2 * c) * off[i];
  }
  Setting setting;
  expect_bits(a, columns, setting, "auto", "of four lengths");
  setting.solve.rtol = 1e-17;
  expect_bits(a, columns, setting, "auto", "with restarts");

  std::vector<double> diagonal;
  for (int i = 0; i < 600; ++i) diagonal.push_back(i == 0 ? -1.0 : 1.0 + i % 23);
  System const indefinite = System::diagonal(diagonal);
  Columns seen = random_columns(indefinite.rows(), 4);
  for (int const c : {0, 1, 2, 3})
    seen.b[static_cast<std::size_t>(c)][0] = c == 3 ? 0.0 : std::pow(10.0, -3 * c);
  setting.solve.rtol = Setting{}.solve.rtol;
  expect_bits(indefinite, seen, setting, "auto", "indefinite");
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

void expect_refused(System const& a, Setting const& setting, std::string const& text, int columns) {
  try {
    solve_together(a, random_columns(a.rows(), columns), setting);
    FAIL() << "taken: " << text;
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}
void expect_refused(Setting const& setting, std::string const& text, int columns = 2) {
  expect_refused(System::problem(problem("poisson2d", 9, 8, 1)), setting, text, columns);
}

// Sums in free order: blocks add over all turns of their tiles, in the kernel where it has room for so many turns,
// and phase by phase. Judged by each column's own residual.
TEST_F(GpuColumns, FastOverManyTurns) {
  System const a = System::problem(problem("poisson7", 40, 40, 40));
  Columns const columns = random_columns(a.rows(), 4);
  for (int const turns : {3, 4, 5, 7}) {
    Setting setting;
    setting.matrix.slices = 2 * multiprocessors() * turns - 3;
    setting.solve.preconditioner = PreconditionerKind::jacobi;
    setting.solve.reduction = Reduction::fast;
    bool const is_refused = turns > most_turns_in_one_kernel;
    if (is_refused)
      expect_refused(a, on_gpu(setting, "auto", RunKind::persistent),
                     "slices in the persistent kernel with 4", 4);
    for (RunKind const run : {RunKind::automatic, RunKind::persistent, RunKind::graph, RunKind::stream}) {
      if (run == RunKind::persistent && is_refused) continue;
      ColumnsEnding const ended = solve_together(a, columns, on_gpu(setting, "auto", run));
      std::string const where = std::to_string(turns) + " turns " + name(run);
      if (run == RunKind::automatic && is_refused) {
        EXPECT_NE(choice(ended.whole, "run"), name(RunKind::persistent)) << where;
      }
      for (std::size_t c = 0; c < columns.b.size(); ++c) {
        EXPECT_EQ(ended.whole.columns[c].status, Status::converged) << where;
        EXPECT_LE(residual_of(a, columns.b[c], ended.x[c]), 1.0001 * setting.solve.rtol * norm(columns.b[c]))
            << where;
      }
    }
  }
}

// The kernel needs a second set of vectors. Where that has no room and one set has, `auto` goes by phases.
TEST_F(GpuColumns, AutoGoesByPhasesWhereOneKernelHasNoRoom) {
  CudaRuntime const* const cuda = CudaRuntime::find();
  if (cuda == nullptr) GTEST_SKIP() << "the CUDA runtime is not installed";
  System const a = System::problem(problem("poisson7", 128, 128, 128));
  Columns const columns = random_columns(a.rows(), 4);
  Setting setting;
  setting.solve.max_iterations = 5;
  setting.solve.preconditioner = PreconditionerKind::jacobi;
  Setting const at_once = on_gpu(setting, "auto", RunKind::automatic);
  ASSERT_EQ(choice(solve_together(a, columns, at_once).whole, "run"), name(RunKind::persistent));
  // Of 8 MB a vector and column: graph about 0.42 GB, the kernel 0.69 GB.
  FullGpu const full(*cuda, std::size_t{560} << 20);
  ColumnsEnding const ended = solve_together(a, columns, at_once);
  EXPECT_NE(choice(ended.whole, "run"), name(RunKind::persistent));
  EXPECT_NE(choice(ended.whole, "run_why").find("allocating device memory"), std::string::npos)
      << choice(ended.whole, "run_why");
  expect_as_alone(a, columns, setting, at_once, "by phases");
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
