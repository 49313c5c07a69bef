#pragma once

#include <memory>
#include <string>

#include "hostless/transport/transport.hpp"

namespace hostless {

/// The folder where processes meet; only this user can enter it. It goes with the object.
class Rendezvous {
 public:
  /// Errors  environment  no folder can be made in TMPDIR
  Rendezvous();
  Rendezvous(Rendezvous const&) = delete;
  Rendezvous& operator=(Rendezvous const&) = delete;
  ~Rendezvous();
  std::string const& path() const { return path_; }

 private:
  std::string path_;
};

/// The transport `processes` of ranks that meet in `folder`, whoever started them. Collective over them.
/// Errors  as open_processes_transport
std::unique_ptr<Transport> open_processes_transport(int rank, int size, std::string const& folder);

}  // namespace hostless
