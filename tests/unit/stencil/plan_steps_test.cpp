#include "stencil/plan_steps.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "stencil/cache_room.hpp"

namespace hostless {
namespace {

constexpr std::int64_t cache = 512 << 10;

StepsChosen chosen(std::int64_t n, int ranks, double exchange_s, StencilOptions const& options = {}) {
  BoxPartition const partition{{{n, 1, n}, {}}, {ranks, 1, 1}};
  return choose_steps(partition, make_stencil("jacobi2d", 2, 4), options, {1e-10, exchange_s}, cache);
}

TEST(PlanSteps, HalosGrowWithWhatAnExchangeCosts) {
  int before = 0;
  for (double const exchange : {1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3}) {
    int const depth = chosen(256, 4, exchange).depth;
    EXPECT_GE(depth, before);
    before = depth;
  }
  EXPECT_EQ(chosen(256, 4, 1e-9).depth, 1);
  EXPECT_EQ(chosen(256, 4, 1.0).depth, 64);  // as many as the thinnest box has
  // by hand: steps of 256 (64 + 2 k) cells at 0.1 ns and 10 us between: least near sqrt(10e-6 / (256 *
  // 1e-10))
  EXPECT_NEAR(chosen(256, 4, 1e-5).depth, 20, 1);
}

TEST(PlanSteps, BlockedBeyondTheCache) {
  EXPECT_EQ(chosen(128, 1, 0).block_steps, 1);
  EXPECT_EQ(chosen(4096, 1, 0).block_steps, 16);
  EXPECT_EQ(chosen(4096, 2, 1e-9).depth, 16);  // a pass has its halo
  EXPECT_EQ(chosen(4096, 1024, 1e-9).block_steps, 1);
}

// Halos along an axis that wraps are of blocked steps alone: the shorter it is, the more must be won by blocking.
TEST(PlanSteps, ShortAxesThatWrapAreBlockedBeyondTheLastCache) {
  CacheRoom const room{{32 << 10, 1 << 20}, 16 << 20};
  auto const plain = [&](std::array<std::int64_t, 3> extent, std::array<GridBoundary, 3> ends, int ranks) {
    BoxPartition const partition{{extent, ends}, {ranks, 1, 1}};
    return plain_bytes(make_stencil("jacobi2d", 2, 8), partition, room);
  };
  auto const periodic = GridBoundary::periodic;
  auto const open = GridBoundary::dirichlet;
  std::array<GridBoundary, 3> const rows{open, open, periodic}, first{periodic, open, open},
      both{periodic, open, periodic};
  EXPECT_EQ(plain({4096, 1, 4096}, {}, 1), 512 << 10);
  EXPECT_EQ(plain({4096, 1, 4096}, both, 1), 8 << 20);
  EXPECT_EQ(plain({20000, 1, 32}, {}, 2), 512 << 10);
  EXPECT_EQ(plain({20000, 1, 32}, rows, 2), 16 << 20);
  EXPECT_EQ(plain({20000, 1, 160}, rows, 2), 8 << 20);
  EXPECT_EQ(plain({32, 1, 20000}, first, 1), 16 << 20);
  EXPECT_EQ(plain({32, 1, 20000}, first, 2), 8 << 20);  // cut: its ends are exchanged in any case
  EXPECT_GT(plain({1000000, 1, 16}, rows, 2), std::int64_t{1} << 40);
  EXPECT_EQ(plain({16, 1, 1000000}, first, 1), 16 << 20);
}

TEST(PlanSteps, WhatIsAskedForIsDoneOrRefused) {
  StencilOptions options;
  options.depth = 6, options.block_steps = 3;
  EXPECT_EQ(chosen(4096, 2, 1e-3, options).depth, 6);
  EXPECT_EQ(chosen(4096, 2, 1e-3, options).block_steps, 3);
  options.block_steps = 7;
  EXPECT_THROW((void)chosen(4096, 2, 0, options), Error);
  options.depth = 5, options.block_steps = 0;
  EXPECT_THROW((void)chosen(16, 4, 0, options), Error);
  BoxPartition const thin{{{2, 1, 9}, {GridBoundary::periodic, {}, {}}}, {2, 1, 1}};
  StencilKernel wide = make_stencil("jacobi2d", 2, 4);
  wide.radius = {2, 0, 2};
  EXPECT_THROW((void)choose_steps(thin, wide, {}, {}, cache), Error);
}

std::string advice(BoxPartition const& partition, StencilKernel const& kernel, int depth, int block_steps) {
  StencilOptions options;
  options.depth = depth, options.block_steps = block_steps;
  try {
    (void)choose_steps(partition, kernel, options, {}, cache);
  } catch (Error const& error) {
    std::string const text = error.what();
    return text.substr(text.rfind("). ") + 3);
  }
  return "nothing is refused";
}

// What is advised can be done: no depth that the next call refuses, no fewer ranks than one, nor where they
// change nothing.
TEST(PlanSteps, WhatIsAdvisedCanBeDone) {
  StencilKernel const kernel = make_stencil("jacobi3d", 3, 8);
  GridBoundary const around = GridBoundary::periodic;
  BoxPartition const flat{{{31, 8, 1}, {around, around, around}}, {1, 1, 1}};
  EXPECT_EQ(advice(flat, kernel, 0, 3), "Use block steps of at most 1.");
  EXPECT_EQ(advice(flat, kernel, 3, 3), "Use a depth of at most 1.");
  EXPECT_EQ(advice(flat, kernel, 0, 1), "nothing is refused");
  BoxPartition const flat_cut{flat.grid, {2, 1, 1}};  // its thinnest axis is whole
  EXPECT_EQ(advice(flat_cut, kernel, 0, 3), "Use block steps of at most 1.");
  BoxPartition const cut{{{8, 8, 8}, {}}, {4, 1, 1}};
  EXPECT_EQ(advice(cut, kernel, 0, 3), "Use block steps of at most 2, or fewer ranks.");
  EXPECT_EQ(advice(cut, kernel, 3, 0), "Use a depth of at most 2, or fewer ranks.");
  EXPECT_EQ(advice(cut, kernel, 1, 2), "Use a depth of at least 2.");
  EXPECT_EQ(advice(cut, kernel, 2, 2), "nothing is refused");
  StencilKernel wide = kernel;
  wide.radius = {3, 3, 3};
  EXPECT_EQ(advice(flat, wide, 0, 0), "Use a larger grid, or another boundary than periodic.");
  EXPECT_EQ(advice(cut, wide, 0, 0), "Use fewer ranks.");
}

TEST(PlanSteps, PassesAddUp) {
  for (int const steps : {1, 2, 7, 16, 17})
    for (int const block : {1, 3, 8})
      for (bool const looks : {false, true}) {
        int taken = 0, last = 0;
        for (; taken < steps; taken += last) {
          last = next_pass(steps - taken, block, looks);
          ASSERT_TRUE(last >= 1 && last <= block);
        }
        EXPECT_EQ(taken, steps);
        if (looks) {
          EXPECT_EQ(last, 1);
        }
      }
  EXPECT_EQ(next_pass(std::int64_t{1} << 40, 8, false), 8);
}

TEST(PlanSteps, ThreadsThatPay) {
  StencilKernel const kernel = make_stencil("jacobi2d", 2, 4);
  constexpr std::int64_t long_run = 1 << 20;
  auto const worth = [&](std::int64_t n, std::int64_t steps, int most, int depth = 0) {
    return ranks_worth({{n, 1, n}, {}}, kernel, depth, steps, most, 0);
  };
  EXPECT_EQ(worth(32, long_run, 8), 1);  // a thread alone steps that before two have met
  EXPECT_EQ(worth(64, long_run, 8), 2);
  EXPECT_EQ(worth(4096, long_run, 8), 8);
  EXPECT_EQ(worth(4096, long_run, 1), 1);
  EXPECT_EQ(worth(64, 100, 8), 1);  // over before another thread has started
  EXPECT_EQ(worth(4096, 1, 8), 8);
  EXPECT_EQ(worth(4, std::int64_t{1} << 40, 8), 1);
  EXPECT_EQ(worth(64, long_run, 8, 33), 1);  // halos that two boxes have no room for
  EXPECT_EQ(ranks_worth({{64, 1, 64}, {}}, make_stencil("wave", 2, 4), 0, long_run, 8, 0), 4);  // two fields
  auto const of_cubes = [&](std::int64_t n, std::size_t value_bytes, double handshake_s) {
    return ranks_worth({{n, n, n}, {}}, make_stencil("jacobi3d", 3, value_bytes), 0, long_run, 2,
                       handshake_s);
  };
  EXPECT_EQ(of_cubes(16, 4, 4e-8), 1);
  EXPECT_EQ(of_cubes(30, 4, 4e-8), 2);
  EXPECT_EQ(of_cubes(30, 4, 2e-7), 1);
  EXPECT_EQ(of_cubes(30, 8, 2e-7), 2);
  EXPECT_EQ(of_cubes(40, 4, 2e-7), 2);
  EXPECT_EQ(of_cubes(40, 4, 1e-6), 1);
  Grid const rod{{1000, 4, 4}, {}}, cube{{64, 64, 64}, {}};
  EXPECT_EQ(ranks_worth(rod, make_stencil("jacobi3d", 3, 4), 0, long_run, 2, 2e-7), 2);
  EXPECT_EQ(ranks_worth(cube, make_stencil("jacobi3d", 3, 4), 0, long_run, 8, 2e-7), 8);
  double const handshake = measure_handshake();
  EXPECT_GT(handshake, 1e-9);
  EXPECT_LE(handshake, 1e-6);
}

TEST(PlanSteps, SharingAgainstHalos) {
  StencilKernel const line = make_stencil("jacobi3d", 3, 4);
  BoxPartition const slabs{{{64, 64, 64}, {}}, {2, 1, 1}};
  double const cells = 32.0 * 64 * 64, plane = 64.0 * 64;
  StencilCosts const costs{1e-9, 8e-6};
  EXPECT_DOUBLE_EQ(step_with_sharing(slabs, line, costs, 6e-6), cells * 1e-9 + 4e-6);
  EXPECT_DOUBLE_EQ(step_with_halos(slabs, line, costs, 1), cells * 1e-9 + 8e-6);
  // cells of a neighbour are stepped before the last of four steps: three, two, one plane of them
  EXPECT_DOUBLE_EQ(step_with_halos(slabs, line, costs, 4), cells * 1e-9 + (6 * plane * 1e-9 + 8e-6) / 4);
}

TEST(PlanSteps, SlabsThatThreadsShare) {
  StencilKernel const plane = make_stencil("jacobi2d", 2, 4), line = make_stencil("jacobi3d", 3, 4);
  auto const shared = [](StencilKernel const& kernel, Grid const& grid, int ranks,
                         StencilOptions const& options = {}) {
    auto const found = slabs_side_by_side(grid, kernel, options, ranks, cache);
    return found ? found->ranks_along[0] : 0;
  };
  Grid const small{{64, 1, 64}, {}}, cube{{64, 64, 64}, {}}, large{{72, 72, 72}, {}}, rod{{6, 256, 256}, {}};
  EXPECT_EQ(shared(line, cube, 2), 0);  // blocked steps may be faster
  StencilKernel const two = make_stencil("wave", 3, 4);
  auto const roomy = [&](StencilKernel const& kernel, Grid const& grid, int ranks) {
    return slabs_side_by_side(grid, kernel, {}, ranks, 16 * cache).has_value();
  };
  EXPECT_TRUE(roomy(line, cube, 2));
  EXPECT_TRUE(roomy(line, large, 2));
  EXPECT_FALSE(roomy(line, cube, 1));  // nobody to share with
  Grid const dice{{16, 16, 16}, {}}, sheet{{256, 1, 512}, {}};
  EXPECT_TRUE(roomy(line, cube, 4));
  EXPECT_FALSE(roomy(line, dice, 2));  // of few cells each
  EXPECT_TRUE(roomy(two, dice, 2));    // of two fields
  EXPECT_FALSE(roomy(plane, sheet, 2));
  EXPECT_FALSE(roomy(line, rod, 2));  // of thin slabs
  StencilOptions always;
  always.share = ShareCells::always;
  EXPECT_EQ(shared(plane, small, 4, always), 4);
  EXPECT_EQ(shared(plane, small, 64, always), 64);
  EXPECT_EQ(shared(plane, small, 65, always), 0);
  EXPECT_EQ(shared(plane, small, 1, always), 0);
  StencilKernel row = plane;
  row.radius = {0, 0, 1};
  EXPECT_EQ(shared(row, small, 4, always), 0);  // nobody reads others' cells
  for (int const which : {0, 1, 2, 3, 4, 5, 6}) {
    StencilOptions said = always;
    if (which == 0) said.depth = 1;
    if (which == 1) said.block_steps = 2;
    if (which == 2) said.overlap = true;
    if (which == 3) said.share = ShareCells::never;
    if (which == 4) said.ranks_along = {2, 1, 2};
    if (which == 5) said.route = Route::two_step;
    if (which == 6) said.nodes = NodeMap::blocks(4, 2);
    EXPECT_EQ(shared(plane, small, 4, said), 0) << which;
  }
  StencilOptions said = always;
  said.block_steps = 1, said.ranks_along = {4, 1, 1};
  EXPECT_EQ(shared(plane, small, 4, said), 4);
}

TEST(PlanSteps, AxesThatAreNotCutWrapWithoutAnExchange) {
  using Axes = std::array<bool, 3>;
  auto const wrapped = [](std::array<int, 3> along, GridBoundary boundary, int block_steps,
                          bool shares = false) {
    return wrapped_axes({{{64, 1, 64}, {boundary, boundary, boundary}}, along},
                        make_stencil("jacobi2d", 2, 4), {8, block_steps, shares});
  };
  EXPECT_EQ(wrapped({1, 1, 1}, GridBoundary::periodic, 1), (Axes{true, false, true}));
  EXPECT_EQ(wrapped({2, 1, 1}, GridBoundary::periodic, 1), (Axes{false, false, true}));
  EXPECT_EQ(wrapped({2, 1, 1}, GridBoundary::periodic, 1, true), (Axes{true, false, true}));
  EXPECT_EQ(wrapped({2, 1, 1}, GridBoundary::periodic, 2), (Axes{}));
  EXPECT_EQ(wrapped({1, 1, 1}, GridBoundary::neumann, 1), (Axes{}));
}

}  // namespace
}  // namespace hostless
