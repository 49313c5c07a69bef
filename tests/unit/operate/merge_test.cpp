// The product by merge path, from the text that kernels are made of (operate/gpu/merge.impl.hpp), on the
// host: every thread of every tile in turn, against sums of rows in long double, and exactly where all
// numbers are whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "matrices.hpp"
#include "operate/gpu/merge.impl.hpp"
#include "operate/gpu/rows.impl.hpp"

namespace hostless {
namespace {

using namespace test;

struct Csr {
  std::vector<std::int64_t> start = {0};
  std::vector<std::int32_t> column;
  std::vector<double> value;
  std::int32_t rows() const { return static_cast<std::int32_t>(start.size()) - 1; }
  std::int64_t entries() const { return start.back(); }
  CsrView view() const { return {start.data(), column.data(), value.data()}; }
};

/// Rows of these lengths, entries anywhere among `columns`. Whole: values are whole numbers.
Csr rows_of(std::vector<int> const& lengths, std::int64_t columns, bool whole, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-2.0, 2.0);
  Csr a;
  for (int length : lengths) {
    for (int k = 0; k < length; ++k) {
      a.column.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(columns)));
      a.value.push_back(whole ? static_cast<double>(random() % 2001) - 1000.0 : uniform(random));
    }
    a.start.push_back(static_cast<std::int64_t>(a.column.size()));
  }
  return a;
}

gpu::MergePosition position_of(Csr const& a, std::int64_t item) {
  return gpu::merge_position(item, a.rows(), [&](std::int32_t row) { return a.start[row + 1]; });
}

/// As a kernel does it, tile after tile; only what lanes exchange is a loop here.
template <int items>
std::vector<double> multiply_by_merge(Csr const& a, int threads, std::vector<double> const& x) {
  std::int64_t const tile_items = std::int64_t{items} * threads, all = a.rows() + a.entries();
  auto const tiles = static_cast<int>((all + tile_items - 1) / tile_items);
  std::vector<std::int32_t> tile_row;
  for (int t = 0; t <= tiles; ++t) tile_row.push_back(position_of(a, std::min(all, t * tile_items)).row);
  std::vector<double> y(static_cast<std::size_t>(a.rows()), std::nan("")), carry_out;
  std::vector<int> written(y.size());
  for (int t = 0; t < tiles; ++t) {
    gpu::MergeTile const tile =
        gpu::merge_tile({tile_row[t], t * tile_items - tile_row[t]},
                        {tile_row[t + 1], std::min(all, (t + 1) * tile_items) - tile_row[t + 1]});
    std::vector<double> product(static_cast<std::size_t>(tile.entries), std::nan(""));
    std::vector<std::int32_t> row_end(static_cast<std::size_t>(tile.rows) + 1, -1);
    for (int thread = threads - 1; thread >= 0; --thread)
      gpu::stage_tile<items>(a.view(), tile, thread, threads, x.data(), product.data(), row_end.data());
    auto const store = [&](std::int32_t row, double sum) {
      y[tile.first_row + row] = sum;
      ++written[tile.first_row + row];
    };
    gpu::MergeCarry before;
    for (int thread = 0; thread < threads; ++thread) {
      gpu::MergeFirst first;
      gpu::MergeCarry const carry =
          gpu::walk_tile<items>(tile, thread, product.data(), row_end.data(), first, store);
      EXPECT_EQ(carry.ended, first.row >= 0);
      if (first.row >= 0) store(first.row, before.sum + first.sum);
      before = gpu::follow(before, carry);
    }
    carry_out.push_back(before.sum);
  }
  EXPECT_TRUE(std::all_of(written.begin(), written.end(), [](int times) { return times == 1; }));
  for (int t = tiles - 1; t >= 0; --t)  // in any order
    gpu::add_carries(t, tiles, a.rows(), tile_row.data(), carry_out.data(), y.data());
  return y;
}

/// n products, each rounded once, and n - 1 sums in any order: n roundings on each way to the sum (Higham,
/// Accuracy and Stability, section 3.1). Sums with 0 round nothing.
void expect_within_bound(Csr const& a, std::vector<double> const& x, std::vector<double> const& y,
                         std::string const& what) {
  for (std::int32_t row = 0; row < a.rows(); ++row) {
    long double sum = 0, size = 0;
    for (std::int64_t k = a.start[row]; k < a.start[row + 1]; ++k) {
      long double const product = static_cast<long double>(a.value[k]) * x[a.column[k]];
      sum += product;
      size += std::abs(product);
    }
    long double const n = static_cast<long double>(a.start[row + 1] - a.start[row]), u = 0x1p-53L;
    EXPECT_LE(std::abs(y[row] - sum), n * u / (1 - n * u) * size) << what << ": row " << row;
  }
}

std::vector<double> whole_numbers(std::int64_t n) {
  std::vector<double> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 7919 % 2003) - 1000.0;
  return x;
}

/// Sums stay below 2^53: exact in any order.
std::vector<double> exact_product(Csr const& a, std::vector<double> const& x) {
  std::vector<double> y;
  for (std::int32_t row = 0; row < a.rows(); ++row) {
    std::int64_t sum = 0;
    for (std::int64_t k = a.start[row]; k < a.start[row + 1]; ++k)
      sum += static_cast<std::int64_t>(a.value[k]) * static_cast<std::int64_t>(x[a.column[k]]);
    y.push_back(static_cast<double>(sum));
  }
  return y;
}

struct Lengths {
  std::string name;
  std::vector<int> length;
};
std::vector<int> repeated(int times, std::vector<int> const& pattern) {
  std::vector<int> all;
  for (int k = 0; k < times; ++k) all.insert(all.end(), pattern.begin(), pattern.end());
  return all;
}
std::vector<Lengths> shapes() {
  std::vector<Lengths> all = {
      {"one row", {1}},
      {"one empty row", {0}},
      {"empty rows", repeated(300, {0})},
      {"1 to 345", repeated(5, {0, 1, 345, 2, 81, 0, 0, 7, 344, 1})},
      {"sevens", repeated(500, {7})},  // with its end, 8 items a row
      {"sixes", repeated(500, {6})},   // tile borders fall onto row borders
      {"empty at the ends", repeated(1, {0, 0, 0, 5, 3, 9, 0, 0, 0, 0})},
      {"a row over many tiles", repeated(1, {3, 0, 5000, 0, 1})},
      {"only one row, over many tiles", {5000}},
      {"two rows over many tiles", {2500, 2500}},
      {"long rows apart by empty ones", repeated(3, {0, 0, 700, 0, 0})},
  };
  std::vector<int> mixed;
  std::mt19937_64 random(3);
  for (int k = 0; k < 700; ++k)
    mixed.push_back(static_cast<int>(random() % 5 == 0 ? random() % 346 : random() % 9));
  all.push_back({"mixed", mixed});
  return all;
}

template <int items>
void check_shapes() {
  constexpr std::int64_t columns = 997;
  for (Lengths const& shape : shapes()) {
    for (int threads : {1, 8, 32, 512}) {
      std::string const what =
          shape.name + ", " + std::to_string(items) + " items, " + std::to_string(threads) + " threads";
      Csr const whole = rows_of(shape.length, columns, true, 5);
      auto const x = whole_numbers(columns);
      EXPECT_EQ(multiply_by_merge<items>(whole, threads, x), exact_product(whole, x)) << what;
      Csr const real = rows_of(shape.length, columns, false, 6);
      auto const v = random_vector(columns, 7);
      expect_within_bound(real, v, multiply_by_merge<items>(real, threads, v), what);
    }
  }
}

TEST(Merge, EveryShapeOfRowsAndTiles) {
  check_shapes<1>();
  check_shapes<3>();
  check_shapes<gpu::merge_items>();
}

TEST(Merge, PositionsFollowTheList) {
  for (Lengths const& shape : shapes()) {
    Csr const a = rows_of(shape.length, 10, true, 1);
    std::int64_t item = 0;
    for (std::int32_t row = 0; row < a.rows(); ++row) {
      for (std::int64_t entry = a.start[row]; entry <= a.start[row + 1]; ++entry, ++item) {
        gpu::MergePosition const position = position_of(a, item);
        ASSERT_EQ(position.row, row) << shape.name << ": item " << item;
        ASSERT_EQ(position.entry, entry) << shape.name << ": item " << item;
      }
    }
    EXPECT_EQ(position_of(a, item).row, a.rows()) << shape.name;
    EXPECT_EQ(position_of(a, item).entry, a.entries()) << shape.name;
  }
}

// Lanes and warps join carries in trees: any grouping gives the same.
TEST(Merge, CarriesGroupAsTheyLike) {
  auto const all = {gpu::MergeCarry{}, gpu::MergeCarry{3, false}, gpu::MergeCarry{0, true},
                    gpu::MergeCarry{5, true}};
  for (auto a : all) {
    for (auto b : all) {
      for (auto c : all) {
        auto const left = follow(follow(a, b), c), right = follow(a, follow(b, c));
        EXPECT_EQ(left.sum, right.sum);
        EXPECT_EQ(left.ended, right.ended);
        EXPECT_EQ(left.sum, c.ended ? c.sum : b.ended ? b.sum + c.sum : a.sum + b.sum + c.sum);
      }
    }
  }
}

// The arrays are those of CSR, and a phase that comes later finds the products of its block rows.
TEST(Merge, PhasesLoadWhatWasMade) {
  for (int block : {1, 3}) {
    Oracle const oracle = random_matrix(600, block, 0, 11, block > 1);
    Tiling tiling;
    tiling.block = block;
    tiling.block_rows = static_cast<std::int64_t>(oracle.row.size()) / block;
    tiling.slices = 3;
    DeviceRows const csr = make_device_rows(oracle.rows(), tiling, {false, DeviceFormat::csr, true});
    for (DeviceFormat format : {DeviceFormat::merge, DeviceFormat::vendor}) {
      DeviceRows const rows = make_device_rows(oracle.rows(), tiling, {false, format, true});
      EXPECT_EQ(rows.format, format);
      EXPECT_EQ(rows.start, csr.start);
      EXPECT_EQ(rows.wide, csr.wide);
      EXPECT_EQ(rows.value, csr.value);
      EXPECT_EQ(rows.bytes_per_sweep(), csr.bytes_per_sweep() + 16 * tiling.rows());
      auto ready = random_vector(tiling.rows(), 12);
      RowsView view = rows.view();
      view.ready = ready.data();
      auto const at = [&](auto width) {
        constexpr int b = decltype(width)::value;
        gpu::Batch<2> const batch{1, 0, 17, static_cast<std::int32_t>(tiling.first(1)),
                                  static_cast<std::int32_t>(tiling.first(2))};
        double sum[2][b];
        gpu::multiply<b, 2>(view, batch, static_cast<double const*>(nullptr), sum);
        ASSERT_TRUE(batch.valid(0));
        ASSERT_FALSE(batch.valid(1));
        for (int j = 0; j < b; ++j) EXPECT_EQ(sum[0][j], ready[(tiling.first(1) + 17) * b + j]);
      };
      block == 1 ? at(std::integral_constant<int, 1>{}) : at(std::integral_constant<int, 3>{});
    }
  }
  EXPECT_STREQ(name(DeviceFormat::merge), "merge");
  EXPECT_STREQ(name(DeviceFormat::vendor), "vendor");
  EXPECT_TRUE(multiplied_apart(DeviceFormat::merge) && multiplied_apart(DeviceFormat::vendor));
  EXPECT_FALSE(multiplied_apart(DeviceFormat::csr) || multiplied_apart(DeviceFormat::sell));
}

}  // namespace
}  // namespace hostless
