#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/elements.hpp"

namespace hostless::files {

/// A .npy array: what its header says, checked against the bytes that are there.
struct NpyArray {
  ElementType type;
  bool text = false;           ///< of characters, `width` bytes a string
  std::int64_t width = 0;      ///< bytes of an element
  bool fortran_order = false;  ///< the first index runs fastest
  std::vector<std::int64_t> shape;
  std::int64_t count = 1;  ///< elements
  std::int64_t data = 0;   ///< byte where they begin
};

/// Reads and checks the header of a .npy file of any shape and any real, integer or boolean numbers, and the
/// length of what follows; strings too where `text` is asked for.
/// Errors  bad_input  everything else, by name
NpyArray npy_array(ByteSource& source, bool text = false);

/// The same for a vector: one index, or a second one of extent 1; or for an array of several columns.
NpyArray npy_vector(ByteSource& source, int columns = 1);

/// The header of a .npy file of little-endian numbers of 4 or 8 bytes.
std::string npy_array_header(std::vector<std::int64_t> const& shape, int value_bytes, bool fortran_order);

/// The header of a .npy file of n little-endian float64, or of n rows and `columns` of them, column by
/// column.
std::string npy_header(std::int64_t n, int columns = 1);

}  // namespace hostless::files
