// Preconditioners by hand, and inverses of blocks against the definition of an inverse.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "hostless/operate/local_matrix.hpp"
#include "solve/methods/preconditioner.impl.hpp"
#include "solve/setup/preconditioner_setup.hpp"

namespace hostless {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// A matrix that is its diagonal blocks, b x b each, row-major.
LocalMatrix of_blocks(std::vector<double> const& blocks, int b) {
  LocalPanel panel;
  panel.offset.push_back(0);
  auto const n = static_cast<std::size_t>(b), block_rows = blocks.size() / n / n;
  for (std::size_t row = 0; row < block_rows * n; ++row) {
    for (std::size_t j = 0; j < n; ++j) {
      panel.column.push_back(static_cast<std::int32_t>(row / n * n + j));
      panel.value.push_back(blocks[row * n + j]);
    }
    panel.offset.push_back(static_cast<std::int64_t>(panel.column.size()));
  }
  Tiling tiling;
  tiling.block_rows = static_cast<std::int64_t>(block_rows);
  tiling.block = b;
  tiling.slices = 2;
  return LocalMatrix(LocalRowArrays(0, panel), tiling);
}

TEST(InvertedDiagonals, OfADiagonal) {
  std::vector<double> preconditioner_data;
  EXPECT_FALSE(invert_diagonal(of_blocks({2, 4, 0.5}, 1), false, preconditioner_data));
  EXPECT_EQ(preconditioner_data, (std::vector<double>{0.5, 0.25, 2}));
  EXPECT_FALSE(invert_diagonal(of_blocks({2, 1, 1, 4, 8, 0, 0, 16}, 2), false, preconditioner_data));
  EXPECT_EQ(preconditioner_data, (std::vector<double>{0.5, 0.25, 0.125, 0.0625}));
}

TEST(InvertedDiagonals, OfABlock) {  // (4 2; 2 2): inverse (0.5 -0.5; -0.5 1)
  std::vector<double> preconditioner_data;
  EXPECT_FALSE(invert_diagonal(of_blocks({4, 2, 2, 2}, 2), true, preconditioner_data));
  EXPECT_EQ(preconditioner_data, (std::vector<double>{0.5, -0.5, -0.5, 1}));
}

TEST(InvertedDiagonals, OfRandomBlocks) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int b : {2, 3, 4, 6}) {
    auto const n = static_cast<std::size_t>(b);
    std::vector<double> blocks;
    for (int block_row = 0; block_row < 20; ++block_row) {
      std::vector<double> g(n * n);
      for (double& v : g) v = uniform(random);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          double sum = i == j ? 0.5 : 0;  // G G' + I / 2
          for (std::size_t k = 0; k < n; ++k) sum += g[std::min(i, j) * n + k] * g[std::max(i, j) * n + k];
          blocks.push_back(sum);
        }
    }
    std::vector<double> preconditioner_data;
    ASSERT_FALSE(invert_diagonal(of_blocks(blocks, b), true, preconditioner_data));
    for (std::size_t block_row = 0; block_row < 20; ++block_row) {
      double const* a = blocks.data() + block_row * n * n;
      double const* m = preconditioner_data.data() + block_row * n * n;
      double norm_a = 0, norm_m = 0;
      for (std::size_t i = 0; i < n * n; ++i) norm_a += a[i] * a[i], norm_m += m[i] * m[i];
      // Cholesky: |A M - I| <= c(n) eps |A| |M| (Higham, theorem 10.3 and section 14.2), c(6) < 100.
      double const bound = 100 * 0x1p-52 * std::sqrt(norm_a * norm_m);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          long double sum = 0;
          for (std::size_t k = 0; k < n; ++k) sum += static_cast<long double>(a[i * n + k]) * m[k * n + j];
          EXPECT_NEAR(static_cast<double>(sum), i == j ? 1 : 0, bound);
          EXPECT_EQ(m[i * n + j], m[j * n + i]) << "symmetric bit for bit";
        }
    }
  }
}

TEST(InvertedDiagonals, FirstRowThatCannotBeUsed) {
  std::vector<double> preconditioner_data;
  auto bad = invert_diagonal(of_blocks({1, 1, -1, 0}, 1), false, preconditioner_data);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->row, 2);
  EXPECT_TRUE(bad->finite);
  bad = invert_diagonal(of_blocks({1, 0, 0, 1, 1, 2, 2, 1}, 2), true, preconditioner_data);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->row, 2);
  EXPECT_TRUE(bad->finite);
  for (bool block : {false, true}) {
    bad = invert_diagonal(of_blocks({1, 0, 0, 1, 1, 0, 0, nan}, 2), block, preconditioner_data);
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->row, block ? 2 : 3);
    EXPECT_FALSE(bad->finite);
  }
  EXPECT_FALSE(invert_diagonal(of_blocks({1, 0, 0, 1}, 2), true, preconditioner_data));
}

TEST(InvertedDiagonals, OfAbsoluteValues) {
  std::vector<double> data;
  for (bool block : {false, true}) {
    EXPECT_FALSE(invert_diagonal(of_blocks({4, -16, 0}, 1), block, data, DiagonalSigns::absolute));
    EXPECT_EQ(data, (std::vector<double>{0.25, 0.0625, 1}));
    EXPECT_TRUE(invert_diagonal(of_blocks({2, nan, 0}, 1), block, data, DiagonalSigns::absolute));
  }
  EXPECT_FALSE(invert_diagonal(of_blocks({-2, 1, 1, 4}, 2), false, data, DiagonalSigns::absolute));
  EXPECT_EQ(data, (std::vector<double>{0.5, 0.25}));
  EXPECT_TRUE(invert_diagonal(of_blocks({-2, 1, 1, 4}, 2), true, data, DiagonalSigns::absolute));
}

struct Row {
  double const* values;
  template <int B>
  double operator()(BlockRow<B> block_row, int j) const {
    return values[block_row.row + j];
  }
};

template <class M, int B>
std::vector<double> applied(M const& m, std::vector<double> const& r, std::int64_t row) {
  std::vector<double> z(B);
  m.apply(BlockRow<B>{row, 0}, Row{r.data()}, z.data());
  return z;
}

TEST(Applied, OneRowAndBlocks) {
  std::vector<double> const r{1, 2, 3, 4};
  EXPECT_EQ((applied<NoPreconditioner, 2>({}, r, 2)), (std::vector<double>{3, 4}));
  std::vector<double> const preconditioner_data{2, 3, 4, 5};
  EXPECT_EQ((applied<Jacobi, 2>({preconditioner_data.data()}, r, 2)), (std::vector<double>{12, 20}));
  EXPECT_EQ((applied<Apart, 2>({preconditioner_data.data()}, r, 1)), (std::vector<double>{3, 4}));
  std::vector<double> const blocks{9, 9, 9, 9, 1, 2, 3, 4};  // the second block is rows 2 and 3
  EXPECT_EQ((applied<BlockJacobi<2>, 2>({blocks.data()}, r, 2)), (std::vector<double>{3 + 8, 9 + 16}));
}

TEST(Applied, EveryKindIsChosen) {
  std::vector<double> r(12), m(72, 0.0);
  for (std::size_t i = 0; i < 12; ++i) r[i] = static_cast<double>(i + 1);
  for (int block : {1, 2, 3, 4, 6}) {
    auto const b = static_cast<std::size_t>(block);
    for (std::size_t row = 0; row < 12; ++row)
      for (std::size_t j = 0; j < b; ++j) m[row * b + j] = row % b == j ? 2.0 : 0.0;  // 2 I
    using Kind = AnyPreconditioner::Kind;
    for (Kind kind : {Kind::none, Kind::jacobi, Kind::block_jacobi}) {
      std::vector<double> const twos(12, 2.0);
      AnyPreconditioner any{kind, block, kind == Kind::block_jacobi ? m.data() : twos.data()};
      std::vector<double> z(12, -1.0);
      any.choose([&](auto chosen) {
        constexpr int coupled = decltype(chosen)::coupled;
        EXPECT_EQ(coupled, kind == Kind::block_jacobi ? block : 1);
        for (int row = 0; row < 12; row += coupled)
          chosen.apply(BlockRow<coupled>{row, 0}, Row{r.data()}, z.data() + row);
      });
      for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(z[i], kind == Kind::none ? r[i] : 2 * r[i]);
    }
  }
}

}  // namespace
}  // namespace hostless
