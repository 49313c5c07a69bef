// Values that lie elsewhere: a layout of value indices, filled by the body that kernels run, is the layout of
// the values; and entries compared with their mirrors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "matrices.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/diagonal.impl.hpp"
#include "operate/gpu/value_indices.impl.hpp"
#include "operate/with_block.hpp"
#include "same_layout.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

using namespace test;

/// The same pattern with value indices + 1, in an order of the caller's own.
LocalRowArrays with_value_indices(LocalRowArrays const& rows, std::vector<double>& values) {
  LocalPanel panel = rows.all();
  std::size_t const count = panel.value.size();
  values.assign(count + 3, std::numeric_limits<double>::quiet_NaN());  // more than the rows have
  for (std::size_t k = 0; k < count; ++k) {
    std::size_t const value_index = (k * 7919) % count + 1;  // a permutation: 7919 does not divide it
    values[value_index] = panel.value[k];
    panel.value[k] = static_cast<double>(value_index + 1);
  }
  return LocalRowArrays(rows.ghosts(), panel, rows.ghosts_below());
}

gpu::Numbers numbers_of(std::vector<double>& values) {
  GpuArray array;
  array.address = values.data();
  array.size = static_cast<std::int64_t>(values.size());
  return gpu::numbers_of(array);
}

/// Symmetric in bits, block by block.
Oracle in_blocks(Oracle const& a, int b) {
  Oracle wide;
  wide.ghosts = a.ghosts * b;
  wide.below = a.below * b;
  wide.row.resize(a.row.size() * static_cast<std::size_t>(b));
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(a.row.size()); ++i)
    for (auto const& [j, value] : a.row[static_cast<std::size_t>(i)])
      for (int r = 0; r < b; ++r)
        for (int c = 0; c < b; ++c)
          wide.row[static_cast<std::size_t>(i * b + r)][j * b + c] =
              value + 0.01 * std::min(i * b + r, j * b + c) + 0.1 * std::max(i * b + r, j * b + c);
  return wide;
}

void expect_gathered(Oracle const& oracle, int block, DeviceRequest request, std::string const& what) {
  Tiling const tiling = tiling_of(oracle, block, 5);
  DeviceRows const expected = make_device_rows(oracle.rows(), tiling, request);
  std::vector<double> values;
  LocalRowArrays const value_indices = with_value_indices(oracle.rows(), values);
  request.value_indices = true;
  request.halves = expected.diagonals.mirrored > 0;
  DeviceRows made = make_device_rows(value_indices, tiling, request);
  EXPECT_TRUE(made.value_indices);
  gpu::Numbers const numbers = numbers_of(values);
  for (double& value_index : made.value) value_index = gpu::value_of(value_index, numbers);
  expect_same_layout(made, expected, what);
  std::vector<double> expected_diagonal;
  LocalMatrix(oracle.rows(), tiling).diagonal_blocks(expected_diagonal);
  std::vector<double> diagonal(expected_diagonal.size(), -7.0);
  RowsView const view = made.view();
  with_block(block, [&](auto size) {
    for (std::int64_t block_row = 0; block_row < tiling.block_rows; ++block_row)
      gpu::read_diagonal_block<size()>(view, block_row, diagonal.data() + block_row * size() * size());
  });
  EXPECT_EQ(diagonal, expected_diagonal) << what;
}

TEST(ValueIndices, EveryLayoutIsThatOfTheValues) {
  for (int block : {1, 2, 3, 4, 6}) {
    Oracle const lattice = in_blocks(symmetric(seven_point(12, 7, 4)), block);
    Oracle const random = random_matrix(600 / block, block, 20, 9u, block > 1);
    for (auto format :
         {DeviceFormat::diagonals, DeviceFormat::sell, DeviceFormat::csr, DeviceFormat::merge}) {
      std::string const what = std::string(name(format)) + ", block " + std::to_string(block);
      for (bool halves : {true, false}) expect_gathered(lattice, block, {false, format, halves}, what);
      if (format != DeviceFormat::diagonals)
        expect_gathered(random, block, {false, format, true}, "random, " + what);
    }
    expect_gathered(lattice, block, {}, "automatic");
    EXPECT_EQ(
        make_device_rows(lattice.rows(), tiling_of(lattice, block, 5), {false, DeviceFormat::diagonals, true})
            .diagonals.mirrored,
        3)
        << "the triangles of the lattice are not alike: nothing was shown of halves";
  }
}

TEST(ValueIndices, SharesWithGhostsOnDiagonals) {
  Oracle lattice = symmetric(seven_point(20, 8, 5));
  lattice.ghosts = 5;
  lattice.below = 3;
  lattice.row[700][-3] = 0.75;
  lattice.row[3][801] = 1.0;
  for (bool halves : {true, false})
    expect_gathered(lattice, 1, {false, DeviceFormat::diagonals, halves}, "far ghosts");
}

TEST(ValueIndices, NumbersOfEveryTypeAndStride) {
  double const doubles[] = {1, 2, 3, 4, 5};
  GpuArray array;
  array.address = const_cast<double*>(doubles + 4);
  array.stride = -2;
  EXPECT_EQ(gpu::numbers_of(array).at(0), 5);
  EXPECT_EQ(gpu::numbers_of(array).at(2), 1);
  float floats[] = {0.1f, 0.2f, 0.3f};
  array = {floats, 3, 2, GpuArray::Number::fp32, 0, nullptr};
  EXPECT_EQ(gpu::numbers_of(array).at(1), static_cast<double>(0.3f));
  gpu::numbers_of(array).put(1, 1.0 / 3);
  EXPECT_EQ(floats[2], static_cast<float>(1.0 / 3));
  std::int32_t narrow[] = {-7, 8};
  std::int64_t wide[] = {std::int64_t{1} << 40, 9};
  EXPECT_EQ((gpu::Numbers{narrow, 1, GpuArray::Number::int32}.whole(0)), -7);
  EXPECT_EQ((gpu::Numbers{wide, 1, GpuArray::Number::int64}.whole(0)), std::int64_t{1} << 40);
  EXPECT_EQ(gpu::value_of(0.0, gpu::Numbers{const_cast<double*>(doubles), 1, GpuArray::Number::fp64}), 0.0);
}

/// [2 1 .; 1.5 8 z; . . 4] and what mirrors it.
struct Square {
  std::vector<std::int32_t> offset{0, 2, 5, 6}, column{0, 1, 0, 1, 2, 2};
  std::vector<double> value;
  explicit Square(double below, double lonely) : value{2, 1, below, 8, lonely, 4} {}
  gpu::RowsOfCaller rows() {
    return {3,
            {offset.data(), 1, GpuArray::Number::int32},
            {column.data(), 1, GpuArray::Number::int32},
            numbers_of(value)};
  }
  double worst(bool& differs) {
    double most = 0;
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t k = offset[static_cast<std::size_t>(row)];
           k < offset[static_cast<std::size_t>(row) + 1]; ++k)
        most = std::max(most, gpu::mirror_difference(rows(), row, k, differs));
    return most;
  }
};

TEST(ValueIndices, EntriesAreComparedWithTheirMirrors) {
  bool differs = false;
  EXPECT_EQ(Square(1, 0).worst(differs), 0);
  EXPECT_FALSE(differs) << "a zero that has no mirror is one";
  EXPECT_DOUBLE_EQ(Square(1.5, 0).worst(differs), 0.5 / 4) << "in the size of the diagonals";
  EXPECT_TRUE(differs);
  differs = false;
  EXPECT_DOUBLE_EQ(Square(1, -3).worst(differs), 3 / std::sqrt(32.0)) << "what has no mirror";
  EXPECT_TRUE(differs);
  differs = false;
  EXPECT_EQ(Square(1, -0.0).worst(differs), 0);
  EXPECT_TRUE(differs) << "in its sign";
  double const nan = std::numeric_limits<double>::quiet_NaN();
  differs = false;
  EXPECT_EQ(Square(nan, 0).worst(differs), 0) << "the solve finds it";
  EXPECT_TRUE(differs);
  Square huge(-1e308, 0);
  huge.value[1] = 1e308;
  EXPECT_DOUBLE_EQ(huge.worst(differs), 2) << "a difference that fp64 does not hold";
  Square denormal(1e-323, 0);
  denormal.value = {5e-324, 1.5e-323, 1e-323, 5e-324, 0, 5e-324};
  EXPECT_EQ(denormal.worst(differs), 0x1p-52) << "a spacing is one of the smallest normal number";
}

/// With as many threads as may be, and more than there are slices.
void expect_same_by_threads(LocalRows const& rows, Tiling const& tiling, DeviceRequest request,
                            std::string const& what) {
  DeviceRows const alone = make_device_rows(rows, tiling, request, 1);
  for (int threads : {2, 3, 40}) {
    DeviceRows const made = make_device_rows(rows, tiling, request, threads);
    expect_same_layout(made, alone, what + ", " + std::to_string(threads) + " threads");
    EXPECT_EQ(made.why, alone.why) << what;
    EXPECT_EQ(made.farthest, alone.farthest) << what;
    EXPECT_TRUE(std::equal(
        made.group.begin(), made.group.end(), alone.group.begin(), alone.group.end(),
        [](DeviceGroup const& a, DeviceGroup const& b) { return std::memcmp(&a, &b, sizeof a) == 0; }))
        << what;
  }
}

TEST(Threads, AnyNumberMakesTheSameLayout) {
  std::size_t turn = 0;
  for (int block : {1, 2, 3, 4, 6}) {
    std::size_t number = turn++;
    Oracle const lattice = in_blocks(symmetric(seven_point(12, 7, 9)), block);
    Oracle other_bits = lattice, one_more = lattice;
    other_bits.row[static_cast<std::size_t>(500 * block)][499 * block] += 1e-9;        // below the diagonal
    one_more.row[static_cast<std::size_t>(400 * block)][401 * block + block - 1] = 0;  // above it, alone
    Oracle const random = random_matrix(3000 / block, block, 20, 9u, block > 1);
    for (auto format : {DeviceFormat::diagonals, DeviceFormat::sell, DeviceFormat::csr}) {
      for (bool value_indices : {false, true}) {
        if (!is_tried(number++, 3)) continue;
        std::string const what = std::string(name(format)) + ", block " + std::to_string(block);
        DeviceRequest const request{false, format, true, value_indices};
        for (Oracle const* a : std::initializer_list<Oracle const*>{&lattice, &other_bits, &one_more})
          expect_same_by_threads(a->rows(), tiling_of(*a, block, 29), request, what);
        if (format != DeviceFormat::diagonals)
          expect_same_by_threads(random.rows(), tiling_of(random, block, 29), request, "random, " + what);
      }
    }
    auto const mirrored = [&](Oracle const& a) {
      return make_device_rows(a.rows(), tiling_of(a, block, 29), {false, DeviceFormat::diagonals, true}, 5)
          .diagonals.mirrored;
    };
    EXPECT_EQ(mirrored(lattice), 3);
    EXPECT_EQ(mirrored(other_bits), 0) << "a triangle that differs was taken for an image";
    expect_same_by_threads(random.rows(), tiling_of(random, block, 29), {}, "automatic");
  }
}

TEST(Threads, SlicesWithoutBlockRows) {
  Oracle const few = symmetric(seven_point(3, 1, 1));
  for (auto format : {DeviceFormat::diagonals, DeviceFormat::sell, DeviceFormat::csr})
    expect_same_by_threads(few.rows(), tiling_of(few, 1, 8), {false, format, true}, name(format));
}

}  // namespace
}  // namespace hostless
