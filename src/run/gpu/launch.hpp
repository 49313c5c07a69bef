#pragma once
// What a kernel of a run is told by the host, and what it tells while it runs.

#include <cstdint>

#include "hostless/plan/tiling.hpp"

namespace hostless::gpu {

struct Word;

constexpr int block_threads = 512;
constexpr int slices_of_block = block_threads / Tiling::lanes;
constexpr int widest_sum = 4;
constexpr int most_rounds = 16, most_pairs = 4096;

/// Slices are worked on in pairs, 512 lanes; pair u belongs to block u mod blocks, in round u / blocks.
struct Layout {
  Tiling tiling;
  int pairs = 0, blocks = 0, rounds = 0;
  /// Of one sum, in all and of one block: pairs and rounds. Where the order is free (`--reduction fast`),
  /// lanes add over all rounds before anybody else: blocks and 1.
  int partials = 0, partials_a_block = 0;
  int slots = 0;            ///< of a slice, a multiple of the batch
  double* spare = nullptr;  ///< a second buffer for the gathered field, where everything is near
  int reach = 0;            ///< rows between a row and its columns, where there is a window
  int window_values =
      0;  ///< doubles of shared memory for the gathered field: a block's rows and its neighbours'
  int matrix_values = 0;  ///< doubles of a block's shared memory for the matrix: all of it or nothing
  int shared_values = 0;  ///< doubles of shared memory for those and kept fields, a block
};

/// Written by the host while a kernel runs.
struct Orders {
  std::uint32_t stop = 0;  ///< 1: end at the next sum, with a true residual
};
/// Written by a kernel that runs, now and then.
struct Progress {
  std::int64_t iteration = 0;
  double rr = 0;
};

/// For tests: this block stays silent from that meeting on, as a lost one would.
struct Silence {
  std::int32_t block = -1;
  std::uint32_t meeting = 0;
};

/// What a block did between two meetings, in its multiprocessor's cycles. Work: [begin, arrived]; the block's
/// threads are together: `together`; the words of all blocks are there: `met`; the decision is taken: `end`.
enum class Phase : std::uint32_t { publish, begin, sweep, rows };
struct TraceEntry {
  std::uint64_t begin = 0, arrived = 0, together = 0, met = 0, end = 0;
  Phase phase = Phase::publish;
  std::int32_t iteration = 0;
};

struct Control {
  std::uint64_t deadline_cycles = 0;  ///< of one wait
  std::uint64_t pause_cycles = 0;     ///< a kernel returns after that long
  std::uint64_t look_cycles = 0;      ///< between two looks at the orders of the host
  Orders const* orders = nullptr;     ///< mapped
  Progress* progress = nullptr;       ///< mapped
  Silence silence;
  TraceEntry* trace = nullptr;  ///< [blocks * trace_meetings]: the first meetings of every block
  std::int32_t trace_meetings = 0;
};

}  // namespace hostless::gpu
