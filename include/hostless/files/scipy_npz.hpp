#pragma once

#include <memory>
#include <string>

#include "hostless/files/stored_rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Reads a sparse matrix that scipy.sparse.save_npz wrote, compressed or not: csr, csc, coo, bsr (square
/// blocks or not) or dia, of any real, integer or boolean numbers and any integers as indices. Checked by
/// check_symmetry, by symmetry_tolerance, where symmetry is required; so columns are read as rows then.
///
/// Every rank gets its share_first rows. Of a compressed file every rank unpacks all and keeps its own; the
/// checksums of members are verified first, each by one rank.
/// Collective over group.
/// Errors  bad_input    the file is not such a matrix, or damaged: `file: member: problem (why). what to do`
///         environment  the memory does not suffice
/// Cost    three reads of the file, all ranks together; of coo and compressed ones two more by every rank
std::unique_ptr<StoredRows> read_scipy_npz(Group& group, std::string const& path,
                                           SizesKnown const& known = {},
                                           Symmetry symmetry = Symmetry::required,
                                           double symmetry_tolerance = symmetry_rounding);

}  // namespace hostless
