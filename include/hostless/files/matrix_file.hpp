#pragma once

#include <memory>
#include <string>

#include "hostless/files/stored_rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Reads a matrix from a file of any kind that hostless knows, told by its first bytes and never by its name:
/// Matrix Market (plain or gz), PETSc binary or scipy's .npz. See read_matrix_market, read_petsc_matrix and
/// read_scipy_npz. Where symmetry is required, entries may be symmetry_tolerance from their mirrors
/// (symmetry_rounding says of what; StoredRows::only_rounded), kept as they are. Collective over group.
std::unique_ptr<StoredRows> read_matrix(Group& group, std::string const& path, SizesKnown const& known = {},
                                        Symmetry symmetry = Symmetry::required,
                                        double symmetry_tolerance = symmetry_rounding);

}  // namespace hostless
