#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hostless/transport/group.hpp"

namespace hostless {

/// Entries [first, last) of a vector.
struct IndexRange {
  std::int64_t first, last;
};

/// Reads a vector of n entries from a Matrix Market array (real or integer; plain or gz), a NumPy .npy file
/// (reals of 2, 4 or 8 bytes, integers, booleans; any byte order) or a PETSc binary Vec (32- and 64-bit
/// indices, single and double precision), told apart by content. One column, which may lie as a row.
///
/// ranges  what this rank wants, in the order it wants it; ranks may want the same entries
/// Returns the entries of all ranges, one range after the other.
/// Collective over group.
/// Errors  bad_input    the file holds no such vector, with file and line; NaN and infinite entries are
/// refused; or the file cannot be opened or read, or is no regular file
///         usage        a range lies outside [0, n)
///         environment  the memory does not suffice
/// Cost    one parallel read; every rank holds its share of n for a while, and what it wants
std::vector<double> read_vector(Group& group, std::string const& path, std::int64_t n,
                                std::span<IndexRange const> ranges);

/// The same for entries [first, last).
std::vector<double> read_vector_share(Group& group, std::string const& path, std::int64_t n,
                                      std::int64_t first, std::int64_t last);

/// The shape of several vectors of n entries.
struct RowsAndColumns {
  std::int64_t rows;
  int columns;
};

/// The same for rows [first, last) of an array of several columns, one column after the other: a Matrix
/// Market array (a square one may be symmetric), or a .npy file of shape (rows, columns) in either order of
/// axes. Errors  as read_vector; bad_input  another number of columns, or a PETSc Vec, which has one
std::vector<double> read_columns_share(Group& group, std::string const& path, RowsAndColumns shape,
                                       std::int64_t first, std::int64_t last);

/// The shape of the vector, or of the array of several columns, in a file of the kinds that read_vector and
/// read_columns_share know: a vector, also one that lies in a row, has one column. Nothing where the file
/// holds a matrix instead. Collective over group.
/// Errors  bad_input  as read_vector, as far as the header goes
std::optional<RowsAndColumns> vector_shape(Group& group, std::string const& path);

/// Writes a vector of n entries of which this rank has [first, first + mine.size()); the ranks' parts follow
/// each other. The ending of `path` says how: .npy, .mtx (Matrix Market array, 17 digits), .petsc (binary
/// Vec).
///
/// All ranks write at once, each at its own place; the file gets its name when it is whole.
/// Collective over group.
/// Errors  usage        another ending, parts that do not follow each other, 2^31 entries for .petsc, or none
///                      for .mtx
///         environment  the disk fails
void write_vector(Group& group, std::string const& path, std::int64_t n, std::int64_t first,
                  std::span<double const> mine);

/// The same for several columns, `mine` column after column: .npy in Fortran's order, or .mtx.
/// Errors  as write_vector; usage  several columns for .petsc
void write_columns(Group& group, std::string const& path, RowsAndColumns shape, std::int64_t first,
                   std::span<double const> mine);

/// Errors  usage  `write_columns` would not know how to write `path`
void check_vector_ending(std::string const& path, int columns = 1);

}  // namespace hostless
