#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "matrices.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

using namespace test;
using Kind = FormatRequest::Kind;
using Columns = FormatRequest::Columns;

/// Several right-hand sides against each of them alone; how many changes from call to call.
void expect_sides_as_alone(LocalMatrix const& a, std::int64_t columns, std::string const& what) {
  static unsigned turn = 0;
  unsigned const count = std::array{2u, 5u, 7u}[turn++ % 3];
  std::vector<std::vector<double>> x;
  for (unsigned c = 0; c < count; ++c) x.push_back(random_vector(columns, 11 + c));
  std::vector<std::vector<double>> const y = multiply(a, x);
  for (unsigned c = 0; c < count; ++c) {
    std::vector<double> const alone = multiply(a, x[c]);
    ASSERT_EQ(y[c].size(), alone.size());
    ASSERT_TRUE(alone.empty() || std::memcmp(y[c].data(), alone.data(), alone.size() * sizeof(double)) == 0)
        << what << ": side " << c << " of " << count << ", " << a.describe();
  }
}

/// All formats, column widths and instruction sets against the oracle, bit by bit.
void expect_equal_bits(Oracle const& oracle, int block, int slices, std::string const& what,
                       std::int64_t reach = FormatRequest::automatic, int threads = 1) {
  static std::size_t number = 0;  // over all calls: a sample has each combination in some of them
  std::vector<double> const x = random_vector(oracle.columns(), 5);
  std::vector<double> const expected = oracle.multiply(x);
  LocalRowArrays const rows = oracle.rows();
  for (Kind kind : {Kind::auto_, Kind::csr, Kind::bsr, Kind::sell}) {
    if (kind == Kind::bsr && block == 1) continue;
    for (Columns columns : {Columns::auto_, Columns::narrow, Columns::wide}) {
      for (Isa isa : instruction_sets()) {
        if (!test::is_tried(number++, 5)) continue;
        LocalMatrix const a(rows, tiling_of(oracle, block, slices),
                            FormatRequest{kind, columns, reach, threads}, isa);
        std::vector<double> const y = multiply(a, x);
        ASSERT_EQ(y.size(), expected.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
          ASSERT_EQ(std::memcmp(&y[i], &expected[i], sizeof(double)), 0)
              << what << ": row " << i << " is " << y[i] << ", not " << expected[i] << "; " << a.describe();
        }
        expect_sides_as_alone(a, oracle.columns(), what);
      }
    }
  }
}

TEST(LocalMatrix, EveryFormatGivesTheBitsOfTheRowProduct) {
  for (int block : {1, 2, 3, 4, 6}) {
    for (bool blocks : {false, true}) {
      Oracle const oracle =
          random_matrix(1200 / block, block, 40, 11u + static_cast<unsigned>(block), blocks);
      for (int slices : {1, 3, 264}) {
        for (int below : {0, 15, 40}) {
          if (slices != 3 && below == 40) continue;
          expect_equal_bits(with_ghosts_below(oracle, below * block), block, slices, "random");
        }
      }
    }
  }
}

/// Exactly symmetric in the owned part, a third of the rows with ghosts.
Oracle symmetric_with_ghosts(int block, int seed) {
  if (block == 1) {
    Oracle oracle = symmetric(seven_point(21, 8, 7));
    oracle.ghosts = 80;
    oracle.below = 40;
    for (std::int32_t i = 300; i < 420; ++i)
      oracle.row[i][(i % 3 == 0 ? -40 : 21 * 8 * 7) + i % 40] = 0.5 + i;
    return oracle;
  }
  std::int64_t const block_rows = 800 / block;
  Oracle const oracle =
      symmetric(random_matrix(block_rows, block, 20, static_cast<unsigned>(seed + block), true));
  return with_ghosts_below(ghosts_only_in(oracle, block_rows / 3 * block, block_rows / 3 * 2 * block),
                           8 * block);
}

TEST(LocalMatrix, WhatBothTrianglesHoldIsStoredOnceWithTheSameBits) {
  for (int block : {1, 2, 3, 4, 6}) {
    std::size_t number = 0;
    for (int slices : {1, 10, 264}) {
      std::size_t turn = number++;
      for (int threads : {1, 3}) {
        if (!test::is_tried(turn++, 2)) continue;
        Oracle oracle = symmetric_with_ghosts(block, 31);
        FormatRequest request{block == 1 ? Kind::sell : Kind::bsr, Columns::auto_};
        request.threads = threads;
        auto const stored = [&](std::int64_t reach) {
          request.half_reach = reach;
          return LocalMatrix(oracle.rows(), tiling_of(oracle, block, slices), request);
        };
        LocalMatrix const automatic = stored(FormatRequest::automatic), none = stored(0), near = stored(90);
        std::string const what =
            fmt::format("block {}, {} slices, {} threads: {}", block, slices, threads, automatic.describe());
        EXPECT_EQ(none.left_out(), 0);
        if (slices == 1 && threads == 1) {
          EXPECT_GT(near.left_out(), 0) << what;
          EXPECT_GT(automatic.left_out(), near.left_out()) << what;
          EXPECT_LT(automatic.bytes_per_sweep(), near.bytes_per_sweep()) << what;
          EXPECT_LT(near.bytes_per_sweep(), none.bytes_per_sweep()) << what;
        }
        for (std::int64_t reach : {FormatRequest::automatic, std::int64_t{90}, std::int64_t{7}})
          expect_equal_bits(oracle, block, slices, what, reach, threads);
        auto& nearly = oracle.row[400 / block * block];
        nearly.begin()->second += 1.0;
        expect_equal_bits(oracle, block, slices, "nearly symmetric " + what, FormatRequest::automatic,
                          threads);
        nearly.erase(nearly.begin());
        expect_equal_bits(oracle, block, slices, "no symmetric pattern " + what, FormatRequest::automatic,
                          threads);
      }
    }
  }
}

// Contiguous shares add in the order of the whole matrix, whatever the number of ranks.
TEST(LocalMatrix, SharesGiveTheBitsOfTheWholeMatrix) {
  for (int block : {1, 2, 3, 4, 6}) {
    std::int32_t const block_rows = block == 1 ? 21 * 8 * 7 : 800 / block;
    Oracle const whole =
        symmetric(block == 1 ? seven_point(21, 8, 7)
                             : random_matrix(block_rows, block, 0, 5u + static_cast<unsigned>(block), true));
    std::vector<double> const x = random_vector(whole.columns(), 5), y = whole.multiply(x);
    for (std::int32_t ranks : {2, 3}) {
      for (std::int32_t r = 0; r < ranks; ++r) {
        std::int32_t const first = block_rows * r / ranks * block,
                           last = block_rows * (r + 1) / ranks * block;
        Share const share = share_of(whole, block, first, last);
        EXPECT_EQ(multiply(LocalMatrix(share.a.rows(), tiling_of(share.a, block, 5)), share.gather(x)),
                  std::vector<double>(y.begin() + first, y.begin() + last));
        expect_equal_bits(share.a, block, 5, fmt::format("rank {} of {}, block {}", r, ranks, block));
      }
    }
  }
}

// While a slice is multiplied, ghosts that only other slices wait for may be arriving.
TEST(LocalMatrix, SlicesReadNoGhostsButTheirOwn) {
  for (int block : {1, 2, 3}) {
    Oracle const oracle = symmetric_with_ghosts(block, 12);
    Tiling const tiling = tiling_of(oracle, block, 20);
    std::vector<double> const x = random_vector(oracle.columns(), 5), y = oracle.multiply(x);
    std::int64_t const owned = tiling.rows();
    for (Kind kind : {Kind::auto_, Kind::csr, Kind::bsr, Kind::sell}) {
      if (kind == Kind::bsr && block == 1) continue;
      LocalMatrix const a(oracle.rows(), tiling, FormatRequest{kind, Columns::auto_});
      GhostReads const& reads = a.ghost_reads();
      std::vector<double> arrived(x.size(), std::numeric_limits<double>::quiet_NaN()),
          ring(static_cast<std::size_t>(a.ring()), 0.0);
      std::copy_n(x.begin() + a.ghosts_below(), owned, arrived.begin() + a.ghosts_below());
      int waiting = 0;
      a.order().for_each_group([&](std::span<int const> slices) {
        for (int s : slices) {
          for (std::int64_t k = reads.first[s]; k < reads.first[s + 1]; ++k) {
            std::int64_t const ghost = reads.ghost[k], at = ghost < a.ghosts_below() ? ghost : ghost + owned;
            arrived[at] = x[at];
            ++waiting;
          }
          std::int64_t const first = tiling.first(s), block_rows = tiling.first(s + 1) - first;
          ASSERT_LE(block_rows, Tiling::accumulators);
          std::vector<double> out(static_cast<std::size_t>(block_rows * block));
          a.multiply(s, first, static_cast<int>(block_rows), arrived.data() + a.ghosts_below(), out.data(),
                     ring.data());
          EXPECT_EQ(out,
                    std::vector<double>(y.begin() + first * block, y.begin() + (first + block_rows) * block))
              << "slice " << s << ", " << a.describe();
        }
      });
      EXPECT_GT(waiting, 0);
    }
  }
}

TEST(LocalMatrix, LongLinksBesideAStencilGiveTheSameBits) {
  for (unsigned seed : {1u, 2u, 3u}) {
    Oracle oracle = symmetric(seven_point(40, 12, 6));
    std::mt19937_64 random(seed);
    auto const n = static_cast<std::uint64_t>(oracle.row.size());
    for (std::uint64_t k = 0; k < n / 8 * seed;
         ++k) {  // neighbours have links of similar length: new diagonals
      auto const i = static_cast<std::int32_t>(random() % n);
      auto const j = static_cast<std::int32_t>((i + 300 + random() % 3) % n);
      oracle.row[i][j] = oracle.row[j][i] = 1.0 + static_cast<double>(k);
      if (random() % 2 == 0 && i > 41) {
        oracle.row[i].erase(i - 40);
        oracle.row[i - 40].erase(i);
      }
    }
    for (int slices : {1, 3, 40}) expect_equal_bits(oracle, 1, slices, "links");
  }
}

// Valgrind found it: a lane without an entry may have no x either.
TEST(LocalMatrix, DiagonalsThatEndOutsideTheMatrixAreMasked) {
  Oracle oracle;
  for (std::int32_t i = 0; i < 33; ++i) {
    std::map<std::int32_t, double> row;
    if (i > 0) row[i - 1] = -1.0;
    if (i < 32) row[i] = 2.5;
    if (i < 32) row[i + 1] = -1.0;
    oracle.row.push_back(row);
  }
  std::vector<double> x = random_vector(oracle.columns(), 5);
  std::vector<double> guarded = x;
  guarded.resize(x.size() + 64, std::numeric_limits<double>::quiet_NaN());  // what lies past the end
  for (Isa isa : instruction_sets()) {
    LocalMatrix const a(oracle.rows(), tiling_of(oracle, 1, 1), FormatRequest{Kind::sell, Columns::auto_},
                        isa);
    EXPECT_EQ(multiply(a, guarded), oracle.multiply(x)) << a.describe();
  }
}

TEST(LocalMatrix, MostOfAStencilAndOfAnElasticityMatrixIsStoredOnce) {
  Oracle const stencil = symmetric(seven_point(37, 9, 8));
  LocalMatrix const a(stencil.rows(), tiling_of(stencil, 1, 3));
  EXPECT_GT(a.left_out(), 0.45 * static_cast<double>(a.entries() - a.owned())) << a.describe();
  Oracle blocks;  // every entry of seven_point becomes a block
  for (auto const& row : stencil.row) {
    for (int j = 0; j < 3; ++j) {
      std::map<std::int32_t, double> expanded;
      for (auto const& [column, value] : row) {
        for (int c = 0; c < 3; ++c) expanded[column * 3 + c] = value * (1 + j * c);
      }
      blocks.row.push_back(expanded);
    }
  }
  LocalMatrix const b(blocks.rows(), tiling_of(blocks, 3, 3));
  EXPECT_EQ(b.left_out() * 18 + b.owned() * 3, b.entries()) << b.describe();
  expect_equal_bits(blocks, 3, 3, "blocks of a stencil");
}

TEST(LocalMatrix, TinySizesAndEmptySlices) {
  for (int block : {1, 2, 3, 4, 6}) {
    for (int block_rows : {0, 1, 2, 5, 31, 33}) {
      for (int slices : {1, 7, 264}) {
        expect_equal_bits(random_matrix(block_rows, block, 3, 77u + static_cast<unsigned>(block_rows), true),
                          block, slices, "tiny");
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
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(y.size()); ++i) {
          std::int32_t const distance = std::abs(column - i);
          bool const on_diagonal = distance <= 1 || distance == 40 || distance == 200;
          if (columns == Columns::auto_ && on_diagonal) continue;  // 0 times Inf in rows of the same group
          EXPECT_EQ(std::isfinite(y[i]), oracle.row[i].count(column) == 0)
              << "row " << i << ", " << a.describe();
        }
      }
    }
  }
}

}  // namespace
}  // namespace hostless
