#pragma once
// What was carried, and what was not and why, on this rank.

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "preload/settings.hpp"

namespace hostless::preload {

/// Why a call is MPI's.
enum class Reason : std::uint8_t {
  off,  ///< HOSTLESS_PRELOAD_ROUTE=off, or what could not be read
  settings_differ,
  mpi_refuses,  ///< arguments that MPI has an error for
  one_rank,
  one_node,
  no_gain,
  edge_twice,  ///< MPI libraries have orders of their own then
  counts_unknown,
  seldom,  ///< not often enough yet with these sizes
  no_bytes,
  too_long,  ///< a block of 2 GB or more
  unequal,   ///< ranks whose blocks do not fit together
  many,      ///< more sizes than are kept of one communicator
  form,      ///< another form of the call than those that are carried
  nonblocking,
  persistent,
  set_up_failed,
};
char const* words(Reason reason);

/// Counters of a process; several threads may count.
class Report {
 public:
  void taken(char const* call, char const* route, std::int64_t bytes);
  void handed_on(char const* call, Reason reason);
  void set_up(double seconds);
  void failed(std::string const& text);
  /// For people, a line each.
  std::string text(std::string const& mpi, int rank, int ranks) const;
  /// Where HOSTLESS_PRELOAD_REPORT says, once: rank 0 to standard error; a file by rank 0 too, or by every
  /// rank where `%r` in its name stands for the rank.
  void write(std::string const& mpi, int rank, int ranks);

 private:
  struct Taken {
    std::int64_t calls = 0, bytes = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string>, Taken> taken_;  ///< by call and route
  std::map<std::tuple<std::string, Reason>, std::int64_t> handed_on_;
  std::int64_t set_ups_ = 0;
  double seconds_ = 0;
  std::string failure_;
  bool written_ = false;
};

Report& report();

}  // namespace hostless::preload
