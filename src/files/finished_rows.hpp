#pragma once

#include <string>

#include "hostless/files/stored_rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::files {

/// Ends the filling of this rank's rows of a binary file.
/// Errors  bad_input  an entry was given twice
void finish_rows(std::string const& path, StoredRows& rows);

/// What may be said of a matrix that is refused for `found`.
std::string tolerance_text(Asymmetry const& found, double tolerance);

/// Collective over group. transposed: rows are columns of what the file says. Sets only_rounded.
/// Errors  bad_input  the matrix is not symmetric (check_symmetry)
void require_symmetry(Group& group, std::string const& path, StoredRows& rows, double tolerance,
                      bool transposed = false);

}  // namespace hostless::files
