#pragma once
// Numbers of any width and byte order, one after the other: what arrays of NumPy and objects of PETSc hold.

#include <cstdint>
#include <vector>

#include "files/byte_source.hpp"

namespace hostless::files {

struct ElementType {
  enum class Kind : std::uint8_t { boolean, integer, natural, real };
  Kind kind = Kind::real;
  int bytes = 8;  ///< 1, 2, 4 or 8
  bool big_endian = false;
};

/// Elements [first, first + count) of those that lie from byte `begin` on, read through a buffer.
class ElementReader {
 public:
  ElementReader(ByteSource& source, ElementType type, std::int64_t begin, std::int64_t first,
                std::int64_t count)
      : source_(source), type_(type), begin_(begin), at_(first), left_(count) {}
  /// The next one as a double.
  /// Errors  bad_input  the source ends before it, or it is an integer that no double holds
  double real();
  /// The next one of integers; what does not fit becomes the largest or the smallest.
  /// Errors  bad_input  the source ends before it
  std::int64_t whole();

 private:
  std::uint64_t bits();
  void refill();
  ByteSource& source_;
  ElementType type_;
  std::int64_t begin_, at_, left_;  // of elements: the next to load, and how many are left to load
  std::vector<std::byte> buffer_;
  std::size_t next_ = 0;
};

}  // namespace hostless::files
