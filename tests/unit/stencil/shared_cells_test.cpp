// Threads that step arrays which all of them share.
#include <gtest/gtest.h>

#include <cstring>

#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/stencil.hpp"

namespace hostless {
namespace {

constexpr std::int64_t rows = 24, columns = 19;
using Values = std::vector<double>;

Values some_values(std::uint64_t seed) {
  Values values(rows * columns);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<double>((seed + k) * 2654435761u % 1000) / 1000;
  return values;
}
CellArray seen(Values& values) { return {values.data(), {columns * 8, columns * 8, 8}}; }

/// On a thread that says so a step throws when so many others have been taken.
thread_local int steps_left = -1;
void may_break_off(CellBlock const& block) {
  if (steps_left >= 0 && steps_left-- == 0) throw Error(ErrorCode::environment, "as it should be");
  static StencilKernel const kernel = make_stencil("jacobi2d", 2, 8);
  kernel.update(block);
}
StencilKernel kernel_that_may_break_off() {
  StencilKernel kernel = make_stencil("jacobi2d", 2, 8);
  kernel.update = may_break_off, kernel.update_ends = nullptr;
  return kernel;
}

StencilOptions options_of(bool share, int ranks) {
  StencilOptions options;
  options.share = share ? ShareCells::always : ShareCells::never;
  options.ranks_along = {ranks, 1, 1};
  options.limits = {60, 60};
  return options;
}

/// The cells after runs with looks and without, one thread's given anew in between.
Values cells_of_runs(bool share, GridBoundary first) {
  Grid const grid{{rows, 1, columns}, {first, GridBoundary::neumann, GridBoundary::periodic}};
  Values all(rows * columns);
  run_with_threads_transport(3, [&](Transport& transport) {
    StencilRun run(transport, grid, make_stencil("heat", 2, 8), options_of(share, 3));
    EXPECT_EQ(run.shares_cells(), share);
    Values values = some_values(1);
    run.give(0, seen(values));
    StencilStop stop;
    stop.every = 3;
    EXPECT_EQ(run.run(7, stop).history.size(), 2u);
    if (transport.group().rank() == 1) {
      values = some_values(2);
      run.give(0, seen(values));
    }
    EXPECT_EQ(run.run(0).steps, 0);
    EXPECT_EQ(run.run(6).steps, 6);
    EXPECT_EQ(run.steps(), 13);
    run.take(0, seen(all));
  });
  return all;
}

TEST(SharedCells, HaveTheBitsOfCellsApart) {
  for (GridBoundary const first : {GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic}) {
    Values const apart = cells_of_runs(false, first), shared = cells_of_runs(true, first);
    EXPECT_EQ(std::memcmp(apart.data(), shared.data(), apart.size() * sizeof(double)), 0) << name(first);
  }
}

/// Of threads that are left to choose, of as many cells as sharing is timed for.
TEST(SharedCells, ChosenOrNotHaveTheBitsOfOneThread) {
  constexpr std::int64_t n = 66;
  for (GridBoundary const end : {GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic}) {
    Grid const grid{{n, n, n}, {end, end, end}};
    auto const cells_of = [&](int ranks) {
      std::vector<float> all(n * n * n);
      for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<float>(k * 2654435761u % 1000) / 1000;
      CellArray const seen{all.data(), {n * n * 4, n * 4, 4}};
      std::vector<float> const given = all;
      run_with_threads_transport(ranks, [&](Transport& transport) {
        StencilOptions options;
        options.limits = {60, 60};
        StencilRun run(transport, grid, make_stencil("jacobi3d", 3, 4), options);
        run.give(0, {const_cast<float*>(given.data()), {n * n * 4, n * 4, 4}});
        EXPECT_EQ(run.run(7).steps, 7);
        run.take(0, seen);
      });
      return all;
    };
    std::vector<float> const alone = cells_of(1), together = cells_of(2);
    EXPECT_EQ(std::memcmp(alone.data(), together.data(), alone.size() * sizeof(float)), 0) << name(end);
  }
}

TEST(SharedCells, AreWholeWhereAThreadBreaksOff) {
  Grid const grid{{rows, 1, columns}, {}};
  auto const rank = [&](Transport& transport) {
    StencilRun run(transport, grid, kernel_that_may_break_off(), options_of(true, 2));
    Values values = some_values(3), expected = values;
    run.give(0, seen(values));
    bool const breaks_off = transport.group().rank() == 1;
    steps_left = breaks_off ? 4 : -1;
    StencilResult const result = run.run(1000);  // of the other one it throws
    EXPECT_EQ(result.status, StencilStatus::peer_lost);
    EXPECT_EQ(result.steps, 5);  // the other had taken four
    EXPECT_EQ(run.steps(), 5);
    auto const alone = single_transport();
    StencilRun by_itself(*alone, grid, make_stencil("jacobi2d", 2, 8));
    by_itself.give(0, seen(expected));
    EXPECT_EQ(by_itself.run(5).steps, 5);
    by_itself.take(0, seen(expected));
    run.take(0, seen(values));
    for (std::int64_t k = 0; k < run.box().high[0] * columns; ++k)
      ASSERT_EQ(values[static_cast<std::size_t>(k)], expected[static_cast<std::size_t>(k)]) << k;
  };
  EXPECT_THROW(run_with_threads_transport(2, rank), Error);
  steps_left = -1;
}

}  // namespace
}  // namespace hostless
