#pragma once
// Stencils over arrays of Python's: whole ones on ranks that are threads and live as long as the call, or each rank's
// box of ranks that the caller has.

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hostless/stencil/stencil.hpp"
#include "ranks.hpp"

namespace hostless::python {

/// What is stepped. Arrays of three numbers are of the axes of Grid.
struct StencilWords {
  std::string name;
  int axes = 2;
  std::size_t value_bytes = 8;
  std::vector<double> parameters;  ///< rounded to the type of the cells when the kernel is made
  /// Address of a CellFunction, whose library the caller keeps; 0: the stencil that has this name, which says
  /// the rest of itself.
  std::uintptr_t update = 0;
  std::array<int, 3> radius{};
  bool star = true;
  int fields = 1, coefficients = 0;
};
/// Errors  usage  no such name, and what make_stencil refuses
StencilKernel kernel_of(StencilWords const& words);

/// On what, how far and how.
struct StencilTask {
  std::array<std::int64_t, 3> extent{1, 1, 1};
  std::array<std::string, 3> boundary{"dirichlet", "dirichlet", "dirichlet"};
  /// Fields, which are read and written, then coefficients: of all cells, or of a rank's box.
  std::vector<CellArray> arrays;
  std::int64_t steps = 0;
  int ranks = 0;  ///< 0: as many as can be used and are worth it
  std::array<int, 3> ranks_along{0, 0, 0};
  int depth = 0, block_steps = 0;
  std::int64_t every = 0;
  double tolerance = 0, time_limit_s = 0;  ///< 0: none
};

struct StencilReport {
  StencilResult result;
  int ranks = 1, depth = 1, block_steps = 1;
  std::array<int, 3> ranks_along{1, 1, 1};
};

/// Steps the arrays in place, without the GIL. Whatever ends it but a lost rank, they hold the cells of the
/// last complete step.
///
/// callback  called with the GIL on the calling thread after each look, when the arrays hold the cells of
///           that step; true ends the run there. Empty: nobody is called
/// Errors    usage  as StencilRun; what the callback or a signal raises in Python, in the end
StencilReport run_stencil(StencilKernel const& kernel, StencilTask const& task,
                          std::function<bool(StencilChange const&)> const& callback);

/// The same on ranks that the caller has, this thread being one: its arrays are its box of them. Collective.
///
/// ranks     with the GIL. task.ranks is not asked for
/// callback  of this rank alone: others may have another one, or none
/// Errors    usage  as StencilRun; what the callback or a signal raises in Python, in the end, and then on the other
///           ranks aborted, with its text
StencilReport run_stencil_among(Ranks& ranks, StencilKernel const& kernel, StencilTask const& task,
                                std::function<bool(StencilChange const&)> const& callback);
/// The cells of a rank in that. Errors  usage  fewer cells along an axis than boxes, or other products of boxes than `ranks`
Box stencil_box(StencilTask const& task, std::array<int, 3> radius, int axes, int rank, int ranks);

void bind_stencils(nanobind::module_& module);

}  // namespace hostless::python
