// A stencil's grid in several parts, on as many GPUs as there are and on one: every way to step them, named
// stencil, precision, boundary and odd size has the bits of the host's run, in every cell and in every change
// of a step. And endings, arrays of GPU memory, a part that falls silent, refusals.
#include <chrono>

#include "exchange/gpu/exchange_library.hpp"
#include "hostless/base/wait.hpp"
#include "stencil/gpu/choose_way.hpp"
#include "stencil/stencil_cases.hpp"

namespace hostless::test {
namespace {

/// GPUs of so many parts: in turn, where there are several.
std::vector<int> dealt(int parts) {
  int const gpus = gpu::stencil_library().devices();
  std::vector<int> devices;
  for (int k = 0; k < parts; ++k) devices.push_back(k * std::min(gpus, parts) / parts);
  return devices;
}
/// Two or three of those that there are: 2, 3 and 4 dealt out; two that share a GPU; GPUs by turns.
std::vector<std::vector<int>> some_parts(int grid) {
  std::vector<std::vector<int>> all{dealt(2), dealt(3), dealt(4)}, some;
  if (gpu::stencil_library().devices() > 1) {
    all.push_back({1, 1});
    all.push_back({0, 1, 0});
  }
  for (std::size_t k = static_cast<std::size_t>(grid % 2); k < all.size(); k += 2) some.push_back(all[k]);
  return some;
}

std::vector<GpuStencilOptions> ways_of_parts(int axes) {
  std::vector<GpuStencilOptions> all{way(RunKind::automatic, GpuCells::automatic)};
  for (RunKind const run : {RunKind::stream, RunKind::graph, RunKind::persistent})
    for (int const depth : {1, 3}) all.push_back(way(run, GpuCells::plain, depth));
  for (RunKind const run : {RunKind::stream, RunKind::graph})
    for (GpuHalos const halos : {GpuHalos::copies, GpuHalos::overlap}) {
      all.push_back(way(run, GpuCells::plain, halos == GpuHalos::copies ? 2 : 0));
      all.back().halos = halos;
    }
  for (GpuCells const cells : {GpuCells::plain, GpuCells::cached}) all.push_back(split_way(cells));
  all.push_back(way(RunKind::stream, GpuCells::streamed));
  all.push_back(way(RunKind::graph, GpuCells::streamed, axes == 3 ? 12 : 16));
  if (axes == 3) return all;
  for (int const depth : {2, 4, 8}) all.push_back(way(RunKind::persistent, GpuCells::resident, depth));
  return all;
}

struct Tried {
  int grids = 0, streamed = 0, resident = 0, cached = 0, plain = 0;
};

struct Wanted {
  std::int64_t steps = 22, every = 0;
  double longest_launch_s = 0.5;
};

void compare_parts(Grid const& grid, StencilKernel const& kernel, Wanted const& wanted, Tried& tried) {
  Cells const given(grid, kernel, 0.1, 0.9);
  Cells expected = given;
  StencilStop stop;
  stop.every = wanted.every;
  StencilResult const host = on_host(expected, kernel, wanted.steps, stop);
  for (std::vector<int> const& devices : some_parts(tried.grids++))
    for (GpuStencilOptions options : ways_of_parts(kernel.axes)) {
      options.devices = devices;
      options.longest_launch_s = wanted.longest_launch_s;
      Cells got = given;
      try {
        GpuStencilRun run(grid, kernel, options);
        std::string const what = text_of(grid, kernel) + ", " + run.describe();
        expect_same(step(run, got, kernel, wanted.steps, stop), host, what);
        EXPECT_EQ(got.different(expected, kernel.fields), 0) << what;
        EXPECT_EQ(run.parts(), static_cast<int>(devices.size()));
        tried.streamed += run.cells() == GpuCells::streamed;
        tried.resident += run.cells() == GpuCells::resident;
        tried.cached += run.cells() == GpuCells::cached;
        tried.plain += run.cells() == GpuCells::plain;
      } catch (Error const& e) {
        EXPECT_TRUE(may_be_refused(options)) << e.what();
        EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
      }
    }
}

class GpuParts : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (std::string const why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
  StencilKernel kernel(std::size_t bytes) const {
    return make_stencil(GetParam().name, GetParam().axes, bytes);
  }
  bool flat() const { return GetParam().axes == 2; }
};
INSTANTIATE_TEST_SUITE_P(All, GpuParts, testing::ValuesIn(subjects), [](auto const& one) {
  return std::string(one.param.name) + "_" + std::to_string(one.param.axes);
});

TEST_P(GpuParts, HaveTheBitsOfTheHost) {
  std::vector<std::array<std::int64_t, 3>> shapes{{17, 11, 23}, {14, 6, 70}, {40, 20, 64}};
  if (flat()) shapes = {{37, 1, 53}, {131, 1, 257}, {300, 1, 512}};
  Tried tried;
  for (std::size_t const bytes : {std::size_t{4}, std::size_t{8}})
    for (GridBoundary const first : boundaries)
      for (GridBoundary const last : boundaries)
        for (auto const& shape : shapes) {
          Grid grid{shape, {first, last == GridBoundary::neumann ? first : last, last}};
          if (flat()) grid.boundary[1] = GridBoundary::dirichlet;
          compare_parts(grid, kernel(bytes), {}, tried);
          if (::testing::Test::HasFailure()) return;
        }
  EXPECT_GE(tried.plain, tried.grids * 12) << "grids were too small";
  EXPECT_GE(tried.cached, tried.grids * 2);
  if (flat()) {
    EXPECT_GE(tried.streamed, tried.grids) << "grids were too small";
    EXPECT_GE(tried.resident, tried.grids) << "grids were too small";
  } else {
    EXPECT_GE(tried.streamed, tried.grids / 3) << "grids were too small";
  }
}

// At looks that fall between passes and exchanges, and after odd numbers of steps.
TEST_P(GpuParts, ChangesHaveTheBitsOfTheHost) {
  Tried tried;
  for (std::size_t const bytes : {std::size_t{4}, std::size_t{8}}) {
    Grid grid{{130, 1, 192}, {GridBoundary::periodic, GridBoundary::dirichlet, GridBoundary::neumann}};
    if (!flat()) grid.extent = {19, 21, 33};
    compare_parts(grid, kernel(bytes), {35, 9}, tried);
    compare_parts(grid, kernel(bytes), {3, 1}, tried);
  }
}

// So many steps that graphs are replayed, and kernels come back and are launched again.
TEST_P(GpuParts, ManySteps) {
  Tried tried;
  Grid grid{{96, 1, 128}, {GridBoundary::periodic, {}, GridBoundary::dirichlet}};
  if (!flat()) grid.extent = {12, 9, 32};
  compare_parts(grid, kernel(4), {2101, 0, 1e-4}, tried);
}

class GpuPartsOf : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string const why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(GpuPartsOf, LargeGrids) {
  StencilKernel const kernel = make_stencil("jacobi2d", 2, 4);
  Tried tried;
  compare_parts({{1024, 1, 1024}, {}}, kernel, {32}, tried);
  compare_parts({{1500, 1, 2048}, {GridBoundary::periodic, {}, GridBoundary::neumann}}, kernel, {18}, tried);
  compare_parts({{70, 1, 40'000}, {GridBoundary::neumann, {}, GridBoundary::periodic}}, kernel, {18}, tried);
  EXPECT_GE(tried.resident, 4);
  if (gpu::stencil_library().devices() < 2) return;
  tried = {};
  compare_parts({{3000, 1, 2048}, {GridBoundary::periodic, {}, GridBoundary::dirichlet}}, kernel, {26},
                tried);
  EXPECT_GE(tried.resident, 1) << "what one GPU cannot hold, two can";
}

TEST_F(GpuPartsOf, EndAsTheHostDoes) {
  StencilKernel const kernel = make_stencil("heat", 2, 8);
  Grid const grid{{40, 1, 96}, {}};
  for (GpuStencilOptions options : ways_of_parts(2)) {
    options.devices = dealt(2);
    GpuStencilRun run(grid, kernel, options);
    expect_endings(run, grid, kernel, {{3, 4}, {36, 4}});  // in the first part and in the last
  }
}

TEST_F(GpuPartsOf, ArraysInTheMemoryOfEachGpu) {
  StencilKernel const kernel = make_stencil("wave", 3, 4);
  Grid const grid{{11, 9, 31}, {GridBoundary::periodic, GridBoundary::neumann, GridBoundary::dirichlet}};
  Cells const given(grid, kernel, 0, 1);
  Cells expected = given;
  on_host(expected, kernel, 5);
  GpuStencilOptions options;
  options.devices = dealt(3);
  auto const bytes = static_cast<std::size_t>(given.count() * given.bytes);
  for (int device = 0; device < std::min(gpu::stencil_library().devices(), 2); ++device) {
    auto const bench = gpu::exchange_library().workbench(device);
    GpuStencilRun run(grid, kernel, options);
    std::byte* const there[] = {bench->take(bytes), bench->take(bytes)};
    Cells got = given;
    for (int f = 0; f < 2; ++f) {
      bench->put(there[f], given.array[static_cast<std::size_t>(f)].data(), bytes);
      run.give(f, {there[f], got.seen(f).stride});
    }
    EXPECT_EQ(run.run(5).status, StencilStatus::steps_done);
    for (int f = 0; f < 2; ++f) {
      run.take(f, {there[f], got.seen(f).stride});
      bench->get(got.array[static_cast<std::size_t>(f)].data(), there[f], bytes);
    }
    EXPECT_EQ(got.different(expected, 2), 0) << "GPU " << device;
  }
}

// Kernels of a part are not launched: the others end by the deadline, no cell is lost, and all goes on.
TEST_F(GpuPartsOf, SilenceOfOneEndsAll) {
  StencilKernel const kernel = make_stencil("jacobi2d", 2, 8);
  Grid const grid{{130, 1, 192}, {GridBoundary::periodic, {}, GridBoundary::dirichlet}};
  constexpr double deadline_s = 0.2, grace_s = 1;
  gpu::StencilLibrary& library = gpu::stencil_library();
  gpu::StencilProblem problem;
  problem.text = {kernel.name, kernel.axes, kernel.value_bytes};
  problem.grid = grid;
  problem.parameters = kernel.parameters;
  problem.deadline_s = deadline_s;
  for (GpuStencilOptions options :
       {way(RunKind::persistent, GpuCells::resident, 4), way(RunKind::persistent, GpuCells::plain, 2),
        split_way(GpuCells::plain), split_way(GpuCells::cached)})
    for (int const silent : {0, 2}) {
      options.devices =
          dealt(4);  // one of them is nobody's neighbour that is silent: it steps before it is lost
      gpu::StencilDevice const device = library.device(0);
      problem.way = gpu::choose_way(grid, kernel, options, *library.shapes(problem.text), device);
      problem.multiprocessors = device.multiprocessors / problem.way.sharers;
      auto const bound = library.bind(problem);
      std::string const what = bound->describe() + ", part " + std::to_string(silent);
      Cells got(grid, kernel, 0, 1), expected = got;
      bound->put(0, got.seen(0));
      bound->silence(silent);
      std::int64_t taken = 0;
      auto const begin = Clock::now();
      EXPECT_FALSE(bound->advance(40, taken)) << what;
      double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      EXPECT_EQ(taken, 0) << what;
      EXPECT_GT(seconds, 0.5 * deadline_s) << what;
      EXPECT_LT(seconds, deadline_s + grace_s) << what;
      bound->silence(-1);
      EXPECT_TRUE(bound->advance(40, taken)) << what;
      EXPECT_EQ(taken, 40) << what;
      on_host(expected, kernel, 40);
      bound->get(0, got.seen(0));
      EXPECT_EQ(got.different(expected, 1), 0) << what;
    }
}

// For measurements of exchanges alone.
TEST_F(GpuPartsOf, KeepTheirCellsWhereNoneIsComputed) {
  for (int const axes : {2, 3}) {
    StencilKernel const kernel = make_stencil("wave", axes, 8);
    Grid const grid{{40, axes == 3 ? 9 : 1, 96}, {GridBoundary::periodic, {}, GridBoundary::dirichlet}};
    for (GpuStencilOptions options : {way(RunKind::persistent, GpuCells::plain, 1),
                                      split_way(GpuCells::plain), split_way(GpuCells::cached)})
      for (int const parts : {1, 2, 3}) {
        options.devices = dealt(parts);
        options.computes = false;
        Cells const given(grid, kernel, 0, 1);
        Cells got = given;
        GpuStencilRun run(grid, kernel, options);
        EXPECT_EQ(step(run, got, kernel, 101, {}).status, StencilStatus::steps_done) << run.describe();
        EXPECT_EQ(got.different(given, 2), 0) << run.describe();
      }
  }
}

TEST_F(GpuPartsOf, RefuseWhatTheyCannot) {
  StencilKernel const kernel = make_stencil("jacobi2d", 2, 4);
  auto const make = [&](GpuStencilOptions options, std::int64_t rows, int parts) {
    options.devices = dealt(parts);
    return [options, kernel, rows] { GpuStencilRun const run(Grid{{rows, 1, 64}, {}}, kernel, options); };
  };
  expect_refused(make(way(RunKind::stream, GpuCells::plain), 3, 4), "3 rows in 4 parts");
  expect_refused(make(way(RunKind::stream, GpuCells::plain, 5), 16, 4), "halos of 5");
  expect_refused(make(way(RunKind::graph, GpuCells::streamed, 12), 400, 2), "halos last for whole passes");
  expect_refused(make(way(RunKind::persistent, GpuCells::resident, 2), 9, 4), "cells resident");
  GpuStencilOptions halos = way(RunKind::persistent, GpuCells::automatic);
  halos.halos = GpuHalos::copies;
  expect_refused(make(halos, 64, 2), "halos by copies in run persistent");
  expect_refused(make(halos, 64, 1), "in one part");
  halos.run = RunKind::graph, halos.halos = GpuHalos::overlap, halos.depth = 2;
  expect_refused(make(halos, 64, 2), "halos by overlap with depth 2");
  GpuStencilOptions none;
  none.devices.clear();
  expect_refused([&] { GpuStencilRun const run(Grid{{64, 1, 64}, {}}, kernel, none); }, "no GPU");
  none.devices = {0, 99};
  expect_refused([&] { GpuStencilRun const run(Grid{{64, 1, 64}, {}}, kernel, none); }, "GPU 99");
}

}  // namespace
}  // namespace hostless::test
