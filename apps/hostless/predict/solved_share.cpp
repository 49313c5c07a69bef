#include "predict/solved_share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include "hostless/base/error.hpp"
#include "hostless/solve/matrix.hpp"
#include "setup_shown.hpp"

namespace hostless {
namespace {

int axes_of(std::string const& kind) { return kind == "poisson1d" ? 1 : kind == "poisson2d" ? 2 : 3; }

// The last axis is x.
Grid grid_of(ProblemOptions const& p) {
  Grid grid;
  int const axes = axes_of(p.kind);
  grid.extent = {axes == 3 ? p.nz : axes == 2 ? p.ny : 1, axes == 3 ? p.ny : 1, p.nx};
  return grid;
}

double entries_of(RowSource const& source) {
  constexpr std::int64_t panel_rows = 4096;
  RowPanel panel;
  double entries = 0;
  for (std::int64_t row = source.first_row(); row < source.last_row(); row += panel_rows) {
    source.pattern(row, std::min(panel_rows, source.last_row() - row), panel);
    entries += static_cast<double>(panel.column.size());
  }
  return entries;
}

}  // namespace

bool is_lattice(ProblemOptions const& problem) {
  constexpr std::array kinds = {"poisson1d", "poisson2d", "poisson7", "poisson27"};
  return std::find(kinds.begin(), kinds.end(), problem.kind) != kinds.end();
}

ProblemOptions grown(ProblemOptions problem, int times) {
  int const axes = axes_of(problem.kind);
  std::array<std::int64_t*, 3> const sides = {&problem.nx, &problem.ny, &problem.nz};
  for (int axis = 0; times > 1; times /= 2, axis = (axis + 1) % axes) {
    if (times % 2 != 0)
      throw Error(ErrorCode::usage,
                  "weak scaling to numbers of ranks that are no power of two times the first "
                  "(sides are doubled in turn). Give --nodes 1..1024, or others so.");
    *sides[static_cast<std::size_t>(axis)] *= 2;
  }
  return problem;
}

SolvedShare share_of_lattice(ProblemOptions const& problem, NodeMap const& nodes) {
  Grid const grid = grid_of(problem);
  std::array<int, 3> radius{};
  std::array<std::int64_t, 3> depth{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    radius[axis] = static_cast<int>(depth[axis] = grid.extent[axis] > 1);
  BoxPartition const boxes{grid, least_surface(grid, radius, nodes.ranks())};
  SolvedShare share;
  share.rows = static_cast<double>(problem_rows(problem));
  share.entries = static_cast<double>(least_entries(problem));
  for (Rank rank = 0; rank < nodes.ranks(); ++rank)
    share.work.rows = std::max(share.work.rows, static_cast<double>(boxes.box(rank).cells()));
  share.work.entries = share.entries / share.rows * share.work.rows;
  if (nodes.ranks() == 1) return share;
  CoarsePatterns const halo = box_strips(boxes, depth, problem.kind != "poisson27");
  for (Route route : all_routes)  // others cut strips
    if (!cuts_items(route)) share.counts.push_back(count_exchange(route, halo.patterns, nodes, halo.weights));
  auto const& leaving = share.counts.front().leaving;
  share.work.border_rows =
      std::min(share.work.rows, static_cast<double>(*std::max_element(leaving.begin(), leaving.end())));
  return share;
}

SolvedShare share_of_matrix(InputOptions const& input, NodeMap const& nodes) {
  SolvedShare share;
  std::vector<Pattern> patterns;
  std::mutex adding;
  SetupShown shown(true);
  run_on_threads(nodes.ranks(), [&](Group& group) {
    auto const source = input.open(group, nullptr, 0, Symmetry::any);
    double const entries = entries_of(*source);
    PlannedMatrix planned = plan_matrix(group, *source, MatrixOptions{});
    std::lock_guard const lock(adding);
    share.entries += entries;
    if (group.rank() != 0) return;
    share.rows = static_cast<double>(source->global_rows());
    patterns = std::move(planned.patterns);
  });
  shown.end();
  for (Pattern const& p : patterns) {
    share.work.rows = std::max(share.work.rows, static_cast<double>(p.owned));
    share.work.border_rows = std::max(share.work.border_rows, static_cast<double>(p.item.size()));
  }
  share.work.entries = share.entries / share.rows * share.work.rows;
  if (nodes.ranks() == 1) return share;
  for (Route route : all_routes) share.counts.push_back(count_exchange(route, patterns, nodes));
  return share;
}

}  // namespace hostless
