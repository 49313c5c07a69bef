#pragma once

#include <memory>
#include <string>

#include "hostless/transport/transport.hpp"

namespace hostless {

/// libfabric lives in a shared library of its own, as MPI does (hostless/transport/mpi.hpp): this library never
/// links it.
///
/// The transport `below`, which must outlive it, but for what goes between two ranks alone: its PointToPoint,
/// so the messages of a Communicator over it, are libfabric's triggered operations (Bridges et al., section
/// V): a provider that counts and defers work is needed, of which Debian's libfabric has `sockets`.
///
/// Collective over below.group(), by which ranks tell their addresses. All ranks leave it together, or those that stay find that
/// one has left.
/// Errors  usage        ranks are threads of one process
///         environment  the plugin or libfabric is not installed, or no provider has triggered operations; on all
///                      ranks, as one of them says
///         peer_lost    a rank did not arrive before the deadline
std::unique_ptr<Transport> open_ofi_transport(Transport& below);

/// The plugin as found on this machine, for `doctor`.
struct OfiPlugin {
  std::string path;     ///< empty: not found
  std::string library;  ///< version and provider
  std::string problem;  ///< empty: it can be used; else why not, and what helps
};
OfiPlugin find_ofi_plugin();

}  // namespace hostless
