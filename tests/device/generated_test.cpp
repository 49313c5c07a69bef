// Matrices whose entries the GPU makes, against the same matrices laid out by the host: the bits of x, of the
// history, of products and of what set-up derives from the matrix.
#include <filesystem>

#include "gpu_setting.hpp"
#include "hostless/base/error.hpp"
#include "hostless/problems/problems.hpp"
#include "operate/device_rows.hpp"
#include "problems/recipe.hpp"

namespace hostless::test {
namespace {

std::vector<ProblemOptions> all_kinds() {
  return {problem("poisson1d", 5000, 1, 1), problem("poisson2d", 61, 47, 1), problem("poisson7", 17, 12, 15),
          problem("poisson27", 11, 14, 13), problem("elasticity-hex8", 8, 9, 11)};
}

/// use(matrix) of the same problem, made here or there.
template <class Use>
void with_problem(ProblemOptions const& problem, bool on_gpu, std::string const& format, Use const& use) {
  run_with_threads_transport(1, [&](Transport& transport) {
    auto const source = make_problem(problem, 1, 0);
    MatrixOptions options;
    options.gpus = 1;
    options.gpu_format = format;
    options.block = source->recipe()->block;
    options.generate_on_gpu = on_gpu;
    Matrix matrix = Matrix::from_source(transport, *source, options);
    EXPECT_EQ(matrix.local() == nullptr, on_gpu);
    use(matrix);
  });
}

SolveOptions solve_options(Method method, PreconditionerKind kind, RunKind run) {
  SolveOptions options;
  options.method = method;
  options.preconditioner = kind;
  options.run.gpus = 1;
  options.run.kind = run;
  options.rtol = 0;
  options.max_iterations = 20;
  return options;
}

contract::Outcome outcome(ProblemOptions const& problem, bool on_gpu, std::string const& format,
                          SolveOptions const& options) {
  contract::Outcome found;
  with_problem(problem, on_gpu, format, [&](Matrix const& matrix) {
    Solver solver(matrix, options);
    solver.manufacture(5);
    Result const result = solver.solve();
    found = contract::Outcome::of(result, {solver.x().begin(), solver.x().end()});
    EXPECT_EQ(choice(result, "generated").empty(), !on_gpu);
  });
  return found;
}

class GpuGenerated : public Gpu {};

TEST_F(GpuGenerated, SolvesHaveTheBitsOfTheHostsLayout) {
  for (ProblemOptions const& problem : all_kinds()) {
    for (Method method : all_methods()) {
      for (PreconditionerKind kind : gpu_preconditioners(method)) {
        SolveOptions const options = solve_options(method, kind, RunKind::persistent);
        contract::Outcome const expected = outcome(problem, false, "auto", options);
        EXPECT_EQ(expected.status, Status::iteration_limit);
        EXPECT_EQ(outcome(problem, true, "auto", options).difference(expected), "")
            << problem.kind << ' ' << name(method) << ' ' << name(kind);
      }
    }
  }
}

TEST_F(GpuGenerated, EveryRunAndLayout) {
  for (ProblemOptions const& problem : all_kinds()) {
    auto const options = [&](RunKind run) {
      return solve_options(Method::cg, PreconditionerKind::block_jacobi, run);
    };
    contract::Outcome const expected = outcome(problem, false, "sell", options(RunKind::persistent));
    for (char const* format : {"diagonals", "diagonals-full", "sell"})
      for (RunKind run : gpu_runs())
        EXPECT_EQ(outcome(problem, true, format, options(run)).difference(expected), "")
            << problem.kind << ' ' << format << ' ' << name(run);
  }
}

TEST_F(GpuGenerated, RoundedToFp32) {
  for (ProblemOptions const& problem : all_kinds()) {
    SolveOptions options = solve_options(Method::cg, PreconditionerKind::jacobi, RunKind::persistent);
    options.matrix_precision = MatrixPrecision::fp32;
    EXPECT_EQ(outcome(problem, true, "auto", options).difference(outcome(problem, false, "auto", options)),
              "")
        << problem.kind;
  }
}

TEST_F(GpuGenerated, TakesTheMemoryOfItsModel) {  // large beside the pages in which a driver gives memory
  with_problem(problem("poisson7", 160, 160, 160), true, "auto", [&](Matrix const& matrix) {
    Solver solver(matrix, solve_options(Method::cg, PreconditionerKind::jacobi, RunKind::persistent));
    solver.manufacture(5);
    Result const result = solver.solve();
    EXPECT_GE(result.device_model_bytes, 8 * 4 * matrix.owned());
    EXPECT_GE(result.device_peak_bytes, result.device_model_bytes);
    EXPECT_LE(result.device_peak_bytes, result.device_model_bytes * 5 / 4);
  });
}

TEST_F(GpuGenerated, ProductsOutsideASolve) {
  for (ProblemOptions const& problem : all_kinds()) {
    std::vector<double> x, expected, found;
    for (bool on_gpu : {false, true}) {
      with_problem(problem, on_gpu, "auto", [&](Matrix const& matrix) {
        SolveOptions options = solve_options(Method::cg, PreconditionerKind::none, RunKind::persistent);
        options.check_symmetry = true;
        Solver solver(matrix, options);
        x = random_vector(matrix.owned(), 8);
        std::vector<double>& y = on_gpu ? found : expected;
        y.resize(x.size());
        solver.multiply(x, y);
      });
    }
    EXPECT_EQ(found, expected) << problem.kind;  // fma in one order, here and there
  }
}

// A checkpoint belongs to a matrix by the product that it makes, not by who has made it.
TEST_F(GpuGenerated, GoesOnFromACheckpointOfTheHostsLayout) {
  ProblemOptions const cube = problem("poisson7", 17, 12, 15);
  auto const file = std::filesystem::temp_directory_path() / "hostless_generated_checkpoint";
  SolveOptions options = solve_options(Method::cg, PreconditionerKind::jacobi, RunKind::persistent);
  contract::Outcome const expected = outcome(cube, false, "auto", options);
  options.checkpoint_file = file.string();
  options.checkpoint_every = 7;
  options.max_iterations = 10;
  outcome(cube, false, "auto", options);
  options = solve_options(Method::cg, PreconditionerKind::jacobi, RunKind::persistent);
  options.resume_file = file.string();
  EXPECT_EQ(outcome(cube, true, "auto", options).difference(expected), "");
  std::filesystem::remove(file);
}

// 2.5 G values with both triangles, 1.3 G with one: the same products.
TEST_F(GpuGenerated, MoreValuesThan31BitsCount) {
  std::int64_t const needed = std::int64_t{30} << 30;
  if (gpu::library().facts(0).free_bytes < needed) GTEST_SKIP() << "less than 30 GiB are free on this GPU";
  std::vector<double> x, expected;
  for (char const* format : {"diagonals", "diagonals-full", "sell"}) {
    with_problem(problem("poisson27", 456, 456, 456), true, format, [&](Matrix const& matrix) {
      bool const halved = expected.empty();
      EXPECT_EQ(matrix.device_rows()->made_there.value > INT32_MAX, !halved) << format;
      SolveOptions options = solve_options(Method::cg, PreconditionerKind::none, RunKind::persistent);
      options.check_symmetry = false;
      Solver solver(matrix, options);
      if (halved) x = random_vector(matrix.owned(), 8);
      std::vector<double> y(x.size());
      solver.multiply(x, y);
      if (halved) {
        expected = std::move(y);
      } else {
        EXPECT_TRUE(y == expected) << format;
      }
    });
  }
}

TEST(GpuGeneratedRefuses, WhatNothingMakes) {
  auto refused = [](ProblemOptions const& problem, MatrixOptions options, int ranks = 1) {
    std::string says;
    run_with_threads_transport(ranks, [&](Transport& transport) {
      auto const source = make_problem(problem, ranks, transport.group().rank());
      options.generate_on_gpu = true;
      try {
        (void)Matrix::from_source(transport, *source, options);
      } catch (Error const& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage);
        if (transport.group().rank() == 0) says = e.what();
      }
    });
    return says;
  };
  ProblemOptions const good = problem("poisson7", 9, 9, 9);
  MatrixOptions gpu;
  gpu.gpus = 1;
  EXPECT_EQ(refused(good, gpu), "");
  EXPECT_NE(refused(problem("circuit", 9, 9, 1), gpu).find("rows that only the host makes"),
            std::string::npos);
  EXPECT_NE(refused(good, MatrixOptions{}).find("0 GPUs"), std::string::npos);
  EXPECT_NE(refused(good, gpu, 2).find("2 ranks"), std::string::npos);
  MatrixOptions blocks = gpu;
  blocks.block = 3;
  EXPECT_NE(refused(good, blocks).find("block size 3"), std::string::npos);
  MatrixOptions csr = gpu;
  csr.gpu_format = "csr";
  EXPECT_NE(refused(good, csr).find("format csr"), std::string::npos);
  EXPECT_NE(refused(problem("poisson7", 2000, 2000, 2000), gpu).find("31 bits"), std::string::npos);
}

// Nothing may look for entries that the host never had.
TEST(GpuGeneratedRefuses, TheProcessorAndNewValues) {
  ProblemOptions const cube = problem("poisson7", 9, 9, 9);
  with_problem(cube, true, "auto", [&](Matrix& matrix) {
    EXPECT_EQ(matrix.global_entries(), 7 * 729 - 6 * 81);
    SolveOptions options;
    EXPECT_THROW(Solver(matrix, options), Error);
    EXPECT_THROW(matrix.update_values(*make_problem(cube, 1, 0)), Error);
  });
}

}  // namespace
}  // namespace hostless::test
