// Stencils on a GPU: every way to step them, named stencil, precision, boundary and odd size has the bits of
// the host's run in every cell and in every change of a step. And endings, arrays of GPU memory, refusals.
#include <sys/mman.h>

#include <functional>
#include <memory>

#include "exchange/gpu/exchange_library.hpp"
#include "hostless/stencil/body.hpp"
#include "stencil/stencil_cases.hpp"

namespace hostless::test {
namespace {

struct Tried {
  int streamed = 0, resident = 0, cached = 0, refused = 0;
};

void compare_all(Grid const& grid, StencilKernel const& kernel, std::int64_t steps, std::int64_t every,
                 Tried& tried) {
  Cells const given(grid, kernel, 0.1, 0.9);
  Cells expected = given;
  StencilStop stop;
  stop.every = every;
  StencilResult const host = on_host(expected, kernel, steps, stop);
  for (GpuStencilOptions const& options : all_ways(kernel.axes)) {
    Cells got = given;
    try {
      GpuStencilRun run(grid, kernel, options);
      std::string const what = text_of(grid, kernel) + ", " + run.describe();
      StencilResult const result = step(run, got, kernel, steps, stop);
      expect_same(result, host, what);
      EXPECT_EQ(got.different(expected, kernel.fields), 0) << what;
      tried.streamed += run.cells() == GpuCells::streamed;
      tried.resident += run.cells() == GpuCells::resident;
      tried.cached += run.cells() == GpuCells::cached;
    } catch (Error const& e) {
      ++tried.refused;
      EXPECT_TRUE(may_be_refused(options)) << e.what();
      EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
    }
  }
}

class GpuStencil : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (std::string const why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GpuStencil, testing::ValuesIn(subjects), [](auto const& one) {
  return std::string(one.param.name) + "_" + std::to_string(one.param.axes);
});

TEST_P(GpuStencil, HasTheBitsOfTheHost) {
  bool const flat = GetParam().axes == 2;
  std::vector<std::array<std::int64_t, 3>> shapes{{17, 11, 23}, {5, 6, 70}, {33, 20, 64}, {21, 37, 53}};
  if (flat) shapes = {{37, 1, 53}, {131, 1, 257}, {19, 1, 23}, {64, 1, 1001}, {300, 1, 512}};
  Tried tried;
  for (std::size_t const bytes : {std::size_t{4}, std::size_t{8}}) {
    StencilKernel const kernel = make_stencil(GetParam().name, GetParam().axes, bytes);
    for (GridBoundary const first : boundaries)
      for (GridBoundary const last : boundaries)
        for (auto const& shape : shapes) {
          Grid grid{shape, {first, last == GridBoundary::neumann ? first : last, last}};
          if (flat) grid.boundary[1] = GridBoundary::dirichlet;
          compare_all(grid, kernel, 46, 0, tried);
          if (::testing::Test::HasFailure()) return;
        }
  }
  EXPECT_EQ(tried.cached, 2 * 9 * static_cast<int>(shapes.size()));
  if (flat) {
    EXPECT_GE(tried.streamed, 2 * 9 * 2) << "grids were too small";
    EXPECT_GE(tried.resident, 2 * 9 * 2 * 3) << "grids were too small";
  } else {
    EXPECT_GE(tried.streamed, 2 * 9 * 2) << "grids were too small";
  }
}

// What a step changed, at looks that fall between passes and exchanges; and odd numbers of steps.
TEST_P(GpuStencil, ChangesHaveTheBitsOfTheHost) {
  Tried tried;
  for (std::size_t const bytes : {std::size_t{4}, std::size_t{8}}) {
    StencilKernel const kernel = make_stencil(GetParam().name, GetParam().axes, bytes);
    Grid grid{{130, 1, 192}, {GridBoundary::neumann, GridBoundary::dirichlet, GridBoundary::periodic}};
    if (GetParam().axes == 3) grid.extent = {19, 21, 33};
    compare_all(grid, kernel, 35, 9, tried);
    compare_all(grid, kernel, 3, 1, tried);
  }
}

// So many steps that graphs are replayed, and kernels come back and are launched again.
TEST_P(GpuStencil, ManySteps) {
  StencilKernel const kernel = make_stencil(GetParam().name, GetParam().axes, 4);
  Grid grid{{96, 1, 128}, {}};
  if (GetParam().axes == 3) grid.extent = {12, 12, 32};
  Cells const given(grid, kernel, 0.1, 0.9);
  Cells expected = given;
  constexpr std::int64_t steps = 2101;
  StencilResult const host = on_host(expected, kernel, steps);
  for (GpuStencilOptions options : all_ways(kernel.axes)) {
    options.longest_launch_s = 1e-4;
    Cells got = given;
    GpuStencilRun run(grid, kernel, options);
    expect_same(step(run, got, kernel, steps, {}), host, run.describe());
    EXPECT_EQ(got.different(expected, kernel.fields), 0) << run.describe();
  }
}

class GpuStencils : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string const why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(GpuStencils, LargeGridsOfManyTiles) {
  StencilKernel const kernel = make_stencil("jacobi2d", 2, 4);
  Tried tried;
  compare_all({{1024, 1, 1024}, {}}, kernel, 32, 0, tried);
  compare_all({{1500, 1, 2048}, {GridBoundary::periodic, {}, GridBoundary::neumann}}, kernel, 18, 0, tried);
  compare_all({{70, 1, 40'000}, {GridBoundary::neumann, {}, GridBoundary::periodic}}, kernel, 18, 0, tried);
  EXPECT_GE(tried.resident, 4);
}

// More cells than shared memory holds: some rows stay there, the others in memory.
TEST_F(GpuStencils, KeepsWhatFits) {
  StencilKernel const kernel = make_stencil("heat", 2, 8);
  for (GridBoundary const boundary : {GridBoundary::periodic, GridBoundary::dirichlet}) {
    Grid const grid{{2900, 1, 3100}, {boundary, {}, GridBoundary::neumann}};
    std::string const inner = boundary == GridBoundary::periodic ? "2898" : "2896";
    Cells const given(grid, kernel, 0.1, 0.9);
    Cells expected = given, got = given;
    on_host(expected, kernel, 9);
    GpuStencilRun run(grid, kernel, way(RunKind::persistent, GpuCells::cached));
    std::string const how = run.describe();
    EXPECT_NE(how.find(" of " + inner + " inner rows"), std::string::npos) << how;
    EXPECT_EQ(how.find(": 0 of "), std::string::npos) << how;
    EXPECT_EQ(how.find(": " + inner + " of "), std::string::npos) << how;
    (void)step(run, got, kernel, 9, {});
    EXPECT_EQ(got.different(expected, 1), 0) << how;
  }
}

// Quotients that a quick division gets wrong, and zeros: at a hot end numbers grow from the smallest there are.
TEST_F(GpuStencils, DividesTheSmallestAndInfinitiesAsTheHostDoes) {
  for (std::size_t const bytes : {std::size_t{4}, std::size_t{8}})
    for (GridBoundary const boundary : boundaries) {
      StencilKernel const kernel = make_stencil("jacobi3d", 3, bytes);
      Grid const grid{{70, 36, 64}, {boundary, boundary, boundary}};
      double const least =
          bytes == 4 ? std::numeric_limits<float>::denorm_min() : std::numeric_limits<double>::denorm_min();
      for (double const peak : {1.0, 1e-30, 1e-37, 1e-300, 9 * least, -5 * least, -0.0,
                                std::numeric_limits<double>::infinity()}) {
        Cells given(grid, kernel, 0, 0);
        for (std::int64_t k = 0; k < 36 * 64; ++k) given.put(0, k, peak);
        given.put(0, 36 * 64 * 40 + 700, peak);
        Cells expected = given;
        (void)on_host(expected, kernel, 46);
        Cells got = given;
        GpuStencilRun run(grid, kernel, way(RunKind::graph, GpuCells::streamed));
        (void)step(run, got, kernel, 46, {});
        EXPECT_EQ(got.different(expected, 1), 0) << peak << ", " << text_of(grid, kernel);
      }
    }
}

TEST_F(GpuStencils, LargeGridsInPlanes) {
  for (std::size_t const bytes : {std::size_t{4}, std::size_t{8}}) {
    Tried tried;
    compare_all({{150, 130, 260}, {GridBoundary::periodic, {}, GridBoundary::neumann}},
                make_stencil("jacobi3d", 3, bytes), 13, 0, tried);
    compare_all({{61, 257, 301}, {GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic}},
                make_stencil("wave", 3, bytes), 13, 0, tried);
    EXPECT_EQ(tried.streamed, 6);  // by name twice, and what is chosen
  }
}

TEST_F(GpuStencils, EndsAsTheHostDoes) {
  StencilKernel const kernel = make_stencil("heat", 2, 8);
  Grid const grid{{40, 1, 96}, {}};
  for (GpuStencilOptions const& options : all_ways(2)) {
    GpuStencilRun run(grid, kernel, options);
    expect_endings(run, grid, kernel, {{20, 0}, {20, 4}});  // at the end, and at a look
    StencilStop stop;
    stop.every = 6;
    int polls = 0;
    stop.stop_requested = [&] { return ++polls == 3; };
    EXPECT_EQ(run.run(600, stop).steps, 18) << run.describe();
  }
}

// Rows, columns and planes in any order, backwards too, in memory of the host and of the GPU.
TEST_F(GpuStencils, ArraysOfAnyStrides) {
  StencilKernel const kernel = make_stencil("wave", 3, 4);
  Grid const grid{{7, 9, 31}, {GridBoundary::periodic, GridBoundary::neumann, GridBoundary::dirichlet}};
  Cells const given(grid, kernel, 0, 1);
  Cells expected = given;
  on_host(expected, kernel, 5);
  auto const bench = gpu::exchange_library().workbench(0);
  std::size_t const bytes = 2 * static_cast<std::size_t>(given.count()) * 4;
  std::byte* const there[] = {bench->take(bytes), bench->take(bytes)};
  std::vector<std::byte> between(bytes);
  std::array<std::int64_t, 3> const n = grid.extent;
  struct Order {
    std::array<std::int64_t, 3> stride;
    std::int64_t first;
  };
  for (Order const& order : {Order{{n[1] * n[2] * 4, n[2] * 4, 4}, 0},           // as ours
                             Order{{n[1] * n[2] * 4 + 64, n[2] * 4 + 8, 4}, 0},  // with gaps
                             Order{{4, n[0] * 4, n[0] * n[1] * 4}, 0},           // Fortran's
                             Order{{n[1] * n[2] * 8, n[2] * 8, 8}, 0},           // every other
                             Order{{-n[1] * n[2] * 4, -n[2] * 4, -4}, given.count() * 4 - 4}}) {
    for (bool const on_gpu : {false, true}) {
      auto const each_cell = [&](auto const& use) {
        std::int64_t i = 0;
        for (std::int64_t a = 0; a < n[0]; ++a)
          for (std::int64_t b = 0; b < n[1]; ++b)
            for (std::int64_t c = 0; c < n[2]; ++c, ++i)
              use(i, order.first + a * order.stride[0] + b * order.stride[1] + c * order.stride[2]);
      };
      GpuStencilRun run(grid, kernel, {});
      std::vector<std::vector<std::byte>> host(2, std::vector<std::byte>(bytes));
      for (int f = 0; f < 2; ++f) {
        auto const k = static_cast<std::size_t>(f);
        each_cell([&](std::int64_t i, std::int64_t at) {
          std::memcpy(host[k].data() + at, given.array[k].data() + i * 4, 4);
        });
        bench->put(there[f], host[k].data(), bytes);
        run.give(f, {(on_gpu ? there[f] : host[k].data()) + order.first, order.stride});
      }
      EXPECT_EQ(run.run(5).status, StencilStatus::steps_done);
      for (int f = 0; f < 2; ++f) {
        auto const k = static_cast<std::size_t>(f);
        run.take(f, {(on_gpu ? there[f] : host[k].data()) + order.first, order.stride});
        if (on_gpu) bench->get(host[k].data(), there[f], bytes);
        std::int64_t wrong = 0;
        each_cell([&](std::int64_t i, std::int64_t at) {
          wrong += std::memcmp(host[k].data() + at, expected.array[k].data() + i * 4, 4) != 0;
        });
        EXPECT_EQ(wrong, 0) << (on_gpu ? "GPU" : "host") << ", stride " << order.stride[2];
      }
    }
  }
}

// Rows further apart than the runtime's copies of rows can be told; few pages of it are ever there.
TEST_F(GpuStencils, RowsFarApart) {
  StencilKernel const kernel = make_stencil("jacobi2d", 2, 4);
  Grid const grid{{5, 1, 64}, {}};
  Cells const given(grid, kernel, 0, 1);
  Cells expected = given;
  on_host(expected, kernel, 3);
  constexpr std::int64_t pitch = (std::int64_t{1} << 31) + 512;
  std::size_t const row = 64 * 4, bytes = static_cast<std::size_t>(4 * pitch) + row;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED) << "8 GiB of addresses";
  std::unique_ptr<void, std::function<void(void*)>> const held(memory, [&](void* it) { munmap(it, bytes); });
  auto* const cells = static_cast<std::byte*>(memory);
  for (std::size_t a = 0; a < 5; ++a)
    std::memcpy(cells + static_cast<std::int64_t>(a) * pitch, given.array[0].data() + a * row, row);
  GpuStencilRun run(grid, kernel, {});
  run.give(0, {cells, {pitch, pitch, 4}});
  EXPECT_EQ(run.run(3).status, StencilStatus::steps_done);
  run.take(0, {cells, {pitch, pitch, 4}});
  for (std::size_t a = 0; a < 5; ++a)
    EXPECT_EQ(
        std::memcmp(cells + static_cast<std::int64_t>(a) * pitch, expected.array[0].data() + a * row, row), 0)
        << "row " << a;
}

struct Own {
  static constexpr int axes = 2, radius = 1;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    return u(0, 1) - u(0, 0);
  }
};

TEST_F(GpuStencils, RefusesWhatItCannot) {
  Grid const grid{{64, 1, 64}, {}};
  StencilKernel const kernel = make_stencil("jacobi2d", 2, 4), cube = make_stencil("jacobi3d", 3, 4);
  auto const make = [&](GpuStencilOptions const& options, StencilKernel const& of) {
    return [&grid, options, of] { GpuStencilRun const run(grid, of, options); };
  };
  expect_refused(make({}, kernel_of<float>(Own{}, "own")), "stencil 'own' on a GPU");
  expect_refused(make({}, kernel_of<float>(Own{}, "jacobi2d")), "stencil 'jacobi2d' on a GPU");
  expect_refused(make(way(RunKind::host, GpuCells::automatic), kernel), "run host");
  expect_refused(make(way(RunKind::persistent, GpuCells::streamed), kernel), "a pass is a kernel");
  expect_refused(make(way(RunKind::stream, GpuCells::resident), kernel), "they stay in one kernel");
  expect_refused(make(way(RunKind::persistent, GpuCells::resident, 3), kernel), "an even one");
  expect_refused(make(way(RunKind::persistent, GpuCells::resident, 4000), kernel), "depth 4000");
  expect_refused(make(way(RunKind::graph, GpuCells::streamed, 0, 77), kernel), "77 steps in one pass");
  expect_refused(make(way(RunKind::persistent, GpuCells::resident), cube), "it is for two axes");
  expect_refused(make(way(RunKind::graph, GpuCells::cached), kernel), "cells cached in run graph");
  expect_refused(make(way(RunKind::persistent, GpuCells::cached, 2), kernel), "exchanged after every step");
  GpuStencilOptions other;
  other.devices = {99};
  expect_refused(make(other, kernel), "GPU 99");
  GpuStencilRun run(grid, kernel);
  Cells cells(grid, kernel, 0, 1);
  expect_refused([&] { run.run(1); }, "was not given");
  expect_refused([&] { run.give(1, cells.seen(0)); }, "array 1");
  run.give(0, cells.seen(0));
  expect_refused([&] { run.take(1, cells.seen(0)); }, "field 1");
  expect_refused([&] { run.run(-1); }, "-1 steps");
}

TEST_F(GpuStencils, WholeArraysOfTheHost) {
  StencilKernel const kernel = make_stencil("gray_scott", 2, 8);
  Grid const grid{{100, 1, 128}, {GridBoundary::periodic, {}, GridBoundary::periodic}};
  Cells got(grid, kernel, 0, 1), expected = got;
  on_host(expected, kernel, 50);
  std::string how;
  StencilResult const result = run_stencil_on_gpu(grid, kernel, {got.seen(0), got.seen(1)}, 50, {}, {}, &how);
  EXPECT_EQ(result.status, StencilStatus::steps_done);
  EXPECT_EQ(got.different(expected, 2), 0) << how;
  EXPECT_FALSE(how.empty());
}

}  // namespace
}  // namespace hostless::test
