#pragma once

#include <string>

#include "hostless/files/stored_rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::files {

/// Ends the filling of this rank's rows of a binary file.
/// Errors  bad_input  an entry was given twice
void finish_rows(std::string const& path, StoredRows& rows);

/// Collective over group. transposed: rows are columns of what the file says.
/// Errors  bad_input  the matrix is not symmetric (check_symmetry)
void require_symmetry(Group& group, std::string const& path, StoredRows const& rows, bool transposed = false);

}  // namespace hostless::files
