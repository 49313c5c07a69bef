#pragma once
// A linear system in PETSc's binary files, for rivals that are built with a compiler alone: this header needs
// the standard library and nothing of hostless, so that a mistake of ours in reading cannot hide in both.

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hostless::bench {

/// A square sparse matrix by rows: offset has rows + 1 numbers.
struct CsrMatrix {
  std::vector<std::int32_t> offset, column;
  std::vector<double> value;
  std::int64_t rows() const { return static_cast<std::int64_t>(offset.size()) - 1; }
  std::int64_t nonzeros() const { return static_cast<std::int64_t>(value.size()); }
};

constexpr std::int32_t petsc_matrix = 1211216, petsc_vector = 1211214;

/// Turns numbers between the file's big-endian order and this machine's, both ways.
template <class T>
void swap_bytes(std::vector<T>& numbers) {
  if constexpr (std::endian::native == std::endian::big) return;
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static_assert(sizeof(T) == sizeof(Word));
  for (T& number : numbers) {
    auto word = std::bit_cast<Word>(number);
    if constexpr (sizeof(T) == 8) {
      word = __builtin_bswap64(word);
    } else {
      word = __builtin_bswap32(word);
    }
    number = std::bit_cast<T>(word);
  }
}

class SystemFile {
 public:
  SystemFile(std::string path, char const* mode)
      : path_(std::move(path)),
        file_(std::fopen(path_.c_str(), mode)) {  // bounded: a file that the comparison has written
    if (!file_) refuse(std::string(std::strerror(errno)) + " (nothing can be compared). Check the path");
  }
  template <class T>
  std::vector<T> read(std::int64_t count) {
    std::vector<T> numbers(static_cast<std::size_t>(count));
    if (std::fread(numbers.data(), sizeof(T), numbers.size(), file_.get()) != numbers.size())
      refuse("ends too early (it was cut short). Write it again");
    swap_bytes(numbers);
    return numbers;
  }
  template <class T>
  void write(std::vector<T> numbers) {
    swap_bytes(numbers);
    if (std::fwrite(numbers.data(), sizeof(T), numbers.size(), file_.get()) != numbers.size() ||
        std::fflush(file_.get()) != 0)
      refuse("cannot be written (the disk may be full). Make room");
  }
  /// Before anything is allocated by what a header says.
  void expect_bytes(std::int64_t bytes) const {
    auto const there = static_cast<std::int64_t>(std::filesystem::file_size(path_));
    if (there != bytes)
      refuse("has " + std::to_string(there) + " bytes (its header asks for " + std::to_string(bytes) +
             "). Write it again");
  }
  [[noreturn]] void refuse(std::string const& why) const {
    throw std::runtime_error(path_ + ": " + why + ".");
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Errors  std::runtime_error  no matrix of PETSc, not square, cut short, or rows that do not fit the header
inline CsrMatrix read_matrix(std::string const& path) {
  SystemFile file(path, "rb");
  auto const header = file.read<std::int32_t>(4);
  std::int64_t const rows = header[1], nonzeros = header[3];
  if (header[0] != petsc_matrix) file.refuse("is no PETSc matrix. Write it with `hostless generate`");
  if (rows < 1 || rows != header[2] || nonzeros < 0)
    file.refuse("is not a square sparse matrix. Give another");
  file.expect_bytes(16 + 4 * rows + 12 * nonzeros);
  auto const length = file.read<std::int32_t>(rows);
  CsrMatrix a;
  a.offset.push_back(0);
  std::int64_t end = 0;
  for (std::int32_t const n : length) {
    if (n < 0 || (end += n) > nonzeros) file.refuse("has rows that do not fit its header. Write it again");
    a.offset.push_back(static_cast<std::int32_t>(end));
  }
  if (end != nonzeros) file.refuse("has fewer entries than its header says. Write it again");
  a.column = file.read<std::int32_t>(nonzeros);
  a.value = file.read<double>(nonzeros);
  if (std::ranges::any_of(a.column, [&](std::int32_t c) { return c < 0 || c >= rows; }))
    file.refuse("has a column outside the matrix. Write it again");
  return a;
}

/// Errors  std::runtime_error  no vector of PETSc, of another length, or cut short
inline std::vector<double> read_vector(std::string const& path, std::int64_t rows) {
  SystemFile file(path, "rb");
  auto const header = file.read<std::int32_t>(2);
  if (header[0] != petsc_vector) file.refuse("is no PETSc vector. Give the right-hand side");
  if (header[1] != rows)
    file.refuse("has " + std::to_string(header[1]) + " numbers (the matrix has " + std::to_string(rows) +
                " rows). Give the right-hand side of this matrix");
  file.expect_bytes(8 + 8 * rows);
  return file.read<double>(rows);
}

inline void write_vector(std::string const& path, std::vector<double> const& numbers) {
  SystemFile file(path, "wb");
  file.write(std::vector<std::int32_t>{petsc_vector, static_cast<std::int32_t>(numbers.size())});
  file.write(numbers);
}

/// |b - A x| / |b| by plain loops on the host: nothing of the solver under test takes part.
inline double relative_residual(CsrMatrix const& a, std::vector<double> const& x,
                                std::vector<double> const& b) {
  long double residual = 0, norm = 0;
  for (std::size_t row = 0; row < b.size(); ++row) {
    double r = b[row];
    for (std::int32_t k = a.offset[row]; k < a.offset[row + 1]; ++k)
      r -= a.value[static_cast<std::size_t>(k)] *
           x[static_cast<std::size_t>(a.column[static_cast<std::size_t>(k)])];
    residual += static_cast<long double>(r) * r;
    norm += static_cast<long double>(b[row]) * b[row];
  }
  return static_cast<double>(std::sqrt(residual / norm));
}

}  // namespace hostless::bench
