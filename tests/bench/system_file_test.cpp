#include "system_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace hostless::bench {
namespace {

// The matrix (4 -1; -1 3), the vector (1, -2): PETSc's bytes, written out by hand.
std::string const matrix_bytes{
    "\x00\x12\x7b\x50\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x04"
    "\x00\x00\x00\x02\x00\x00\x00\x02"
    "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"
    "\x40\x10\x00\x00\x00\x00\x00\x00\xbf\xf0\x00\x00\x00\x00\x00\x00"
    "\xbf\xf0\x00\x00\x00\x00\x00\x00\x40\x08\x00\x00\x00\x00\x00\x00",
    72};
std::string const vector_bytes{
    "\x00\x12\x7b\x4e\x00\x00\x00\x02"
    "\x3f\xf0\x00\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00",
    24};

class SystemFiles : public testing::Test {
 protected:
  SystemFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "hostless-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~SystemFiles() override { std::filesystem::remove_all(folder_); }
  std::string write(std::string const& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    return path();
  }
  std::string path() const { return (folder_ / "file.petsc").string(); }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Replaces one byte.
  static std::string with(std::string bytes, std::size_t at, char byte) {
    bytes.at(at) = byte;
    return bytes;
  }

 private:
  std::filesystem::path folder_;
};

template <class Read>
std::string refusal(Read const& read) {
  try {
    read();
  } catch (std::runtime_error const& e) {
    return e.what();
  }
  return "accepted";
}

TEST_F(SystemFiles, AMatrixIsReadNumberByNumber) {
  CsrMatrix const a = read_matrix(write(matrix_bytes));
  EXPECT_EQ(a.rows(), 2);
  EXPECT_EQ(a.nonzeros(), 4);
  EXPECT_EQ(a.offset, (std::vector<std::int32_t>{0, 2, 4}));
  EXPECT_EQ(a.column, (std::vector<std::int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(a.value, (std::vector<double>{4, -1, -1, 3}));
}

TEST_F(SystemFiles, AVectorIsReadAndWrittenByteByByte) {
  std::vector<double> const numbers = read_vector(write(vector_bytes), 2);
  EXPECT_EQ(numbers, (std::vector<double>{1, -2}));
  write_vector(path(), numbers);
  EXPECT_EQ(content(), vector_bytes);
}

TEST_F(SystemFiles, DamagedMatricesAreRefused) {
  auto const said = [&](std::string const& bytes) { return refusal([&] { read_matrix(write(bytes)); }); };
  EXPECT_NE(said(vector_bytes).find("is no PETSc matrix"), std::string::npos);
  EXPECT_NE(said(matrix_bytes.substr(0, 10)).find("ends too early"), std::string::npos);
  EXPECT_NE(said(matrix_bytes.substr(0, 71)).find("71 bytes (its header asks for 72)"), std::string::npos);
  EXPECT_NE(said(matrix_bytes + "x").find("73 bytes (its header asks for 72)"), std::string::npos);
  EXPECT_NE(said(with(matrix_bytes, 11, 3)).find("not a square"), std::string::npos);
  EXPECT_NE(said(with(matrix_bytes, 19, 3)).find("do not fit its header"), std::string::npos);
  EXPECT_NE(said(with(matrix_bytes, 16, '\x80')).find("do not fit its header"), std::string::npos);
  EXPECT_NE(said(with(matrix_bytes, 19, 1)).find("fewer entries than its header says"), std::string::npos);
  EXPECT_NE(said(with(matrix_bytes, 27, 2)).find("a column outside the matrix"), std::string::npos);
  EXPECT_NE(refusal([&] { read_matrix(path() + "-not"); }).find("No such file"), std::string::npos);
}

TEST_F(SystemFiles, DamagedVectorsAreRefused) {
  auto const said = [&](std::string const& bytes, std::int64_t rows) {
    return refusal([&] { read_vector(write(bytes), rows); });
  };
  EXPECT_NE(said(matrix_bytes, 2).find("is no PETSc vector"), std::string::npos);
  EXPECT_NE(said(vector_bytes, 3).find("2 numbers (the matrix has 3 rows)"), std::string::npos);
  EXPECT_NE(said(vector_bytes.substr(0, 23), 2).find("23 bytes"), std::string::npos);
}

TEST_F(SystemFiles, TheResidualIsTheTrueOne) {
  CsrMatrix const a = read_matrix(write(matrix_bytes));
  // b - A (1, 1) = (3, 2) - (3, 2); b - A (0, 1) = (3, 2) - (-1, 3)
  EXPECT_EQ(relative_residual(a, {1, 1}, {3, 2}), 0);
  EXPECT_DOUBLE_EQ(relative_residual(a, {0, 1}, {3, 2}), std::sqrt(17.0 / 13.0));
}

}  // namespace
}  // namespace hostless::bench
