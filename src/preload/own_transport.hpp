#pragma once

#include <mpi.h>

#include <memory>

#include "transport/mpi/mpi_world.hpp"

namespace hostless::preload {

/// The mpi transport of this library, linked in: over duplicates that nobody else sees, of a communicator
/// that has the ranks of the program's but neither its topology nor its attributes, whose copy functions are
/// the program's. Its end waits for nobody.
class OwnTransport final : public Transport {
 public:
  /// Collective over `comm`, whose order of ranks it keeps.
  /// Errors  peer_lost  a rank does not come
  explicit OwnTransport(MPI_Comm comm);
  /// Frees the duplicates: where a program frees its communicator, so in the order in which all ranks do.
  ~OwnTransport() override;

  Capabilities capabilities() const override;
  Group& group() override { return *group_; }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override;

 private:
  std::shared_ptr<mpi::World> world_;
  std::unique_ptr<Group> group_;
};

}  // namespace hostless::preload
