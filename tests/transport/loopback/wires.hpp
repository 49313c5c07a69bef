#pragma once
// What lies between the ranks of the loopback transport: messages that nobody carries but who asks for one. A
// poll moves at most one thing, by chance none, and what has been moved is told some polls later. So a source
// that is changed before `sent`, a target that is read before `received`, and messages that are taken to come
// in the order of their starts are wrong here, not only on a machine that somebody else has.
//
// The faces of the transport (loopback.cpp: the host's; loopback_stream.gpu.cpp: that of streams) start and
// ask. A GPU library that has the second has wires of its own: they are compiled as both.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <vector>

#include "transport/binding.hpp"

namespace hostless::loopback {

/// The messages and sums of one bind, seen by all its ranks. Every member function may be called by any
/// thread.
class Wires {
 public:
  /// Between two ranks.
  struct Message;

  Wires(int ranks, unsigned seed);
  ~Wires();

  /// The same for both sides, whichever comes first. While binding.
  Message& message(int source, int target, int id, std::size_t bytes);

  /// False: the one before has not been told as sent (received) yet.
  bool offer(Message& message, std::byte const* from, std::uint32_t epoch);
  bool await(Message& message, std::byte* to, std::uint32_t epoch);
  bool sent(Message& message);      ///< Polls. True too when nothing was offered.
  bool received(Message& message);  ///< Polls. True too when nothing is awaited.
  /// What was offered or is awaited is forgotten: its memory goes.
  void withdraw(Message& message, bool source);

  /// The contribution of a rank to its next sum.
  void contribute(std::size_t rank, std::span<double const> mine);
  /// Polls. When true, all[r * width + k] is value k of rank r, in the last sum that `rank` contributed to.
  bool collected(std::size_t rank, std::size_t width, std::span<double> all);

 private:
  struct Sums {
    std::array<std::array<double, most_gather_width>, 2> value{};  // of even and of odd sums
    std::array<std::uint64_t, 2> number{};
    std::uint64_t last = 0;
    unsigned told_in = 0;  // polls
  };
  unsigned some_polls();
  void move_something();
  bool move(Message& message);

  std::mutex guard_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Message>> all_;  // no map: clang 15 gives up on it where it compiles for HIP
  std::size_t under_way_ = 0;                  // offered or kept, and not yet in their targets
  std::vector<Sums> sums_;                     // [ranks]
};

}  // namespace hostless::loopback
