#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hostless/transport/group.hpp"

namespace hostless {

/// Entries [first, last) of a vector.
struct IndexRange {
  std::int64_t first, last;
};

/// Reads a vector of n entries from a Matrix Market array (real or integer, one column; plain or gz), a NumPy
/// .npy file (little-endian float64, C order, (n,) or (n, 1)) or a PETSc binary Vec, told apart by content.
///
/// ranges  what this rank wants, in the order it wants it; ranks may want the same entries
/// Returns the entries of all ranges, one range after the other.
/// Collective over group.
/// Errors  bad_input    the file holds no such vector, with file and line; NaN and infinite entries are
/// refused
///         usage        there is no such file, or a range lies outside [0, n)
///         environment  the disk or the memory fails
/// Cost    one parallel read; every rank holds its share of n for a while, and what it wants
std::vector<double> read_vector(Group& group, std::string const& path, std::int64_t n,
                                std::span<IndexRange const> ranges);

/// The same for entries [first, last).
std::vector<double> read_vector_share(Group& group, std::string const& path, std::int64_t n,
                                      std::int64_t first, std::int64_t last);

/// Writes a vector of n entries of which this rank has [first, first + mine.size()); the ranks' parts follow
/// each other. The ending of `path` says how: .npy, .mtx (Matrix Market array, 17 digits), .petsc (binary
/// Vec).
///
/// All ranks write at once, each at its own place; the file gets its name when it is whole.
/// Collective over group.
/// Errors  usage        another ending, parts that do not follow each other, or 2^31 entries for .petsc
///         environment  the disk fails
void write_vector(Group& group, std::string const& path, std::int64_t n, std::int64_t first,
                  std::span<double const> mine);

/// Errors  usage  `write_vector` would not know how to write `path`
void check_vector_ending(std::string const& path);

}  // namespace hostless
