#include <algorithm>

#include "plan/index.hpp"
#include "stencil/pass.hpp"

namespace hostless {

namespace {

/// Tiles along one axis of the cells of several steps. Each step's tiles lie `behind` cells behind those of the step
/// before, a radius at least: a cell then finds its neighbours stepped in its own tile or one before it, and none of
/// them overwritten by the step after.
struct Tiles {
  std::vector<std::int64_t> ends;  ///< of the first step, of all tiles but the last
  std::int64_t behind = 0;

  /// size  of a tile; origin: from which on they are counted, so that they end where cache lines do
  Tiles(std::int64_t low, std::int64_t high, std::int64_t size, std::int64_t origin,
        std::int64_t cells_behind)
      : behind(cells_behind) {
    std::int64_t const past = low - origin;
    for (std::int64_t end = low - (past % size + size) % size + size; end < high; end += size)
      ends.push_back(end);
  }
  std::size_t count() const { return ends.size() + 1; }
  void cut(Box& box, std::size_t axis, std::size_t tile, int step) const {
    if (tile > 0) box.low[axis] = std::max(box.low[axis], ends[tile - 1] - step * behind);
    if (tile < ends.size()) box.high[axis] = std::min(box.high[axis], ends[tile] - step * behind);
  }
};

/// So many cells that as many tiles as `bytes` is larger than a cache, by whole grains, make `all`.
std::int64_t cut_to_fit(std::int64_t all, std::int64_t grain, std::int64_t bytes, std::int64_t cache) {
  std::int64_t const tiles = std::max((bytes + cache / 2) / cache, std::int64_t{1});
  std::int64_t const size = (all + tiles - 1) / tiles;
  return (size + grain - 1) / grain * grain;
}

}  // namespace

std::array<std::int64_t, 3> Pass::tile_of(Box const& cells, int steps) const {
  // so many planes at once that their rows are a call's worth of work, and of thin ones a part of what the cache holds: a
  // call costs as much as some hundred cells
  std::int64_t const least = cells.extent(1) > 1 ? 8 : 16, reach = std::int64_t{steps} * kernel_.radius[0];
  auto const value_bytes = static_cast<std::int64_t>(kernel_.value_bytes);
  std::int64_t const of_cell = value_bytes * (2 * kernel_.fields + kernel_.coefficients);
  std::int64_t const row = cells.extent(2) + 64 / value_bytes;  // and what lies between two
  std::int64_t const planes = std::max(least, caches_.own / 4 / (cells.extent(1) * row * of_cell) - reach);
  auto const bytes = [&](std::int64_t rows, std::int64_t columns) {
    return (planes + reach) * rows * columns * of_cell;
  };
  std::int64_t const all = cells.extent(2), rows_grain = std::max(8, kernel_.radius[1]);
  // rows are cut last: what lies side by side in memory is fetched ahead
  std::int64_t const rows = cut_to_fit(cells.extent(1), rows_grain, bytes(cells.extent(1), all), caches_.own);
  return {planes, rows, cut_to_fit(all, columns_, bytes(std::min(rows, cells.extent(1)), all), caches_.own)};
}

void Pass::blocked(std::array<StepArrays const*, 2> const& arrays, int steps, Box const& wanted,
                   bool mirrored) {
  std::vector<Box> cells;  // of each step
  for (int k = 0; k < steps; ++k) cells.push_back(grown(wanted, steps - 1 - k));
  Box const& first = cells.front();
  if (first.cells() <= 0) return;
  auto const size = tile_of(first, steps);
  // along rows a step is behind by whole cache lines, so that tiles of all steps begin with one
  std::int64_t const line = 64 / static_cast<std::int64_t>(kernel_.value_bytes);
  auto const tiles = [&](std::size_t a) {
    std::int64_t const behind = a == 2 ? (kernel_.radius[a] + line - 1) / line * line : kernel_.radius[a];
    GridArray const& array = *arrays[0]->written[0];
    return Tiles(first.low[a], first.high[a], size[a], a == 2 ? array.line_begin() : array.box().low[a],
                 behind);
  };
  std::array<Tiles, 3> const along{tiles(0), tiles(1), tiles(2)};
  for (std::size_t b = 0; b < along[1].count(); ++b)
    for (std::size_t c = 0; c < along[2].count(); ++c)
      for (std::size_t a = 0; a < along[0].count(); ++a)
        for (int k = 0; k < steps; ++k) {
          Box tile = cells[at(k)];
          along[0].cut(tile, 0, a, k), along[1].cut(tile, 1, b, k), along[2].cut(tile, 2, c, k);
          step(*arrays[at(k % 2)], tile, mirrored || k + 1 < steps);
        }
}

}  // namespace hostless
