// An fp32 matrix in the iterations, an fp64 one for the true residual: the answer of fp64, on every run; and
// going back to fp64 where rounding has made another matrix of it.
#include <gtest/gtest.h>

#include <filesystem>

#include "systems.hpp"

namespace hostless::test {
namespace {

System rounded(System a) {
  for (double& v : a.value) v = static_cast<double>(static_cast<float>(v));
  return a;
}

Setting with(MatrixPrecision precision, double rtol = 1e-12) {
  Setting p;
  p.solve.matrix_precision = precision;
  p.solve.preconditioner = PreconditionerKind::jacobi;
  p.solve.rtol = rtol;
  return p;
}
Setting const fp32 = with(MatrixPrecision::fp32), fp64 = with(MatrixPrecision::fp64);

std::string precision_of(Result const& result) {
  for (auto const& [key, value] : result.choices)
    if (key == "matrix_precision") return value;
  return "nothing is said";
}
bool says(Result const& result, std::string const& words) {
  return precision_of(result).find(words) != std::string::npos;
}

/// Blocks {{first, off}, {off, 2}}, each 4 times the one before.
System pairs(double first, double off, int count) {
  System s;
  double scale = 1;
  for (std::int64_t k = 0; k < count; ++k, scale *= 4) {
    s.row({{2 * k, scale * first}, {2 * k + 1, scale * off}});
    s.row({{2 * k, scale * off}, {2 * k + 1, scale * 2}});
  }
  return s;
}
double const half_ulp = 0x1p-24, root = std::sqrt(2.0);
/// Positive definite, but the first diagonal entry is rounded down and the others up.
System indefinite_when_rounded() { return pairs(1 + 0.99 * half_ulp, root * (1 + 0.44 * half_ulp), 4); }
/// The other way round: the smallest eigenvalue becomes several times as large.
System stiffer_when_rounded() { return pairs(1 + 1.01 * half_ulp, root * (1 + 0.3 * half_ulp), 4); }

TEST(Precision, IterationsMultiplyWithTheRoundedMatrix) {
  System const a = System::problem(problem("poisson2d", 20, 17, 1));
  std::vector<double> const b = random_vector(a.rows(), 4);
  // Until the first replacement nothing can be told from a solve with the rounded matrix, |b| = |b - A 0|.
  Setting plain = fp64, single = fp32;
  plain.solve.rtol = single.solve.rtol = 2e-5;
  plain.solve.preconditioner = single.solve.preconditioner = PreconditionerKind::none;
  auto const expected = solve_on_threads(rounded(a), b, plain), got = solve_on_threads(a, b, single);
  auto const exact = solve_on_threads(a, b, plain);
  EXPECT_TRUE(same_bits(got.x, expected.x));
  EXPECT_TRUE(same_bits(got.result.residual_history, expected.result.residual_history));
  EXPECT_FALSE(same_bits(got.result.residual_history, exact.result.residual_history));
  EXPECT_NE(got.result.true_residual, expected.result.true_residual);
  EXPECT_NEAR(got.result.true_residual, residual_of(a, b, got.x), 1e-12);
  EXPECT_EQ(got.result.replacements, 0);
}

TEST(Precision, TheAnswerIsAsAccurateAsWithFp64) {
  std::vector<std::pair<std::string, System>> const systems = {
      {"contrast 1e6", System::problem(problem("poisson2d", 20, 20, 1, 1e6))},
      {"elasticity", System::problem(problem("elasticity-hex8", 4, 3, 3, 1e3))},
      {"circuit", System::problem(problem("circuit", 20, 20, 1))}};
  for (auto const& [what, a] : systems) {
    std::vector<double> const b = random_vector(a.rows(), 4);
    for (PreconditionerKind kind :
         {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::block_jacobi}) {
      Setting plain = fp64, single = fp32;
      plain.solve.preconditioner = single.solve.preconditioner = kind;
      plain.solve.max_iterations = single.solve.max_iterations = 100000;
      auto const expected = solve_on_threads(a, b, plain), got = solve_on_threads(a, b, single);
      ASSERT_EQ(expected.result.status, Status::converged) << what;
      ASSERT_EQ(got.result.status, Status::converged) << what << ' ' << name(kind);
      EXPECT_LE(residual_of(a, b, got.x), 1.01e-12 * norm(b)) << what << ' ' << name(kind);
      EXPECT_GE(got.result.replacements, 2) << what;  // twice five digits are not enough
      EXPECT_LE(got.result.replacements, 6) << what;
      EXPECT_EQ(got.result.restarts, 0) << what;
      EXPECT_EQ(expected.result.replacements, 0);
      EXPECT_TRUE(says(got.result, "fp32 in iterations")) << precision_of(got.result);
      EXPECT_TRUE(says(got.result, "; " + std::to_string(got.result.replacements) + " replacements"));
      EXPECT_EQ(precision_of(expected.result), "fp64");
    }
  }
}

TEST(Precision, EveryRunAndFormatHasTheSameBits) {
  System const a = System::problem(problem("elasticity-hex8", 3, 3, 4, 1e2));
  std::vector<double> const b = random_vector(a.rows(), 4);
  for (int ranks : {1, 3}) {
    Setting setting = fp32;
    setting.ranks = ranks;
    setting.aligned = true;
    setting.matrix.block = 3;
    auto const expected = solve_on_threads(a, b, setting);
    ASSERT_EQ(expected.result.status, Status::converged);
    EXPECT_GE(expected.result.replacements, 2);
    for (RunChoice const& run : all_runs()) {
      for (char const* format : {"auto", "csr", "bsr", "sell"}) {
        Setting other = setting;
        use(other, run);
        other.matrix.format = FormatRequest::from(format);
        other.matrix.format.threads = run.threads;
        if (run.kind != RunKind::host && (ranks > 1 || std::string(format) == "csr")) continue;
        auto const got = solve_on_threads(a, b, other);
        EXPECT_TRUE(same_bits(got.x, expected.x)) << run.name << ' ' << format;
        EXPECT_TRUE(same_bits(got.result.residual_history, expected.result.residual_history));
        EXPECT_EQ(got.result.replacements, expected.result.replacements);
      }
    }
  }
}

TEST(Precision, AMatrixThatRoundingMakesIndefinite) {
  System const a = indefinite_when_rounded();
  System const other = rounded(a);
  ASSERT_GT(a.value[0] * a.value[3], a.value[1] * a.value[2]);
  ASSERT_LT(other.value[0] * other.value[3], other.value[1] * other.value[2]);
  std::vector<double> const b(static_cast<std::size_t>(a.rows()), 1.0);
  for (RunChoice const& run : all_runs()) {
    Setting setting = with(MatrixPrecision::fp32, 1e-6);
    use(setting, run);
    auto const got = solve_on_threads(a, b, setting);
    ASSERT_EQ(got.result.status, Status::converged) << run.name << ' ' << precision_of(got.result);
    EXPECT_LE(residual_of(a, b, got.x), 1.01e-6 * norm(b));
    EXPECT_TRUE(says(got.result, "rounded, the matrix is not positive definite")) << precision_of(got.result);
    EXPECT_TRUE(says(got.result, "; fp64 from iteration ")) << precision_of(got.result);
  }
  Setting plain = with(MatrixPrecision::fp64, 1e-6);
  EXPECT_EQ(solve_on_threads(other, b, plain).result.status, Status::indefinite_matrix);
  EXPECT_EQ(solve_on_threads(a, b, plain).result.status, Status::converged);
}

TEST(Precision, AMatrixThatRoundingMakesAnotherOne) {
  System const a = stiffer_when_rounded();
  std::vector<double> const b(static_cast<std::size_t>(a.rows()), 1.0);
  auto const got = solve_on_threads(a, b, with(MatrixPrecision::fp32, 1e-6));
  ASSERT_EQ(got.result.status, Status::converged) << precision_of(got.result);
  EXPECT_LE(residual_of(a, b, got.x), 1.01e-6 * norm(b));
  EXPECT_TRUE(says(got.result, "rounded, the matrix gained nothing any more")) << precision_of(got.result);
  EXPECT_GE(got.result.replacements, 2);
}

TEST(Precision, AnIndefiniteMatrixIsStillFoundOut) {
  System a = System::path(30);
  a.at(7, 7) = -2.0;
  std::vector<double> const b = random_vector(30, 4);
  Setting setting = fp32;
  setting.solve.preconditioner = PreconditionerKind::none;
  auto const got = solve_on_threads(a, b, setting);
  EXPECT_EQ(got.result.status, Status::indefinite_matrix);
  EXPECT_TRUE(says(got.result, "not positive definite")) << precision_of(got.result);
}

TEST(Precision, ValuesBeyondFp32AreRefusedWithTheirRow) {
  for (auto const& [value, becomes] : {std::pair{1e300, "inf"}, {-1e39, "-inf"}, {1e-60, "0"}}) {
    for (char const* format : {"csr", "bsr", "sell"}) {
      System a = System::problem(problem("elasticity-hex8", 3, 3, 3));
      a.at(50, 50) = value;
      Setting setting = fp32;
      setting.matrix.block = 3;
      setting.matrix.format = FormatRequest::from(format);
      std::string said;
      try {
        solve_on_threads(a, random_vector(a.rows(), 4), setting);
      } catch (Error const& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
        said = error.what();
      }
      EXPECT_NE(said.find("in row 51 does not fit fp32 (it would become " + std::string(becomes) + ")."),
                std::string::npos)
          << format << ": " << said;
    }
  }
  System a = System::path(30);  // the smallest that fp32 has, and zeros
  a.at(3, 2) = a.at(2, 3) = 0x1p-149;
  a.at(8, 9) = a.at(9, 8) = 0.0;
  EXPECT_EQ(solve_on_threads(a, random_vector(30, 4), fp32).result.status, Status::converged);
}

TEST(Precision, NewValuesAreRoundedToo) {
  System const a = System::path(60);
  System doubled = a;
  for (double& v : doubled.value) v *= 2.0 / 3.0;
  System beyond = a;
  beyond.at(4, 4) = 1e200;
  std::vector<double> const b = random_vector(60, 4);
  auto const expected = solve_on_threads(doubled, b, fp32);
  run_with_threads_transport(1, [&](Transport& transport) {
    Matrix matrix = Matrix::from_rows(transport, 0, a.offset, a.column, a.value, {});
    Solver solver(matrix, fp32.solve);
    std::vector<double> x(60, 0.0);
    solver.solve(b, x);
    matrix.update_values(doubled.offset, doubled.column, doubled.value);
    std::fill(x.begin(), x.end(), 0.0);
    Result const result = solver.solve(b, x);
    EXPECT_TRUE(same_bits(x, expected.x));
    EXPECT_TRUE(same_bits(result.residual_history, expected.result.residual_history));
    matrix.update_values(beyond.offset, beyond.column, beyond.value);
    EXPECT_THROW(solver.solve(b, x), Error);
  });
}

TEST(Precision, ACheckpointGoesOnBitForBit) {
  System const a = System::problem(problem("poisson2d", 12, 9, 1, 1e4));
  std::vector<double> const b = random_vector(a.rows(), 4);
  std::string const file =
      (std::filesystem::temp_directory_path() / "hostless-precision-checkpoint").string() +
      std::to_string(::getpid());
  auto const whole = solve_on_threads(a, b, fp32);
  ASSERT_GE(whole.result.replacements, 2);
  for (std::int64_t k : {std::int64_t{3}, whole.result.iterations / 2, whole.result.iterations - 2}) {
    Setting cut = fp32;
    cut.solve.checkpoint_file = file;
    cut.solve.checkpoint_every = k;
    cut.solve.max_iterations = k + 1;
    solve_on_threads(a, b, cut);
    Setting rest = fp32;
    rest.solve.resume_file = file;
    auto const got = solve_on_threads(a, b, rest);
    EXPECT_TRUE(same_bits(got.x, whole.x)) << k;
    EXPECT_TRUE(same_bits(got.result.residual_history, whole.result.residual_history)) << k;
    EXPECT_EQ(got.result.replacements, whole.result.replacements) << k;
    rest.solve.matrix_precision = MatrixPrecision::fp64;
    EXPECT_THROW(solve_on_threads(a, b, rest), Error);
  }
  std::filesystem::remove(file);
}

TEST(Precision, WhatHasNoFp32ProductsIsRefused) {
  System const a = System::path(30);
  auto const refused = [&](auto change) {
    Setting setting = fp32;
    change(setting.solve);
    try {
      solve_on_threads(a, random_vector(30, 4), setting);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_EQ(
      refused([](SolveOptions& o) { o.method = Method::pipelined_cg; }),
      "an fp32 matrix with pipelined-cg is refused (only cg replaces its residual by the true residual often "
      "enough). Use "
      "method cg, or matrix precision fp64.");
  EXPECT_NE(refused([](SolveOptions& o) { o.method = Method::single_reduction_cg; }).find("Use method cg"),
            std::string::npos);
  EXPECT_NE(refused([](SolveOptions& o) {
              o.preconditioner = PreconditionerKind::chebyshev;
            }).find("with preconditioner chebyshev"),
            std::string::npos);
  EXPECT_NE(refused([](SolveOptions& o) {
              o.preconditioner = PreconditionerKind::function;
              o.preconditioner_function = [](double const*, double*) {};
            }).find("with preconditioner function"),
            std::string::npos);
  run_with_threads_transport(1, [&](Transport& transport) {
    Matrix const matrix =
        Matrix::from_function(transport, 0, 30, [&](double const* x, double* y) { std::copy_n(x, 30, y); });
    SolveOptions options = fp32.solve;
    options.preconditioner = PreconditionerKind::none;
    EXPECT_THROW(Solver(matrix, options), Error);
  });
}

}  // namespace
}  // namespace hostless::test
