#pragma once
// What tests of stencils on GPUs have in common: grids of scattered cells, the host's run, and how a run is
// compared with it.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/gpu_stencil.hpp"
#include "hostless/transport/transport.hpp"
#include "stencil/gpu/stencil_library.hpp"

namespace hostless::test {

/// Why no stencil can be stepped on a GPU here, or nothing.
inline std::string why_no_gpu() {
  try {
    (void)gpu::stencil_library();
    return {};
  } catch (Error const& e) {
    return e.what();
  }
}

/// Arrays of a whole grid in host memory, one after the other.
struct Cells {
  Grid grid;
  std::int64_t bytes = 8;
  std::vector<std::vector<std::byte>> array;

  Cells(Grid const& of, StencilKernel const& kernel, double low, double high)
      : grid(of), bytes(static_cast<std::int64_t>(kernel.value_bytes)) {
    bool const is_life = kernel.name == "life";
    for (int k = 0; k < kernel.arrays(); ++k) {
      array.emplace_back(static_cast<std::size_t>(count() * bytes));
      for (std::int64_t i = 0; i < count(); ++i) {
        auto const hash = mixed(static_cast<std::uint64_t>(i + 1'000'003 * (k + 1)));
        double const value = static_cast<double>(hash % 20001) / 20000;
        put(k, i, is_life ? (hash % 3 == 0 ? 1 : 0) : low + (high - low) * value);
      }
    }
  }
  std::int64_t count() const { return grid.extent[0] * grid.extent[1] * grid.extent[2]; }
  void put(int k, std::int64_t i, double value) {
    std::byte* const to = array[static_cast<std::size_t>(k)].data() + i * bytes;
    float const narrow = static_cast<float>(value);
    if (bytes == 4)
      std::memcpy(to, &narrow, 4);
    else
      std::memcpy(to, &value, 8);
  }
  CellArray seen(int k) {
    return {array[static_cast<std::size_t>(k)].data(),
            {grid.extent[1] * grid.extent[2] * bytes, grid.extent[2] * bytes, bytes}};
  }
  /// Cells of the fields that differ in a bit.
  std::int64_t different(Cells const& other, int fields) const {
    std::int64_t found = 0;
    for (int f = 0; f < fields; ++f)
      for (std::int64_t i = 0; i < count(); ++i) {
        auto const k = static_cast<std::size_t>(f);
        found += std::memcmp(array[k].data() + i * bytes, other.array[k].data() + i * bytes,
                             static_cast<std::size_t>(bytes)) != 0;
      }
    return found;
  }
};

struct Subject {
  char const* name;
  int axes;
};
constexpr Subject subjects[]{{"jacobi2d", 2},   {"heat", 2},     {"wave", 2}, {"life", 2},
                             {"gray_scott", 2}, {"jacobi3d", 3}, {"heat", 3}, {"wave", 3}};

constexpr GridBoundary boundaries[]{GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic};

template <class Run>
StencilResult step(Run& run, Cells& cells, StencilKernel const& kernel, std::int64_t steps,
                   StencilStop const& stop) {
  for (int k = 0; k < kernel.arrays(); ++k) run.give(k, cells.seen(k));
  StencilResult const result = run.run(steps, stop);
  for (int f = 0; f < kernel.fields; ++f) run.take(f, cells.seen(f));
  return result;
}

inline StencilResult on_host(Cells& cells, StencilKernel const& kernel, std::int64_t steps,
                             StencilStop const& stop = {}) {
  StencilResult result;
  StencilOptions options;
  options.depth = options.block_steps = 1;
  run_with_threads_transport(1, [&](Transport& transport) {
    StencilRun run(transport, cells.grid, kernel, options);
    result = step(run, cells, kernel, steps, stop);
  });
  return result;
}

inline std::string text_of(Grid const& grid, StencilKernel const& kernel) {
  std::string text = kernel.name + " fp" + std::to_string(8 * kernel.value_bytes);
  for (std::size_t a = 0; a < 3; ++a)
    text += " " + std::to_string(grid.extent[a]) + " " + hostless::name(grid.boundary[a]);
  return text;
}

/// Equal in status, steps and every change of a step.
inline void expect_same(StencilResult const& got, StencilResult const& expected, std::string const& what) {
  EXPECT_EQ(got.status, expected.status) << what << ": " << got.message;
  EXPECT_EQ(got.steps, expected.steps) << what;
  ASSERT_EQ(got.history.size(), expected.history.size()) << what;
  for (std::size_t k = 0; k < got.history.size(); ++k) {
    EXPECT_EQ(got.history[k].step, expected.history[k].step) << what;
    EXPECT_EQ(got.history[k].norm, expected.history[k].norm) << what << ", look " << k;
    EXPECT_EQ(got.history[k].largest, expected.history[k].largest) << what << ", look " << k;
  }
}

/// Runs of jacobi or heat on 40 x 96 cells that become steady, meet NaN and are asked to stop end as the
/// host's do. nan: rows of the NaN, and after how many steps it is looked for.
inline void expect_endings(GpuStencilRun& run, Grid const& grid, StencilKernel const& kernel,
                           std::vector<std::pair<int, std::int64_t>> const& nan) {
  Cells given(grid, kernel, 0, 1);
  StencilStop stop;
  stop.every = 10;
  stop.tolerance = 0.02;
  Cells expected = given, got = given;
  StencilResult const steady = on_host(expected, kernel, 5000, stop);
  EXPECT_EQ(steady.status, StencilStatus::steady);
  expect_same(step(run, got, kernel, 5000, stop), steady, run.describe());
  EXPECT_EQ(got.different(expected, 1), 0) << run.describe();
  EXPECT_EQ(run.steps(), steady.steps);
  for (auto const& [row, every] : nan) {
    stop = {};
    stop.every = every;
    Cells broken = given, broken_too = given;
    std::int64_t const cell = row * grid.extent[2] + 31;
    broken.put(0, cell, std::numeric_limits<double>::quiet_NaN());
    broken_too.put(0, cell, std::numeric_limits<double>::quiet_NaN());
    StencilResult const wrong = on_host(broken, kernel, 22, stop);
    run.count_from(0);
    StencilResult const wrong_too = step(run, broken_too, kernel, 22, stop);
    EXPECT_EQ(wrong_too.status, StencilStatus::not_finite) << run.describe();
    EXPECT_EQ(wrong_too.steps, wrong.steps) << run.describe();
  }
  stop = {};
  stop.every = 6;
  stop.observer = [](StencilChange const& change) { return change.step >= 12; };
  run.count_from(0);
  got = given;
  StencilResult const asked = step(run, got, kernel, 600, stop);
  EXPECT_EQ(asked.status, StencilStatus::aborted) << run.describe();
  EXPECT_EQ(asked.steps, 12) << run.describe();
}

inline GpuStencilOptions way(RunKind run, GpuCells cells, int depth = 0, int block_steps = 0) {
  GpuStencilOptions options;
  options.run = run;
  options.cells = cells;
  options.depth = depth;
  options.block_steps = block_steps;
  options.limits = {60, 20};
  return options;
}

/// Two kernels at a time: one of border rows and exchanges, one of inner rows, plain or cached.
inline GpuStencilOptions split_way(GpuCells cells) {
  GpuStencilOptions options = way(RunKind::persistent, cells);
  options.halos = GpuHalos::overlap;
  return options;
}

/// Ways that a small grid does not allow: said, and no others.
inline bool may_be_refused(GpuStencilOptions const& options) {
  return options.cells == GpuCells::streamed || options.cells == GpuCells::resident;
}

/// On one GPU, of a stencil of so many axes.
inline std::vector<GpuStencilOptions> all_ways(int axes) {
  std::vector<GpuStencilOptions> all{
      way(RunKind::stream, GpuCells::plain), way(RunKind::graph, GpuCells::plain),
      way(RunKind::persistent, GpuCells::plain), way(RunKind::automatic, GpuCells::automatic)};
  for (RunKind const run : {RunKind::stream, RunKind::graph}) all.push_back(way(run, GpuCells::streamed));
  for (GpuCells const cells : {GpuCells::plain, GpuCells::cached}) all.push_back(split_way(cells));
  if (axes == 2)
    for (int const depth : {2, 4, 6, 16}) all.push_back(way(RunKind::persistent, GpuCells::resident, depth));
  return all;
}

template <class Do>
void expect_refused(Do const& refused, std::string const& word) {
  try {
    refused();
    ADD_FAILURE() << "not refused: " << word;
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
    EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
  }
}

}  // namespace hostless::test
