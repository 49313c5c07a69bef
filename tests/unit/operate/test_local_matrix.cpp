#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "matrices.hpp"

namespace hostless {
namespace {

using namespace test;
using Kind = FormatRequest::Kind;
using Columns = FormatRequest::Columns;

/// All formats, column widths and instruction sets against the oracle, bit by bit.
void expect_equal_bits(Oracle const& oracle, int block, int slices, std::string const& what,
                       std::int64_t window = FormatRequest::automatic) {
  std::vector<double> const x = random_vector(oracle.columns(), 5);
  std::vector<double> const expected = oracle.multiply(x);
  LocalRowArrays const rows = oracle.rows();
  for (Kind kind : {Kind::auto_, Kind::csr, Kind::bsr, Kind::sell}) {
    if (kind == Kind::bsr && block == 1) continue;
    for (Columns columns : {Columns::auto_, Columns::narrow, Columns::wide}) {
      for (Isa isa : instruction_sets()) {
        LocalMatrix const a(rows, tiling_of(oracle, block, slices), FormatRequest{kind, columns, window},
                            isa);
        std::vector<double> const y = multiply(a, x);
        ASSERT_EQ(y.size(), expected.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
          ASSERT_EQ(std::memcmp(&y[i], &expected[i], sizeof(double)), 0)
              << what << ": row " << i << " is " << y[i] << ", not " << expected[i] << "; " << a.describe();
        }
      }
    }
  }
}

TEST(LocalMatrix, EveryFormatGivesTheBitsOfTheRowProduct) {
  for (int block : {1, 2, 3, 4, 6}) {
    for (bool blocks : {false, true}) {
      for (int slices : {1, 3, 264}) {
        Oracle const oracle =
            random_matrix(1200 / block, block, 40, 11u + static_cast<unsigned>(block), blocks);
        expect_equal_bits(oracle, block, slices, "random");
      }
    }
  }
}

TEST(LocalMatrix, MirroredBlocksGiveTheSameBits) {
  for (int block : {2, 3, 4, 6}) {
    for (int slices : {1, 3, 264}) {
      Oracle oracle =
          symmetric(random_matrix(800 / block, block, 20, 31u + static_cast<unsigned>(block), true));
      LocalRowArrays const rows = oracle.rows();
      Tiling const tiling = tiling_of(oracle, block, slices);
      FormatRequest request{Kind::bsr, Columns::auto_};
      EXPECT_EQ(LocalMatrix(rows, tiling, request).mirrored_blocks() > 0, block > 2);
      request.mirror_window = 1 << 20;
      LocalMatrix const all(rows, tiling, request);
      request.mirror_window = 0;
      LocalMatrix const none(rows, tiling, request);
      request.mirror_window = none.bytes_per_sweep() / 4;
      LocalMatrix const near(rows, tiling, request);
      EXPECT_EQ(none.mirrored_blocks(), 0);
      EXPECT_GT(near.mirrored_blocks(), 0) << near.describe();
      EXPECT_GT(all.mirrored_blocks(), near.mirrored_blocks());
      EXPECT_LT(all.bytes_per_sweep(), near.bytes_per_sweep());
      EXPECT_LT(near.bytes_per_sweep(), none.bytes_per_sweep());
      EXPECT_EQ(multiply(near, random_vector(oracle.columns(), 5)),
                oracle.multiply(random_vector(oracle.columns(), 5)));
      expect_equal_bits(oracle, block, slices, "symmetric", 1 << 20);
      oracle.row[400 / block * block].begin()->second +=
          1.0;  // one block is not mirrored, nor those left of it
      expect_equal_bits(oracle, block, slices, "nearly symmetric", 1 << 20);
    }
  }
}

TEST(LocalMatrix, TinySizesAndEmptySlices) {
  for (int block : {1, 2, 3, 4, 6}) {
    for (int leaves : {0, 1, 2, 5, 31, 33}) {
      for (int slices : {1, 7, 264}) {
        expect_equal_bits(random_matrix(leaves, block, 3, 77u + static_cast<unsigned>(leaves), true), block,
                          slices, "tiny");
      }
    }
  }
}

TEST(LocalMatrix, AMatrixWithoutEntriesGivesZeros) {
  Oracle oracle;
  oracle.row.resize(96);
  for (int block : {1, 3}) expect_equal_bits(oracle, block, 5, "empty");
}

TEST(LocalMatrix, StencilsAreStoredByDiagonals) {
  Oracle const oracle = seven_point(37, 9, 8);
  expect_equal_bits(oracle, 1, 3, "stencil");
  LocalMatrix const sell(oracle.rows(), tiling_of(oracle, 1, 3));
  EXPECT_EQ(sell.format(), Format::sell) << sell.why();
  LocalMatrix const listed(oracle.rows(), tiling_of(oracle, 1, 3),
                           FormatRequest{Kind::sell, Columns::narrow});
  EXPECT_LT(sell.bytes_per_sweep(), 0.9 * static_cast<double>(listed.bytes_per_sweep()));
}

TEST(LocalMatrix, FullBlocksAreStoredAsBlocks) {
  Oracle oracle;
  for (int i = 0; i < 300; ++i) {
    std::map<std::int32_t, double> row;
    for (int j = std::max(0, i / 3 * 3 - 6); j < std::min(300, i / 3 * 3 + 9); ++j)
      row[j] = 1.0 + i + 0.01 * j;
    oracle.row.push_back(row);
  }
  EXPECT_EQ(LocalMatrix(oracle.rows(), tiling_of(oracle, 3, 4)).format(), Format::bsr);
  expect_equal_bits(oracle, 3, 4, "blocks");
}

TEST(LocalMatrix, NonFiniteInputsReachOnlyRowsThatReferenceThemInCsr) {
  Oracle const oracle = random_matrix(300, 1, 20, 3, false);
  for (double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    for (std::int32_t column : {0, 150, 310}) {
      std::vector<double> x = random_vector(oracle.columns(), 9);
      x[column] = bad;
      LocalMatrix const a(oracle.rows(), tiling_of(oracle, 1, 2), FormatRequest{Kind::csr, Columns::auto_});
      std::vector<double> const y = multiply(a, x);
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isfinite(y[i]), oracle.row[i].count(column) == 0) << "row " << i;
      }
    }
  }
}

TEST(LocalMatrix, PaddingOfSlicedEllReadsTheOwnRowOnly) {
  Oracle const oracle = seven_point(40, 5, 5);
  for (Columns columns : {Columns::auto_, Columns::narrow, Columns::wide}) {
    for (Isa isa : instruction_sets()) {
      LocalMatrix const a(oracle.rows(), tiling_of(oracle, 1, 3), FormatRequest{Kind::sell, columns}, isa);
      for (std::int32_t column : {0, 39, 40, 999}) {
        std::vector<double> x = random_vector(oracle.columns(), 9);
        x[column] = std::numeric_limits<double>::infinity();
        std::vector<double> const y = multiply(a, x);
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_EQ(std::isfinite(y[i]), oracle.row[i].count(column) == 0)
              << "row " << i << ", " << a.describe();
        }
      }
    }
  }
}

}  // namespace
}  // namespace hostless
