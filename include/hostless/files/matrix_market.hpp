#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hostless/base/rows.hpp"
#include "hostless/files/stored_rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// How a Matrix Market file is read.
struct MatrixMarketOptions {
  /// Text that a rank holds at a time; 0: a 64th of its share, between 64 KiB and 2 MiB. Results do not
  /// depend on it.
  std::int64_t block_bytes = 0;
};

/// Reads a sparse matrix from a Matrix Market file, plain or gz (found out by content).
///
/// Coordinates; real, integer or pattern (every value 1); symmetric (either triangle, no entry in both), or
/// general and then checked (check_symmetry, by symmetry_tolerance) where symmetry is required. Every rank gets its share_first
/// rows, both triangles.
///
/// A plain file is read by byte ranges, one a rank; of a gz file every rank decompresses all and reads its
/// turns. Two passes: the first checks every line and counts the entries of every row, the second sends each
/// entry to the owner of its row. No rank ever holds more than its rows and a few blocks, and nothing is
/// allocated because the header says so.
///
/// Collective over group.
/// Errors  bad_input    the file is not such a matrix: `file:line: problem (why). what to do`, the same on
/// every rank,
///                      for the first bad line
///                      or it cannot be opened or read, or is no regular file
///         environment  the memory does not suffice
/// Cost    two reads of the text; up to 24 bytes a line sent in each pass, twice that for symmetric files
std::unique_ptr<StoredRows> read_matrix_market(Group& group, std::string const& path,
                                               MatrixMarketOptions const& options = {},
                                               SizesKnown const& known = {},
                                               Symmetry symmetry = Symmetry::required,
                                               double symmetry_tolerance = symmetry_rounding);

/// Writes `rows` as Matrix Market coordinates, row by row, each value with the fewest digits (17 at most)
/// that read back as the same bits. Symmetry::required: real symmetric, the lower triangle; the matrix must
/// be symmetric, the upper triangle is not looked at. Symmetry::any: real general, both.
///
/// The file gets its name when it is whole.
/// Collective over group. All ranks write at once, each at its own place, which costs two walks over the
/// rows. Errors  environment  the disk fails
void write_matrix_market(Group& group, std::string const& path, RowSource const& rows,
                         Symmetry symmetry = Symmetry::required);

}  // namespace hostless
