// The products that kernels compute, from the same text (operate/gpu/rows.impl.hpp) on the host: every
// layout, block size and batch against LocalMatrix and against the maps of the oracle, bit for bit.
#include "operate/device_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "device_products.hpp"
#include "hostless/base/error.hpp"
#include "hostless/problems/problems.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

using namespace test;

// ---- products

TEST(DeviceRows, DiagonalsGiveTheBitsOfTheRowProduct) {
  std::size_t turn = 0;
  for (auto const& [what, lattice] : lattices()) {
    for (int block : compiled({1, 2, 3, 4, 6})) {
      for (bool mirrored : {false, true}) {
        std::size_t number = turn++;
        Oracle const oracle = in_blocks(lattice, block, 3u + static_cast<unsigned>(block), mirrored);
        for (int slices : {1, 7, 264}) {  // a product takes milliseconds: all batches with 7 only
          if (!is_tried(number++, 3)) continue;
          expect_equal_bits(oracle, block, slices, {diagonals, all_diagonals, sell, csr}, what,
                            slices == 7 && mirrored ? std::vector<int>{1, 2, 3, 4} : std::vector<int>{4});
          DeviceRows const rows = lay_out(oracle, block, slices, diagonals);
          EXPECT_EQ(rows.diagonals.mirrored, mirrored ? rows.diagonals.count / 2 : 0) << what;
          EXPECT_EQ(lay_out(oracle, block, slices, all_diagonals).diagonals.mirrored, 0) << what;
        }
      }
    }
  }
}

// fp64 products with values rounded to fp32: those of the rounded matrix, in every layout.
TEST(DeviceRows, RoundedValuesGiveTheBitsOfTheRoundedMatrix) {
  for (int block : compiled({1, 2, 3, 4, 6})) {
    for (auto const& [what, lattice] : lattices()) {
      for (bool mirrored : {false, true}) {
        Oracle const oracle = in_blocks(lattice, block, 3u + static_cast<unsigned>(block), mirrored);
        std::vector<double> const x = random_vector(oracle.columns(), 5);
        std::vector<double> const expected = rounded(oracle).multiply(x), exact = oracle.multiply(x);
        ASSERT_NE(expected, exact);
        expect_bits(multiply(LocalMatrix(oracle.rows(), tiling_of(oracle, block, 7)).rounded_to_fp32(), x),
                    expected, what);
        for (DeviceRequest const& request : {diagonals, all_diagonals, sell, csr}) {
          DeviceRows const rows = lay_out(oracle, block, 7, request);
          expect_bits(multiply_on_device(rows, 2, x, true), expected, what + ", rounded: " + rows.why);
          expect_bits(multiply_on_device(rows, 2, x, false), exact, what + ", exact: " + rows.why);
          EXPECT_EQ(rows.bytes_per_sweep() - rows.rounded_bytes_per_sweep(),
                    static_cast<std::int64_t>(4 * rows.value.size()));
        }
      }
    }
  }
}

TEST(DeviceRows, RandomPatternsWithGhostsGiveTheBitsOfTheRowProduct) {
  for (int block : compiled({1, 2, 3, 4, 6})) {
    for (bool blocks : {false, true}) {
      for (std::int64_t below : {-40, 0, 15, 40}) {  // block rows, of 40 or none at all
        Oracle const oracle = with_ghosts_below(random_matrix(1200 / block, block, below < 0 ? 0 : 40,
                                                              11u + static_cast<unsigned>(block), blocks),
                                                below < 0 ? 0 : below * block);
        for (int slices : {1, 3, 264})
          expect_equal_bits(oracle, block, slices, {automatic, sell, csr}, "random");
      }
    }
  }
}

// ---- ghosts on diagonals

/// Where rows of block rows [first, last) begin and end; the whole has 800 block rows and some.
struct Cut {
  std::string what;
  std::int32_t first, last;
};
std::vector<Cut> cuts(Oracle const& lattice) {
  auto const n = static_cast<std::int32_t>(lattice.row.size());
  return {{"first", 0, 300}, {"middle", 217, 603}, {"last", 411, n}, {"between planes", 160, 480}};
}

// A row's products come in the same order on any number of ranks, so the whole matrix is the oracle of all.
TEST(DeviceRows, SharesGiveTheBitsOfTheWholeMatrix) {
  for (auto const& [what, lattice] : lattices()) {
    for (int block : {1, 2, 3}) {
      for (bool mirrored : {false, true}) {
        Oracle const whole = in_blocks(lattice, block, 3u + static_cast<unsigned>(block), mirrored);
        std::vector<double> const x = random_vector(whole.columns(), 6), all = whole.multiply(x);
        std::vector<DeviceRequest> const requests{automatic, diagonals, all_diagonals, sell, csr};
        std::vector<std::int64_t> farthest;
        for (DeviceRequest const& request : requests)
          farthest.push_back(lay_out(whole, block, 3, request).farthest);
        auto const count = lay_out(whole, block, 3, diagonals).diagonals.count;
        for (Cut const& cut : cuts(lattice)) {
          std::string const name = what + ", " + cut.what + ", block " + std::to_string(block);
          Share const share = share_of(whole, block, cut.first * block, cut.last * block);
          ASSERT_EQ(share.a.below > 0, cut.what != "first") << name;
          ASSERT_EQ(share.a.ghosts > share.a.below, cut.what != "last") << name;
          std::vector<double> const mine = share.gather(x),
                                    expected(all.begin() + cut.first * block, all.begin() + cut.last * block);
          std::vector<double> const products =
              multiply(LocalMatrix(share.a.rows(), tiling_of(share.a, block, 3)), mine);
          expect_bits(products, expected, name);
          for (std::size_t k = 0; k < requests.size(); ++k) {
            DeviceRows const rows = lay_out(share.a, block, 3, requests[k]);
            for (int batch : {1, 4})
              expect_bits(multiply_on_device(rows, batch, mine), expected, name + ": " + rows.why);
            EXPECT_EQ(rows.ghosts_below, share.a.below);
            EXPECT_EQ(rows.ghosts_above, share.a.ghosts - share.a.below);
            EXPECT_EQ(rows.farthest, farthest[k]) << "distances are natural";
          }
          DeviceRows const rows = lay_out(share.a, block, 3, diagonals);
          EXPECT_EQ(rows.diagonals.count, count) << name;
          EXPECT_EQ(rows.diagonals.mirrored, mirrored ? rows.diagonals.count / 2 : 0) << name;
          if (!mirrored) continue;
          Oracle uneven = share.a;  // among owned rows the triangles now differ; ghosts cannot make up for it
          uneven.row[block].erase(0);
          EXPECT_EQ(lay_out(uneven, block, 3, diagonals).diagonals.mirrored, 0) << name;
          expect_equal_bits(uneven, block, 3, {diagonals}, "uneven " + name, {2});
        }
      }
    }
  }
}

TEST(DeviceRows, GhostsFarFromTheirRowsLieOnDiagonalsToo) {
  for (int block : {1, 3}) {
    Oracle oracle = in_blocks(seven_point(20, 8, 5), block, 4, true);
    oracle.ghosts = 5 * block;
    oracle.below = 3 * block;
    oracle.row[700 * block][-3 * block] = 0.75;  // 703 block rows away
    oracle.row[3 * block][801 * block] = 1.0;
    DeviceRows const rows = lay_out(oracle, block, 3, diagonals);
    EXPECT_EQ(rows.diagonals.count, 9);
    EXPECT_EQ(rows.farthest, 798);
    expect_equal_bits(oracle, block, 3, {automatic, diagonals, all_diagonals, sell, csr}, "far ghosts");
  }
  Oracle many = seven_point(20, 8, 5);  // more ghosts than diagonals reach
  many.ghosts = 3000;
  many.below = 1400;
  for (DeviceRequest const& request : {diagonals, sell, csr}) {
    DeviceRows const rows = lay_out(many, 1, 3, request);
    EXPECT_GE(rows.rows_before(), 1400);
    EXPECT_GE(rows.rows_after(), 1600);
  }
  expect_equal_bits(many, 1, 3, {diagonals, sell, csr}, "idle ghosts");
}

/// A generated matrix on one rank, where every column is local.
Oracle generated(std::string const& kind, std::int64_t nx, std::int64_t ny, std::int64_t nz) {
  ProblemOptions options;
  options.kind = kind;
  options.nx = nx;
  options.ny = ny;
  options.nz = nz;
  auto const source = make_problem(options, 1, 0);
  RowPanel panel;
  source->panel(0, problem_rows(options), panel);
  Oracle a;
  for (std::size_t i = 0; i + 1 < panel.offset.size(); ++i) {
    a.row.emplace_back();
    for (std::int64_t k = panel.offset[i]; k < panel.offset[i + 1]; ++k)
      a.row.back()[static_cast<std::int32_t>(panel.column[k])] = panel.value[k];
  }
  return a;
}

TEST(DeviceRows, GeneratedMatricesGiveTheBitsOfTheRowProduct) {
  std::vector<DeviceRequest> const all = {automatic, diagonals, all_diagonals, sell, csr};
  for (std::string const& kind : problem_names()) {
    bool const line = kind == "poisson1d", plane = kind.find("2d") != kind.npos || kind == "circuit";
    Oracle const oracle = line    ? generated(kind, 600, 1, 1)
                          : plane ? generated(kind, 24, 20, 1)
                                  : generated(kind, 8, 6, 6);
    bool const elastic = kind.starts_with("elasticity"), springs = kind.starts_with("springs");
    for (int block : compiled(elastic ? std::vector<int>{1, 3, 6} : std::vector<int>{1, 2})) {
      bool const few = kind != "circuit" && !springs && !(elastic && block == 1);
      for (int slices : {1, 5})
        expect_equal_bits(oracle, block, slices, few ? all : std::vector<DeviceRequest>{automatic, sell, csr},
                          kind);
    }
    if (kind != "circuit" && !springs) {  // symmetric bit for bit, so one triangle is stored
      DeviceRows const rows = lay_out(oracle, elastic ? 3 : 1, 5, diagonals);
      EXPECT_EQ(rows.diagonals.mirrored, rows.diagonals.count / 2) << kind;
    }
  }
}

TEST(DeviceRows, OneRowAndFewerBlockRowsThanSlices) {
  for (int block : compiled({1, 2, 3, 4, 6})) {
    for (int block_rows : {1, 2, 31, 33}) {
      Oracle const oracle = in_blocks(seven_point(block_rows, 1, 1), block, 8, true);
      for (int slices : {1, 2, 40})
        expect_equal_bits(oracle, block, slices, {automatic, diagonals, all_diagonals, sell, csr}, "small");
    }
  }
  Oracle one;
  one.row.push_back({{0, -3.5}});
  expect_equal_bits(one, 1, 1, {automatic, diagonals, all_diagonals, sell, csr}, "1 x 1");
}

TEST(DeviceRows, EmptyRowsAndAnEmptyMatrix) {
  for (int block : {1, 3}) {
    Oracle holes = in_blocks(seven_point(20, 8, 5), block, 4, true);
    for (std::size_t i = 0; i < holes.row.size(); ++i)
      if (i / 40 % 3 == 1) holes.row[i].clear();  // whole groups of 32 block rows are empty too
    expect_equal_bits(holes, block, 3, {automatic, diagonals, all_diagonals, sell, csr}, "holes");
    EXPECT_EQ(lay_out(holes, block, 3, diagonals).diagonals.mirrored, 0);
    Oracle empty;
    empty.row.resize(static_cast<std::size_t>(90 * block));
    expect_equal_bits(empty, block, 2, {automatic, diagonals, all_diagonals, sell, csr}, "empty");
  }
}

// ---- what is stored once

struct Change {
  std::string what;
  std::function<void(Oracle&)> make;
  bool once;  ///< one triangle still does
};

TEST(DeviceRows, OneTriangleIsStoredOnlyWhereBothAreAlikeBitForBit) {
  std::int32_t const i = 300, j = 301;
  double const nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Change> const changes = {
      {"nothing", [](Oracle&) {}, true},
      {"the last bit", [=](Oracle& a) { a.row[j][i] = std::nextafter(a.row[j][i], 9.0); }, false},
      {"a sign", [=](Oracle& a) { a.row[i][j] = -a.row[i][j]; }, false},
      {"zeros of both signs", [=](Oracle& a) { a.row[i][j] = 0.0, a.row[j][i] = -0.0; }, false},
      {"zeros alike", [=](Oracle& a) { a.row[i][j] = a.row[j][i] = 0.0; }, true},
      {"negative zeros alike", [=](Oracle& a) { a.row[i][j] = a.row[j][i] = -0.0; }, true},
      {"a zero above, nothing below", [=](Oracle& a) { a.row[i][j] = 0.0, a.row[j].erase(i); }, true},
      {"a zero below, nothing above", [=](Oracle& a) { a.row[j][i] = 0.0, a.row[i].erase(j); }, true},
      {"a negative zero below, nothing above", [=](Oracle& a) { a.row[j][i] = -0.0, a.row[i].erase(j); },
       false},
      {"an entry above, nothing below", [=](Oracle& a) { a.row[j].erase(i); }, false},
      {"an entry below, nothing above", [=](Oracle& a) { a.row[i].erase(j); }, false},
      {"no diagonal",
       [](Oracle& a) {
         for (std::int32_t k = 0; k < static_cast<std::int32_t>(a.row.size()); ++k) a.row[k].erase(k);
       },
       false},
      {"NaN alike", [=](Oracle& a) { a.row[i][j] = a.row[j][i] = nan; }, true}};
  for (int slices : {1, 9, 264}) {
    for (Change const& change : changes) {
      Oracle oracle = seven_point(20, 8, 5);
      for (std::int32_t k = 0; k + 1 < static_cast<std::int32_t>(oracle.row.size()); ++k)
        if (oracle.row[k].count(k + 1) != 0) oracle.row[k + 1][k] = oracle.row[k][k + 1];
      oracle = symmetric(oracle);
      change.make(oracle);
      if (change.what != "NaN alike") {
        expect_equal_bits(oracle, 1, slices, {automatic, diagonals, all_diagonals}, change.what);
      }
      DeviceRows const rows = lay_out(oracle, 1, slices, diagonals);
      EXPECT_EQ(rows.diagonals.mirrored > 0, change.once) << change.what;
      EXPECT_EQ(rows.diagonals.planes, change.once ? 4 : rows.diagonals.count) << change.what;
    }
  }
}

TEST(DeviceRows, BlocksAreComparedWithTheirTransposes) {
  for (int block : compiled({2, 3, 4, 6})) {
    Oracle oracle = in_blocks(seven_point(30, 8, 1), block, 4, true);
    std::int32_t const row = 50 * block, column = 51 * block;
    ASSERT_GT(lay_out(oracle, block, 3, diagonals).diagonals.mirrored, 0);
    std::swap(oracle.row[row][column + 1],
              oracle.row[row + 1][column]);  // a block that is its own transpose fits
    expect_equal_bits(oracle, block, 3, {automatic, diagonals, all_diagonals}, "one block transposed");
    EXPECT_EQ(lay_out(oracle, block, 3, diagonals).diagonals.mirrored, 0);
  }
  // Blocks on the main diagonal are stored whole: they need not be symmetric.
  Oracle oracle = in_blocks(seven_point(30, 8, 1), 3, 4, true);
  oracle.row[33][34] += 1.0;
  expect_equal_bits(oracle, 3, 3, {diagonals}, "main diagonal");
  EXPECT_GT(lay_out(oracle, 3, 3, diagonals).diagonals.mirrored, 0);
}

// ---- sliced ELL

TEST(DeviceRows, SixteenBitColumnsUpToTheBoundary) {
  for (int block : {1, 2}) {
    for (auto [last, wide] : {std::pair{65535, 0}, std::pair{65536, 1}}) {
      Oracle oracle;
      oracle.row.resize(static_cast<std::size_t>(70000 * block));
      for (std::int32_t i = 0; i < 70000 * block; ++i) oracle.row[i][i] = 1.0 + i;
      oracle.row[0][last * block + block - 1] = -0.5;
      DeviceRows const rows = lay_out(oracle, block, 2, sell);
      EXPECT_EQ(rows.group[0].wide, wide);
      EXPECT_EQ(
          std::count_if(rows.group.begin(), rows.group.end(), [](auto const& g) { return g.wide != 0; }),
          wide);
      expect_equal_bits(oracle, block, 2, {sell}, "boundary");
    }
  }
}

TEST(DeviceRows, ShorterRowsOfAGroupReadNothingMore) {
  Oracle oracle;  // rows of the first group have all their columns beyond 16 bits of the block row
  oracle.row.resize(70000);
  for (std::int32_t i = 0; i < 70000; ++i) oracle.row[i][i] = 2.0;
  for (std::int32_t i = 0; i < 32; ++i) oracle.row[i] = {{66000 + i, 1.0 + i}};
  oracle.row[7][66100] = 0.5;
  oracle.row[11][3] = 0.25;
  oracle.row[12] = {};
  DeviceRows const rows = lay_out(oracle, 1, 2, sell);
  EXPECT_EQ(rows.group[0].wide, 1);
  EXPECT_EQ(rows.group[0].head, 0);
  EXPECT_EQ(rows.group[0].width, 2);
  EXPECT_EQ(rows.mask[0], ~(1u << 12));
  EXPECT_EQ(rows.mask[1], 1u << 7 | 1u << 11);
  EXPECT_EQ(rows.group[1].value, 33);  // 31 + 2: nothing is padded
  expect_equal_bits(oracle, 1, 2, {sell}, "uneven rows");
  // An infinity that no row of the group holds an entry for does not get in.
  std::vector<double> x = random_vector(70000, 3);
  x[9] = std::numeric_limits<double>::infinity();
  std::vector<double> const y = multiply_on_device(rows, 4, x);
  for (int i : {0, 7, 8, 9, 10, 11, 12, 31}) EXPECT_TRUE(std::isfinite(y[i])) << i;
}

TEST(DeviceRows, GroupsStoreWhatTheirBlockRowsHave) {
  Oracle const oracle = random_matrix(500, 2, 30, 8, true);
  DeviceRows const rows = lay_out(oracle, 2, 10, sell);  // slices of 50 block rows: groups of 32 and 18
  ASSERT_EQ(rows.group.size(), 20u);
  for (int slice = 0; slice <= 10; ++slice) EXPECT_EQ(rows.first_group[slice], 2 * slice);
  std::int64_t values = 0;
  for (std::size_t g = 0; g < rows.group.size(); ++g) {
    std::vector<std::size_t> widths;
    std::int64_t const first = static_cast<std::int64_t>(g) / 2 * 50 + static_cast<std::int64_t>(g) % 2 * 32;
    for (std::int64_t block_row = first;
         block_row < std::min<std::int64_t>(first + 32, (static_cast<std::int64_t>(g) / 2 + 1) * 50);
         ++block_row) {
      std::set<std::int32_t> columns;
      for (int r = 0; r < 2; ++r)
        for (auto const& [column, value] : oracle.row[block_row * 2 + r]) columns.insert(column / 2);
      widths.push_back(columns.size());
    }
    auto const [shortest, longest] = std::minmax_element(widths.begin(), widths.end());
    EXPECT_EQ(rows.group[g].head, static_cast<std::int32_t>(*shortest)) << g;
    EXPECT_EQ(rows.group[g].width, static_cast<std::int32_t>(*longest)) << g;
    EXPECT_EQ(rows.group[g].value, values);
    for (std::size_t const width : widths) values += static_cast<std::int64_t>(width) * 4;
    values +=
        static_cast<std::int64_t>((32 - widths.size()) * *shortest) * 4;  // accumulators without a block row
  }
  EXPECT_EQ(static_cast<std::int64_t>(rows.value.size()), values);
}

// ---- the choice, what it says, and what is refused

TEST(DeviceRows, TheSmallestLayoutIsChosenAndItsBytesAreSaid) {
  Oracle const lattice = in_blocks(seven_point(20, 8, 5), 1, 1, true);
  DeviceRows const stencil = lay_out(lattice, 1, 5, automatic);
  EXPECT_EQ(stencil.format, DeviceFormat::diagonals);
  EXPECT_EQ(stencil.bytes_per_sweep(), static_cast<std::int64_t>(stencil.value.size()) * 8);
  EXPECT_EQ(stencil.why.rfind("diagonals (diagonals 0.026 MB, sell ", 0), 0u) << stencil.why;

  Oracle scattered;
  for (std::int32_t i = 0; i < 1200; ++i) {
    scattered.row.emplace_back();
    for (std::int32_t k = 0; k < 6; ++k) scattered.row.back()[(i * 7 + k * k * 131) % 1200] = 1.0;
  }
  DeviceRows const lists = lay_out(scattered, 1, 5, automatic);
  EXPECT_EQ(lists.format, DeviceFormat::sell);
  EXPECT_EQ(lists.why.rfind("sell (sell ", 0), 0u) << lists.why;

  Oracle uneven = scattered;  // a long row in every group pads nothing
  for (std::int32_t i = 0; i < 1200; i += 32)
    for (std::int32_t j = 0; j < 400; ++j) uneven.row[i][j * 3] = 1.0;
  DeviceRows const rows = lay_out(uneven, 1, 5, automatic), plain = lay_out(uneven, 1, 5, csr);
  EXPECT_EQ(rows.format, DeviceFormat::sell) << rows.why;
  EXPECT_EQ(plain.bytes_per_sweep(), uneven.entries() * 12 + 1201 * 8);
  EXPECT_LT(rows.bytes_per_sweep(), plain.bytes_per_sweep() * 11 / 10);
  expect_equal_bits(uneven, 1, 5, {sell, csr}, "uneven");
}

std::string refusal(Oracle const& oracle) {
  try {
    lay_out(oracle, 1, 3, diagonals);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(DeviceRows, MoreThan32DiagonalsDoNotFit) {
  Oracle oracle;
  oracle.row.resize(200);
  for (std::int32_t i = 0; i < 200; ++i) oracle.row[i][i] = 40.0;
  for (std::int32_t k = 1; k <= 31; ++k) oracle.row[100][100 + k] = 1.0;
  EXPECT_EQ(lay_out(oracle, 1, 3, diagonals).diagonals.count, 32);
  expect_equal_bits(oracle, 1, 3, {automatic, diagonals, all_diagonals}, "32 diagonals");
  oracle.row[0][32] = 1.0;
  EXPECT_EQ(refusal(oracle),
            "the matrix does not fit format diagonals (it has more than 32 of them). Use sell.");
  EXPECT_NE(lay_out(oracle, 1, 3, automatic).format, DeviceFormat::diagonals);
}

TEST(DeviceRows, NamesAreThoseOfTheCommandLine) {
  EXPECT_STREQ(name(DeviceFormat::diagonals), "diagonals");
  EXPECT_STREQ(name(DeviceFormat::sell), "sell");
  EXPECT_STREQ(name(DeviceFormat::csr), "csr");
}

}  // namespace
}  // namespace hostless
