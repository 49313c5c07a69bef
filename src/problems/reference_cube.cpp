#include "problems/reference_cube.hpp"

#include <algorithm>
#include <cstddef>

namespace hostless::problems {
namespace {

/// Integral over [0, 1] of the (derivatives of the) linear functions of ends a and b.
double along_edge(bool slope_a, bool slope_b, int a, int b) {
  double const rise_a = a == 1 ? 1.0 : -1.0, rise_b = b == 1 ? 1.0 : -1.0;
  if (slope_a && slope_b) return rise_a * rise_b;
  if (slope_a) return 0.5 * rise_a;
  if (slope_b) return 0.5 * rise_b;
  return a == b ? 1.0 / 3.0 : 1.0 / 6.0;
}

double trilinear_product(int p, int q, int a, int b) {
  double product = 1.0;
  for (int d = 0; d < 3; ++d) product *= along_edge(p == d, q == d, a >> d & 1, b >> d & 1);
  return product;
}

/// Adds the tetrahedron 0, e_first, e_first + e_second, (1, 1, 1).
void add_tetrahedron(std::array<int, 3> const& axes, ReferenceCube& cube) {
  std::array<int, 4> corner{};
  std::array<std::array<double, 3>, 4> gradient{};  // of barycentric coordinate k: e_axis(k-1) - e_axis(k)
  for (int k = 0; k < 4; ++k) {
    if (k > 0) corner[k] = corner[k - 1] | 1 << axes[k - 1];
    if (k > 0) gradient[k][axes[k - 1]] += 1.0;
    if (k < 3) gradient[k][axes[k]] -= 1.0;
  }
  double const volume = 1.0 / 6.0;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      int const a = corner[i], b = corner[j];
      cube.couples[a][b] = true;
      cube.mass[a][b] += volume * (i == j ? 0.1 : 0.05);
      for (int p = 0; p < 3; ++p)
        for (int q = 0; q < 3; ++q) cube.gradients[p][q][a][b] += volume * gradient[i][p] * gradient[j][q];
    }
}

/// Copies the upper half onto the lower one: the two halves may have been rounded differently.
template <int D>
void make_symmetric(CubeMatrix<D>& matrix) {
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b <= a; ++b)
      for (std::size_t r = 0; r < D; ++r)
        for (std::size_t c = 0; c < D; ++c)
          if (b < a || c < r) matrix[a][b][r * D + c] = matrix[b][a][c * D + r];
}

}  // namespace

ReferenceCube trilinear_cube() {
  ReferenceCube cube;
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) {
      cube.couples[a][b] = true;
      cube.mass[a][b] = trilinear_product(-1, -1, a, b);
      for (int p = 0; p < 3; ++p)
        for (int q = 0; q < 3; ++q) cube.gradients[p][q][a][b] = trilinear_product(p, q, a, b);
    }
  return cube;
}

ReferenceCube kuhn_cube() {
  ReferenceCube cube;
  std::array<int, 3> axes{0, 1, 2};
  do add_tetrahedron(axes, cube);
  while (std::next_permutation(axes.begin(), axes.end()));
  return cube;
}

CubeMatrix<3> elasticity_matrix(ReferenceCube const& cube, double poisson_ratio) {
  double const lambda = poisson_ratio / ((1.0 + poisson_ratio) * (1.0 - 2.0 * poisson_ratio));
  double const mu = 0.5 / (1.0 + poisson_ratio);
  auto const& s = cube.gradients;
  CubeMatrix<3> matrix{};
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b)
      for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t c = 0; c < 3; ++c) {
          double const laplace = s[0][0][a][b] + s[1][1][a][b] + s[2][2][a][b];
          matrix[a][b][3 * r + c] =
              lambda * s[r][c][a][b] + mu * s[c][r][a][b] + (r == c ? mu * laplace : 0.0);
        }
  make_symmetric<3>(matrix);
  return matrix;
}

CubeMatrix<1> fibre_diffusion_matrix(ReferenceCube const& cube, std::array<double, 3> const& fibre,
                                     double along, double transverse) {
  CubeMatrix<1> matrix{};
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b)
      for (std::size_t p = 0; p < 3; ++p)
        for (std::size_t q = 0; q < 3; ++q) {
          double const conductivity =
              (p == q ? transverse : 0.0) + (along - transverse) * fibre[p] * fibre[q];
          matrix[a][b][0] += conductivity * cube.gradients[p][q][a][b];
        }
  make_symmetric<1>(matrix);
  return matrix;
}

}  // namespace hostless::problems
