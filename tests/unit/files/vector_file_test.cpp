#include "hostless/files/vector_file.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>

#include "samples.hpp"

namespace {

using namespace hostless;
using samples::common_error;
using samples::Folder;

std::vector<double> random_vector(std::int64_t n) {
  std::mt19937_64 engine(3);
  std::uniform_int_distribution<std::uint64_t> bits;
  std::vector<double> v;
  while (static_cast<std::int64_t>(v.size()) < n) {
    double const x = std::bit_cast<double>(bits(engine));
    if (std::isfinite(x)) v.push_back(x);
  }
  return v;
}

void expect_shape(std::string const& path, std::int64_t rows, int columns) {
  auto const shape = vector_shape(*single_group(), path);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->rows, rows);
  EXPECT_EQ(shape->columns, columns);
}

// Each rank asks for its share and checks it against the whole.
void expect_vector(int ranks, std::string const& path, std::vector<double> const& whole) {
  auto const n = static_cast<std::int64_t>(whole.size());
  run_on_threads(ranks, [&](Group& group) {
    std::int64_t const first = piece(group.rank(), ranks, n), last = piece(group.rank() + 1, ranks, n);
    EXPECT_EQ(read_vector_share(group, path, n, first, last),
              (std::vector<double>(whole.begin() + first, whole.begin() + last)));
  });
}

Error refusal(int ranks, std::string const& path, std::int64_t n) {
  return common_error(ranks, [&](Group& group) { read_vector_share(group, path, n, 0, n); });
}

// The bytes of a .npy file, made by hand.
std::string npy(std::string const& dictionary, std::vector<double> const& values, int version = 1) {
  std::string bytes = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  auto const length = dictionary.size();
  for (int k = 0; k < (version == 1 ? 2 : 4); ++k) bytes += static_cast<char>((length >> (8 * k)) & 255);
  bytes += dictionary;
  bytes.append(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(double));
  return bytes;
}

TEST(VectorFile, MarketArrays) {
  Folder folder;
  char const* const forms[] = {
      "%%MatrixMarket matrix array real general\n% x\n3 1\n1\n-2.5\n1e3\n",
      "%%MatrixMarket matrix array real general\r\n3 1\r\n1\r\n\r\n -2.5 \r\n1000",
  };
  for (char const* text : forms) {
    for (int ranks : {1, 2, 3}) {
      expect_vector(ranks, folder.write("v", text), {1, -2.5, 1000});
      expect_vector(ranks, folder.write_gz("z", text), {1, -2.5, 1000});
    }
  }
  expect_vector(2, folder.write("i", "%%MatrixMarket matrix array integer general\n2 1\n7\n-8\n"), {7, -8});
}

TEST(VectorFile, LargeArraysSpanManyBlocks) {
  Folder folder;
  auto const whole = random_vector(40000);  // about 1 MB of text: several rounds of blocks on each rank
  std::string text = "%%MatrixMarket matrix array real general\n40000 1\n";
  for (double const v : whole) {
    char line[40];
    std::snprintf(line, sizeof line, "%.17g\n", v);
    text += line;
  }
  auto const plain = folder.write("v.mtx", text), gz = folder.write_gz("v.gz", text);
  for (int ranks : {1, 2, 3}) {
    expect_vector(ranks, plain, whole);
    expect_vector(ranks, gz, whole);
  }
  auto const more = refusal(3, folder.write("more", text + "4\n5\n"), 40000);
  EXPECT_NE(std::string(more.what()).find("more:40003: one more than"), std::string::npos) << more.what();
  auto const less =
      refusal(3, folder.write("less", text.substr(0, text.rfind('\n', text.size() - 2) + 1)), 40000);
  EXPECT_NE(std::string(less.what()).find("less:40002: the file ends after 39999 of 40000"),
            std::string::npos)
      << less.what();
}

TEST(VectorFile, NpyForms) {
  Folder folder;
  std::vector<double> const v{1, -2.5, 1000};
  char const* const forms[] = {
      "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }           \n",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1)}\n",
      "{\"shape\": (3,1,), \"descr\":\"<f8\",\"fortran_order\":False,}",
  };
  for (char const* form : forms) {
    for (int version : {1, 2, 3}) {
      for (int ranks : {1, 2, 3}) expect_vector(ranks, folder.write("v", npy(form, v, version)), v);
    }
  }
}

std::string as_bytes(std::vector<std::uint64_t> const& bits, std::size_t width, bool big_endian) {
  std::string bytes;
  for (std::uint64_t const word : bits) {
    for (std::size_t k = 0; k < width; ++k)
      bytes += static_cast<char>(word >> (8 * (big_endian ? width - 1 - k : k)) & 255);
  }
  return bytes;
}

TEST(VectorFile, NpyOfEveryType) {
  Folder folder;
  std::uint64_t const minus = ~std::uint64_t{0};
  struct {
    char const* type;
    std::size_t width;
    std::vector<std::uint64_t> bits;
    std::vector<double> values;
  } const all[] = {
      {"f8", 8, {0x3ff0000000000000, 0xc004000000000000, 0}, {1, -2.5, 0}},
      {"f4", 4, {0x3f800000, 0xc0200000, 1}, {1, -2.5, 0x1p-149}},
      {"f2", 2, {0x3c00, 0xc100, 1, 0x7bff}, {1, -2.5, 0x1p-24, 65504}},
      {"i8", 8, {1, minus - 1, std::uint64_t{1} << 53}, {1, -2, 0x1p53}},
      {"i4", 4, {1, minus - 1, 0x80000000}, {1, -2, -0x1p31}},
      {"i2", 2, {1, minus - 1, 0x7fff}, {1, -2, 32767}},
      {"i1", 1, {1, minus - 1, 0x80}, {1, -2, -128}},
      {"u8", 8, {1, 0, 7}, {1, 0, 7}},
      {"u4", 4, {1, 0xffffffff, 7}, {1, 0x1p32 - 1, 7}},
      {"u2", 2, {1, 0xffff}, {1, 65535}},
      {"u1", 1, {1, 0xff}, {1, 255}},
      {"b1", 1, {1, 0, 1}, {1, 0, 1}},
  };
  for (auto const& one : all) {
    for (char const order : one.width == 1 ? std::string("|") : std::string("<>")) {
      auto const n = std::to_string(one.values.size());
      for (std::string const& shape : {"(" + n + ",)", "(" + n + ", 1)", "(1, " + n + ")"}) {
        for (char const* fortran : {"False", "True"}) {
          auto const header = "{'descr': '" + std::string(1, order) + one.type +
                              "', 'fortran_order': " + fortran + ", 'shape': " + shape + "}\n";
          auto const path = folder.write("v", npy(header, {}) + as_bytes(one.bits, one.width, order == '>'));
          for (int ranks : {1, 2}) expect_vector(ranks, path, one.values);
          expect_shape(path, static_cast<std::int64_t>(one.values.size()), 1);
        }
      }
    }
  }
}

TEST(VectorFile, PetscOfOtherWidths) {
  Folder folder;
  std::string const id = as_bytes({1211214}, 4, true), wide_id = as_bytes({1211214}, 8, true);
  std::string const three = as_bytes({3}, 4, true), wide_three = as_bytes({3}, 8, true);
  std::string const doubles = as_bytes({0x3ff0000000000000, 0xc004000000000000, 0}, 8, true);
  std::string const floats = as_bytes({0x3f800000, 0xc0200000, 0}, 4, true);
  for (std::string const& bytes :
       {id + three + floats, id + three + floats + id + three, wide_id + wide_three + doubles,
        wide_id + wide_three + floats, id + three + doubles + id}) {
    auto const path = folder.write("v", bytes);
    for (int ranks : {1, 2}) expect_vector(ranks, path, {1, -2.5, 0});
    expect_shape(path, 3, 1);
  }
}

TEST(VectorFile, ARowIsAVectorToo) {
  Folder folder;
  auto const path = folder.write("v", "%%matrixmarket Matrix ARRAY real general\n1 3\n1\n-2.5D0\n1d+3\n");
  for (int ranks : {1, 3}) expect_vector(ranks, path, {1, -2.5, 1000});
  expect_shape(path, 3, 1);
  auto const matrix = folder.write("m", "%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 1\n");
  EXPECT_FALSE(vector_shape(*single_group(), matrix));
}

// scipy's mmwrite leaves out the upper triangle of a square array that happens to be symmetric.
TEST(VectorFile, SymmetricArrays) {
  Folder folder;
  std::string const head = "%%MatrixMarket matrix array real symmetric\n%\n";
  auto const path = folder.write("s", head + "3 3\n1\n2\n3\n4\n5\n6\n");
  std::vector<double> const whole{1, 2, 3, 2, 4, 5, 3, 5, 6};  // column after column
  expect_shape(path, 3, 3);
  for (int const ranks : {1, 2, 3, 4}) {
    run_on_threads(ranks, [&](Group& group) {
      std::int64_t const first = piece(group.rank(), ranks, 3), last = piece(group.rank() + 1, ranks, 3);
      std::vector<double> mine;
      for (int c = 0; c < 3; ++c)
        mine.insert(mine.end(), whole.begin() + 3 * c + first, whole.begin() + 3 * c + last);
      EXPECT_EQ(read_columns_share(group, path, {3, 3}, first, last), mine);
    });
  }
  expect_vector(2, folder.write("one", head + "1 1\n7\n"), {7});
  auto const wide = folder.write("wide", head + "3 2\n1\n2\n3\n4\n5\n6\n");
  (void)common_error(2, [&](Group& group) { (void)read_columns_share(group, wide, {3, 2}, 0, 3); });
}

TEST(VectorFile, ShapesOfSeveralColumns) {
  Folder folder;
  expect_shape(
      folder.write("m", "%%MatrixMarket matrix array real general\n% two columns\n3 2\n1\n2\n3\n4\n5\n6\n"),
      3, 2);
  expect_shape(folder.write("c", "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n"), 3, 1);
  for (char const* order : {"False", "True"}) {
    std::string const header =
        std::string("{'descr': '<f4', 'fortran_order': ") + order + ", 'shape': (2, 3)}\n";
    expect_shape(folder.write("n", npy(header, {}) + as_bytes({1, 2, 3, 4, 5, 6}, 4, false)), 2, 3);
  }
  auto const cube =
      folder.write("q", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3)}\n", {}) +
                            as_bytes({1, 2, 3, 4, 5, 6}, 4, false));
  EXPECT_THROW((void)vector_shape(*single_group(), cube), Error);
}

TEST(VectorFile, NumbersThatAreNoneAreNamedByRowAndColumn) {
  Folder folder;
  double const none = std::nan("");
  for (bool const fortran : {false, true}) {
    std::string const header = std::string("{'descr': '<f8', 'fortran_order': ") +
                               (fortran ? "True" : "False") + ", 'shape': (2, 3)}\n";
    auto const path = folder.write("n", npy(header, {1, 2, 3, none, 5, 6}));
    for (int ranks : {1, 2}) {
      Error const said = common_error(ranks, [&](Group& group) {
        (void)read_columns_share(group, path, {2, 3}, 0, 2);
      });
      std::string const words = fortran ? ": row 2 of column 2 is nan" : ": row 2 of column 1 is nan";
      EXPECT_NE(std::string(said.what()).find(words), std::string::npos) << said.what();
    }
  }
}

TEST(VectorFile, WrittenFilesReadBackInEveryBit) {
  Folder folder;
  auto const whole = random_vector(1000);
  for (char const* name : {"v.npy", "v.mtx", "v.petsc"}) {
    auto const path = folder.file(name);
    std::string first_bytes;
    for (int ranks : {1, 2, 3}) {
      run_on_threads(ranks, [&](Group& group) {
        std::int64_t const first = piece(group.rank(), ranks, 1000),
                           last = piece(group.rank() + 1, ranks, 1000);
        write_vector(group, path, 1000, first,
                     std::span(whole).subspan(static_cast<std::size_t>(first),
                                              static_cast<std::size_t>(last - first)));
      });
      if (first_bytes.empty()) first_bytes = samples::content(path);
      EXPECT_EQ(samples::content(path), first_bytes);
      expect_vector(ranks, path, whole);
    }
  }
  EXPECT_EQ(folder.files(), 3u);
}

TEST(VectorFile, WrittenBytesAreAsSpecified) {
  Folder folder;
  auto const group = single_group();
  std::vector<double> const v{1, -0.1};
  write_vector(*group, folder.file("a.mtx"), 2, 0, v);
  EXPECT_EQ(
      samples::content(folder.file("a.mtx")),
      "%%MatrixMarket matrix array real general\n2 1\n  1.0000000000000000e+00\n -1.0000000000000001e-01\n");
  write_vector(*group, folder.file("a.npy"), 2, 0, v);
  auto const bytes = samples::content(folder.file("a.npy"));
  EXPECT_EQ(bytes.size(), 128u + 16u);
  EXPECT_EQ(
      bytes,
      npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }" + std::string(60, ' ') + "\n", v));
  write_vector(*group, folder.file("a.petsc"), 2, 0, v);
  EXPECT_EQ(
      samples::content(folder.file("a.petsc")),
      std::string(
          "\x00\x12\x7b\x4e\x00\x00\x00\x02\x3f\xf0\x00\x00\x00\x00\x00\x00\xbf\xb9\x99\x99\x99\x99\x99\x9a",
          24));
}

TEST(VectorFile, RangesInAnyOrder) {
  Folder folder;
  std::vector<double> whole(100);
  std::iota(whole.begin(), whole.end(), 0.0);
  auto const path = folder.file("v.npy");
  write_vector(*single_group(), path, 100, 0, whole);
  for (int ranks : {1, 2, 3}) {
    run_on_threads(ranks, [&](Group& group) {
      std::int64_t const r = group.rank();
      std::vector<IndexRange> const ranges{{90 + r, 91 + r}, {0, 0}, {10, 70}, {r, r + 2}};
      std::vector<double> expected{90.0 + static_cast<double>(r)};
      for (int k = 10; k < 70; ++k) expected.push_back(k);
      expected.push_back(static_cast<double>(r));
      expected.push_back(static_cast<double>(r + 1));
      EXPECT_EQ(read_vector(group, path, 100, ranges), expected);
      EXPECT_TRUE(read_vector(group, path, 100, {}).empty());
    });
  }
  for (IndexRange const bad : {IndexRange{-1, 3}, IndexRange{5, 4}, IndexRange{90, 101}}) {
    auto const error = common_error(2, [&](Group& group) {
      read_vector_share(group, path, 100, group.rank() == 0 ? 0 : bad.first,
                        group.rank() == 0 ? 1 : bad.last);
    });
    EXPECT_EQ(error.code(), ErrorCode::usage);
  }
}

TEST(VectorFile, PartsMustFollowEachOther) {
  Folder folder;
  std::vector<double> const v(3);
  auto const write = [&](int gap, std::int64_t n, char const* name) {
    return common_error(
        2, [&](Group& group) { write_vector(group, folder.file(name), n, (3 + gap) * group.rank(), v); });
  };
  EXPECT_EQ(write(1, 6, "a.npy").code(), ErrorCode::usage);
  EXPECT_EQ(write(0, 7, "a.npy").code(), ErrorCode::usage);
  EXPECT_EQ(write(0, 6, "a.txt").code(), ErrorCode::usage);
  EXPECT_EQ(write(0, std::int64_t{1} << 31, "a.petsc").code(), ErrorCode::usage);
  (void)common_error(2, [&](Group& group) { write_vector(group, folder.file("a.mtx"), 0, 0, {}); });
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
