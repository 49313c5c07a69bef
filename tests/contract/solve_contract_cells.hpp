#pragma once
// One text for every way to carry out the same plan: what may differ between two cells, and how one is
// solved.

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/solve/solver.hpp"

namespace hostless::contract {

/// What decides the bits of a solve. Equal plans must end equal, whatever the rest.
struct Plan {
  int problem = 0, partition = 0, slices = 0, method = 0, preconditioner = 0;
  auto operator<=>(Plan const&) const = default;
};

/// What may not change a bit.
struct Way {
  int run = 0, route = 0, format = 0;
};

struct Cell {
  Plan plan;
  Way way;
};
std::string name(Cell const& cell);

/// Every pair of values of two axes lies in some cell; deterministic.
std::vector<Cell> pairwise_cover();
std::vector<Cell> full_product();
/// The full product when HOSTLESS_FULL_PRODUCT is set, else the cover.
std::vector<Cell> chosen_cells();

/// How a solve ended, with x in the order of the matrix. Equal on all ranks.
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

/// Collective. `disturb` is called before every meeting of lanes.
Outcome solve(Transport& transport, Cell const& cell, std::function<void(int)> const& disturb = {});

/// The same plan on threads, host run, direct route, CSR with 32-bit columns: what every cell is compared
/// with.
Outcome reference(Plan const& plan, int ranks);

/// Delays that differ from call to call, from seed to seed: schedules.
std::function<void(int)> delays(std::uint64_t seed);

/// Solves all cells over this transport and compares; a line for each that differs. Collective; the answer is
/// the same on every rank. Every eighth cell is repeated under `repetitions` schedules.
std::vector<std::string> differences(Transport& transport, std::vector<Cell> const& cells, int repetitions);

}  // namespace hostless::contract
