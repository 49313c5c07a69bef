#pragma once
// Where a kernel that packs a round stores it: into the memory of the ranks that receive it, with a signal
// behind it. Buffers take turns by a count in device memory, so what is recorded in a graph may be replayed
// any number of times, and mixed with what is not.

#include <cstddef>
#include <cstdint>

#include "transport/stream/limits.hpp"

namespace hostless::gpu {

/// Packed bytes [first, end) of the round go to `to`, or as far behind it as the other buffer lies.
struct PutTarget {
  std::int64_t first = 0, end = 0;
  std::byte* to = nullptr;
};

struct PutRound {
  std::uint64_t* exchanges = nullptr;  ///< awaited so far; null: nothing is put
  std::uint32_t* blocks_done = nullptr;
  /// After an exchange was lost: it was not counted, so the next one would go where others may still read,
  /// under its number. Nothing is put any more.
  std::uint32_t const* lost = nullptr;
  std::int64_t other_buffer = 0;  ///< bytes between the two of a target
  std::int64_t other_signal = 0;  ///< and between their signals
  int targets = 0, signals = 0;
  PutTarget target[most_ranks];
  std::byte* signal[most_ranks] = {};  ///< of each rank that anything is said to
};

/// Where a round has arrived, after it was awaited: `first`, or the other buffer.
struct ArrivedRound {
  std::byte const* first = nullptr;
  std::uint64_t const* exchanges = nullptr;  ///< null: always the first one
  std::int64_t other_buffer = 0;
};

/// What a kernel waits for before a round that comes next may be read: signals of all who say anything. The
/// kernel counts the exchange.
struct AwaitedRound {
  std::uint64_t* exchanges = nullptr;  ///< awaited so far; null: nothing is awaited
  std::uint32_t* blocks_done = nullptr;
  std::uint64_t const* signals[2] = {};  ///< [most_ranks] of each buffer
  std::uint32_t sources = 0;             ///< ranks as bits
  std::uint32_t* lost = nullptr;         ///< of this rank: no later kernel waits any more
  std::uint32_t const* ended = nullptr;  ///< mapped: the host has given up
  std::uint32_t* told = nullptr;         ///< mapped: a kernel has
  std::uint64_t deadline_cycles = 0;
};

}  // namespace hostless::gpu
