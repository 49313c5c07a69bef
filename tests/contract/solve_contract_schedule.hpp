#pragma once
// Schedules: random delays before the barriers of threads, and the proof that they change who arrives when.

#include <cstdint>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::contract {

/// How often a party (a thread of a rank) that was told to be late arrived last of all.
struct Lateness {
  std::int64_t told = 0, last = 0;
  double by_chance = 0;  ///< expected of `last` if delays moved nobody

  void add(Lateness const& other);
  /// Five standard deviations above chance.
  bool beyond_chance() const;
};

/// The delays of one rank. In every round one party of all ranks, another at every barrier, naps at every
/// third barrier, and anybody may give its core away anywhere.
class Schedule {
 public:
  Schedule(int rank, int ranks, int threads);

  /// The next solve goes by schedule `seed`, the same number on all ranks; 0: no delays. The first one has
  /// none: it shows how many barriers thread 0 holds alone, before a method begins.
  void choose(std::uint64_t seed);
  /// Called by `thread` before every barrier of threads.
  void arrive(int thread);
  /// Compares the arrivals of all rounds since the last call. Collective; the same on every rank.
  Lateness lateness(Group& group);

 private:
  struct alignas(64) Thread {
    std::int64_t barriers = 0;
    std::vector<Clock::rep> arrivals;  // of the rounds with delays, all barriers of each
  };
  int late_party(std::uint64_t seed, std::int64_t barrier) const;

  int rank_, ranks_, threads_count_;
  std::uint64_t seed_ = 0;
  std::int64_t alone_ = 0;
  std::vector<Thread> threads_;
  struct Round {
    std::uint64_t seed;
    std::size_t first;  // of its arrivals
  };
  std::vector<Round> rounds_;
};

}  // namespace hostless::contract
