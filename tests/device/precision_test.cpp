// An fp32 matrix in the iterations, on a GPU: the bits of the processor, which rounds the same values, in
// every run and layout, and where rounding is given up.
#include "gpu_setting.hpp"

namespace hostless::test {
namespace {

Setting fp32(PreconditionerKind kind = PreconditionerKind::jacobi) {
  Setting setting;
  setting.solve.matrix_precision = MatrixPrecision::fp32;
  setting.solve.preconditioner = kind;
  setting.solve.rtol = 1e-12;
  return setting;
}

class GpuPrecision : public Gpu {
 protected:
  void expect_bits(std::string const& what, System const& a, Setting const& setting,
                   std::vector<std::string> const& formats, std::string const& words) {
    auto const b = random_vector(a.rows(), 5), x0 = random_vector(a.rows(), 99);
    Ending const expected = solve_on_threads(a, b, x0, setting);
    EXPECT_EQ(expected.result.status, Status::converged) << what;
    EXPECT_GE(expected.result.replacements, 1) << what;
    EXPECT_NE(choice(expected.result, "matrix_precision").find(words), std::string::npos)
        << what << ": " << choice(expected.result, "matrix_precision");
    for (std::string const& format : formats) {
      for (RunKind run : gpu_runs()) {
        Ending const got = solve_on_threads(a, b, x0, on_gpu(setting, format, run));
        std::string const where = what + ' ' + format + ' ' + name(run);
        EXPECT_EQ(outcome_of(got).difference(outcome_of(expected)), "") << where;
        EXPECT_EQ(got.result.replacements, expected.result.replacements) << where;
        EXPECT_NE(choice(got.result, "matrix_precision").find(words), std::string::npos)
            << where << ": " << choice(got.result, "matrix_precision");
        EXPECT_LT(static_cast<double>(got.result.bytes_per_iteration), 0.97 * exact_bytes(a, setting, format))
            << where;
      }
    }
  }

 private:
  static double exact_bytes(System const& a, Setting setting, std::string const& format) {
    setting.solve.matrix_precision = MatrixPrecision::fp64;
    setting.solve.max_iterations = 1;
    auto const b = random_vector(a.rows(), 5);
    return static_cast<double>(solve_on_threads(a, b, on_gpu(setting, format)).result.bytes_per_iteration);
  }
};

TEST_F(GpuPrecision, EveryRunAndLayoutHasTheBitsOfTheProcessor) {
  std::vector<std::string> const every = {"diagonals", "diagonals-full", "sell", "csr"};
  for (PreconditionerKind kind :
       {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::block_jacobi}) {
    std::string const with = std::string(" ") + name(kind);
    expect_bits("rows, near" + with, System::problem(problem("poisson7", 12, 10, 9)), fp32(kind), every,
                "fp32 in iterations");
    expect_bits("circuit" + with, System::problem(problem("circuit", 60, 60, 1)), fp32(kind), {"sell", "csr"},
                "fp32 in iterations");
    for (int block : {2, 3, 4, 6}) {
      Setting setting = fp32(kind);
      setting.matrix.block = block;
      expect_bits("blocks of " + std::to_string(block) + with,
                  System::problem(problem("elasticity-hex8", 5, 4, 7)), setting, {"sell", "csr"},
                  "fp32 in iterations");
    }
  }
}

// One slice has all rows: not everything fits into shared memory.
TEST_F(GpuPrecision, MoreThanIsNear) {
  Setting setting = fp32();
  setting.matrix.slices = 1;
  expect_bits("rows, far", System::problem(problem("poisson7", 24, 24, 24)), setting, {"diagonals", "sell"},
              "fp32 in iterations");
}

/// 2 x 2 blocks, nearly singular: {{1 + first, off}, {off, 2}}, in units of half the last place of fp32.
System pairs(std::int64_t count, double first, double off) {
  double const half_ulp = 0x1p-24, root = std::sqrt(2.0);
  System s;
  for (std::int64_t k = 0; k < count; ++k) {
    double const scale = std::pow(4.0, static_cast<double>(k % 4)),
                 beside = scale * root * (1 + off * half_ulp);
    s.row({{2 * k, scale * (1 + first * half_ulp)}, {2 * k + 1, beside}});
    s.row({{2 * k, beside}, {2 * k + 1, scale * 2}});
  }
  return s;
}

TEST_F(GpuPrecision, FallsBackToFp64) {
  Setting setting = fp32();
  setting.solve.rtol = 1e-6;
  std::vector<std::string> const formats = {"diagonals", "sell", "csr"};
  struct {
    double first, off;
    char const* says;
  } const cases[] = {{0.99, 0.44, "rounded, the matrix is not positive definite"},
                     {1.01, 0.3, "rounded, the matrix gained nothing any more"}};
  for (auto const& [first, off, says] : cases) {
    for (std::int64_t count : {4, 5000})
      expect_bits(std::to_string(count) + " pairs", pairs(count, first, off), setting, formats, says);
    Setting far = setting;
    far.matrix.slices = 1;  // not everything is on chip
    expect_bits("in one slice", pairs(40000, first, off), far, formats, says);
  }
}

// A kernel that is launched again keeps the rounded matrix on chip once more.
TEST_F(GpuPrecision, PausesOfItsOwnChangeNothing) {
  System const a = System::problem(problem("poisson2d", 60, 50, 1));
  auto const b = random_vector(a.rows(), 5);
  Ending const expected = solve_on_threads(a, b, fp32());
  Setting setting = on_gpu(fp32());
  setting.solve.run.longest_launch_s = 1e-4;
  Ending const got = solve_on_threads(a, b, setting);
  EXPECT_GT(got.result.launches, 1);
  EXPECT_EQ(outcome_of(got).difference(outcome_of(expected)), "");
}

TEST_F(GpuPrecision, NewValuesAreRoundedToo) {
  System const a = System::problem(problem("poisson2d", 30, 20, 1));
  System other = a;
  for (double& v : other.value) v *= 2.0 / 3.0;
  auto const b = random_vector(a.rows(), 5), x0 = random_vector(a.rows(), 99);
  auto const expected = outcome_of(solve_on_threads(other, b, x0, fp32()));
  for (RunKind run : gpu_runs()) {
    Setting const setting = on_gpu(fp32(), "auto", run);
    with_matrix(a, setting.matrix, [&](Matrix& matrix) {
      Solver solver(matrix, setting.solve);
      (void)solve(solver, b, x0);
      matrix.update_values(other.offset, other.column, other.value);
      EXPECT_EQ(solve(solver, b, x0).difference(expected), "") << name(run);
    });
  }
}

}  // namespace
}  // namespace hostless::test
