#pragma once
// MPI's own neighbourhood collectives, which ours are held against. Nothing is carried by them.

#include <cstddef>
#include <memory>
#include <span>

#include "hostless/transport/mpi.hpp"

namespace hostless {

class LibraryNeighbors {
 public:
  /// Collective.
  virtual ~LibraryNeighbors() = default;
  /// MPI_Neighbor_allgather. Collective; blocks, without a deadline: a lost rank makes the launcher end all.
  /// send     the block of this rank
  /// receive  [sources] blocks, each as long
  virtual void allgather(std::span<std::byte const> send, std::span<std::byte> receive) = 0;
  /// MPI_Neighbor_allgatherv of MPI_DOUBLE. Collective, as above.
  /// counts, displacements  [sources] values of each block, and in front of it in `receive`
  virtual void allgatherv(std::span<double const> send, std::span<double> receive,
                          std::span<int const> counts, std::span<int const> displacements) = 0;
  /// MPI_Neighbor_alltoallv of MPI_BYTE. Collective, as above.
  struct Blocks {
    void* memory = nullptr;                      ///< of the host, or of a GPU where this MPI takes it
    std::span<int const> counts, displacements;  ///< [neighbours] bytes of each block, and in front of it
  };
  virtual void alltoallv(Blocks const& send, Blocks const& receive) = 0;
};

/// MPI_Dist_graph_create_adjacent over MPI_COMM_WORLD, in which MPI may not renumber ranks. Collective over
/// the ranks of a transport that `open_mpi_transport(vendor)` has opened.
/// Errors  environment  the plugin is not there, or MPI refuses
std::unique_ptr<LibraryNeighbors> library_neighbors(MpiVendor vendor, std::span<int const> sources,
                                                    std::span<int const> destinations);

}  // namespace hostless
