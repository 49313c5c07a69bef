#pragma once
// What a matrix gives each rank to do: of lattices by counts alone, of anything else by its plan.

#include "hostless/model/counts.hpp"
#include "hostless/model/solve_price.hpp"
#include "input.hpp"

namespace hostless {

/// The work of the slowest rank, and what the exchange of all ranks sends by each route that was counted.
struct SolvedShare {
  SolveShare work;
  double rows = 0.0, entries = 0.0;    ///< of the whole matrix
  std::vector<ExchangeCounts> counts;  ///< empty: one rank
};

/// Whether a generated problem is a lattice of boxes (poisson1d, 2d, 7, 27), for which nothing is made.
bool is_lattice(ProblemOptions const& problem);

/// The same problem with `times` as many rows, sides in turn doubled. Errors  usage  `times` no power of two
ProblemOptions grown(ProblemOptions problem, int times);

/// Of a lattice dealt in boxes. Errors  usage  more ranks than boxes
SolvedShare share_of_lattice(ProblemOptions const& problem, NodeMap const& nodes);

/// Of a file, or another generated problem, planned for as many ranks. Errors  those of plan_matrix
SolvedShare share_of_matrix(InputOptions const& input, NodeMap const& nodes);

}  // namespace hostless
