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

gpu::PlanesShape constexpr large{4, 4, 4, 256, 1, 1}, small{4, 2, 2, 240, 1, 1};
gpu::StencilShapes const shapes{{{4, 6, 16, true}, {4, 6, 16, false}},
                                {{{8, 8}, true}, {{8, 8}, false}},
                                {{large, true}, {large, false}, {small, true}, {small, false}}};
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

/// Of one axis: windows own all cells once, lie within the grid where it does not wrap, and hold what they need.
void expect_covered(gpu::AxisTiles const& tiles, int steps) {
  int next = 0;
  for (int k = 0; k < tiles.count; ++k) {
    EXPECT_EQ(tiles.own_low(k), next);
    next = tiles.own_high(k);
    EXPECT_GT(next, tiles.own_low(k));
    if (!tiles.wraps()) {
      EXPECT_GE(tiles.low(k), 0);
      EXPECT_LE(tiles.low(k) + tiles.window, tiles.extent);
    }
    bool const begins = !tiles.wraps() && k == 0, ends = !tiles.wraps() && k + 1 == tiles.count;
    EXPECT_LE(tiles.low(k), begins ? 0 : tiles.own_low(k) - steps);
    EXPECT_GE(tiles.low(k) + tiles.window, ends ? tiles.extent : tiles.own_high(k) + steps);
    EXPECT_LE(tiles.low(k) + tiles.window, 2 * tiles.extent) << "cells are found once around at most";
    EXPECT_GE(tiles.low(k), -tiles.extent);
  }
  EXPECT_EQ(next, tiles.extent);
}

TEST(GridPlanes, HaveWindowsThatCoverThem) {
  int in_planes = 0;
  for (GridBoundary const boundary : boundaries)
    for (std::array<std::int64_t, 3> const extent : {std::array<std::int64_t, 3>{256, 256, 256},
                                                     {512, 512, 512},
                                                     {6, 20, 24},
                                                     {40, 33, 53},
                                                     {19, 21, 33},
                                                     {300, 16, 1000},
                                                     {9, 700, 12}}) {
      GpuStencilOptions options;
      options.cells = GpuCells::streamed;
      Grid const grid{extent, {boundary, boundary, boundary}};
      gpu::StencilWay way;
      try {
        way = gpu::choose_way(grid, make_stencil("jacobi3d", 3, 4), options, shapes, device);
      } catch (Error const& e) {
        EXPECT_NE(std::string(e.what()).find("so small a grid"), std::string::npos) << e.what();
        continue;
      }
      ++in_planes;
      ASSERT_TRUE(way.is_in_planes());
      gpu::PlanesPlan const& plan = way.planes;
      EXPECT_EQ(way.block_steps(), plan.shape.steps);
      EXPECT_LE(plan.shape.threads(), plan.shape.most_threads);
      EXPECT_LE(gpu::planes_shared_bytes(plan.shape, 1, 4), device.shared_bytes);
      EXPECT_EQ(plan.x.window, plan.shape.threads_x * plan.shape.width);
      EXPECT_EQ(plan.y.window, plan.shape.threads_y * plan.shape.rows);
      EXPECT_TRUE(!plan.even || extent[2] % plan.shape.width == 0);
      expect_covered(plan.x, plan.shape.steps);
      expect_covered(plan.y, plan.shape.steps);
      EXPECT_GE(plan.chunks * plan.chunk_planes, extent[0]);
      EXPECT_LT((plan.chunks - 1) * plan.chunk_planes, extent[0]);
    }
  EXPECT_GE(in_planes, 16);
}

TEST(GridPlanes, AreRefusedWithAReason) {
  auto const refusal = [](Grid const& grid, StencilKernel const& kernel, GpuStencilOptions options) {
    options.cells = GpuCells::streamed;
    try {
      (void)gpu::choose_way(grid, kernel, options, shapes, device);
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
      return std::string(e.what());
    }
    return std::string("not refused");
  };
  StencilKernel const kernel = make_stencil("heat", 3, 4);
  Grid const grid{{40, 40, 40}, {}};
  GpuStencilOptions options;
  EXPECT_NE(refusal({{5, 40, 3}, {}}, kernel, options).find("so small a grid"), std::string::npos);
  options.block_steps = 7;
  EXPECT_NE(refusal(grid, kernel, options).find("there are kernels of 4 2)"), std::string::npos);
  options.block_steps = 0;
  StencilKernel box = kernel;
  box.star = false;
  EXPECT_NE(refusal(grid, box, options).find("stars of radius 1"), std::string::npos);
  options.run = RunKind::persistent;
  EXPECT_NE(refusal(grid, kernel, options).find("a pass is a kernel"), std::string::npos);
  options.run = RunKind::graph;
  options.devices = {0, 1};
  options.depth = 3;
  EXPECT_NE(refusal(grid, kernel, options).find("halos last for whole passes"), std::string::npos);
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
