#pragma once
// The protocols of ranks whose GPUs store into each other's memory, as programs for the explorer: what
// barrier_of_ranks (phases.gpu.hpp), GridBarrier (grid_barrier.gpu.hpp) and SignalMessages
// (signal_messages.hpp) do with memory that others see, in their order.

#include <utility>
#include <vector>

#include "protocol_explorer.hpp"

namespace hostless::test {

/// Who meets, and what of.
struct Ranks {
  std::vector<int> memory_of;  ///< of each agent: blocks of a rank share theirs
  /// (agent, memory): whose values others read there.
  std::vector<std::pair<int, int>> sends;
  int barriers = 3;
  int data_every = 2;  ///< barriers from one that brings values to the next, the first one brings some
  int words = 1;       ///< of each to each, at a barrier: sums, orders
  std::uint32_t first_epoch = 0;  ///< of the last barrier before
};
/// Each sends to the next one.
inline Ranks ring(int ranks) {
  Ranks r;
  for (int k = 0; k < ranks; ++k) {
    r.memory_of.push_back(k);
    r.sends.emplace_back(k, (k + 1) % ranks);
  }
  return r;
}

/// Each sends to each.
inline Ranks complete(int ranks) {
  Ranks r;
  for (int k = 0; k < ranks; ++k) {
    r.memory_of.push_back(k);
    for (int other = 0; other < ranks; ++other)
      if (other != k) r.sends.emplace_back(k, other);
  }
  return r;
}

/// What is done wrongly, for tests that must find it.
struct Mutation {
  bool one_buffer = false;        ///< of the flagged words of barriers, for both parities
  bool one_value_buffer = false;  ///< of values that are flagged words
  bool no_fence_before = false;   ///< the flagged words
  bool no_fence_after = false;    ///< the poll
  bool sends_early = false;       ///< one barrier too early
  bool unpolled = false;    ///< values that are flagged words: they are taken without a look at their epochs
  bool no_answers = false;  ///< signals go only where values do
  Rules rules;
};

/// Values are stored plainly; fences on both sides of the flagged words of the barrier carry them.
/// `always`: fences at barriers without values, too, as between phases.
Protocol ordered_by_fences(Ranks const& ranks, bool always, Mutation const& mutation = {});

/// Values are flagged words of their own, stored before the flagged words of the barrier without a fence and
/// polled after it: in two buffers by the parity of the barrier's epoch, with no acknowledgement. `told`:
/// whoever fails poisons those as well.
Protocol flagged_words_of_their_own(Ranks const& ranks, bool told, Mutation const& mutation = {});

/// Values are put by a library, each put with a signal behind it, and no rank meets all: at each barrier two
/// ranks of which either sends to the other signal each other, then both await (signal_messages.hpp). Values
/// and signals have two buffers. A count of arrivals is an epoch here, and the order of a put's two parts a
/// fence. `answers_first`: the signals that come without values are put before the others.
Protocol puts_with_signals(Ranks const& ranks, bool answers_first, Mutation const& mutation = {});

}  // namespace hostless::test
