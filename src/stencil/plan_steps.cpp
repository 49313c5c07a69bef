#include "stencil/plan_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "stencil/array_axes.hpp"

namespace hostless {

namespace {

constexpr int deepest = 1024;

/// Cells that a rank in the middle steps, its own and the halo's, when `behind` more steps are to come.
double cells_stepped(BoxPartition const& partition, StencilKernel const& kernel, int behind) {
  double cells = 1;
  for (int a = 0; a < 3; ++a) {
    std::size_t const axis = static_cast<std::size_t>(a);
    int const along = partition.ranks_along[axis];
    int const sides = partition.grid.boundary[axis] == GridBoundary::periodic ? 2 : std::min(along - 1, 2);
    cells *= static_cast<double>(partition.thinnest(a)) +
             static_cast<double>(sides) * behind * kernel.radius[axis];
  }
  return cells;
}

int cheapest_depth(BoxPartition const& partition, StencilKernel const& kernel, StencilCosts const& costs,
                   int most) {
  int best = 1;
  double least = 0, stepped = 0;
  for (int depth = 1; depth <= most; ++depth) {
    stepped += cells_stepped(partition, kernel, depth - 1) * costs.cell;
    double const a_step = (costs.exchange + stepped) / depth;
    if (depth > 1 && a_step >= least) continue;
    least = a_step, best = depth;
  }
  return best;
}

std::int64_t cells_of_box(BoxPartition const& partition) {
  return partition.thinnest(0) * partition.thinnest(1) * partition.thinnest(2);
}
std::int64_t box_bytes(BoxPartition const& partition, StencilKernel const& kernel) {
  return cells_of_box(partition) * static_cast<std::int64_t>(kernel.value_bytes) *
         (2 * kernel.fields + kernel.coefficients);
}

// Where the grid itself allows no more, no number of ranks does.
bool fewer_ranks_help(BoxPartition const& partition, StencilKernel const& kernel) {
  BoxPartition const whole{partition.grid, {1, 1, 1}};
  return deepest_halo(whole, kernel) > deepest_halo(partition, kernel);
}
char const* or_fewer_ranks(BoxPartition const& partition, StencilKernel const& kernel) {
  return fewer_ranks_help(partition, kernel) ? ", or fewer ranks" : "";
}

// A depth that was asked for may be too small, or the boxes too thin for any.
[[noreturn]] void refuse_block_steps(BoxPartition const& partition, StencilKernel const& kernel,
                                     StencilOptions const& options, int most) {
  if (options.block_steps <= most)
    throw Error(ErrorCode::usage,
                fmt::format("{} in one pass, {} between two exchanges (a pass needs "
                            "the halo of all its steps). Use a depth of at least {}.",
                            counted(options.block_steps, "step"), options.depth, options.block_steps));
  throw Error(
      ErrorCode::usage,
      fmt::format("{} in one pass, where the thinnest box allows {} between two exchanges (a "
                  "pass needs the halo of all its steps). Use block steps of at most {}{}.",
                  counted(options.block_steps, "step"), most, most, or_fewer_ranks(partition, kernel)));
}

/// Of three axes a plane travels between caches in every step: what a second thread steps must take longer. 30^3 cells
/// on two threads 4.4 us and on one 3.2 where they meet in 0.2 us, 2.1 where in 0.04; 40^3 in 0.2 us as long on two
/// (jacobi3d, fp32; docs/performance-cpu.md).
bool is_second_worth(Grid const& grid, StencilKernel const& kernel, double cells, double handshake_s) {
  std::size_t const longest = static_cast<std::size_t>(
      std::max_element(grid.extent.begin(), grid.extent.end()) - grid.extent.begin());
  double const plane = cells / static_cast<double>(std::max(grid.extent[longest], std::int64_t{1}));
  double const in_fp32 = static_cast<double>(kernel.value_bytes) / 4;
  return cells / 2 * in_fp32 >= 2560 + plane * (9.5 + 40e6 * handshake_s);
}

bool has_room(Grid const& grid, StencilKernel const& kernel, int ranks, int depth) {
  BoxPartition partition{grid, {1, 1, 1}};
  try {
    partition.ranks_along = least_surface(grid, kernel.radius, ranks);
  } catch (Error const&) {
    return false;
  }
  return deepest_halo(partition, kernel) >= depth;
}

}  // namespace

int deepest_halo(BoxPartition const& partition, StencilKernel const& kernel) {
  std::int64_t most = deepest;
  for (int a = 0; a < 3; ++a) {
    std::size_t const axis = static_cast<std::size_t>(a);
    if (kernel.radius[axis] == 0) continue;
    if (partition.ranks_along[axis] > 1 || partition.grid.boundary[axis] == GridBoundary::periodic)
      most = std::min(most, partition.thinnest(a) / kernel.radius[axis]);
  }
  return static_cast<int>(most);
}

StepsChosen choose_steps(BoxPartition const& partition, StencilKernel const& kernel,
                         StencilOptions const& options, StencilCosts const& costs, std::int64_t cache_bytes) {
  int const most = deepest_halo(partition, kernel);
  if (most < 1)
    throw Error(
        ErrorCode::usage,
        fmt::format("boxes of {} cells for a stencil of radius {} (the halo of one step is deeper than the "
                    "thinnest box). {}.",
                    axes_text(std::array{partition.thinnest(0), partition.thinnest(1), partition.thinnest(2)},
                              kernel.axes),
                    axes_text(kernel.radius, kernel.axes),
                    fewer_ranks_help(partition, kernel)
                        ? "Use fewer ranks"
                        : "Use a larger grid, or another boundary than periodic"));
  if (options.depth > most)
    throw Error(ErrorCode::usage,
                fmt::format("{} between two exchanges, where the thinnest box allows {} (a deeper halo "
                            "would come from more than the neighbour). Use a depth of at most {}{}.",
                            counted(options.depth, "step"), most, most, or_fewer_ranks(partition, kernel)));
  int const wanted_block = box_bytes(partition, kernel) <= cache_bytes ? 1 : kernel.axes == 3 ? 8 : 16;
  StepsChosen chosen;
  chosen.depth = options.depth > 0 ? options.depth
                                   : std::min(most, std::max({cheapest_depth(partition, kernel, costs, most),
                                                              options.block_steps, wanted_block}));
  chosen.block_steps = std::min(options.block_steps > 0 ? options.block_steps : wanted_block, chosen.depth);
  if (options.block_steps > chosen.depth) refuse_block_steps(partition, kernel, options, most);
  return chosen;
}

double step_with_halos(BoxPartition const& partition, StencilKernel const& kernel, StencilCosts const& costs,
                       int depth) {
  double seconds = costs.exchange;
  for (int behind = 0; behind < depth; ++behind)
    seconds += cells_stepped(partition, kernel, behind) * costs.cell;
  return seconds / depth;
}

double step_with_sharing(BoxPartition const& slabs, StencilKernel const& kernel, StencilCosts const& costs,
                         double sharing) {
  // the rest passes beside stepping: with it cubes of 30 to 66 cells a side had the faster way with and without a cache in
  // common, without it none of the former (docs/performance-cpu.md)
  constexpr double waited_for = 2.0 / 3;
  return cells_stepped(slabs, kernel, 0) * costs.cell + waited_for * sharing;
}

int ranks_worth(Grid const& grid, StencilKernel const& kernel, int depth, std::int64_t steps, int most,
                double handshake_s) {
  // 64 x 64 cells on two threads of two: 0.41 us a step, on one 0.54 (jacobi2d, fp32; docs/performance-cpu.md)
  double const stepped_often = kernel.axes == 3 ? 2560 : 2048;
  constexpr double worth_starting = 1 << 21, stepped_once = 1 << 16;
  double cells = kernel.fields;
  for (std::int64_t const extent : grid.extent) cells *= static_cast<double>(extent);
  double const worth =
      std::max(cells / stepped_once,
               std::min(cells / stepped_often, cells * static_cast<double>(steps) / worth_starting));
  int ranks = static_cast<int>(std::clamp(worth, 1.0, static_cast<double>(most)));
  if (kernel.axes == 3 && !is_second_worth(grid, kernel, cells, handshake_s)) ranks = 1;
  while (ranks > 1 && !has_room(grid, kernel, ranks, std::max(depth, 1))) --ranks;
  return ranks;
}

std::optional<BoxPartition> slabs_side_by_side(Grid const& grid, StencilKernel const& kernel,
                                               StencilOptions const& options, int ranks,
                                               std::int64_t cache_bytes) {
  constexpr int thin =
      4;  // radii: of thinner slabs the outer ones, with rows that stay, have much less to do
  // of fewer, steps are about as long as waiting; of three axes it is timed which is shorter (measure_sharing)
  std::int64_t const worth_waiting_for = kernel.axes == 3 ? 1 << 12 : 1 << 17;
  BoxPartition const slabs{grid, {ranks, 1, 1}};
  bool const is_cut_so =
      options.ranks_along == std::array<int, 3>{0, 0, 0} || options.ranks_along == slabs.ranks_along;
  bool const is_open = options.share != ShareCells::never && options.depth == 0 && options.block_steps <= 1 &&
                       !options.overlap && options.route == Route::direct && options.nodes.nodes() <= 1;
  bool const can_be =
      ranks > 1 && is_cut_so && is_open && kernel.radius[0] > 0 && slabs.thinnest(0) >= kernel.radius[0];
  bool const pays = slabs.thinnest(0) >= thin * kernel.radius[0] &&
                    cells_of_box(slabs) * kernel.fields >= worth_waiting_for &&
                    box_bytes(slabs, kernel) <= cache_bytes;
  if (!can_be || !(pays || options.share == ShareCells::always)) return std::nullopt;
  return slabs;
}

std::array<bool, 3> wrapped_axes(BoxPartition const& partition, StencilKernel const& kernel,
                                 StepsChosen const& chosen) {
  std::array<bool, 3> found{};
  for (std::size_t a = 0; a < 3; ++a)
    found[a] = chosen.block_steps == 1 && kernel.radius[a] > 0 &&
               (partition.ranks_along[a] == 1 || chosen.shares) &&
               partition.grid.boundary[a] == GridBoundary::periodic;
  return found;
}

int next_pass(std::int64_t left, int block_steps, bool looks) {
  std::int64_t const free = looks && left > 1 ? left - 1 : left;
  return static_cast<int>(std::min(free, std::int64_t{block_steps}));
}

}  // namespace hostless
