#pragma once

#include <array>

namespace hostless::problems {

/// Integrals over the unit cube whose corner c is at (c & 1, c >> 1 & 1, c >> 2): all that is needed to
/// assemble on a lattice of cubes, for one element type.
struct ReferenceCube {
  /// gradients[p][q][a][b] = integral of (d phi_a / d x_p) (d phi_b / d x_q), equal bit for bit to
  /// [q][p][b][a]
  std::array<std::array<std::array<std::array<double, 8>, 8>, 3>, 3> gradients{};
  std::array<std::array<double, 8>, 8> mass{};   ///< integral of phi_a phi_b
  std::array<std::array<bool, 8>, 8> couples{};  ///< corners a and b share an element
};

/// One trilinear hexahedron: products of one-dimensional integrals, exact.
ReferenceCube trilinear_cube();

/// Kuhn's six P1 tetrahedra around the diagonal from corner 0 to corner 7. Two corners share a tetrahedron
/// where one's bits include the other's. Tilings of it conform: opposite faces are cut alike.
ReferenceCube kuhn_cube();

/// One 8 x 8 array of D x D blocks, [a][b][row][column].
template <int D>
using CubeMatrix = std::array<std::array<std::array<double, D * D>, 8>, 8>;

/// Isotropic linear elasticity, Young's modulus 1: lambda S_rc + mu S_cr + mu delta_rc (S_00 + S_11 + S_22).
CubeMatrix<3> elasticity_matrix(ReferenceCube const& cube, double poisson_ratio);

/// Diffusion with the conductivity transverse * I + (along - transverse) * f f^T; f has unit length.
CubeMatrix<1> fibre_diffusion_matrix(ReferenceCube const& cube, std::array<double, 3> const& fibre,
                                     double along, double transverse);

}  // namespace hostless::problems
