#pragma once
// A call that gathers what neighbours have, by the MPI library's own collective or by an exchange that was
// planned; and how ways of making one are timed beside each other.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bench/neighbor/neighbors.hpp"
#include "bench/timing.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/exchange/neighborhood.hpp"
#include "hostless/plan/node_map.hpp"
#include "transport/mpi/library_neighbors.hpp"

namespace hostless::bench {

/// What is common to all that is timed so. What is gathered, where, and what is done with it, is said by those
/// that derive.
class NeighborCall {
 public:
  /// mine  outlives it
  NeighborCall(Transport& transport, Neighbors const& mine) : transport_(&transport), mine_(&mine) {}
  virtual ~NeighborCall() = default;
  NeighborCall(NeighborCall const&) = delete;
  NeighborCall& operator=(NeighborCall const&) = delete;

  /// Makes what is made once, and takes its time. Collective.
  /// Errors  usage  a way of the library without one (vendor is empty); those of the plan
  void set_up(NeighborWay const& way, NeighborWays const& with, WaitLimits limits);
  /// One call. Errors  peer_lost  a rank fell silent past its deadline
  void operator()();
  /// A call of which everything is looked at. Collective.
  /// number  what is sent is of this number
  /// Errors  environment  something else came
  void prove(std::uint64_t number);
  /// Adds what crosses between nodes in a call, the route, set-up and calls. Collective.
  void count(NodeMap const& nodes, NeighborTiming& timing) const;

 protected:
  int rank() const { return transport_->group().rank(); }
  Transport& transport() const { return *transport_; }
  Neighbors const& mine() const { return *mine_; }

 private:
  virtual NeighborCollective plan(NeighborWay const& way, int ranks_per_node) = 0;
  virtual void by_library(LibraryNeighbors& library) = 0;
  /// Of what is sent and received: kept as long as the transport may read or write there.
  virtual std::shared_ptr<void> owner() = 0;
  /// Bytes of the block that goes to every destination by the library.
  virtual std::size_t block_bytes() const = 0;
  /// Bytes that this rank gathers in a call.
  virtual std::size_t gathered_bytes() const = 0;
  /// What follows when all has come.
  virtual void compute() {}
  virtual void fill(std::uint64_t number) = 0;
  virtual void check(std::uint64_t number) = 0;

  Transport* transport_;
  Neighbors const* mine_;
  std::unique_ptr<LibraryNeighbors> library_;
  NeighborCollective planned_;
  std::unique_ptr<Exchange> exchange_;
  double set_up_s_ = 0;
  std::int64_t calls_ = 0;
};

/// One call for each way: set up and proved, timed in turns (a repeat of each after the other, each repeat from
/// another way on), proved again and counted.
///
/// make  the call of a way, not yet set up; it calls no group
/// Collective. Errors  those of make, set_up, operator() and prove
std::vector<NeighborTiming> time_in_turns(
    Transport& transport, NeighborWays const& with,
    std::function<std::unique_ptr<NeighborCall>(NeighborWay const&)> const& make, Protocol const& protocol);

}  // namespace hostless::bench
