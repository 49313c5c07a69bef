#pragma once
// How a cell is solved, and compared with the reference of its plan.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "outcome.hpp"
#include "solve_contract_cells.hpp"
#include "solve_contract_schedule.hpp"

namespace hostless::contract {

/// Of the plan's problem. Collective.
Matrix make_matrix(Transport& transport, Plan const& plan, MatrixOptions const& options);
/// Solves with the right-hand side and the guess of all cells. x: this rank's rows, in local order.
Outcome solve(Matrix const& matrix, Solver& solver);
/// This rank's rows of an x in global order.
Outcome share_of(Outcome const& whole, Matrix const& matrix);
/// The plan on threads, host run, direct route, CSR with 32-bit columns: what every cell is compared with.
Outcome reference(Plan const& plan, int ranks);

struct Findings {
  std::vector<std::string> different;  ///< a line for each solve that is not its reference
  std::int64_t cells = 0, solves = 0, converged = 0;
  Lateness lateness;
  std::string summary() const;
};

/// Solves all cells over this transport, each once in peace and `repetitions` times under as many schedules,
/// bound once. Collective; the answer is the same on every rank. `tell` (on rank 0) hears how far it is.
Findings check(Transport& transport, std::vector<Cell> const& cells, int repetitions,
               std::function<void(std::string const&)> const& tell = {});

}  // namespace hostless::contract
