#pragma once
// How a cell is solved, and compared with the reference of its plan.

#include <cstdint>
#include <string>
#include <vector>

#include "solve_contract_cells.hpp"
#include "solve_contract_schedule.hpp"

namespace hostless::contract {

/// How a solve ended, with x in global order.
struct Outcome {
  Status status = Status::running;
  std::int64_t iterations = 0, restarts = 0;
  double true_residual = 0;
  std::vector<double> history, x;

  Bytes bytes() const;
  static Outcome from(Bytes const& bytes);
  /// The first difference in words, or nothing.
  std::string difference(Outcome const& other) const;
};

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
