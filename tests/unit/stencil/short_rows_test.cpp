// Blocks whose rows follow each other along an axis, and planes of them: short rows are stepped down their columns and
// keep what the next one reads, long ones a row after the other. Both leave the bits of the loop over cells, whatever
// their length, and touch no other cell.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "hostless/base/fused_vectors.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/stencil/body.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/pack.hpp"
#include "hostless/stencil/stencil.hpp"
#include "sample.hpp"
#include "stencil/pass.hpp"
#include "stencil/plain_update.hpp"

namespace hostless {
namespace {

/// Rows that are more than a band of them, planes that are more than are stepped together, and a cell around.
constexpr std::int64_t block_rows = 35, block_planes = 3, around = 1;

template <class T>
struct Block {
  StencilKernel const& kernel;
  std::int64_t cells, row = 0, plane = 0, field = 0;
  std::vector<T> old;

  Block(StencilKernel const& of, std::int64_t length) : kernel(of), cells(length) {
    std::int64_t const planes = (kernel.axes > 2 ? block_planes : 1) + 2 * around;
    row = cells + 2 * around + 3;
    plane = kernel.axes > 2 ? row * (block_rows + 2 * around) : row;
    field = kernel.axes > 2 ? plane * planes : row * (block_rows + 2 * around);
    std::mt19937 engine(static_cast<unsigned>(length));
    for (std::int64_t k = 0; k < kernel.arrays() * field; ++k)
      old.push_back(k % 7 == 0 ? T(0) : static_cast<T>(engine()) / T(1 << 30) - T(2));
  }
  std::int64_t first() const { return (kernel.axes > 2 ? plane : 0) + row + around; }
  /// The ghost cells beside every row, as an end has them.
  void set_ends(bool wraps) {
    for (std::int64_t at = 0; at + row <= std::ssize(old); at += row) {
      T* const here = old.data() + at + around;
      here[-1] = here[wraps ? cells - 1 : 0], here[cells] = here[wraps ? 0 : cells - 1];
    }
  }
  /// What a function leaves, all planes in one call where it heeds them, from the first one on or the last.
  std::vector<T> after(CellFunction update, bool is_plain, std::int64_t before = -1, std::int64_t behind = 1,
                       bool backwards = false) const {
    std::vector<T> to(old.size(), T(9));
    std::vector<void const*> in(static_cast<std::size_t>(kernel.rows_read()));
    std::vector<void*> out;
    std::vector<std::int64_t> const strides(in.size(), row);
    std::int64_t const planes = kernel.axes > 2 ? block_planes : 1;
    for (std::int64_t p = 0; p < (is_plain ? planes : 1); ++p) {
      std::int64_t const at = first() + (backwards ? planes - 1 : p) * plane;
      out.clear();
      for (int f = 0; f < kernel.fields; ++f) out.push_back(to.data() + f * field + at);
      for (int f = 0; f < kernel.arrays(); ++f)
        for (int a = -kernel.radius[0]; a <= kernel.radius[0]; ++a)
          for (int b = -kernel.radius[1]; b <= kernel.radius[1]; ++b)
            in[static_cast<std::size_t>(kernel.row(f, a, b))] =
                old.data() + f * field + at + a * plane + b * row;
      CellBlock block{out.data(), in.data(), strides.data(),          row,
                      block_rows, cells,     kernel.parameters.data()};
      if (!is_plain) {
        block.before = before, block.after = behind;
        block.along = kernel.axes > 2 ? 1 : 0, block.planes = planes;
        block.to_plane = backwards ? -plane : plane;
      }
      update(block);
    }
    return to;
  }
};

template <class T>
void compare(StencilKernel const& kernel, char const* name, std::int64_t cells) {
  int const axes = kernel.axes;
  ASSERT_TRUE(kernel.steps_planes);
  CellFunction const plain = plain_update(name, axes, sizeof(T));
  Block<T> block(kernel, cells);
  std::vector<T> expected = block.after(plain, true);
  auto const expect = [&](std::vector<T> const& found, char const* what) {
    ASSERT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(T)), 0)
        << name << " " << axes << " axes, " << sizeof(T) << " bytes, " << cells << " cells, " << what;
  };
  expect(block.after(kernel.update, false), "neighbours beside");
  expect(block.after(kernel.update, false, -1, 1, true), "neighbours beside, from the last plane on");
  if (kernel.update_ends == nullptr) return;
  block.set_ends(false), expected = block.after(plain, true);
  expect(block.after(kernel.update_ends, false, 0, 0), "mirrored ends");
  block.set_ends(true), expected = block.after(plain, true);
  expect(block.after(kernel.update_ends, false, cells - 1, 1 - cells), "ends that wrap");
  expect(block.after(kernel.update_ends, false, cells - 1, 1 - cells, true), "from the last plane on");
}

/// Of a sample the shortest, and every third: with any rest of a pack.
bool is_tried_with(std::int64_t cells) {
  return cells <= 20 || test::is_tried(static_cast<std::size_t>(cells), 3);
}

TEST(ShortRows, HaveTheBitsOfTheLoopOverCells) {
  for (NamedStencil const& one : named_stencils())
    for (int const axes : one.axes)
      for (std::int64_t cells = 1; cells <= 100; ++cells) {
        if (!is_tried_with(cells)) continue;
        compare<float>(make_stencil(one.name, axes, 4), one.name, cells);
        compare<double>(make_stencil(one.name, axes, 8), one.name, cells);
        if (HasFatalFailure()) return;
      }
}

/// By each way to take a sixth, whichever this processor's kernel has.
template <class T, bool divides>
void compare_sixths(std::int64_t cells) {
  using Body = stencils::Jacobi3d;
  StencilKernel kernel = kernel_of<T>(Body{}, "jacobi3d");
  auto const compare_with = [&](CellFunction update, CellFunction update_ends) {
    kernel.update = update, kernel.update_ends = update_ends;
    compare<T>(kernel, "jacobi3d", cells);
  };
  if (active_isa() >= Isa::v4)
    compare_with(update_cells_v4<T, Body, true, false, divides>,
                 update_cells_v4<T, Body, true, true, divides>);
  if (active_isa() >= Isa::v3)
    compare_with(update_cells_v3<T, Body, true, false, divides>,
                 update_cells_v3<T, Body, true, true, divides>);
}
TEST(ShortRows, HaveTheBitsByEachWayToTakeASixth) {
  for (std::int64_t cells = 1; cells <= 100; ++cells) {
    if (!is_tried_with(cells)) continue;
    compare_sixths<float, true>(cells), compare_sixths<float, false>(cells);
    compare_sixths<double, true>(cells), compare_sixths<double, false>(cells);
    if (HasFatalFailure()) return;
  }
}

void wait_long(CellBlock const&) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
TEST(ShortRows, WhatIsFasterIsTimed) {
  StencilKernel kernel = make_stencil("jacobi3d", 3, 4);
  EXPECT_FALSE(is_faster(wait_long, kernel));
  CellFunction const update = kernel.update;
  kernel.update = wait_long;
  EXPECT_TRUE(is_faster(update, kernel));
}

/// a / 6 of packs, against the division; -1: the processor has none.
template <class T, int bytes>
long wrong_sixths(std::vector<T> const& values) {
  if constexpr (!is_fused<T, bytes>) {
    return -1;
  } else {
    if (active_isa() < (bytes == 64 ? Isa::v4 : Isa::v3)) return -1;
    using V = Pack<T, bytes>;
    long wrong = 0;
    for (std::size_t k = 0; k + V::width <= values.size(); k += V::width) {
      T found[V::width];
      V::load(values.data() + k).sixth().store(found);
      for (int i = 0; i < V::width; ++i) {
        T const expected = values[k + static_cast<std::size_t>(i)] / T(6);
        wrong += std::memcmp(&expected, &found[i], sizeof(T)) != 0;
      }
    }
    return wrong;
  }
}
template <class T, class Bits>
std::vector<T> of_all_sizes() {
  std::mt19937_64 engine(3);
  std::vector<T> values{T(0),
                        T(-0.0),
                        std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::quiet_NaN()};
  auto const add = [&](Bits bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    if (value == value) values.push_back(value);  // which NaN comes of one is nobody's promise
  };
  constexpr Bits sign = Bits(1) << (8 * sizeof(T) - 1);
  for (Bits k = 0; k < 3000; ++k) add(k), add(k | sign);  // of which 3, 9, 15 ... lie halfway
  for (int k = 0; k < 200'000; ++k) add(static_cast<Bits>(engine()));
  return values;
}

TEST(ShortRows, SixthsAreTheDivisions) {
  auto const floats = of_all_sizes<float, std::uint32_t>();
  auto const doubles = of_all_sizes<double, std::uint64_t>();
  for (long const wrong : {wrong_sixths<float, 32>(floats), wrong_sixths<float, 64>(floats),
                           wrong_sixths<double, 32>(doubles), wrong_sixths<double, 64>(doubles)})
    EXPECT_LE(wrong, 0);
}

std::vector<std::int64_t> planes_apart;
void keep_order(CellBlock const& block) { planes_apart.push_back(block.to_plane); }

TEST(ShortRows, EveryOtherStepBeginsWithTheLastPlane) {
  Grid const grid{{6, 5, 7}, {}};
  StencilKernel kernel = make_stencil("jacobi3d", 3, 4);
  kernel.update = keep_order, kernel.update_ends = nullptr;
  Box const box{{0, 0, 0}, grid.extent};
  GridArray const one(box, {}, 4, 1), other(box, {}, 4, 1);
  std::array<StepArrays, 2> const arrays{StepArrays{{&one}, {&other}}, StepArrays{{&other}, {&one}}};
  Pass pass(grid, kernel, {}, {});
  planes_apart.clear();
  for (std::size_t k = 0; k < 4; ++k) pass.take({&arrays[k % 2], &arrays[1 - k % 2]}, 1, box, false);
  ASSERT_EQ(planes_apart.size(), 4u);
  EXPECT_EQ(std::abs(planes_apart[0]), one.stride(0));
  EXPECT_EQ(planes_apart[1], -planes_apart[0]);
  EXPECT_EQ(planes_apart[2], planes_apart[0]);
}

TEST(ShortRows, WhatIsStoredBeginsALine) {
  auto const address_of = [](std::byte const* at) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at));
  };
  for (std::int64_t const given : {0, 1, 2})
    for (std::int64_t const n : {1, 6, 18, 50, 80, 600}) {
      Box const box{{0, 0, 0}, {20, 80, n}};
      GridArray const one(box, {1, 1, 1}, 4, given), other(box, {1, 1, 1}, 4, given);
      EXPECT_EQ(one.line_begin(), given);
      if (n > 6) {
        EXPECT_EQ(address_of(one.at(0, 0, given)) % 64, 0);
        EXPECT_EQ(address_of(one.at(19, 79, given)) % 64, 0);
      } else {  // with its halo half a line: several share one
        EXPECT_EQ(one.stride(1), n == 1 ? 4 : 8);
      }
      // and lies apart, in its page, from what is read for it
      std::int64_t const apart = address_of(other.at(0, 0, 0)) - address_of(one.at(0, 0, 0));
      for (std::int64_t const read :
           {std::int64_t{0}, one.stride(1), -one.stride(1), one.stride(0), -one.stride(0)}) {
        std::int64_t const ahead = ((apart - 4 * read) % 4096 + 4096) % 4096;
        EXPECT_GE(std::min(ahead, 4096 - ahead), 256) << n << " cells a row";
      }
    }
}

TEST(ShortRows, ThatAllStayAreNotStepped) {
  run_with_threads_transport(1, [](Transport& transport) {
    Grid const grid{{1, 1, 40}, {}};
    StencilKernel kernel = make_stencil("jacobi2d", 2, 8);
    StencilRun run(transport, grid, kernel);
    std::vector<double> cells(40), found(40);
    for (std::size_t k = 0; k < cells.size(); ++k) cells[k] = static_cast<double>(k);
    run.give(0, {cells.data(), {320, 320, 8}});
    StencilStop stop;
    stop.every = 2;
    StencilResult const result = run.run(7, stop);
    EXPECT_EQ(result.steps, 7);
    EXPECT_EQ(run.steps(), 7);
    ASSERT_EQ(result.history.size(), 3u);
    EXPECT_EQ(result.history[0].largest[0], 0.0);
    run.take(0, {found.data(), {320, 320, 8}});
    EXPECT_EQ(found, cells);
  });
}

}  // namespace
}  // namespace hostless
