// Parts of a grid on several GPUs, without one: how rows and tiles are dealt out, and that each part as a
// grid of its own, with halos that are fetched now and then, has the cells of the whole.
#include <gtest/gtest.h>

#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/stencil.hpp"
#include "stencil/gpu/choose_way.hpp"
#include "stencil/gpu/parts/part_rows.hpp"

namespace hostless::test {
namespace {

gpu::StencilShapes const shapes{{{4, 6, 16, true}, {4, 6, 16, false}}, {{{8, 8}, true}, {{8, 8}, false}}};
gpu::StencilDevice const device{"none", 132, 227 << 10};

constexpr GridBoundary boundaries[]{GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic};

gpu::StencilWay way_in_parts(Grid const& grid, GpuCells cells, int parts, int depth = 0) {
  GpuStencilOptions options;
  options.cells = cells;
  options.depth = depth;
  options.devices.clear();
  for (int k = 0; k < parts; ++k) options.devices.push_back(k % 2);
  return gpu::choose_way(grid, make_stencil("heat", 2, 4), options, shapes, device);
}

TEST(GridParts, HaveAllRowsInOrder) {
  for (GpuCells const cells : {GpuCells::plain, GpuCells::streamed, GpuCells::resident})
    for (GridBoundary const boundary : boundaries)
      for (int parts = 1; parts <= 5; ++parts) {
        Grid const grid{{257, 1, 300}, {boundary, GridBoundary::dirichlet, GridBoundary::dirichlet}};
        gpu::StencilWay const way = way_in_parts(grid, cells, parts);
        EXPECT_EQ(way.sharers, (parts + 1) / 2);
        ASSERT_EQ(way.parts.size(), static_cast<std::size_t>(parts));
        std::int64_t row = 0;
        int tile = 0;
        for (gpu::StencilPart const& part : way.parts) {
          EXPECT_EQ(part.low, row);
          EXPECT_GT(part.high, part.low + (parts > 1 ? way.halo_steps : 0) - 1);
          row = part.high;
          if (cells != GpuCells::resident) continue;
          EXPECT_EQ(part.first_tile, tile);
          EXPECT_GT(part.tiles, 0);
          EXPECT_LE(part.tiles * way.resident.x.count, device.multiprocessors / way.sharers);
          EXPECT_EQ(part.low, way.resident.y.own_low(tile));
          tile += part.tiles;
        }
        EXPECT_EQ(row, 257);
        if (cells == GpuCells::resident) {
          EXPECT_EQ(tile, way.resident.y.count);
        }
      }
}

TEST(GridParts, TilesOfWindowsLargerThanPartsHaveTheirNeighboursRows) {
  for (GridBoundary const boundary : boundaries)
    for (int rows = 9; rows < 70; ++rows)
      for (int parts = 2; parts <= 4; ++parts)
        for (int const depth : {2, 4}) {
          gpu::AxisTiles const tiles = gpu::AxisTiles::fewest(rows, 24, depth, 1, boundary, parts);
          if (tiles.count == 0) continue;
          EXPECT_GE(tiles.count, parts);
          for (int k = 0; k < tiles.count; ++k) {
            int const own = tiles.own_high(k) - tiles.own_low(k);
            EXPECT_GE(own, 2 * depth);
            for (int y = tiles.own_low(k) - depth; y < tiles.own_high(k) + depth; ++y) {
              bool const beyond = !tiles.wraps() && (y < 0 || y >= rows);
              EXPECT_TRUE(beyond || (y >= tiles.low(k) && y < tiles.low(k) + 24));
            }
          }
        }
}

struct PartCells {
  Grid grid;
  std::vector<double> values;
  explicit PartCells(Grid const& of)
      : grid(of), values(static_cast<std::size_t>(of.extent[0] * of.extent[1] * of.extent[2])) {}
  std::int64_t row_values() const { return grid.extent[1] * grid.extent[2]; }
  CellArray seen() { return {values.data(), {row_values() * 8, grid.extent[2] * 8, 8}}; }
  double* row(std::int64_t y) { return values.data() + y * row_values(); }
};

void step(PartCells& cells, StencilKernel const& kernel, std::int64_t steps) {
  run_with_threads_transport(1, [&](Transport& transport) {
    StencilRun run(transport, cells.grid, kernel);
    run.give(0, cells.seen());
    EXPECT_EQ(run.run(steps).steps, steps);
    run.take(0, cells.seen());
  });
}

TEST(GridParts, AsGridsOfTheirOwnHaveTheCellsOfTheWhole) {
  for (int const axes : {2, 3})
    for (GridBoundary const boundary : boundaries)
      for (int parts = 2; parts <= 4; ++parts)
        for (int const deep : {1, 3}) {
          StencilKernel const kernel = make_stencil("heat", axes, 8);
          Grid const grid{{axes == 2 ? 19 : 14, axes == 2 ? 1 : 5, 7},
                          {boundary, GridBoundary::periodic, GridBoundary::neumann}};
          PartCells whole(grid);
          for (std::size_t k = 0; k < whole.values.size(); ++k)
            whole.values[k] = static_cast<double>(k * 2654435761u % 1000) / 1000;
          std::vector<gpu::StencilPart> dealt;
          std::int64_t const rows = grid.extent[0];
          for (int k = 0; k < parts; ++k)
            dealt.push_back({0, rows * k / parts, rows * (k + 1) / parts, 0, 0});
          std::vector<gpu::PartRows> of;
          std::vector<PartCells> part;
          for (std::size_t k = 0; k < dealt.size(); ++k) {
            of.push_back(gpu::PartRows::of(grid, dealt, k, deep));
            part.emplace_back(of[k].as_grid(grid, dealt.size()));
            EXPECT_EQ(part[k].grid.extent[0], of[k].all());
            std::copy(whole.row(dealt[k].low), whole.row(dealt[k].low) + of[k].own * whole.row_values(),
                      part[k].row(of[k].below));
          }
          for (int round = 0; round < 2; ++round) {
            for (std::size_t k = 0; k < part.size(); ++k)
              for (int const side : {0, 1}) {
                if (of[k].halo(side) == 0) continue;
                std::size_t const other = (k + part.size() + (side == 0 ? std::size_t(-1) : 1)) % part.size();
                double const* const from = part[other].row(of[other].shown_first(1 - side, deep));
                std::copy(from, from + deep * whole.row_values(), part[k].row(of[k].halo_first(side)));
              }
            for (PartCells& one : part) step(one, kernel, deep);
            step(whole, kernel, deep);
            for (std::size_t k = 0; k < part.size(); ++k)
              EXPECT_TRUE(std::equal(whole.row(dealt[k].low),
                                     whole.row(dealt[k].low) + of[k].own * whole.row_values(),
                                     part[k].row(of[k].below)))
                  << axes << " axes, " << name(boundary) << ", part " << k << " of " << parts << ", halos of "
                  << deep;
          }
        }
}

}  // namespace
}  // namespace hostless::test
