#pragma once
// Tries a protocol of shared memory with every order in which its stores may become visible and its loads may
// happen: depth first over all states that its agents can come to, each once.
//
// An agent (a rank, or a block of one) is a straight line of steps. A store waits in its writer's buffer and
// becomes visible any time later, in any order with the writer's stores to other cells; a fence ends when the
// writer's buffer is empty. A flagged word is two cells of eight bytes, stored and loaded each for itself, in
// both orders. A poll that decides nothing changes nothing, so of each wait the last poll alone is a move.
// Plain loads may happen earlier than where they are written, back to the fence before. An agent may be lost
// at any point: what it has stored may still become visible or not.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/peer/epochs.hpp"

namespace hostless::test {

/// What a cell holds: `before` the first barrier, of barrier m `before + m`, or poison.
using Code = std::uint8_t;
constexpr Code nothing = 0, before = 1, poisoned = 15;
constexpr int most_barriers = 6;

/// What decides in the product, or a mutation of it.
struct Rules {
  std::uint32_t (*next)(std::uint32_t epoch) = [](std::uint32_t epoch) { return gpu::next_epoch(epoch); };
  bool (*accepts)(gpu::FlaggedWord const& word, std::uint32_t epoch) =
      [](gpu::FlaggedWord const& word, std::uint32_t epoch) { return gpu::matches(word, epoch); };
};

/// Eight bytes of a memory that others read: half of a flagged word, or a value without an epoch.
struct Cell {
  int writer = 0;     ///< the only one
  int memory = 0;     ///< whose memory it lies in: poison goes to memories
  int half = -1;      ///< of a flagged word, whose halves follow each other; -1: a plain value
  int parity = 0;     ///< of the epochs that a flagged word has
  bool tells = true;  ///< of a flagged word: it is poisoned when the writer fails
};

struct Step {
  enum class Kind : std::uint8_t { store, fence, await, read };
  Kind kind;
  int barrier = 0;         ///< whose values are stored, awaited or read
  std::vector<int> cells;  ///< flagged words: their first halves
};

/// When waiting in vain may end.
enum class Deadlines : std::uint8_t {
  never,
  last_resort,  ///< when all that can become visible has
  any_time      ///< ranks may also be late
};
/// Where an agent that fails stores poison: into all its flagged words, or into those of whom it missed.
enum class Telling : std::uint8_t { everybody, missed };

struct Protocol {
  std::vector<std::vector<Step>> programs;  ///< of each agent
  std::vector<Cell> cells;
  int barriers = 0;
  std::uint32_t first_epoch = 0;  ///< that of the last barrier before
  Rules rules;
  Deadlines deadlines = Deadlines::never;
  Telling telling = Telling::everybody;
  unsigned lost_together = 0;  ///< agents, as bits, that may be lost at any point
};

struct Explored {
  std::uint64_t states = 0, moves = 0;
  std::uint64_t ends = 0;         ///< states in which all have ended,
  std::uint64_t losses = 0;       ///< in which somebody who was not lost itself has failed
  std::string problem;            ///< the first that was found, or empty
  std::vector<std::string> path;  ///< moves that lead to it
};

enum class Stores : std::uint8_t {
  each,  ///< every store that waits may become visible next
  /// A store to a flagged word becomes visible at once where nothing can tell: its writer is not one that may
  /// be lost, and no load that is still to come accepts what it replaces. Until it is visible no load of that
  /// flagged word is then a move, so all it could wait for commutes with it (a persistent set of one move).
  /// For the same reason half of a flagged word is loaded before the other only where that is not there yet.
  that_matter
};

/// All states, or those until the first problem: a wrong value accepted or read, a value overwritten before
/// it was read, somebody who waits and nobody who can go on.
Explored explore(Protocol const& protocol, Stores stores = Stores::that_matter);

}  // namespace hostless::test
