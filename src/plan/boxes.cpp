#include "hostless/plan/boxes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/rows.hpp"
#include "plan/index.hpp"

namespace hostless {

namespace {

/// All 26, from (-1, -1, -1) on.
std::vector<Direction> all_directions() {
  std::vector<Direction> found;
  for (int a = -1; a <= 1; ++a)
    for (int b = -1; b <= 1; ++b)
      for (int c = -1; c <= 1; ++c)
        if (a != 0 || b != 0 || c != 0) found.push_back({a, b, c});
  return found;
}

/// The cells of `box` that its neighbour in a direction needs; with `outside`, those beyond the box that it
/// needs itself.
Box strip_of(Box const& box, Direction direction, std::array<std::int64_t, 3> depth, bool outside) {
  Box strip = box;
  for (std::size_t a = 0; a < 3; ++a) {
    if (direction[a] < 0) {
      strip.low[a] = outside ? box.low[a] - depth[a] : box.low[a];
      strip.high[a] = strip.low[a] + depth[a];
    } else if (direction[a] > 0) {
      strip.high[a] = outside ? box.high[a] + depth[a] : box.high[a];
      strip.low[a] = strip.high[a] - depth[a];
    }
  }
  return strip;
}

Direction opposite(Direction direction) { return {-direction[0], -direction[1], -direction[2]}; }

bool is_wanted(Direction direction, std::array<std::int64_t, 3> depth, bool faces_only) {
  int along = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    if (direction[a] != 0 && depth[a] == 0) return false;
    along += direction[a] != 0 ? 1 : 0;
  }
  return along == 1 || !faces_only;
}

/// Strips that a rank sends, in the order of directions.
std::vector<HaloStrip> strips_out(BoxPartition const& partition, Rank rank, std::array<std::int64_t, 3> depth,
                                  bool faces_only) {
  std::vector<HaloStrip> strips;
  std::int64_t first = 0;
  Box const box = partition.box(rank);
  for (Direction const direction : all_directions()) {
    if (!is_wanted(direction, depth, faces_only)) continue;
    Rank const neighbour = partition.neighbour(rank, direction);
    if (neighbour < 0) continue;
    Box const cells = strip_of(box, direction, depth, false);
    strips.push_back({direction, neighbour, cells, first});
    first += cells.cells();
  }
  return strips;
}

void check_depth(BoxPartition const& partition, std::array<std::int64_t, 3> depth) {
  for (int a = 0; a < 3; ++a) {
    bool const has_halo =
        partition.ranks_along[at(a)] > 1 || partition.grid.boundary[at(a)] == GridBoundary::periodic;
    if (has_halo && depth[at(a)] > partition.thinnest(a))
      throw Error(
          ErrorCode::usage,
          fmt::format(
              "a halo of {} along axis {}, where the thinnest of {} has {} (its cells would come "
              "from more than the neighbour). Use fewer steps between two exchanges, or fewer ranks along "
              "this axis.",
              counted(depth[at(a)], "cell"), a, counted(partition.ranks_along[at(a)], "box", "boxes"),
              partition.thinnest(a)));
  }
}

std::int64_t cells_after(std::vector<HaloStrip> const& strips) {
  return strips.empty() ? 0 : strips.back().first + strips.back().cells.cells();
}

}  // namespace

char const* name(GridBoundary boundary) {
  switch (boundary) {
    case GridBoundary::dirichlet:
      return "dirichlet";
    case GridBoundary::neumann:
      return "neumann";
    case GridBoundary::periodic:
      return "periodic";
  }
  return "unknown";
}

GridBoundary grid_boundary_from(char const* text) {
  for (GridBoundary const boundary : {GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic})
    if (std::string(text) == name(boundary)) return boundary;
  throw Error(
      ErrorCode::usage,
      fmt::format("boundary '{}' (there is none of that name). Use dirichlet, neumann or periodic.", text));
}

std::array<int, 3> BoxPartition::coordinates(Rank rank) const {
  return {rank / (ranks_along[1] * ranks_along[2]), rank / ranks_along[2] % ranks_along[1],
          rank % ranks_along[2]};
}

Box BoxPartition::box(Rank rank) const {
  auto const where = coordinates(rank);
  Box box;
  for (std::size_t a = 0; a < 3; ++a) {
    box.low[a] = piece(where[a], ranks_along[a], grid.extent[a]);
    box.high[a] = piece(where[a] + 1, ranks_along[a], grid.extent[a]);
  }
  return box;
}

Rank BoxPartition::neighbour(Rank rank, Direction direction) const {
  auto where = coordinates(rank);
  for (std::size_t a = 0; a < 3; ++a) {
    where[a] += direction[a];
    if (where[a] >= 0 && where[a] < ranks_along[a]) continue;
    if (grid.boundary[a] != GridBoundary::periodic) return -1;
    where[a] = (where[a] + ranks_along[a]) % ranks_along[a];
  }
  return (where[0] * ranks_along[1] + where[1]) * ranks_along[2] + where[2];
}

std::int64_t BoxPartition::thinnest(int axis) const { return grid.extent[at(axis)] / ranks_along[at(axis)]; }

std::array<int, 3> least_surface(Grid const& grid, std::array<int, 3> radius, int ranks) {
  std::array<int, 3> best{};
  double least = std::numeric_limits<double>::infinity();
  auto const& n = grid.extent;
  for (int a = 1; a <= ranks; ++a) {
    if (ranks % a != 0 || a > n[0]) continue;
    for (int b = 1; b <= ranks / a; ++b) {
      int const c = ranks / a / b;
      if (ranks / a % b != 0 || b > n[1] || c > n[2]) continue;
      std::array<int, 3> const along{a, b, c};
      double surface = 0;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        double const cuts =
            along[axis] - (grid.boundary[axis] == GridBoundary::periodic && along[axis] > 1 ? 0 : 1);
        double const face = static_cast<double>(n[0]) * static_cast<double>(n[1]) *
                            static_cast<double>(n[2]) / static_cast<double>(n[axis]);
        // rows of the last axis are contiguous: of two cuts of one size that across the slower axis copies
        // longer pieces
        double const pieces = 1 + 0.01 * static_cast<double>(axis);
        surface += cuts * face * pieces * std::max(radius[axis], 0);
        if (radius[axis] == 0) surface += 1e-3 * cuts;
      }
      if (surface < least) least = surface, best = along;
    }
  }
  if (best[0] == 0) {
    std::vector<std::int64_t> axes;  // one of a single cell may be none of the caller's
    std::copy_if(n.begin(), n.end(), std::back_inserter(axes),
                 [](std::int64_t extent) { return extent > 1; });
    if (axes.empty()) axes.push_back(1);
    throw Error(ErrorCode::usage,
                fmt::format("{} for a grid of {} {} (no {} boxes have a cell each). Use fewer ranks.",
                            counted(ranks, "rank"), fmt::join(axes, " x "),
                            axes == std::vector<std::int64_t>{1} ? "cell" : "cells", ranks));
  }
  return best;
}

BoxHalo box_halo(BoxPartition const& partition, Rank rank, std::array<std::int64_t, 3> depth,
                 bool faces_only) {
  check_depth(partition, depth);
  BoxHalo halo;
  halo.out = strips_out(partition, rank, depth, faces_only);
  halo.items_out = cells_after(halo.out);
  Box const box = partition.box(rank);
  std::vector<std::int64_t> at_source;  // where the neighbour has each strip among those that it sends
  for (Direction const direction : all_directions()) {
    if (!is_wanted(direction, depth, faces_only)) continue;
    Rank const neighbour = partition.neighbour(rank, direction);
    if (neighbour < 0) continue;
    for (HaloStrip const& sent : strips_out(partition, neighbour, depth, faces_only)) {
      if (sent.direction != opposite(direction)) continue;
      halo.in.push_back({direction, neighbour, strip_of(box, direction, depth, true), 0});
      at_source.push_back(sent.first);
    }
  }
  // ghosts come by (source rank, item): so plans have them
  std::vector<std::size_t> order(halo.in.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(halo.in[a].neighbour, at_source[a]) < std::pair(halo.in[b].neighbour, at_source[b]);
  });
  for (std::size_t const s : order) {
    halo.in[s].first = halo.items_in;
    halo.items_in += halo.in[s].cells.cells();
  }
  return halo;
}

std::vector<Pattern> box_patterns(BoxPartition const& partition, std::array<std::int64_t, 3> depth,
                                  bool faces_only) {
  check_depth(partition, depth);
  std::vector<Pattern> patterns(static_cast<std::size_t>(partition.ranks()));
  for (Rank rank = 0; rank < partition.ranks(); ++rank) {
    Pattern& pattern = patterns[static_cast<std::size_t>(rank)];
    auto const strips = strips_out(partition, rank, depth, faces_only);
    std::int64_t const items = cells_after(strips);
    if (items > std::numeric_limits<std::int32_t>::max())
      throw Error(
          ErrorCode::usage,
          fmt::format("rank {} sends {} cells in one exchange (more than 2^31 - 1). Use more ranks, or fewer "
                      "steps between two exchanges.",
                      rank, items));
    pattern.owned = items;
    pattern.item.resize(static_cast<std::size_t>(items));
    std::iota(pattern.item.begin(), pattern.item.end(), 0);
    pattern.first.resize(static_cast<std::size_t>(items) + 1);
    std::iota(pattern.first.begin(), pattern.first.end(), std::int64_t{0});
    pattern.receiver.reserve(static_cast<std::size_t>(items));
    for (HaloStrip const& strip : strips)
      pattern.receiver.insert(pattern.receiver.end(), static_cast<std::size_t>(strip.cells.cells()),
                              strip.neighbour);
  }
  return patterns;
}

}  // namespace hostless
