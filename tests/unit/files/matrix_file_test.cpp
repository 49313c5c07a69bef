#include "hostless/files/matrix_file.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "hostless/files/matrix_market.hpp"
#include "hostless/files/petsc_binary.hpp"
#include "samples.hpp"

namespace {

using namespace hostless;
using samples::collect;
using samples::common_error;
using samples::EntryMap;
using samples::Folder;

// Rows held as the oracle's entries.
class MappedRows final : public RowSource {
 public:
  MappedRows(EntryMap const& entry_map, std::int64_t n, Group& group)
      : entry_map_(entry_map),
        n_(n),
        first_(share_first(n, group.size(), group.rank())),
        last_(share_first(n, group.size(), group.rank() + 1)) {}
  std::int64_t global_rows() const override { return n_; }
  std::int64_t first_row() const override { return first_; }
  std::int64_t last_row() const override { return last_; }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    out.clear();
    for (std::int64_t row = first; row < first + count; ++row) {
      for (auto at = entry_map_.lower_bound({row, 0}); at != entry_map_.end() && at->first.first == row;
           ++at) {
        out.column.push_back(at->first.second);
        out.value.push_back(at->second);
      }
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
  }

 private:
  EntryMap const& entry_map_;
  std::int64_t n_, first_, last_;
};

EntryMap random_entries(std::int64_t n) {
  EntryMap entry_map;
  std::mt19937_64 engine(5);
  std::uniform_int_distribution<std::int64_t> index(0, n - 1);
  std::uniform_int_distribution<std::uint64_t> bits;
  for (std::int64_t k = 0; k < 8 * n; ++k) {
    // Any finite pattern of bits, from the smallest to the largest: what is written must come back in every
    // bit.
    double value = std::bit_cast<double>(bits(engine));
    if (!std::isfinite(value)) continue;
    auto const i = index(engine), j = index(engine);
    entry_map[{i, j}] = entry_map[{j, i}] = value;
  }
  return entry_map;
}

std::string big(std::initializer_list<std::int32_t> words) {
  std::string bytes;
  for (std::int32_t const w : words) {
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>((w >> shift) & 255);
  }
  return bytes;
}

TEST(MatrixFile, WrittenMarketFilesReadBackInEveryBit) {
  Folder folder;
  auto const entry_map = random_entries(100);
  auto const path = folder.file("w.mtx");
  std::string first_text;
  for (int ranks : {1, 2, 3}) {
    run_on_threads(
        ranks, [&](Group& group) { write_matrix_market(group, path, MappedRows(entry_map, 100, group)); });
    EXPECT_EQ(collect(ranks, [&](Group& group) { return read_matrix(group, path); }), entry_map);
    if (first_text.empty()) first_text = samples::content(path);
    EXPECT_EQ(samples::content(path), first_text);
  }
  EXPECT_EQ(folder.files(), 1u);
}

TEST(MatrixFile, WrittenMarketTextIsAsSpecified) {
  Folder folder;
  EntryMap const entry_map{{{0, 0}, 4}, {{0, 1}, -1.5}, {{1, 0}, -1.5}, {{1, 1}, 0.1}};
  auto const path = folder.file("w.mtx");
  auto const group = single_group();
  write_matrix_market(*group, path, MappedRows(entry_map, 2, *group));
  EXPECT_EQ(samples::content(path),
            "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 -1.5\n2 2 0.1\n");
}

// Of three kinds: an ulp between two entries, a tiny one whose mirror is not stored, on each side of the diagonal.
TEST(MatrixFile, MirrorsMayDifferByRounding) {
  Folder folder;
  EntryMap const entry_map{{{0, 0}, 4},     {{0, 1}, -1},    {{1, 0}, -1 - 0x1p-52},
                           {{1, 1}, 4},     {{1, 2}, -1},    {{2, 1}, -1},
                           {{2, 2}, 4},     {{3, 3}, 1e-6},  {{4, 4}, 4},
                           {{0, 2}, 1e-20}, {{4, 0}, 2e-20}, {{3, 4}, 0}};
  auto const single = single_group();
  auto const petsc = folder.file("p"), market = folder.file("m");
  write_petsc_matrix(*single, petsc, MappedRows(entry_map, 5, *single));
  write_matrix_market(*single, market, MappedRows(entry_map, 5, *single), Symmetry::any);
  for (auto const& path : {petsc, market}) {
    for (int ranks : {1, 2, 3, 5}) {
      EXPECT_EQ(collect(ranks,
                        [&](Group& group) {
                          auto rows = read_matrix(group, path);
                          auto const& found = rows->only_rounded();
                          EXPECT_TRUE(found && found->row == 0 && found->column == 1 && !found->missing);
                          EXPECT_EQ(found ? found->share : 0, 0x1p-54);
                          auto const all = check_symmetry(group, *rows, 0);
                          EXPECT_TRUE(all.refused && all.refused->row == 0 && all.refused->column == 1);
                          auto const near = check_symmetry(group, *rows, 0x1p-55);
                          EXPECT_TRUE(near.refused && near.refused->row == 0 && near.refused->column == 1);
                          EXPECT_TRUE(near.furthest && near.furthest->row == 0 && near.furthest->column == 2);
                          return rows;
                        }),
                entry_map);
      run_on_threads(ranks, [&](Group& group) {
        EXPECT_THROW(read_matrix(group, path, {}, Symmetry::required, 0x1p-55), Error);
        EXPECT_FALSE(read_matrix(group, path, {}, Symmetry::any)->only_rounded());
      });
    }
  }
}

// The largest of the three sizes judges: an entry as large as its row's diagonal is no rounding.
TEST(MatrixFile, MirrorsThatMissAreNoRounding) {
  Folder folder;
  EntryMap const entry_map{{{0, 0}, 1e-20}, {{0, 1}, 1e-20}, {{1, 1}, 1e-20}};
  auto const single = single_group();
  auto const path = folder.file("m");
  write_matrix_market(*single, path, MappedRows(entry_map, 2, *single), Symmetry::any);
  EXPECT_THROW(read_matrix(*single, path), Error);
}

TEST(MatrixFile, PetscBytesBothWays) {
  Folder folder;
  // 4 and 10 on the diagonal, -1.5 beside it; the doubles' bits are IEEE 754's.
  auto const one = 0x3ff00000, four = 0x40100000, ten = 0x40240000;
  auto const bytes = big({1211216, 2, 2, 4, 2, 2, 0, 1, 0, 1, four, 0, one, 0, one, 0, ten, 0});
  EntryMap const entry_map{{{0, 0}, 4}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 10}};
  auto const path = folder.write("p.anything", bytes);
  for (int ranks : {1, 2, 3}) {
    EXPECT_EQ(collect(ranks, [&](Group& group) { return read_matrix(group, path); }), entry_map);
    auto const again = folder.file("q");
    run_on_threads(ranks,
                   [&](Group& group) { write_petsc_matrix(group, again, MappedRows(entry_map, 2, group)); });
    EXPECT_EQ(samples::content(again), bytes);
  }
  // Something behind it, as MatView followed by VecView leaves it, is not the matrix's concern.
  auto const followed = folder.write("f", bytes + big({1211214, 2, one, 0, one, 0}));
  EXPECT_EQ(collect(2, [&](Group& group) { return read_matrix(group, followed); }), entry_map);
}

// As PETSc of other configurations writes it; the bits of numbers are IEEE 754's.
TEST(MatrixFile, PetscOfOtherWidths) {
  Folder folder;
  auto const one = 0x3ff00000, four = 0x40100000, ten = 0x40240000;
  std::string const narrow = big({1211216, 2, 2, 4, 2, 2, 0, 1, 0, 1});
  std::string const wide = big({0, 1211216, 0, 2, 0, 2, 0, 4, 0, 2, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1});
  std::string const doubles = big({four, 0, one, 0, one, 0, ten, 0});
  std::string const floats = big({0x40800000, 0x3f800000, 0x3f800000, 0x41200000});
  std::string const behind = big({1211214, 2, one, 0, one, 0}), wide_behind = big({0, 1211214, 0, 0});
  EntryMap const entry_map{{{0, 0}, 4}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 10}};
  for (std::string const& bytes : {narrow + floats, narrow + floats + behind, wide + doubles, wide + floats,
                                   wide + doubles + wide_behind, wide + floats + wide_behind}) {
    auto const path = folder.write("p", bytes);
    for (int ranks : {1, 2, 3}) {
      EXPECT_EQ(collect(ranks, [&](Group& group) { return read_matrix(group, path); }), entry_map)
          << bytes.size();
    }
  }
}

TEST(MatrixFile, PetscOfManyRows) {
  Folder folder;
  auto const entry_map = random_entries(300);
  auto const path = folder.file("p");
  for (int ranks : {1, 3}) {
    run_on_threads(ranks,
                   [&](Group& group) { write_petsc_matrix(group, path, MappedRows(entry_map, 300, group)); });
    EXPECT_EQ(collect(ranks, [&](Group& group) { return read_petsc_matrix(group, path); }), entry_map);
  }
}

TEST(StoredRows, ColumnsBeyond31Bits) {
  constexpr std::int64_t n = 3'000'000'000;
  StoredRows rows(n, 250'000'000, 249'999'999);  // the last twelve rows
  ASSERT_EQ(rows.last_row() - rows.first_row(), 12);
  std::int64_t const row = n - 5;
  for (int pass : {0, 1}) {
    for (std::int64_t const column : {n - 1, std::int64_t{7}, row}) {
      if (pass == 0) {
        rows.count(row);
      } else {
        EXPECT_TRUE(rows.put(row, column, 0.25));
      }
    }
    if (pass == 0) rows.start(StoredValue::single_width);
  }
  ASSERT_TRUE(rows.finish());
  RowPanel panel;
  rows.panel(row - 1, 2, panel);
  EXPECT_EQ(panel.offset, (std::vector<std::int64_t>{0, 0, 3}));
  EXPECT_EQ(panel.column, (std::vector<std::int64_t>{7, row, n - 1}));
  EXPECT_EQ(panel.value, (std::vector<double>{0.25, 0.25, 0.25}));
}

TEST(StoredRows, OtherEntriesThanAnnouncedAreNoticed) {
  for (std::int64_t const second : {0, 1}) {
    StoredRows rows(12, 1, 0);
    for (std::int64_t const row : {0, 1}) rows.count(row);
    rows.start(StoredValue::one);
    EXPECT_TRUE(rows.put(0, 3, 1));
    EXPECT_TRUE(rows.put(second, 4, 1));
    EXPECT_EQ(rows.finish(), second == 1);
  }
}

// Claims any size without holding anything.
class ClaimedRows final : public RowSource {
 public:
  std::int64_t global_rows() const override { return std::int64_t{1} << 31; }
  std::int64_t first_row() const override { return 0; }
  std::int64_t last_row() const override { return 0; }
  void panel(std::int64_t, std::int64_t, RowPanel& out) const override { out.clear(); }
};

TEST(MatrixFile, PetscCannotCountBeyond31Bits) {
  Folder folder;
  auto const error =
      common_error(2, [&](Group& group) { write_petsc_matrix(group, folder.file("p"), ClaimedRows()); });
  EXPECT_EQ(error.code(), ErrorCode::usage);
  EXPECT_EQ(folder.files(), 0u);
}

// A source that fails on the last rank, in the second walk.
class FailingRows final : public RowSource {
 public:
  explicit FailingRows(Group& group) : rank_(group.rank()) {}
  std::int64_t global_rows() const override { return 24; }
  std::int64_t first_row() const override { return 12 * rank_; }
  std::int64_t last_row() const override { return 12 * rank_ + 12; }
  void panel(std::int64_t, std::int64_t count, RowPanel& out) const override {
    out.clear();
    out.offset.resize(static_cast<std::size_t>(count) + 1);
    if (rank_ == 1 && walks_++ == 1) throw Error(ErrorCode::bad_input, "the source fails");
  }

 private:
  int rank_;
  mutable int walks_ = 0;
};

TEST(MatrixFile, AFailedWriteLeavesTheOldFile) {
  Folder folder;
  auto const path = folder.write("a.mtx", "old");
  void (*const market)(Group&, std::string const&,
                       RowSource const&) = [](Group& group, std::string const& path, RowSource const& rows) {
    write_matrix_market(group, path, rows);
  };
  for (auto* write : {market, &write_petsc_matrix}) {
    auto const error = common_error(2, [&](Group& group) { (*write)(group, path, FailingRows(group)); });
    EXPECT_STREQ(error.what(), "the source fails");
    EXPECT_EQ(samples::content(path), "old");
    EXPECT_EQ(folder.files(), 1u);
  }
}

TEST(MatrixFile, WritersWantARegularFile) {
  Folder folder;
  EntryMap const none;
  for (std::string const& path : {std::string("/dev/null"), folder.file("")}) {
    auto const error =
        common_error(2, [&](Group& group) { write_matrix_market(group, path, MappedRows(none, 5, group)); });
    EXPECT_EQ(error.code(), ErrorCode::environment) << error.what();
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
