#pragma once
// Tries the text of messages (src/queue/message_text.hpp) itself, by two ranks, with every order of what they
// do to memory that both see, each state once.
//
// A rank is what it has done so far: its program is executed again from the beginning with the results of its
// earlier operations, until it comes to one that has no result yet. A store waits in its rank's buffer, in
// order, and becomes visible any time later; what adds to a word empties the buffer first. Vector clocks
// follow releases and acquires: a load or store of bytes that does not happen after the last conflicting one
// is a problem, whatever value it found. A poll that decides nothing changes nothing.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "queue/message_text.hpp"

namespace hostless::test {

/// What a rank does, in order. Messages are numbered.
struct Act {
  enum class Kind : std::uint8_t {
    fill,   ///< the source of `message` with `epoch`
    start,  ///< this rank's side of `message`
    wait,
    fork,   ///< what is started up to `join` is waited for meanwhile, by others of the rank than start it
    join,   ///< until they have waited
    check,  ///< the target has `epoch`, then it is overwritten
    leave   ///< all its sides; its buffers are overwritten. The rank's last act
  };
  Kind kind;
  int message = 0;
  int epoch = 0;
};

/// What is done wrongly, for tests that must find it.
struct Fault {
  bool adds_in_two_steps = false;
  bool stores_release_nothing = false;
  bool loads_acquire_nothing = false;
  bool one_slot = false;
  bool sends_without_taken = false;  ///< a small sender's wait looks at nothing
  bool moves_after_leave = false;
  bool waits_before_start_counts = false;  ///< of a fork: for the epoch that starts had counted before
};

struct Scene {
  std::vector<queue::Mode> modes;  ///< by message
  std::vector<int> sender;         ///< rank 0 or 1; the other one receives, or the same one where `to_itself`
  bool to_itself = false;
  std::array<std::vector<Act>, 2> acts;
  bool may_be_lost = false;  ///< whether a wait may end by that
  Fault fault;
};

struct Found {
  std::uint64_t states = 0, moves = 0, ends = 0, losses = 0;
  std::string problem;  ///< the first, or empty
};

Found explore_text(Scene const& scene);

}  // namespace hostless::test
