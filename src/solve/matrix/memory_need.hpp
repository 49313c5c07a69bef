#pragma once
// Whether a problem can fit, found out before it is made: the kernel gives memory that it does not have, and
// an impossible size would work for hours before anybody says so.

#include <algorithm>
#include <string>

#include "hostless/solve/matrix.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Bytes of one rank, counted from below: what is refused for them can never be.
struct MemoryNeed {
  double matrix = 0;   ///< in its layout
  double vectors = 0;  ///< of the method
  double setup = 0;    ///< beside the matrix while it is laid out: what was read, rows on their way
  /// What was read is gone when vectors are made.
  double total() const { return matrix + std::max(setup, vectors); }
};

/// Of a rank with so many rows and entries of a symmetric matrix (of which some layouts hold one triangle).
MemoryNeed least_need(double rows, double entries, MatrixOptions const& options, int ranks, int vectors);

/// Refuses `what` where the ranks of a machine, or those of a process, need more than it has.
/// Collective; the same error on every rank.
///
/// Errors  environment  with the number; not with HOSTLESS_SIZE_CHECK=0
void require_memory(Group& group, MemoryNeed const& mine, std::string const& what);

/// False with HOSTLESS_SIZE_CHECK=0.
bool sizes_are_checked();

}  // namespace hostless
