// How far minimal residuals go, and that they end where there are no more digits: matrices with rows of very
// different size, and singular ones.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "hostless/files/matrix_file.hpp"
#include "ordered_reference.hpp"

namespace hostless::test {
namespace {

class Digits : public testing::TestWithParam<RunChoice> {
 protected:
  Setting setting() const {
    Setting p;
    p.ranks = GetParam().threads == 3 ? 1 : 2;
    p.solve.method = Method::minres;
    use(p, GetParam());
    return p;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Digits, testing::ValuesIn(all_runs()),
                         [](auto const& one) { return std::string(one.param.name); });

/// The Laplacian of a grid that nothing holds: constants vanish.
System free_grid(std::int64_t nx, std::int64_t ny) {
  System s;
  for (std::int64_t i = 0; i < nx * ny; ++i) {
    std::vector<std::pair<std::int64_t, double>> row;
    if (i >= nx) row.emplace_back(i - nx, -1.0);
    if (i % nx > 0) row.emplace_back(i - 1, -1.0);
    row.emplace_back(i, 0.0);
    if (i % nx + 1 < nx) row.emplace_back(i + 1, -1.0);
    if (i + nx < nx * ny) row.emplace_back(i + nx, -1.0);
    for (auto& [j, value] : row)
      if (j == i) value = static_cast<double>(row.size() - 1);
    s.row(row);
  }
  return s;
}

// Where no x reaches b the last steps only throw x about along the null vector: they end before rounding of
// A x is as large as the least residual.
TEST_P(Digits, XIsNotThrownAboutAlongNullVectors) {
  System const a = free_grid(14, 13);
  auto const b = random_vector(a.rows(), 3);
  double mean = 0;
  for (double v : b) mean += v / static_cast<double>(b.size());
  for (PreconditionerKind kind : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
    Setting p = setting();
    p.solve.preconditioner = kind;
    auto const e = solve_on_threads(a, b, p);
    EXPECT_EQ(e.result.status, Status::stagnated) << e.result.message;
    double const least = std::abs(mean) * std::sqrt(static_cast<double>(b.size()));
    EXPECT_NEAR(e.result.true_residual, least, 0.3 * least);
    EXPECT_LE(e.result.iterations, 150);
    // b has no constant part: nothing is in the way of ten digits, and of the last ones there is an end.
    std::vector<double> const reached = a.times(b);
    for (double rtol : {1e-10, 0.0}) {
      p.solve.rtol = rtol;
      auto const other = solve_on_threads(a, reached, p);
      EXPECT_EQ(other.result.status, rtol > 0 ? Status::converged : Status::stagnated);
      EXPECT_LE(other.result.true_residual, (rtol > 0 ? 1e-10 : 1e-14) * norm(reached));
      EXPECT_LE(other.result.iterations, 150);
    }
  }
}

/// A grid's matrix times `scale`, and rows of the identity that nothing joins to it.
System with_small_rows(double scale, int rows) {
  System s = System::problem(problem("poisson2d", 30, 30, 1, 1.0));
  for (double& value : s.value) value *= scale;
  for (int k = 0; k < rows; ++k) s.row({{s.rows(), 1.0}});
  return s;
}

// A few rows of another size say nothing of how many digits can be reached: with the diagonal as
// preconditioner the scale of a part does not matter at all.
TEST_P(Digits, RowsOfVeryDifferentSize) {
  std::int64_t expected = 0;
  for (double scale : {1.0, 1e5, 1e9}) {
    System const a = with_small_rows(scale, 20);
    std::vector<double> const b(static_cast<std::size_t>(a.rows()), 1.0);
    Setting p = setting();
    p.solve.rtol = 1e-12;
    p.solve.preconditioner = PreconditionerKind::jacobi;
    auto const e = solve_on_threads(a, b, p);
    EXPECT_EQ(e.result.status, Status::converged) << scale << ' ' << e.result.message;
    EXPECT_LE(residual_of(a, b, e.x), 1e-12 * norm(b)) << scale;
    EXPECT_EQ(e.result.restarts, 0) << scale;
    if (scale == 1e5) expected = e.result.iterations;
    if (scale > 1e5) EXPECT_LE(std::abs(e.result.iterations - expected), 4);
    EXPECT_LE(e.result.iterations, 90) << scale;
  }
}

// What conjugate residuals reach, minimal residuals reach too, with as many steps: rows of very different
// size are no end of the digits.
TEST(DigitsOfCollection, MinimalResidualsGoAsFarAsConjugateOnes) {
  auto const path = std::filesystem::path(HOSTLESS_MATRICES) / "bcsstk16.mtx.gz";
  std::array<std::int64_t, 2> iterations{};
  for (Method method : {Method::cr, Method::minres}) {
    run_with_threads_transport(2, [&](Transport& transport) {
      auto const source = read_matrix(transport.group(), path.string());
      Matrix const matrix = Matrix::from_source(transport, *source);
      SolveOptions options;
      options.method = method;
      options.preconditioner = PreconditionerKind::jacobi;
      options.rtol = 1e-12;
      Solver solver(matrix, options);
      std::int64_t const first = matrix.first_row(), last = matrix.last_row();
      std::vector<double> const b(static_cast<std::size_t>(last - first), 1.0);
      std::vector<double> x(b.size());
      Result const result = solver.solve(b, x);
      if (transport.group().rank() != 0) return;
      EXPECT_EQ(result.status, Status::converged) << name(method) << ": " << result.message;
      EXPECT_EQ(result.restarts, 0) << name(method);
      iterations[method == Method::minres] = result.iterations;
    });
  }
  EXPECT_NEAR(static_cast<double>(iterations[1]), static_cast<double>(iterations[0]), 5);
}

}  // namespace
}  // namespace hostless::test
