#pragma once

#include <memory>
#include <string>

#include "hostless/base/rows.hpp"
#include "hostless/files/stored_rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Reads a sparse matrix that PETSc's MatView wrote to a binary viewer: AIJ, indices of 32 or 64
/// bits, single or double precision, big-endian. Nothing in the file names the precision: values are followed
/// by the end of the file or by another object, which tells. Objects behind the matrix are ignored. Checked
/// by check_symmetry, by symmetry_tolerance, where symmetry is required.
///
/// Every rank reads its share_first rows and nothing else.
/// Collective over group.
/// Errors  bad_input    the file is not such a matrix: `file: problem (why). what to do`, with the row
///                      or it cannot be opened or read, or is no regular file
///         environment  the memory does not suffice
/// Cost    one read of the file; the look-ups of check_symmetry
std::unique_ptr<StoredRows> read_petsc_matrix(Group& group, std::string const& path,
                                              SizesKnown const& known = {},
                                              Symmetry symmetry = Symmetry::required,
                                              double symmetry_tolerance = symmetry_rounding);

/// Writes `rows` so that PETSc's MatLoad reads it (32-bit indices), each rank its part; the file gets its
/// name when it is whole. Collective over group. Two walks over the rows. Errors  usage        2^31 rows or
/// entries, or more, which 32-bit indices cannot count
///         environment  the disk fails
void write_petsc_matrix(Group& group, std::string const& path, RowSource const& rows);

}  // namespace hostless
