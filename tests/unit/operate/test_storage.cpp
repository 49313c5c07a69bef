#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "hostless/base/error.hpp"
#include "matrices.hpp"
#include "operate/storage.hpp"

namespace hostless {
namespace {

using namespace test;
using Kind = FormatRequest::Kind;
using Columns = FormatRequest::Columns;

/// Rows 0 .. n - 1 with a diagonal, and one entry (row, column).
Oracle diagonal_and(std::int64_t n, std::int32_t row, std::int32_t column) {
  Oracle a;
  a.row.resize(static_cast<std::size_t>(n));
  for (std::int32_t i = 0; i < n; ++i) a.row[i][i] = 1.0 + i;
  a.row[row][column] = -0.5;
  return a;
}

TEST(Storage, SixteenBitColumnsUpToTheBoundary) {
  for (auto [column, narrow] : {std::pair{65535 + 10, 2}, std::pair{65536 + 10, 1}}) {
    Oracle oracle = diagonal_and(70000, 10, column);
    for (std::int32_t i = 0; i < 10; ++i) oracle.row[i] = {{10, 1.0}};  // the least column of slice 0 is 10
    for (Kind kind : {Kind::csr, Kind::sell}) {
      // Listed groups pad with their own row: give every row of the first group its two entries.
      if (kind == Kind::sell) {
        for (std::int32_t i = 0; i < 32; ++i) oracle.row[i] = {{10, 1.0}, {column, 2.0}};
      }
      LocalMatrix const a(oracle.rows(), tiling_of(oracle, 1, 2), FormatRequest{kind, Columns::narrow});
      EXPECT_EQ(a.narrow_slices(), narrow) << a.describe();
      std::vector<double> const x = random_vector(70000, 1);
      EXPECT_EQ(multiply(a, x), oracle.multiply(x));
      LocalMatrix const wide(oracle.rows(), tiling_of(oracle, 1, 2), FormatRequest{kind, Columns::wide});
      EXPECT_EQ(wide.narrow_slices(), 0);
    }
  }
}

TEST(Storage, BlocksCountColumnsInBlockRows) {
  for (auto [block_row, narrow] : {std::pair{65535, 2}, std::pair{65536, 1}}) {
    Oracle const oracle = diagonal_and(2 * 70000, 0, 2 * block_row + 1);
    LocalMatrix const a(oracle.rows(), tiling_of(oracle, 2, 2), FormatRequest{Kind::bsr, Columns::auto_});
    EXPECT_EQ(a.narrow_slices(), narrow) << a.describe();
    std::vector<double> const x = random_vector(2 * 70000, 1);
    EXPECT_EQ(multiply(a, x), oracle.multiply(x));
  }
}

TEST(Storage, BytesAreTheSumOfTheArrays) {
  Oracle const oracle = random_matrix(500, 2, 30, 8, true);
  int const slices = 10;
  std::int64_t const rows = 1000, entries = oracle.entries(), slice_bytes = 24 * slices;
  std::int64_t blocks = 0;
  for (std::int64_t block_row = 0; block_row < 500; ++block_row) {
    std::set<std::int32_t> columns;
    for (int j = 0; j < 2; ++j) {
      for (auto const& [column, value] : oracle.row[block_row * 2 + j]) columns.insert(column / 2);
    }
    blocks += static_cast<std::int64_t>(columns.size());
  }
  std::int64_t padded = 0, groups = 0;  // slices of 50 block rows: groups of 32 and 18
  for (std::int64_t slice = 0; slice < slices; ++slice) {
    for (std::int64_t block_row = 0; block_row < 50; block_row += 32, ++groups) {
      std::size_t width = 0;
      for (std::int64_t i = block_row * 2; i < std::min<std::int64_t>(block_row + 32, 50) * 2; ++i) {
        width = std::max(width, oracle.row[slice * 100 + i].size());
      }
      padded += static_cast<std::int64_t>(width) * 64;
    }
  }
  auto const built = [&](Kind kind, Columns columns) {
    return LocalMatrix(oracle.rows(), tiling_of(oracle, 2, slices), FormatRequest{kind, columns});
  };
  std::int64_t const narrow_csr = entries * 10 + (rows + slices) * 4 + slice_bytes;
  EXPECT_EQ(built(Kind::csr, Columns::narrow).bytes_per_sweep(), narrow_csr);
  EXPECT_EQ(built(Kind::csr, Columns::wide).bytes_per_sweep(), narrow_csr + entries * 2);
  EXPECT_EQ(built(Kind::bsr, Columns::narrow).bytes_per_sweep(),
            blocks * 34 + (500 + slices) * 4 + slice_bytes);
  EXPECT_EQ(built(Kind::sell, Columns::narrow).bytes_per_sweep(),
            padded * 10 + groups * 24 + (slices + 1) * 8 + slice_bytes);
  LocalMatrix const a = built(Kind::csr, Columns::narrow);
  std::int64_t const ghost_bytes =
      (slices + 1) * 8 + static_cast<std::int64_t>(a.ghost_reads().ghost.size()) * 4;
  std::int64_t const padding = 2 * 32 * 8, order = slices * 4;  // padding: whole-group loads
  std::int64_t const slots = slices * 8 + (slices + 1) * 8;     // what each reads; where a slice's begin
  std::int64_t const owned_reads = slices * 16;                 // of each slice the first and the last row
  EXPECT_EQ(a.bytes(), a.bytes_per_sweep() + padding + order + ghost_bytes + slots + owned_reads);
  EXPECT_EQ(a.entries(), entries);
  LocalMatrix const best = built(Kind::auto_, Columns::auto_);
  for (Kind kind : {Kind::csr, Kind::bsr, Kind::sell}) {
    EXPECT_LE(best.bytes_per_sweep(), built(kind, Columns::auto_).bytes_per_sweep()) << best.why();
  }
}

TEST(Storage, GhostReadsAreExact) {
  for (int block : {1, 3}) {
    for (std::int64_t below : {0, 10, 25}) {
      Oracle const oracle = with_ghosts_below(random_matrix(200, block, 25, 4, true), below * block);
      std::int64_t const owned = 200 * block;
      for (Kind kind : {Kind::csr, Kind::bsr, Kind::sell}) {
        if (kind == Kind::bsr && block == 1) continue;
        Tiling const tiling = tiling_of(oracle, block, 33);
        LocalMatrix const a(oracle.rows(), tiling, FormatRequest{kind, Columns::auto_});
        GhostReads const& reads = a.ghost_reads();
        ASSERT_EQ(reads.first.size(), 34u);
        for (int s = 0; s < 33; ++s) {
          std::set<std::int32_t> expected;
          for (std::int64_t i = tiling.first(s) * block; i < tiling.first(s + 1) * block; ++i) {
            for (auto const& [column, value] : oracle.row[i]) {
              if (column >= 0 && column < owned) continue;
              std::int64_t const ghost = column + below * block - (column < 0 ? 0 : owned);
              for (int j = 0; j < block; ++j)
                expected.insert(static_cast<std::int32_t>(ghost / block * block + j));
            }
          }
          EXPECT_EQ(a.reads_ghosts(s), !expected.empty());
          EXPECT_EQ(std::vector<std::int32_t>(expected.begin(), expected.end()),
                    std::vector<std::int32_t>(reads.ghost.begin() + reads.first[s],
                                              reads.ghost.begin() + reads.first[s + 1]));
        }
      }
    }
  }
}

TEST(Storage, UpdateValuesReplacesValuesOfTheSamePattern) {
  for (int block : {1, 2, 3, 6}) {
    Oracle oracle = block == 1 ? seven_point(33, 6, 5) : random_matrix(120, block, 9, 21, true);
    for (Kind kind : {Kind::csr, Kind::bsr, Kind::sell}) {
      if (kind == Kind::bsr && block == 1) continue;
      for (Columns columns : {Columns::auto_, Columns::wide}) {
        LocalMatrix a(oracle.rows(), tiling_of(oracle, block, 4), FormatRequest{kind, columns});
        Oracle changed = oracle;
        double next = 0.125;
        for (auto& row : changed.row) {
          for (auto& [column, value] : row) value = next += 0.5;
        }
        a.update_values(changed.rows());
        std::vector<double> const x = random_vector(oracle.columns(), 2);
        EXPECT_EQ(multiply(a, x), changed.multiply(x)) << a.describe();
      }
    }
  }
}

/// Panels that do not fit together, as a source of a user could give them.
class BrokenRows final : public LocalRows {
 public:
  explicit BrokenRows(LocalPanel panel) : panel_(std::move(panel)) {}
  std::int64_t owned() const override { return 3; }
  std::int64_t ghosts() const override { return 0; }
  void panel(std::int64_t, std::int64_t, LocalPanel& out) const override { out = panel_; }

 private:
  LocalPanel panel_;
};

TEST(Storage, RefusesPanelsThatDoNotFitTogether) {
  auto const refuses = [](std::vector<std::int64_t> offset, std::size_t columns, std::size_t values) {
    LocalPanel panel;
    panel.offset.assign(offset.begin(), offset.end());
    panel.column.assign(columns, 0);
    panel.value.assign(values, 1.0);
    Tiling tiling;
    tiling.block_rows = 3;
    tiling.slices = 1;
    return usage_text([&] { LocalMatrix(BrokenRows(panel), tiling); });
  };
  for (auto const& text : {refuses({0, 1, 2}, 2, 2), refuses({1, 1, 2, 3}, 3, 3), refuses({0, 1, 2, 4}, 3, 3),
                           refuses({0, 1, 2, 3}, 3, 2)}) {
    EXPECT_NE(text.find("rows 0 to 3"), std::string::npos) << text;
  }
  EXPECT_NE(refuses({0, 2, 1, 3}, 3, 3).find("row 1 ends before it begins"), std::string::npos);
}

TEST(Storage, UpdateValuesNamesTheRowOfAnotherPattern) {
  Oracle const oracle = seven_point(33, 6, 6);
  Oracle moved = oracle, longer = oracle, shorter = oracle;
  moved.row[100].erase(100 + 1);
  moved.row[100][100 + 2] = 1.0;
  longer.row[100][100 + 2] = 1.0;
  shorter.row[100].erase(100 + 1);
  for (Kind kind : {Kind::csr, Kind::sell}) {
    for (Columns columns : {Columns::narrow, Columns::wide}) {
      LocalMatrix a(oracle.rows(), tiling_of(oracle, 1, 2), FormatRequest{kind, columns});
      for (Oracle const* other : {&moved, &longer, &shorter}) {
        std::string const text = usage_text([&] { a.update_values(other->rows()); });
        EXPECT_NE(text.find("row 100 "), std::string::npos) << text;
      }
    }
  }
  LocalMatrix diagonals(oracle.rows(), tiling_of(oracle, 1, 2), FormatRequest{Kind::sell, Columns::auto_});
  EXPECT_NE(usage_text([&] { diagonals.update_values(shorter.rows()); }).find("row 100 "), std::string::npos);
  for (Oracle const* other : {&moved, &longer})
    EXPECT_NE(usage_text([&] { diagonals.update_values(other->rows()); }).find("row 100 "),
              std::string::npos);

  Oracle beyond = oracle;  // as a reader numbers a column that the matrix does not know
  beyond.row[100][INT32_MAX] = 1.0;
  EXPECT_NE(usage_text([&] {
              diagonals.update_values(beyond.rows());
            }).find("row 100 does not have the pattern that the matrix was built with"),
            std::string::npos);

  Oracle const blocks = random_matrix(60, 3, 0, 21, true);
  Oracle other = blocks;
  other.row[31].clear();
  other.row[30].clear();
  other.row[32] = {{0, 1.0}, {3, 1.0}, {6, 1.0}};
  LocalMatrix a(blocks.rows(), tiling_of(blocks, 3, 2), FormatRequest{Kind::bsr, Columns::auto_});
  EXPECT_NE(usage_text([&] { a.update_values(other.rows()); }).find("row 30 "), std::string::npos);
  Oracle smaller = blocks;
  smaller.row.resize(177);
  for (auto& row : smaller.row) row.erase(row.lower_bound(177), row.end());
  usage_text([&] { a.update_values(smaller.rows()); });
}

TEST(Storage, UpdateValuesKeepsOrGivesUpWhatIsStoredOnce) {
  for (int block : {1, 2, 3, 4, 6}) {
    Oracle oracle = symmetric(block == 1 ? seven_point(33, 6, 5) : random_matrix(150, block, 9, 6, true));
    if (block > 1) oracle = with_ghosts_below(ghosts_only_in(oracle, 0, 30 * block), 4 * block);
    LocalMatrix a(oracle.rows(), tiling_of(oracle, block, 4),
                  FormatRequest{block == 1 ? Kind::sell : Kind::bsr, Columns::auto_});
    std::int64_t const left_out = a.left_out();
    ASSERT_GT(left_out, 0);
    std::vector<double> const x = random_vector(oracle.columns(), 2);
    for (auto& row : oracle.row) {
      for (auto& [column, value] : row) value *= 3.0;
    }
    a.update_values(oracle.rows());
    EXPECT_EQ(a.left_out(), left_out);
    EXPECT_EQ(multiply(a, x), oracle.multiply(x));
    std::int64_t const row = static_cast<std::int64_t>(oracle.row.size()) - block;
    auto const nearest = oracle.row[row].lower_bound(static_cast<std::int32_t>(row));
    ASSERT_NE(nearest, oracle.row[row].begin());
    std::prev(nearest)->second *= 1.5;
    a.update_values(oracle.rows());
    EXPECT_EQ(a.left_out(), 0);
    EXPECT_EQ(multiply(a, x), oracle.multiply(x));
  }
}

TEST(Storage, DiagonalBlocks) {
  for (int block : {1, 2, 3, 4, 6}) {
    Oracle const oracle = block == 1
                              ? symmetric(seven_point(9, 8, 7))
                              : with_ghosts_below(symmetric(random_matrix(90, block, 6, 5, true)), 3 * block);
    auto const block_rows = static_cast<std::int64_t>(oracle.row.size()) / block;
    std::vector<double> expected(static_cast<std::size_t>(block_rows * block * block), 0.0);
    for (std::int64_t i = 0; i < block_rows * block; ++i) {
      for (auto const& [column, value] : oracle.row[i]) {
        if (column >= 0 && column / block == i / block) expected[i * block + column % block] = value;
      }
    }
    for (Kind kind : {Kind::csr, Kind::bsr, Kind::sell}) {
      if (kind == Kind::bsr && block == 1) continue;
      for (Columns columns : {Columns::auto_, Columns::wide}) {
        LocalMatrix const a(oracle.rows(), tiling_of(oracle, block, 7), FormatRequest{kind, columns});
        std::vector<double> blocks;
        a.diagonal_blocks(blocks);
        EXPECT_EQ(blocks, expected) << a.describe();
      }
    }
  }
}

TEST(Storage, RequestsThatCannotBeMet) {
  Oracle const oracle = seven_point(6, 2, 1);
  LocalRowArrays const rows = oracle.rows();
  auto const build = [&](Tiling tiling, FormatRequest request = {}) {
    return usage_text([&] { LocalMatrix(rows, tiling, request); });
  };
  EXPECT_NE(build(tiling_of(oracle, 1, 2), FormatRequest::from("bsr")).find("block size 1"),
            std::string::npos);
  EXPECT_NE(build(Tiling{11, 1, 2}).find("12 owned"), std::string::npos);
  for (int threads : {0, -2}) {
    FormatRequest request;
    request.threads = threads;
    EXPECT_NE(build(tiling_of(oracle, 1, 2), request).find(fmt::format("{} threads", threads)),
              std::string::npos);
  }
  FormatRequest backwards;
  backwards.half_reach = -2;
  EXPECT_NE(build(tiling_of(oracle, 1, 2), backwards).find("half_reach -2"), std::string::npos);
  EXPECT_NE(build(Tiling{2, 5, 2}).find("block size 5"), std::string::npos);
  EXPECT_NE(build(Tiling{12, 1, 0}).find("0 slices"), std::string::npos);
  EXPECT_NE(usage_text([] { FormatRequest::from("ell"); }).find("'ell'"), std::string::npos);
  EXPECT_NE(usage_text([] { FormatRequest::from("csr", "8"); }).find("'8'"), std::string::npos);
  EXPECT_EQ(FormatRequest::from("sell", "32").format, Kind::sell);
  EXPECT_EQ(FormatRequest::from("auto", "16").columns, Columns::narrow);
  if (active_isa() != Isa::v4) {
    EXPECT_NE(usage_text([&] { LocalMatrix(rows, tiling_of(oracle, 1, 2), {}, Isa::v4); }).find("v4"),
              std::string::npos);
  }
}

TEST(Storage, RowsThatBreakTheirContract) {
  auto const build = [](std::vector<std::int64_t> offset, std::vector<std::int32_t> column,
                        std::int64_t ghosts = 0, std::int64_t below = 0) {
    std::vector<double> value(column.size(), 1.0);
    LocalRowArrays const rows(ghosts, LocalPanel{std::move(offset), std::move(column), std::move(value)},
                              below);
    return usage_text([&] { LocalMatrix(rows, Tiling{2, 1, 1}); });
  };
  EXPECT_NE(build({0, 1, 3}, {0, 1, 1}).find("row 1 holds local column 1 after 1"), std::string::npos);
  EXPECT_NE(build({0, 1, 2}, {0, 2}).find("row 1 holds local column 2"), std::string::npos);
  EXPECT_NE(build({0, 1, 2}, {-1, 1}).find("row 0 holds local column -1"), std::string::npos);
  EXPECT_NE(build({0, 1, 2}, {0, 4}, 3, 1)
                .find("row 1 holds local column 4 after -2 (columns rise inside a "
                      "row and lie in [-1, 4))"),
            std::string::npos);
  EXPECT_NE(build({0, 1, 2}, {-2, 1}, 3, 1).find("row 0 holds local column -2"), std::string::npos);
  EXPECT_NE(build({0, 1, 2}, {0, 1}, 3, 4).find("3 ghosts, 4 of them below"), std::string::npos);
  EXPECT_NE(build({0, 1, 2}, {0, 1}, 3, -1).find("3 ghosts, -1 of them below"), std::string::npos);
  EXPECT_NE(build({0, 2, 1}, {0}).find("row 1 ends before it begins"), std::string::npos);

  struct Fickle final : LocalRows {  // gives a longer row the second time
    mutable int asked = 0;
    std::int64_t owned() const override { return 2; }
    std::int64_t ghosts() const override { return 0; }
    void panel(std::int64_t, std::int64_t, LocalPanel& out) const override {
      bool const second = asked++ > 0;
      out = second ? LocalPanel{{0, 1, 3}, {0, 0, 1}, {1, 1, 1}} : LocalPanel{{0, 1, 2}, {0, 1}, {1, 1}};
    }
  };
  for (char const* format : {"csr", "sell"}) {
    std::string const text = usage_text([&] {
      LocalMatrix(Fickle(), Tiling{2, 1, 1}, FormatRequest::from(format, "16"));
    });
    EXPECT_NE(text.find("row 1 "), std::string::npos) << text;
  }
}

// A slice that reads no ghosts is multiplied while they arrive: whole diagonals may not touch them either.
TEST(Storage, DiagonalsLeaveGhostsAloneThatNoEntryNeeds) {
  Oracle oracle;
  oracle.ghosts = 128;
  oracle.below = 64;
  oracle.row.resize(64);
  for (std::int32_t i = 0; i < 64; ++i) {
    oracle.row[i][i] = 2.0 + i;
    if (i >= 8) oracle.row[i][i - 8] = -3.0;
    if (i + 8 < 64)
      oracle.row[i][i + 8] = -1.0;  // of the second group 24 lanes: the others would read ghosts
  }
  LocalMatrix const a(oracle.rows(), tiling_of(oracle, 1, 1), FormatRequest{Kind::sell, Columns::auto_});
  ASSERT_FALSE(a.reads_ghosts(0));
  std::vector<double> x = random_vector(192, 1);
  std::fill(x.begin(), x.begin() + 64, std::numeric_limits<double>::quiet_NaN());
  std::fill(x.begin() + 128, x.end(), std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(multiply(a, x), oracle.multiply(x));
}

// Counted, never held: 2^31 entries would be 24 GB. Panel after panel, as when a matrix is read.
struct Huge final : LocalRows {
  static constexpr std::int64_t width = 1 << 16, rows = 32768 + 64;  // 2^31 entries and more
  std::int64_t owned() const override { return rows; }
  std::int64_t ghosts() const override { return width - rows; }
  void panel(std::int64_t, std::int64_t count, LocalPanel& out) const override {
    for (std::int64_t i = 1; i <= count; ++i) out.offset.push_back(i * width);
    out.column.resize(static_cast<std::size_t>(count * width));
    out.value.resize(out.column.size());
    for (std::int64_t i = 0; i < count; ++i)
      std::iota(&out.column[i * width], &out.column[i * width] + width, 0);
  }
};

TEST(Storage, CountsBeyondTwoToThe31) {
  Tiling const tiling{Huge::rows, 1, 1026};
  Counted const counted = count(Huge(), tiling, FormatRequest{Kind::csr, Columns::wide});
  constexpr std::int64_t boundary = std::int64_t{1} << 31;
  EXPECT_EQ(counted.entries, boundary + 64 * Huge::width);
  Shape const& shape = counted.candidates.at(0);
  EXPECT_EQ(shape.values, counted.entries);
  EXPECT_EQ(shape.wide, counted.entries);
  for (int s = 0; s < tiling.slices; ++s) {
    std::int64_t const before = tiling.first(s) * Huge::width;
    ASSERT_EQ(shape.slice[s].value, before) << "slice " << s;
    ASSERT_EQ(shape.slice[s].column, before) << "slice " << s;
  }
  EXPECT_GT(shape.slice[1025].value, boundary);
  EXPECT_GT(shape.sweep_bytes(1), 12 * boundary);
}

}  // namespace
}  // namespace hostless
