#include "stencil/agreement.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/hash.hpp"
#include "hostless/base/error.hpp"
#include "plan/index.hpp"
#include "stencil/array_axes.hpp"

namespace hostless {

void check_grid(Grid const& grid, StencilKernel const& kernel) {
  for (int a = 0; a < 3; ++a) {
    if (grid.extent[at(a)] < 1)
      throw Error(ErrorCode::usage,
                  fmt::format("a grid of {} cells (no axis may be empty). Give every axis at least 1 cell.",
                              axes_text(grid.extent, kernel.axes)));
    bool const looks = kernel.radius[at(a)] > 0;
    if (looks && grid.boundary[at(a)] != GridBoundary::dirichlet && grid.extent[at(a)] < kernel.radius[at(a)])
      throw Error(ErrorCode::usage,
                  fmt::format("{} along axis {} of a grid, where the stencil looks "
                              "{} far (what lies beyond the end would be "
                              "beyond the other end, too). Use a larger grid.",
                              counted(grid.extent[at(a)], "cell"), array_axis(at(a), kernel.axes),
                              counted(kernel.radius[at(a)], "cell")));
  }
}

BoxPartition partition_for(int ranks, Grid const& grid, StencilKernel const& kernel,
                           StencilOptions const& options) {
  BoxPartition partition{grid, options.ranks_along};
  if (options.ranks_along == std::array<int, 3>{0, 0, 0})
    partition.ranks_along = least_surface(grid, kernel.radius, ranks);
  for (int a = 0; a < 3; ++a) {
    int const along = partition.ranks_along[at(a)];
    if (along < 1 || along > grid.extent[at(a)])
      throw Error(ErrorCode::usage, fmt::format("{} along axis {} of {} (each needs a cell). Use 1 to {}.",
                                                counted(along, "rank"), array_axis(at(a), kernel.axes),
                                                counted(grid.extent[at(a)], "cell"), grid.extent[at(a)]));
  }
  if (partition.ranks() != ranks)
    throw Error(ErrorCode::usage,
                fmt::format("{} boxes for {} (each rank has one). Give "
                            "numbers whose product is the number of ranks.",
                            axes_text(partition.ranks_along, kernel.axes), counted(ranks, "rank")));
  return partition;
}

NodeMap nodes_of(StencilOptions const& options, BoxPartition const& partition) {
  return options.nodes.node.empty() ? NodeMap::blocks(partition.ranks(), partition.ranks()) : options.nodes;
}

std::uint64_t hash_of(Grid const& grid, StencilKernel const& kernel, StencilOptions const& options) {
  Hash hash;
  for (std::size_t a = 0; a < 3; ++a) {
    hash.add(grid.extent[a]), hash.add(static_cast<std::int64_t>(grid.boundary[a]));
    hash.add(std::int64_t{kernel.radius[a]}), hash.add(std::int64_t{options.ranks_along[a]});
  }
  for (char const c : kernel.name) hash.add(std::int64_t{c});
  for (std::byte const b : kernel.parameters) hash.add(static_cast<std::int64_t>(b));
  for (std::int64_t const n : {std::int64_t{kernel.axes}, std::int64_t{kernel.star},
                               std::int64_t{kernel.fields}, std::int64_t{kernel.coefficients},
                               static_cast<std::int64_t>(kernel.value_bytes), std::int64_t{options.depth},
                               std::int64_t{options.block_steps}, static_cast<std::int64_t>(options.route),
                               static_cast<std::int64_t>(options.share), std::int64_t{options.overlap}})
    hash.add(n);
  return hash.value();
}

std::string refusal_of(std::function<void()> const& check) {
  try {
    check();
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

std::vector<double> numbers_of(std::int64_t steps, std::int64_t before, StencilStop const& stop,
                               std::string const& why) {
  return {why.empty() ? 0.0 : 1.0, static_cast<double>(steps), static_cast<double>(before),
          static_cast<double>(stop.every), stop.tolerance};
}

void check_asked(std::vector<std::vector<double>> const& numbers, std::string const& why) {
  if (!why.empty()) throw Error(ErrorCode::usage, why);
  for (std::size_t r = 0; r < numbers.size(); ++r)
    if (numbers[r][0] != 0)
      throw Error(ErrorCode::usage, fmt::format("rank {} refuses to step, and says why (nobody can step "
                                                "without it). Correct what it is given.",
                                                r));
  auto const text = [](std::vector<double> const& of) {
    return fmt::format("{} after {:.0f}, a look every {:.0f} and a tolerance of {}",
                       counted(static_cast<std::int64_t>(of[1]), "step"), of[2], of[3], of[4]);
  };
  for (std::size_t r = 1; r < numbers.size(); ++r)
    if (numbers[r] != numbers[0])
      throw Error(ErrorCode::usage, fmt::format("rank {} is asked for {}; rank 0 for {} (they would wait for "
                                                "each other in vain). Ask all ranks for the same.",
                                                r, text(numbers[r]), text(numbers[0])));
}

char const* name(StencilStatus status) {
  switch (status) {
    case StencilStatus::steps_done:
      return "steps_done";
    case StencilStatus::steady:
      return "steady";
    case StencilStatus::not_finite:
      return "not_finite";
    case StencilStatus::peer_lost:
      return "peer_lost";
    case StencilStatus::aborted:
      return "aborted";
  }
  return "unknown";
}

int exit_code(StencilStatus status) {
  switch (status) {
    case StencilStatus::steps_done:
    case StencilStatus::steady:
      return 0;
    case StencilStatus::not_finite:
      return 1;
    case StencilStatus::peer_lost:
    case StencilStatus::aborted:
      return 4;
  }
  return 4;
}

void check_kernel(StencilKernel const& kernel) {
  auto const refuse = [&](std::string const& what) {
    throw Error(ErrorCode::usage,
                fmt::format("stencil '{}' {}. Correct its StencilKernel.", kernel.name, what));
  };
  if (kernel.update == nullptr) refuse("has no function (nothing could be stepped)");
  if (kernel.axes < 1 || kernel.axes > 3)
    refuse(fmt::format("has {} (1 to 3 can be stepped)", counted(kernel.axes, "axis", "axes")));
  if (kernel.fields < 1 || kernel.fields > 8)
    refuse(fmt::format("has {} (1 to 8 travel together)", counted(kernel.fields, "field")));
  if (kernel.coefficients < 0 || kernel.coefficients > 64)
    refuse(fmt::format("has {} (0 to 64)", counted(kernel.coefficients, "coefficient")));
  if (kernel.value_bytes != 4 && kernel.value_bytes != 8)
    refuse(fmt::format("has values of {} (4: fp32, 8: fp64)", counted(kernel.value_bytes, "byte")));
  for (int const radius : kernel.radius)
    if (radius < 0 || radius > 64) refuse(fmt::format("looks {} far (0 to 64)", counted(radius, "cell")));
  if ((kernel.axes < 3 && kernel.radius[1] != 0) || (kernel.axes < 2 && kernel.radius[0] != 0))
    refuse("looks along an axis that it has not");
}

}  // namespace hostless
