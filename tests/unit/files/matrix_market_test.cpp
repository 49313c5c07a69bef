#include "hostless/files/matrix_market.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>

#include "samples.hpp"

namespace {

using namespace hostless;
using samples::collect;
using samples::common_error;
using samples::EntryMap;
using samples::Folder;

EntryMap read(int ranks, std::string const& path, std::int64_t block = 0) {
  return collect(ranks, [&](Group& group) { return read_matrix_market(group, path, {block}); });
}

Error refusal(int ranks, std::string const& path, std::int64_t block = 0) {
  return common_error(ranks, [&](Group& group) { read_matrix_market(group, path, {block}); });
}

constexpr char const* small_symmetric =
    "%%MatrixMarket matrix coordinate real symmetric\n"
    "% a comment\n"
    "\n"
    "3 3 5\n"
    "1 1 4\n"
    "2 1 -1.5\n"
    "2 2 4e0\n"
    "3 2 -.25\n"
    "3 3 1.0E+01";
EntryMap const small{{{0, 0}, 4},    {{0, 1}, -1.5}, {{1, 0}, -1.5}, {{1, 1}, 4},
                     {{1, 2}, -.25}, {{2, 1}, -.25}, {{2, 2}, 10}};

TEST(MatrixMarket, HandMadeSymmetricFile) {
  Folder folder;
  auto const path = folder.write("a.mtx", small_symmetric);
  for (int ranks : {1, 2, 3}) EXPECT_EQ(read(ranks, path), small) << ranks;
}

TEST(MatrixMarket, EveryBlockSizeGivesTheSameMatrix) {
  Folder folder;
  auto const path = folder.write("a.mtx", small_symmetric);
  auto const gz = folder.write_gz("a.gz", small_symmetric);
  for (std::int64_t block = 1; block < 60; ++block) {
    for (int ranks : {1, 3}) {
      EXPECT_EQ(read(ranks, path, block), small) << block;
      EXPECT_EQ(read(ranks, gz, block), small) << block;
    }
  }
}

// Tapes and tar fill their last block with zeros; gzip passes over them too. Anything else is no gz data.
TEST(MatrixMarket, ZerosBehindGzData) {
  Folder folder;
  auto const gz = folder.write_gz("a.gz", small_symmetric);
  std::ifstream in(gz, std::ios::binary);
  std::string const packed((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t zeros : {std::size_t{1}, std::size_t{511}, std::size_t{100'000}}) {
    auto const padded = folder.write("padded.gz", packed + std::string(zeros, '\0'));
    for (int ranks : {1, 3}) EXPECT_EQ(read(ranks, padded), small) << zeros;
  }
  auto const glued = folder.write("glued.gz", packed + std::string(9, '\0') + "x");
  EXPECT_THROW(read(1, glued), Error);
}

TEST(MatrixMarket, GeneralUpperMixedCrlfBlankAndIntegerForms) {
  Folder folder;
  char const* const forms[] = {
      "%%MatrixMarket matrix coordinate real general\n3 3 7\n1 1 4\n1 2 -1.5\n2 1 -1.5\n2 2 4\n2 3 -0.25\n3 "
      "2 -0.25\n3 3 10\n",
      "%%MatrixMarket MATRIX Coordinate Real Symmetric\n3 3 5\n1 2 -1.5\n3 3 10\n3 2 -0.25\n2 2 4\n1 1 4\n",
      "%%MatrixMarket matrix coordinate double symmetric\r\n%\r\n3 3 5\r\n1 1 4\r\n2 1 -1.5\r\n\r\n2 2 "
      "4\r\n3 2 -0.25\r\n3 3 10\r\n\r\n",
      "%%MatrixMarket  matrix\tcoordinate real symmetric  \n  %x\n  3 3\t5  \n\n 1\t1 +4 \n2 1 -1.5\n   \n2  "
      "2 4\n3 2 -0.25\n3 3 10\n\n\n",
  };
  for (char const* text : forms) {
    auto const path = folder.write("a.mtx", text);
    for (int ranks : {1, 2, 3}) EXPECT_EQ(read(ranks, path), small) << text;
  }
  auto const integer = folder.write(
      "i.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 9007199254740992\n2 1 -7\n");
  EXPECT_EQ(read(2, integer), (EntryMap{{{0, 0}, 9007199254740992.0}, {{0, 1}, -7}, {{1, 0}, -7}}));
  auto const pattern =
      folder.write("p.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n");
  EXPECT_EQ(read(2, pattern), (EntryMap{{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}}));
}

// A random symmetric matrix as text, with the oracle made beside it.
std::string random_text(int seed, std::int64_t n, std::int64_t entries, bool general, EntryMap& entry_map) {
  std::mt19937_64 engine(static_cast<std::uint64_t>(seed));
  std::uniform_int_distribution<std::int64_t> index(0, n - 1);
  std::uniform_real_distribution<double> number(-1, 1);
  std::string body;
  std::int64_t lines = 0;
  auto const line = [&](std::int64_t i, std::int64_t j, double v) {
    char text[96];
    std::snprintf(text, sizeof text, "%lld %lld %.17g\n", static_cast<long long>(i + 1),
                  static_cast<long long>(j + 1), v);
    body += text;
    ++lines;
  };
  for (std::int64_t k = 0; k < entries; ++k) {
    auto const i = index(engine), j = index(engine);
    double const v = number(engine);
    if (!entry_map.emplace(std::pair(i, j), v).second) continue;
    entry_map[{j, i}] = v;
    line(i, j, v);
    if (general && i != j) line(j, i, v);
  }
  auto const size = std::to_string(n);
  return std::string("%%MatrixMarket matrix coordinate real ") + (general ? "general" : "symmetric") + "\n" +
         size + " " + size + " " + std::to_string(lines) + "\n" + body;
}

TEST(MatrixMarket, RandomMatricesEqualTheOracle) {
  Folder folder;
  for (int seed = 0; seed < 4; ++seed) {
    EntryMap entry_map;
    auto const text = random_text(seed, 150, 900, seed % 2 == 0, entry_map);
    auto const path = folder.write("r.mtx", text);
    auto const gz = folder.write_gz("r.mtx.gz", text);
    for (int ranks : {1, 2, 5}) {
      for (std::int64_t block : {499, 1 << 20}) {
        EXPECT_EQ(read(ranks, path, block), entry_map);
        EXPECT_EQ(read(ranks, gz, block), entry_map);
      }
    }
  }
}

TEST(MatrixMarket, ValuesThatFitAFloatAreKeptAsFloats) {
  Folder folder;
  auto const narrow =
      folder.write("n.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 0.5\n2 2 -3\n");
  auto const wide =
      folder.write("w.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 0.1\n2 2 -3\n");
  auto const group = single_group();
  auto const a = read_matrix_market(*group, narrow), b = read_matrix_market(*group, wide);
  EXPECT_EQ(b->stored_bytes() - a->stored_bytes(), 2 * 4);
  EXPECT_EQ(b->entries(), 2);
  EXPECT_EQ(b->find(0, 0), 0.1);
  EXPECT_EQ(b->find(0, 1), std::nullopt);
}

TEST(MatrixMarket, TheFirstBadLineIsTheOneReported) {
  Folder folder;
  std::string text = "%%MatrixMarket matrix coordinate real symmetric\n400 400 400\n";
  for (int i = 1; i <= 400; ++i) {
    bool const bad = i == 123 || i == 124 || i == 290 || i == 399;
    text += std::to_string(i) + " " + std::to_string(i) + (bad ? " x\n" : " 2.5\n");
  }
  for (bool gz : {false, true}) {
    auto const path = gz ? folder.write_gz("b.gz", text) : folder.write("b.mtx", text);
    for (int ranks : {1, 2, 3, 4}) {
      for (std::int64_t block : {7, 64, 0}) {
        auto const error = refusal(ranks, path, block);
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
        EXPECT_EQ(std::string(error.what()).find(path + ":125: \"x\" is not a number"), 0u) << error.what();
      }
    }
  }
}

TEST(MatrixMarket, AsymmetryIsFoundWhoeverHoldsTheMirror) {
  Folder folder;
  // 40 rows: two or three ranks split them; each case breaks one mirror.
  auto const text = [](int i, int j, char const* value) {
    std::string body;
    int lines = 0;
    for (int r = 1; r <= 40; ++r) {
      for (int c : {r - 20, r, r + 20}) {
        if (c < 1 || c > 40) continue;
        if (r == i && c == j && *value == '\0') continue;
        body += std::to_string(r) + " " + std::to_string(c) + " " + (r == i && c == j ? value : "1.5") + "\n";
        ++lines;
      }
    }
    return "%%MatrixMarket matrix coordinate real general\n40 40 " + std::to_string(lines) + "\n" + body;
  };
  for (int ranks : {1, 2, 3}) {
    EXPECT_EQ(read(ranks, folder.write("ok", text(0, 0, "2"))).size(), 80u);
    auto const differs = refusal(ranks, folder.write("d", text(30, 10, "1.6")));
    // Line 2 + 2 * 9 + 2: entry (10, 30), the lower one of the pair, is the second of row 10.
    EXPECT_NE(std::string(differs.what()).find("d:22: entry (10, 30) is 1.5 but (30, 10) is 1.6"),
              std::string::npos)
        << differs.what();
    auto const upper_only = refusal(ranks, folder.write("u", text(30, 10, "")));
    EXPECT_NE(std::string(upper_only.what()).find("u:22: entry (10, 30) is 1.5 but (30, 10) is missing"),
              std::string::npos)
        << upper_only.what();
    auto const lower_only = refusal(ranks, folder.write("l", text(10, 30, "")));
    EXPECT_NE(std::string(lower_only.what()).find("entry (30, 10) is 1.5 but (10, 30) is missing"),
              std::string::npos)
        << lower_only.what();
  }
}

// What is not stored is zero, so a zero needs no mirror; and it stands for no other entry's.
TEST(MatrixMarket, ZerosWithoutAMirrorAreSymmetric) {
  Folder folder;
  auto const text = [](std::string const& more, int lines) {
    std::string body;
    for (int r = 1; r <= 6; ++r) body += std::to_string(r) + " " + std::to_string(r) + " 2\n";
    return "%%MatrixMarket matrix coordinate real general\n6 6 " + std::to_string(6 + lines) + "\n" + body +
           more;
  };
  for (int ranks : {1, 2, 3}) {
    EXPECT_EQ(read(ranks, folder.write("above", text("1 6 0\n", 1))).size(), 7u);
    EXPECT_EQ(read(ranks, folder.write("below", text("6 1 -0\n5 2 0\n", 2))).size(), 8u);
    EXPECT_EQ(read(ranks, folder.write("both", text("1 6 0\n5 2 0\n", 2))).size(), 8u);
    // As many above as below.
    auto const lower = refusal(ranks, folder.write("lower", text("1 6 0\n5 2 1.5\n", 2)));
    EXPECT_NE(std::string(lower.what()).find("entry (5, 2) is 1.5 but (2, 5) is missing"), std::string::npos)
        << lower.what();
    auto const upper = refusal(ranks, folder.write("upper", text("2 5 1.5\n6 1 0\n", 2)));
    EXPECT_NE(std::string(upper.what()).find("entry (2, 5) is 1.5 but (5, 2) is missing"), std::string::npos)
        << upper.what();
    auto const zero = refusal(ranks, folder.write("zero", text("1 6 0\n6 1 1.5\n", 2)));
    EXPECT_NE(std::string(zero.what()).find("entry (1, 6) is 0 but (6, 1) is 1.5"), std::string::npos)
        << zero.what();
  }
}

TEST(MatrixMarket, FormsThatOtherProgramsWrite) {
  Folder folder;
  std::string const text = small_symmetric;
  auto const with = [&](std::string from, std::string const& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  std::string const fortran = with("2 2 4e0", "2 2 0.4D+01");
  std::string const forms[] = {
      with("%%MatrixMarket matrix", "%%matrixmarket matrix"),
      with("%%MatrixMarket matrix coordinate real symmetric",
           "%%MATRIXMARKET MATRIX Coordinate REAL Symmetric"),
      "\xef\xbb\xbf" + text,
      fortran,
      with("2 2 4e0", "2 2 +4.0d0"),
      with("2 1 -1.5", "2 1 -15.D-1"),
      with("3 3 1.0E+01", "3 3 1D1"),
      "\xef\xbb\xbf" + with("%%MatrixMarket matrix", "%%matrixmarket MATRIX"),
  };
  for (std::string const& form : forms) {
    for (int ranks : {1, 3}) {
      EXPECT_EQ(read(ranks, folder.write("a", form)), small) << form;
      EXPECT_EQ(read(ranks, folder.write_gz("a.gz", form)), small) << form;
    }
  }
  // The line is counted as an editor shows it.
  auto const marked = refusal(2, folder.write("m", "\xef\xbb\xbf" + with("2 1 -1.5", "2 1 x")));
  EXPECT_NE(std::string(marked.what()).find("m:6: \"x\" is not a number"), std::string::npos)
      << marked.what();
}

TEST(MatrixMarket, WhatCannotBeOpenedOrIsNoFileIsBadInput) {
  Folder folder;
  EXPECT_EQ(refusal(2, folder.file("absent.mtx")).code(), ErrorCode::bad_input);
  EXPECT_EQ(refusal(2, folder.file("")).code(), ErrorCode::bad_input);
  EXPECT_EQ(refusal(2, "/dev/null").code(), ErrorCode::bad_input);
  EXPECT_EQ(refusal(1, folder.write("a.mtx", small_symmetric), -1).code(), ErrorCode::usage);
}

void expect_collection_matrix(char const* name, std::int64_t rows, std::size_t entries) {
  auto const entry_map = read(2, std::string(HOSTLESS_MATRICES) + "/" + name);
  EXPECT_EQ(entry_map.size(), entries);
  EXPECT_EQ(entry_map.rbegin()->first, std::pair(rows - 1, rows - 1));
  for (auto const& [entry, value] : entry_map) ASSERT_EQ(entry_map.at({entry.second, entry.first}), value);
}
TEST(MatrixMarket, Bcsstk13) { expect_collection_matrix("bcsstk13.mtx.gz", 2003, 83883); }
TEST(MatrixMarket, Bcsstk16) { expect_collection_matrix("bcsstk16.mtx.gz", 4884, 290378); }

}  // namespace
