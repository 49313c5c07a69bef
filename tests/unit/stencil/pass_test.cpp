// Steps that are blocked by caches so small that every axis is cut into tiles leave the cells that one step at a time
// leaves in a plain array, whose neighbours beyond an end are looked up.
#include "stencil/pass.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "hostless/stencil/body.hpp"
#include "hostless/stencil/stencil.hpp"

namespace hostless {
namespace {

/// Looks two cells far, off the axes too, and at a coefficient.
struct Wide {
  static constexpr int axes = 3, radius = 2, fields = 2, coefficients = 1;
  static constexpr bool star = false;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    T const near = (u(0, 0, -1) + u(0, 1, 0)) + u(-1, 0, 0), far = (u(-2, 0, 2) + u(2, -2, 0)) + u(0, 2, -2);
    return std::array<T, 2>{T(0.25) * (near - far) + u.of(1, 0, 0, 1) * u.of(2, 0, -1, 0), u(1, 1, 1)};
  }
};

struct Cross {
  static constexpr int axes = 2, radius = 1;
  static constexpr bool packs = true;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    return T(0.25) * ((u(0, -1) + u(0, 1)) + (u(-1, 0) + u(1, 0))) + T(0.125) * u(0, 0);
  }
};

float initial(int array, std::int64_t cell) {
  return static_cast<float>((cell * 7919 + array * 104729) % 1009) / 1009 - 0.5f;
}

/// A field's value where the boundary says it is read from.
struct Looked {
  using value_type = float;
  Grid const& grid;
  std::vector<std::vector<float>> const& arrays;
  std::array<std::int64_t, 3> cell;

  static std::int64_t inside(std::int64_t i, std::int64_t n) {
    return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i;
  }
  float of(int array, int z, int y, int x) const {
    std::int64_t number = 0;
    std::array<int, 3> const offset{z, y, x};
    for (std::size_t a = 0; a < 3; ++a)
      number = number * grid.extent[a] + inside(cell[a] + offset[a], grid.extent[a]);
    return arrays[static_cast<std::size_t>(array)][static_cast<std::size_t>(number)];
  }
  float of(int array, int y, int x) const { return of(array, y, 0, x); }
  template <class... Offsets>
  float operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }
};

template <class Body>
std::vector<std::vector<float>> stepped_plainly(Grid const& grid, StencilKernel const& kernel, int steps) {
  std::vector<std::vector<float>> now(static_cast<std::size_t>(kernel.arrays()));
  for (int k = 0; k < kernel.arrays(); ++k)
    for (std::int64_t c = 0; c < grid.extent[0] * grid.extent[1] * grid.extent[2]; ++c)
      now[static_cast<std::size_t>(k)].push_back(initial(k, c));
  for (int step = 0; step < steps; ++step) {
    auto next = now;
    std::size_t number = 0;
    for (std::int64_t i = 0; i < grid.extent[0]; ++i)
      for (std::int64_t j = 0; j < grid.extent[1]; ++j)
        for (std::int64_t k = 0; k < grid.extent[2]; ++k, ++number) {
          std::array<std::int64_t, 3> const cell{i, j, k};
          bool stays = false;
          for (std::size_t a = 0; a < 3; ++a)
            stays = stays || (grid.boundary[a] == GridBoundary::dirichlet &&
                              (cell[a] < kernel.radius[a] || cell[a] >= grid.extent[a] - kernel.radius[a]));
          if (stays) continue;
          auto const value = Body{}(Looked{grid, now, cell});
          if constexpr (fields_of_body<Body>() == 1) {
            next[0][number] = value;
          } else {
            for (std::size_t f = 0; f < value.size(); ++f) next[f][number] = value[f];
          }
        }
    now = next;
  }
  return now;
}

template <class Body>
void expect_equal(Grid const& grid, int steps) {
  StencilKernel const kernel = kernel_of<float>(Body{}, "of the test");
  Box const box{{0, 0, 0}, grid.extent};
  std::array<std::int64_t, 3> halo{};
  for (std::size_t a = 0; a < 3; ++a)
    halo[a] = grid.boundary[a] == GridBoundary::neumann && (a < 2 || kernel.update_ends == nullptr)
                  ? kernel.radius[a]
                  : 0;
  Pass pass(grid, kernel, {}, {512, 2048});
  std::array<std::vector<GridArray>, 2> fields;
  std::vector<GridArray> coefficients;
  std::array<StepArrays, 2> arrays;
  for (int k = 0; k < kernel.arrays(); ++k) {
    bool const is_field = k < kernel.fields;
    for (std::size_t turn = 0; turn < (is_field ? 2u : 1u); ++turn) {
      auto& of = is_field ? fields[turn] : coefficients;
      of.emplace_back(box, halo, sizeof(float));
      std::int64_t cell = 0;
      each_row(of.back(), box, [&](std::byte* row, std::int64_t, std::int64_t) {
        for (std::int64_t c = 0; c < grid.extent[2]; ++c)
          reinterpret_cast<float*>(row)[c] = initial(k, cell++);
      });
      pass.mirror(of.back(), box);
    }
  }
  for (std::size_t turn = 0; turn < 2; ++turn) {
    for (GridArray const& one : fields[turn]) arrays[turn].read.push_back(&one);
    for (GridArray const& one : fields[1 - turn]) arrays[turn].written.push_back(&one);
    for (GridArray const& one : coefficients) arrays[turn].read.push_back(&one);
  }
  pass.take({&arrays[0], &arrays[1]}, steps, box, false);
  auto const expected = stepped_plainly<Body>(grid, kernel, steps);
  for (std::size_t f = 0; f < fields[0].size(); ++f) {
    std::size_t cell = 0;
    each_row(fields[static_cast<std::size_t>(steps % 2)][f], box,
             [&](std::byte const* row, std::int64_t i, std::int64_t j) {
               for (std::int64_t c = 0; c < grid.extent[2]; ++c, ++cell)
                 ASSERT_EQ(reinterpret_cast<float const*>(row)[c], expected[f][cell])
                     << "field " << f << " at " << i << ", " << j << ", " << c << " after " << steps
                     << " steps";
             });
  }
}

constexpr auto fixed = GridBoundary::dirichlet, mirrored = GridBoundary::neumann;

CellArray view_of(std::vector<float>& cells, Grid const& grid) {
  std::int64_t const row = 4 * grid.extent[2];
  return {cells.data(), {row * grid.extent[1], row, 4}};
}

TEST(Pass, NothingIsSteppedWhereFewerCellsAreThanAreFixed) {
  for (std::int64_t const cells : {1, 2, 3, 4, 5, 9})
    for (std::size_t const axis : {0u, 1u, 2u}) {
      Grid grid{{7, 7, 7}, {}};
      grid.extent[axis] = cells;
      Pass const pass(grid, kernel_of<float>(Wide{}, "of the test"), {}, {});
      for (int const steps : {0, 1, 4}) {
        Box const stepped = pass.grown({{0, 0, 0}, grid.extent}, steps);
        EXPECT_EQ(stepped.high[axis] - stepped.low[axis], std::max<std::int64_t>(cells - 4, 0)) << cells;
        EXPECT_GE(stepped.low[axis], 0) << cells;
        EXPECT_LE(stepped.high[axis], cells) << cells;
      }
      run_with_threads_transport(1, [&](Transport& transport) {
        std::array<std::vector<float>, 3> given, seen;
        StencilRun run(transport, grid, kernel_of<float>(Wide{}, "of the test"));
        for (int k = 0; k < 3; ++k) {
          auto& mine = given[static_cast<std::size_t>(k)];
          for (std::int64_t c = 0; c < 49 * cells; ++c) mine.push_back(initial(k, c));
          seen[static_cast<std::size_t>(k)].resize(mine.size());
          run.give(k, view_of(mine, grid));
        }
        EXPECT_EQ(run.run(3, {}).status, StencilStatus::steps_done);
        for (int f = 0; f < 2; ++f) {
          auto& now = seen[static_cast<std::size_t>(f)];
          run.take(f, view_of(now, grid));
          if (cells <= 4) {
            EXPECT_EQ(now, given[static_cast<std::size_t>(f)]) << axis << ", " << cells;
          }
        }
      });
    }
}

/// Reads one cell, which its other members may or may not allow.
template <int dy, int dx, int field, int reach, bool on_axes>
struct Reads {
  static constexpr int axes = 2, radius = reach;
  static constexpr bool star = on_axes;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    return u(0, 0) + u.of(field, dy, dx);
  }
};

/// Takes its cell by a reference that binds to no temporary.
struct ByReference {
  static constexpr int axes = 2, radius = 1;
  HOSTLESS_HOST_DEVICE auto operator()(auto& u) const { return u(0, 0) + u(0, 1); }
};

TEST(KernelOf, TakesFunctorsOfAnyReference) {
  StencilKernel const kernel = kernel_of<double>(ByReference{}, "by reference");
  std::array<double, 3> const row{4, 5, 6};
  double next = 0;
  void* const out = &next;
  std::array<void const*, HostCell<double, ByReference>::rows> in{};
  std::array<std::int64_t, in.size()> const strides{};
  in.fill(&row[1]);
  kernel.update({&out, in.data(), strides.data(), 0, 1, 1});
  EXPECT_EQ(next, 5 + 6);
}

TEST(KernelOf, RefusesFunctorsThatReadFartherThanTheySay) {
  auto const refused = [](auto const& functor) {
    try {
      static_cast<void>(kernel_of<double>(functor, "far"));
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
      EXPECT_NE(std::string(e.what()).find("stencil 'far' reads beyond its radius"), std::string::npos);
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused(Reads<-1, 0, 0, 1, true>{}));
  EXPECT_FALSE(refused(Reads<0, 2, 0, 2, true>{}));
  EXPECT_FALSE(refused(Reads<1, -1, 0, 1, false>{}));
  EXPECT_TRUE(refused(Reads<-2, 0, 0, 1, true>{}));
  EXPECT_TRUE(refused(Reads<0, 3, 0, 2, false>{}));
  EXPECT_TRUE(refused(Reads<1, -1, 0, 1, true>{}));
  EXPECT_TRUE(refused(Reads<0, 1, 1, 1, true>{}));
}

TEST(Pass, RowsCutIntoTilesLeaveWhatPlainStepsLeave) {
  for (auto const& ends : {std::array{fixed, fixed, fixed}, std::array{mirrored, fixed, mirrored},
                           std::array{fixed, fixed, mirrored}, std::array{mirrored, fixed, fixed}})
    for (int const steps : {1, 2, 5, 16})
      for (std::int64_t const columns : {3, 65, 129, 200})
        expect_equal<Cross>({{41, 1, columns}, ends}, steps);
}

TEST(Pass, PlanesCutIntoTilesLeaveWhatPlainStepsLeave) {
  for (auto const& ends : {std::array{fixed, fixed, fixed}, std::array{mirrored, mirrored, mirrored},
                           std::array{fixed, mirrored, fixed}, std::array{mirrored, fixed, mirrored}})
    for (int const steps : {1, 2, 5})
      for (std::int64_t const rows : {17, 25}) expect_equal<Wide>({{21, rows, 70}, ends}, steps);
}

}  // namespace
}  // namespace hostless
