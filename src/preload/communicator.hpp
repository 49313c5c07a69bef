#pragma once
// What is carried of a communicator's collectives, and how its ranks decide that alike
// (docs/decisions/0028-what-is-preloaded.md).

#include <mpi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "hostless/exchange/neighborhood.hpp"
#include "preload/items.hpp"
#include "preload/own_transport.hpp"
#include "preload/report.hpp"
#include "preload/topology.hpp"

namespace hostless::preload {

/// A call as this rank sees it: bytes of each block.
struct Sizes {
  Operation operation = Operation::allgather;
  std::vector<std::int64_t> sent, received;
  bool operator==(Sizes const&) const = default;
  std::int64_t longest() const;
  bool is_negative() const;
  std::uint64_t hash() const;
};

/// One set of sizes that all ranks have agreed about.
struct Taken {
  Sizes sizes;
  std::optional<Reason> never;  ///< agreed that it is MPI's
  struct Memory {
    std::vector<std::byte> sent, received;
  };
  std::shared_ptr<Memory> memory;  ///< blocks one behind the other
  std::unique_ptr<Exchange> exchange;
  char const* route = "";
  std::int64_t bytes = 0;  ///< that this rank sends, each block once a neighbour
};

/// Of one communicator, as an attribute of it. Used by one thread at a time, as MPI's collectives are.
class Communicator {
 public:
  /// Collective: ranks tell each other whether they may carry at all.
  Communicator(MPI_Comm comm, Neighbours neighbours);

  /// Carries the call, or says why it is MPI's: all ranks alike, where they call alike.
  /// code  what the call then returns
  std::optional<Reason> carry(Call const& call, int& code);
  /// This rank can go on with nothing that was agreed: those that wait for it hear that it is lost.
  void leave();

 private:
  std::optional<Reason> may_not(MPI_Comm comm) const;
  Sizes sizes_of(Call const& call, Items const& send, Items const& receive) const;
  Taken* find(Sizes const& sizes);
  Taken* first_of(Operation operation);
  std::uint64_t fitting(Sizes const& sizes) const;
  bool wants(Sizes const& sizes);
  Reason not_yet(Sizes const& sizes) const;
  std::optional<Reason> choose(Call const& call, Sizes const& sizes, Taken*& chosen);
  std::optional<Reason> choose_fixed(Call const& call, Sizes const& sizes, Taken*& chosen);
  std::optional<Reason> choose_checked(Call const& call, Sizes const& sizes, Taken*& chosen);
  std::optional<Reason> choose_agreed(Call const& call, Sizes const& sizes, Taken*& chosen);
  Taken* add(MPI_Comm comm, Sizes const& sizes);
  void make(MPI_Comm comm, Taken& made);
  void plan(Taken& made);
  bool gains(Sizes const& sizes);
  int move(Call const& call, Items const& send, Items const& receive, Taken& taken);

  static constexpr std::size_t most_sizes = 8, most_seen = 64;

  Neighbours neighbours_;
  std::optional<Reason> never_;
  bool repeats_ = false;    ///< on any rank
  std::int64_t asked_ = 0;  ///< calls of equal blocks that nothing was made for, on all ranks alike
  std::map<std::uint64_t, std::int64_t> seen_;
  std::unique_ptr<OwnTransport> transport_;
  std::optional<NodeMap> nodes_;
  std::optional<Neighborhood> graph_;
  std::vector<std::unique_ptr<Taken>> taken_;  // after the transport, so that it ends before
};

/// Calls the error handler of the communicator, and returns what the call returns then.
int fail(MPI_Comm comm, std::string const& text);
/// That of a communicator; made when it is asked for the first time, collectively then. NULL: it has no
/// topology, so MPI is to refuse the call.
Communicator* communicator_of(MPI_Comm comm);
/// MPI is about to end: what is left of communicators is left as it is.
void forget_communicators();

}  // namespace hostless::preload
