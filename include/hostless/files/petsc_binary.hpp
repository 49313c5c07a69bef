#pragma once

#include <memory>
#include <string>

#include "hostless/base/rows.hpp"
#include "hostless/files/stored_rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Reads a sparse matrix that PETSc's MatView wrote to a binary viewer: AIJ, 32-bit indices, 64-bit reals,
/// big-endian. Objects behind the matrix are ignored. Checked to be symmetric in pattern and values.
///
/// Every rank reads its share_first rows and nothing else.
/// Collective over group.
/// Errors  bad_input    the file is not such a matrix: `file: problem (why). what to do`, with the row
///         usage        there is no such file
///         environment  the disk or the memory fails
/// Cost    one read of the file; the look-ups of check_symmetry
std::unique_ptr<StoredRows> read_petsc_matrix(Group& group, std::string const& path);

/// Writes `rows` so that PETSc's MatLoad reads it (32-bit indices), each rank its part; the file gets its
/// name when it is whole. Collective over group. Two walks over the rows. Errors  usage        2^31 rows or
/// entries, or more, which 32-bit indices cannot count
///         environment  the disk fails
void write_petsc_matrix(Group& group, std::string const& path, RowSource const& rows);

}  // namespace hostless
