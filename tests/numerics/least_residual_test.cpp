// MINRES and CR on exactly singular systems: what is left of b is of the least length.
#include <gtest/gtest.h>

#include <cmath>

#include "systems.hpp"

namespace hostless::test {
namespace {

// A path of edges of weight 1 and as many more edges again, of weights that are multiples of 1/16: its Laplacian has
// A 1 = 0 without rounding.
System laplacian_of_a_graph(std::int64_t nodes, unsigned seed) {
  auto const n = static_cast<std::size_t>(nodes);
  std::vector<std::vector<double>> a(n, std::vector<double>(n, 0.0));
  auto const join = [&](std::size_t i, std::size_t j, double weight) {
    a[i][j] -= weight, a[j][i] -= weight;
    a[i][i] += weight, a[j][j] += weight;
  };
  for (std::size_t i = 0; i + 1 < n; ++i) join(i, i + 1, 1);
  auto const drawn = random_vector(3 * nodes, seed);
  for (std::size_t k = 0; k < n; ++k) {
    auto const at = [&](double u) { return static_cast<std::size_t>(std::abs(u) * 1e6) % n; };
    std::size_t const i = at(drawn[3 * k]), j = at(drawn[3 * k + 1]);
    if (i != j) join(i, j, (1 + std::floor(std::fmod(std::abs(drawn[3 * k + 2]) * 1e3, 48.0))) / 16);
  }
  return System::dense(a);
}

// No x reaches b, and rounding brings the null vector into the Lanczos vectors: along it x grows without bound, unless
// the method sees it.
class LeastResidual : public testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(All, LeastResidual, testing::Values(Method::minres, Method::cr),
                         [](auto const& one) { return std::string(name(one.param)); });

TEST_P(LeastResidual, NullVectorsDoNotSpoilIt) {
  int far = 0;
  constexpr int graphs = 60;
  for (unsigned seed = 1; seed <= graphs; ++seed) {
    std::int64_t const n = 10 + seed % 47;
    System const a = laplacian_of_a_graph(n, seed);
    auto const b = random_vector(n, seed + 1000);
    double mean = 0;
    for (double v : b) mean += v / static_cast<double>(n);
    Setting p;
    p.solve.method = GetParam();
    p.solve.rtol = 1e-9;
    auto const e = solve_on_threads(a, b, p);
    EXPECT_EQ(e.result.status, Status::stagnated) << seed << ' ' << e.result.message;
    double const least = std::abs(mean) * std::sqrt(static_cast<double>(n));
    if (e.result.true_residual > 1.01 * least) ++far;
  }
  EXPECT_LE(far, graphs / 4);
}

// Where rounding is all that is left of r'M A M r, steps of CR made |x| some 4e16, and |b - A x| hundreds of times the
// least one, until a limit ended it.
TEST(LeastResidualOfCr, NoLimitSpoilsIt) {
  System const a = System::problem(problem("poisson2d", 12, 12, 1, 1.0, Boundary::neumann));
  auto const b = random_vector(a.rows(), 5);
  double mean = 0;
  for (double v : b) mean += v / static_cast<double>(a.rows());
  double const least = std::abs(mean) * std::sqrt(static_cast<double>(a.rows()));
  for (PreconditionerKind kind : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
    for (int ranks : {1, 2, 3}) {
      Setting p;
      p.solve.method = Method::cr;
      p.solve.preconditioner = kind;
      p.ranks = ranks;
      p.solve.max_iterations = 100000;
      auto const e = solve_on_threads(a, b, p);
      EXPECT_EQ(e.result.status, Status::stagnated) << e.result.message;
      EXPECT_LT(e.result.iterations, 200);
      EXPECT_LT(norm(e.x), 1e3 * norm(b));
      // With an M it is the norm of r in M that is the least.
      EXPECT_LE(e.result.true_residual, (kind == PreconditionerKind::none ? 1 + 1e-9 : 2) * least);
      for (RunKind run : {RunKind::persistent, RunKind::graph}) {
        p.solve.run.kind = run;
        p.solve.run.threads = run == RunKind::persistent ? 2 : 1;
        auto const other = solve_on_threads(a, b, p);
        EXPECT_EQ(other.result.status, Status::stagnated) << other.result.message;
        EXPECT_TRUE(same_bits(other.x, e.x)) << name(run);
      }
    }
  }
}

}  // namespace
}  // namespace hostless::test
