#pragma once
// Whom a communicator's neighbourhood collectives are between.

#include <mpi.h>

#include <optional>
#include <vector>

namespace hostless::preload {

/// In the order of blocks; MPI_PROC_NULL: a block without a neighbour.
struct Neighbours {
  std::vector<int> sources, destinations;
  bool repeats() const;  ///< one of them occurs twice in a list
};

/// Of this rank; empty: the communicator has no topology, or is none. Local.
std::optional<Neighbours> neighbours_of(MPI_Comm comm);

}  // namespace hostless::preload
