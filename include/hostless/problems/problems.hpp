#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hostless/base/rows.hpp"

namespace hostless {

/// What happens at the rim of the domain.
///
/// - standard: the kind's usual one: Dirichlet for Poisson and springs, one clamped face for elasticity,
///   no flux for the monodomain step, some grounded nodes for the circuit. Always positive definite.
/// - dirichlet: nodes outside held at zero and eliminated: all around for most kinds, below the
///   face y = 0 for elasticity (the other faces are free); ground resistances on some nodes for the
///   circuit.
/// - neumann: nothing is held. Poisson and circuit: singular, the constants are the null space.
///   Elasticity: singular, the six rigid motions are. Monodomain: still positive definite, through its
///   mass matrix.
enum class Boundary : int { standard, dirichlet, neumann };
Boundary boundary_from_name(std::string const& name);  ///< Errors  usage  not one of the three names
char const* name(Boundary boundary);

/// A generated matrix, completely described: equal options give equal rows, whatever the number of ranks.
struct ProblemOptions {
  std::string kind = "poisson7";  ///< one of problem_names()
  std::int64_t nx = 1;            ///< nodes that carry unknowns, x runs fastest
  std::int64_t ny = 1;            ///< must stay 1 for kinds of one dimension
  std::int64_t nz = 1;            ///< must stay 1 for kinds of one or two dimensions
  /// Spread of the coefficients, 1 to 1e12; 1 makes them constant. Log-normal ones are contrast^(g / 4) with
  /// g of variance one: `contrast` lies between the values two standard deviations above and below the
  /// median. Elasticity: the ratio of Young's moduli of stiff and soft layers; besides, each cell varies by
  /// 4^(g / 4).
  double contrast = 100.0;
  Boundary boundary = Boundary::standard;
  std::uint64_t seed = 1;
  /// circuit only: long edges as a share of the nodes, 0 to 0.5; 0.02 where not given.
  std::optional<double> long_edges;
  /// monodomain only: dt in units of h^2 / (conductivity along the fibre), > 0; 0.125 where not given.
  std::optional<double> time_step;
};

/// All kinds that make_problem() knows:
///
/// - poisson1d, poisson2d, poisson7, poisson27: finite volumes on 1-, 2- and 3-dimensional lattices
///   with 3, 5, 7 and 27 points: log-normal conductivity in each cell, harmonic mean on each link. At
///   contrast 1 the stencils are 2, 4, 6 and 26 with -1 around.
/// - poisson2d-tri: P1 triangles on a lattice of equilateral triangles (7 points), log-normal
///   conductivity in each cell.
/// - elasticity-hex8: trilinear hexahedra, 3 unknowns a node, 26 neighbours in full 3 x 3 blocks,
///   Poisson's ratio 0.3, 8 layers of material across y, soft and stiff in turn.
/// - elasticity-tet4: the same body on P1 tetrahedra, Kuhn's subdivision of the lattice, 14 neighbours.
/// - monodomain: P1 tetrahedra, Kuhn's subdivision; one step M + dt K of the monodomain equation of the
///   heart. The fibres turn by 120 degrees from the inner wall (y = 0) to the outer one; 14 neighbours.
/// - circuit: resistors on a 2-dimensional grid (one vertical resistor in ten is missing), a few long
///   edges between random nodes, 1 % of the nodes grounded.
/// - springs2d-tri, springs3d-tet4, springs3d-hubs: springs that couple all unknowns of two nodes: 7 unknowns
///   on the edges of triangles (49 entries in a row), 4 on those of Kuhn's tetrahedra (60), 3 on all steps
///   of at most sqrt(6) (243), where besides one node in every eighth plane is joined to all of its plane.
///   Shapes of matrices, of no physics; under `neumann` each unknown's constants are the null space.
std::vector<std::string> problem_names();

/// Options of a kind with sides as people give them: one for all, or each; with none, 100,000 nodes in one
/// dimension, 300 a side in two, 32 a side in three.
///
/// Errors  usage  unknown kind; neither one side nor as many as the kind has dimensions
ProblemOptions problem_of(std::string const& kind, std::vector<std::int64_t> const& sides);

/// Options for a matrix of the size and class of one that Trotter et al. or Ismayilov et al. measure.
///
/// - flan: elasticity-hex8 10 x 108 x 483, 1,564,920 rows, 117,415,368 entries (Flan_1565)
/// - queen: elasticity-hex8 71 x 110 x 177, 4,147,110 rows, 329,499,288 entries (Queen_4147)
/// - bump: elasticity-tet4 99^3, 2,910,897 rows (Bump_2911)
/// - serena: elasticity-tet4 77^3 with contrast 1e4, 1,369,599 rows (Serena)
/// - audikw: elasticity-hex8 68^3, 943,296 rows, 78.6 entries a row. A substitute: audikw_1 (943,695
///   rows, 82.3 a row) has quadratic tetrahedra and far longer longest rows.
/// - g3_circuit: circuit 1258 x 1260, 1,585,080 rows, 4.83 entries a row (G3_circuit)
/// - ecology2: poisson2d 999 x 1001, 999,999 rows, 4,995,995 entries (ecology2)
/// - thermomech: poisson2d-tri 452 x 452, 204,304 rows, 6.98 entries a row (thermomech_dM)
/// - heart: monodomain 216^3, 10,077,696 rows: the class of heart15 at a size for one node
/// - heart15: monodomain 956^3, 873,722,816 rows: its size there
/// - cube_coup: springs3d-tet4 81 x 81 x 82, 4 unknowns a node, 59 entries a row (Cube_Coup_dt0, _dt6: 57.5)
/// - geo, hook, bone010: elasticity-tet4 of 1,441,908, 1,497,600 and 985,527 rows, 44.1, 43.4 and 43.9
///   entries a row (Geo_1438: 43.9, Hook_1498: 40.7, bone010: 48.5, which is porous)
/// - bmwcra, consph: elasticity-hex8 18 x 19 x 145 and 19 x 34 x 43, the rows of bmwcra_1 and consph, 74.9
///   and 75.4 entries a row (71.6, 72.1)
/// - ldoor, hood: springs2d-tri 357 x 381 and 177 x 178, 7 unknowns a node, 48.7 and 48.4 entries a row
///   (48.9, 48.8)
/// - stocf: monodomain 112 x 114 x 115 with large time steps, contrast 1e6, 14.7 entries a row (StocF-1465:
///   14.3)
/// - crankseg_1, crankseg_2: springs3d-hubs of 52,728 and 63,423 rows, 218 and 219 entries a row (201, 222),
///   with some rows of 2,000 and more
/// - tmt_sym, thermal2: poisson2d-tri 852 x 853 and 1108 x 1108 (6.99 entries a row)
/// - poisson1d_large: poisson1d of 2^30 rows, constant coefficients (poisson1d)
///
/// Every one is a stand-in: it has the size and structure of the matrix, not its values, so that the time
/// of an iteration says something about the original and their number nothing.
///
/// scale   in (0, 1]: the number of rows shrinks about in proportion, every side by the square or cube root,
///         but to no less than 2 nodes
/// Errors  usage  unknown name, scale outside (0, 1]
ProblemOptions preset(std::string const& name, double scale = 1.0);
std::vector<std::string> preset_names();

/// Rows of the whole matrix. Checks the options like make_problem().
std::int64_t problem_rows(ProblemOptions const& options);
/// Entries that the whole matrix has at least, without making any; few more in a large one. Checks them too.
std::int64_t least_entries(ProblemOptions const& options);

/// Whether there are b that no x reaches: nothing is held, and there is no mass matrix. Checks the options too.
bool is_singular(ProblemOptions const& options);

/// One line for people: kind, size, coefficients, boundary, rows, seed. Checks the options like
/// make_problem().
std::string describe(ProblemOptions const& options);

/// Rows of a generated matrix: the contiguous share from share_first(n, size, rank) on.
///
/// Every rank makes its own rows without communication; row i is the same, bit for bit, for every size and
/// rank. The matrix is symmetric bit for bit, its columns rise inside a row, and the pattern depends on kind
/// and sizes alone (for `circuit` also on seed and long_edges): elements keep their full blocks, zeros
/// included. panel() is const and free of shared state: several threads may call it at once.
///
/// - Errors: usage: unknown kind; a side <= 0, or not 1 where the kind has no such dimension; a lattice
///   too thin to hold one element; more rows or entries than 63 bits count; an option of another kind
///   or out of range; rank outside [0, size); a panel outside this rank's rows
/// - Cost: a few kilobytes of element matrices are stored, no row is. Measured on one core, in million
///   entries a second: 25 circuit, 50 poisson7 and monodomain, 250 elasticity
std::unique_ptr<RowSource> make_problem(ProblemOptions const& options, int size, int rank);

}  // namespace hostless
