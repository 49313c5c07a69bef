#pragma once
// The cells of the contract of the solver: what may differ between two solves, and in what they may not
// differ.

#include <functional>
#include <string>
#include <vector>

#include "cover.hpp"
#include "hostless/problems/problems.hpp"
#include "hostless/solve/solver.hpp"

namespace hostless::contract {

/// What decides the bits of a solve. Equal plans must end equal, whatever the rest. `slices` stands for the
/// threads per row too.
struct Plan {
  int problem = 0, partition = 0, slices = 0, method = 0, preconditioner = 0;
  auto operator<=>(Plan const&) const = default;
};
/// The plan at the first coordinates of a point, and how many values each of them has.
Plan plan_at(Point const& point);
Point plan_sizes();
std::string name(Plan const& plan);

/// What may not change a bit.
struct Way {
  int run = 0, route = 0, format = 0;
};

struct Cell {
  Plan plan;
  Way way;
  /// The cells of which this is equal share a matrix and its plan.
  std::vector<int> matrix() const {
    return {plan.problem, plan.partition, plan.slices, way.route, way.format};
  }
};
std::string name(Cell const& cell);

struct ProblemChoice {
  ProblemOptions options;
  int block;  ///< of the plan; 0: as the library finds it
};
ProblemChoice problem_of(int index);
MatrixOptions matrix_options(Cell const& cell);
/// `disturb` is called before every barrier of threads.
SolveOptions solve_options(Cell const& cell, std::function<void(int)> disturb);

/// Every pair of values of two axes lies in some cell; deterministic.
std::vector<Cell> pairwise_cover();
/// All cells, those of one matrix one after the other.
std::vector<Cell> full_product();

}  // namespace hostless::contract
