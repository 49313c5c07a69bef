#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

namespace hostless::mpi {

/// Requests that nobody waits for any more, and what MPI may still read or write for them. They stay until
/// MPI says that they are done, at the longest until the process ends: an MPI that moves messages by a thread
/// or an adapter of its own, or that others of the process go on calling, would else write into memory that
/// has another owner.
class Abandoned {
 public:
  /// Requests may be null; those that are active are not cancelled.
  static void keep(std::vector<MPI_Request> requests, std::shared_ptr<void const> memory) noexcept;
  /// Frees what is done. Only while MPI may be called.
  static void collect() noexcept;
};

/// The requests of something that is waited for, which share their memory's end: complete, or abandoned.
class Pending {
 public:
  explicit Pending(std::shared_ptr<void const> memory) : memory_(std::move(memory)) {}
  Pending(Pending const&) = delete;
  Pending& operator=(Pending const&) = delete;
  ~Pending() {
    if (!requests.empty()) Abandoned::keep(std::move(requests), std::move(memory_));
  }
  /// The next one, to be filled by a call of MPI.
  MPI_Request* add() { return &requests.emplace_back(MPI_REQUEST_NULL); }

  std::vector<MPI_Request> requests;

 private:
  std::shared_ptr<void const> memory_;
};

}  // namespace hostless::mpi
