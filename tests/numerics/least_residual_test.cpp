// MINRES on exactly singular systems: what is left of b is of the least length.
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
TEST(LeastResidual, NullVectorsDoNotSpoilIt) {
  int far = 0;
  constexpr int graphs = 60;
  for (unsigned seed = 1; seed <= graphs; ++seed) {
    std::int64_t const n = 10 + seed % 47;
    System const a = laplacian_of_a_graph(n, seed);
    auto const b = random_vector(n, seed + 1000);
    double mean = 0;
    for (double v : b) mean += v / static_cast<double>(n);
    Setting p;
    p.solve.method = Method::minres;
    p.solve.rtol = 1e-9;
    auto const e = solve_on_threads(a, b, p);
    EXPECT_EQ(e.result.status, Status::stagnated) << seed << ' ' << e.result.message;
    double const least = std::abs(mean) * std::sqrt(static_cast<double>(n));
    if (e.result.true_residual > 1.01 * least) ++far;
  }
  EXPECT_LE(far, graphs / 4);
}

}  // namespace
}  // namespace hostless::test
