// What GpuStencilRun does around its kernels, with a library of the tests in a GPU's place: the same looks,
// endings and bits as StencilRun, what is chosen, and what is refused.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <limits>

#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/gpu_stencil.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::test {
namespace {

Grid const grid{{30, 1, 64}, {GridBoundary::periodic, GridBoundary::dirichlet, GridBoundary::neumann}};

struct Cells {
  std::vector<double> values = std::vector<double>(30 * 64);
  Cells() {
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = static_cast<double>(k * 2654435761u % 1000) / 1000;
  }
  CellArray seen() { return {values.data(), {64 * 8, 64 * 8, 8}}; }
};

template <class Use>
void on_host(StencilKernel const& kernel, Use const& use) {
  run_with_threads_transport(1, [&](Transport& transport) {
    StencilRun run(transport, grid, kernel);
    use(run);
  });
}

// NaN is alike too.
std::string words(std::vector<double> const& numbers) { return fmt::format("{:a}", fmt::join(numbers, " ")); }

void expect_same(StencilResult const& got, StencilResult const& expected) {
  EXPECT_EQ(got.status, expected.status);
  EXPECT_EQ(got.steps, expected.steps);
  ASSERT_EQ(got.history.size(), expected.history.size());
  for (std::size_t k = 0; k < got.history.size(); ++k) {
    EXPECT_EQ(got.history[k].step, expected.history[k].step);
    EXPECT_EQ(words(got.history[k].norm), words(expected.history[k].norm));
    EXPECT_EQ(words(got.history[k].largest), words(expected.history[k].largest));
  }
}

TEST(GpuHostHalf, LooksAndEndsAsTheHostDoes) {
  StencilKernel const kernel = make_stencil("heat", 2, 8);
  StencilStop none, looks, steady, asked;
  looks.every = 7;
  steady.every = 3, steady.tolerance = 0.05;
  asked.every = 4;
  asked.observer = [](StencilChange const& change) { return change.step >= 12; };
  for (StencilStop const& stop : {none, looks, steady, asked})
    for (bool const finite : {true, false}) {
      Cells mine, theirs;
      if (!finite) mine.values[700] = theirs.values[700] = std::numeric_limits<double>::quiet_NaN();
      StencilResult expected;
      on_host(kernel, [&](StencilRun& run) {
        run.count_from(2);
        run.give(0, theirs.seen());
        expected = run.run(500, stop);
        run.take(0, theirs.seen());
      });
      GpuStencilRun run(grid, kernel);
      run.count_from(2);
      run.give(0, mine.seen());
      expect_same(run.run(500, stop), expected);
      EXPECT_EQ(run.steps(), 2 + expected.steps);
      run.take(0, mine.seen());
      if (finite) {
        EXPECT_EQ(mine.values, theirs.values);
      }
    }
}

TEST(GpuHostHalf, HearsAnEndBetweenLooks) {
  GpuStencilRun run(grid, make_stencil("heat", 2, 8));
  Cells cells;
  run.give(0, cells.seen());
  StencilStop stop;
  int polls = 0;
  stop.stop_requested = [&] { return ++polls == 2; };
  StencilResult const result = run.run(std::int64_t{1} << 50, stop);
  EXPECT_EQ(result.status, StencilStatus::aborted);
  EXPECT_GT(result.steps, 0);
  EXPECT_EQ(result.steps % (2 * run.depth() * run.block_steps()), 0);
  EXPECT_LT(result.run_s, 240);
}

TEST(GpuHostHalf, WhatIsChosenIsTold) {
  StencilKernel const kernel = make_stencil("heat", 2, 8);
  GpuStencilOptions options;
  GpuStencilRun const chosen(grid, kernel);
  EXPECT_EQ(chosen.device_name(), "played GPU");
  EXPECT_EQ(chosen.cells(), GpuCells::resident);
  EXPECT_EQ(chosen.describe(), "persistent, resident: played by the processor");
  options.cells = GpuCells::streamed;
  EXPECT_EQ(GpuStencilRun(grid, kernel, options).block_steps(), 8);
  options.cells = GpuCells::plain, options.run = RunKind::stream;
  EXPECT_EQ(GpuStencilRun(grid, kernel, options).describe(), "stream, plain: played by the processor");
  options.cells = GpuCells::resident;
  EXPECT_THROW(GpuStencilRun(grid, kernel, options), Error);
  options = {};
  options.devices = {2};
  EXPECT_THROW(GpuStencilRun(grid, kernel, options), Error);
}

}  // namespace
}  // namespace hostless::test
