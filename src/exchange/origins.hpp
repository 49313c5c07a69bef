#pragma once

#include <cstdint>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// Where the value of an item comes from when the moves of a rank are thought away.
struct Origin {
  static constexpr std::int32_t unwritten = -2, owned = -1;
  std::int32_t arrival = unwritten;  ///< position in Origins::arrivals, or one of the above
  std::int32_t item = 0;             ///< of the message, or the owned item
};

/// A message that this rank receives.
struct Arrival {
  Message const* message = nullptr;
  std::size_t stage = 0;
};

/// A message that this rank sends.
struct Departure {
  Message const* message = nullptr;
  std::size_t stage = 0;
  std::vector<Origin> items;  ///< [message->items]
};

/// One rank's plan without its moves: what is sent and what ghosts hold, by where it came from.
struct Origins {
  std::vector<Arrival> arrivals;      ///< by (position of the stage, position in Stage::in)
  std::vector<Departure> departures;  ///< by (position of the stage, position in Stage::out)
  /// [plan.ghosts] In an array of their own some may be unwritten: gaps, which stay as they are.
  std::vector<Origin> ghosts;
  std::vector<std::vector<char>> before;  ///< [a][b]: stage a is complete before stage b begins
};

/// Runs the rank's stages once, with the origins of items as their values. `plan` outlives the result.
///
/// Errors  usage  stages in a circle; an item that is read before it is written, or written twice; an owned
///                item that is overwritten; a ghost around owned items that nothing writes
/// Cost    O(items moved, sent and received by this rank) time and memory
Origins origins_of(ExchangePlan const& plan);

}  // namespace hostless
