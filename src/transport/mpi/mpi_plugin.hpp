#pragma once

#include "hostless/transport/transport.hpp"
#include "transport/mpi/library_neighbors.hpp"

// What a plugin offers to the loader. The names are C, the objects C++: plugin and library are built
// together, and the number says whether they still fit.
namespace hostless::mpi_plugin {

constexpr int interface_version = 6;

using InterfaceVersion = int();
/// Writes what the MPI library says of itself; needs no MPI_Init.
using LibraryVersion = void(char* text, int capacity);
/// A new transport over MPI_COMM_WORLD, or over the communicator with that Fortran handle. Throws Error.
using Open = Transport*(int const* fortran_communicator);
/// MPI's own collectives of a graph; the transport is open. Throws Error.
using Neighbors = LibraryNeighbors*(int const* sources, int source_count, int const* destinations,
                                    int destination_count);

constexpr char const* interface_version_name = "hostless_mpi_interface_version";
constexpr char const* library_version_name = "hostless_mpi_library_version";
constexpr char const* open_name = "hostless_mpi_open";
constexpr char const* neighbors_name = "hostless_mpi_neighbors";

}  // namespace hostless::mpi_plugin
