#pragma once
// What a kernel of a run is told by the host, and what it tells while it runs.

#include <cstdint>

#include "device/block.hpp"
#include "exchange/peer_copy.hpp"
#include "hostless/operate/tiling.hpp"
#include "transport/stream/limits.hpp"

namespace hostless::gpu {

struct FlaggedWord;

constexpr int slices_of_block = block_threads / Tiling::accumulators;
constexpr int most_turns = 16, most_tiles = 4096;
/// Right-hand sides whose products one block makes together, and turns of a block that knows so many.
constexpr int wide_columns = 4, most_wide_turns = 4;
/// For so many a persistent kernel has room that works on `columns`.
constexpr int room_for(int columns) { return columns <= 2 ? 2 : wide_columns; }

/// Whose blocks the barriers of a persistent kernel are of: its own rank's; those of several ranks; or those
/// of several whose ghosts are passed on from rank to rank. Kernels of their own keep their registers.
enum class Ranks : std::uint8_t { one, several, routed };
inline Ranks ranks_of(int ranks, std::size_t rounds) {
  return ranks == 1 ? Ranks::one : rounds > 1 ? Ranks::routed : Ranks::several;
}

/// Flagged words of one parity where ranks wait phase by phase: from each its part of every sum and its
/// orders.
HOSTLESS_HOST_DEVICE int phase_flagged_words_of_parity(int ranks) { return ranks * (widest_sum + 1); }

/// What several ranks whose GPUs store into each other's memory know of each other; in device memory. All
/// barriers are barriers of all ranks, hence every target is free: whoever read it has arrived since.
struct PeerView {
  int ranks = 1, rank = 0;
  int partials[most_ranks] = {}, blocks[most_ranks] = {};  ///< of each rank (persistent)
  FlaggedWord* flagged_words[most_ranks] =
      {};  ///< where the blocks of each rank await the others' (persistent)
  FlaggedWord* phase_flagged_words[most_ranks] = {};  ///< the same for the phases of the other runs
  /// Row 0 of the fields that have ghosts: the gathered one and the one that is shown.
  static constexpr int sent_fields = 2, halo_source = 1;
  double* sent[sent_fields][most_ranks] = {};
  FlaggedWord* halo_source_flagged_words[2][most_ranks] =
      {};  ///< of both parities, where what is shown travels so
  double* staging[most_ranks] = {};
  PeerCopy const* item = nullptr;                ///< of this rank, round after round
  std::int32_t const* first_of_slice = nullptr;  ///< [slices + 1] of round 0, whose items come from own rows
  int rounds = 0;
  std::int32_t first_of_round[most_rounds + 1] = {};
};

/// The same where ghosts are passed on: in a persistent kernel by duties of blocks (decision 0020), which
/// `item` and `staging` above, those of phases, are nothing to.
struct RoutedView : PeerView {
  FlaggedWord* staged[2][most_ranks] = {};  ///< each rank's staging memory, of both parities
  PeerCopy const* copies = nullptr;         ///< KernelDuties::copies
  std::int32_t const* first = nullptr;      ///< KernelDuties::first
  int levels = 0;
};

/// Slices are worked on in tiles of two, 512 accumulators; tile u belongs to block u mod blocks, in turn u /
/// blocks.
struct Layout {
  Tiling tiling;
  int tiles = 0, blocks = 0, turns = 0;
  /// Of one sum, in all and of one block: tiles and turns. Where the order is free (`--reduction fast`),
  /// accumulators add over all turns before anybody else: blocks and 1.
  int partials = 0, partials_a_block = 0;
  int slots = 0;                                    ///< of a slice, a multiple of the batch
  std::int32_t ghosts_below = 0, ghosts_above = 0;  ///< rows of other ranks before and after the own ones
  std::int32_t farthest = 0;                        ///< block rows between a block row and what its rows read
  bool fuses = false;                   ///< neighbours' values are formed where they are read, in the window
  double const* halo_source = nullptr;  ///< row 0 of the field they are formed from
  /// Row 0 of its flagged words, of both parities, or null: where everything is on chip, it travels by them;
  /// else what other ranks show does.
  FlaggedWord* halo_source_flagged_words[2] = {};
  int reach = 0;  ///< rows between a row and its columns, where there is a window
  int window_values =
      0;  ///< doubles of shared memory for the gathered field: a block's rows and its neighbours'
  int matrix_values = 0;  ///< doubles of a block's shared memory for the matrix: all of it or nothing
  int shared_values = 0;  ///< doubles of shared memory for those and fields on chip, a block
};

/// Where fields lie with one side after the other, as they come and go; and where while the kernel runs.
struct FieldsOfSides {
  static constexpr int most = 9;
  double* apart[most] = {};
  double* together[most] = {};
  double* turned = nullptr;  ///< the gathered one's second place, of texts that form it by turns
  std::int64_t stride = 0;   ///< doubles between two sides of a field that are apart
};

/// Written by the host while a kernel runs.
struct Orders {
  std::uint32_t stop = 0;  ///< 1: end at the next sum, with a true residual
  /// For tests, where ranks wait phase by phase: this one stays away from that barrier on; 0: from none.
  std::uint32_t silent_from = 0;
  /// Where ranks wait phase by phase: 1 until they have met for the first time in a run, which the phase says
  /// that sees it.
  std::uint32_t awaits_first = 0;
};
/// Written by a kernel that runs, now and then.
struct Progress {
  std::int64_t iteration = 0;
  double rr = 0;
  std::int32_t column = 0;  ///< of the right-hand side that tells
};

/// For tests: this block stays silent from that barrier on, as a lost one would. Where ranks wait phase by
/// phase: the rank does; block -1: nobody does.
struct Silence {
  std::int32_t block = -1;
  std::uint32_t barrier = 0;
};

/// What a block did between two barriers, in its multiprocessor's cycles. Work: [begin, arrived]; the block's
/// threads are together: `together`; the flagged words of all blocks are there: `met`; the decision is taken:
/// `end`.
enum class Phase : std::uint32_t { publish, begin, sweep, rows };
struct TraceEntry {
  std::uint64_t begin = 0, arrived = 0, together = 0, met = 0, end = 0;
  Phase phase = Phase::publish;
  std::int32_t iteration = 0;
};

/// What a stream comes to, where it is traced (stamps.hpp): a phase's work begins and ends; what other ranks
/// await is sent; the last of what is awaited has come.
enum class Mark : std::uint32_t { computes, computed, departs, arrived };
struct Stamp {
  std::uint64_t time_ns = 0;  ///< of a timer of the whole GPU
  Mark mark = Mark::computes;
  std::uint32_t open = 0;  ///< 1: what follows changes something; 0: its gate is closed
  std::int64_t iteration = 0;
};

struct Control {
  std::uint64_t deadline_cycles = 0;  ///< of one wait
  std::uint64_t first_cycles = 0;     ///< of the first one: ranks do not start together
  std::uint64_t pause_cycles = 0;     ///< a kernel returns after that long
  std::uint64_t look_cycles = 0;      ///< between two looks at the orders of the host
  /// A flagged word takes longer to come, and whoever polls is in its way.
  std::uint32_t travel_cycles = 0;
  Orders const* orders = nullptr;  ///< mapped
  Progress* progress = nullptr;    ///< mapped
  Silence silence;
  TraceEntry* trace = nullptr;  ///< [blocks * trace_barriers]: the first barriers of every block
  std::int32_t trace_barriers = 0;
};

}  // namespace hostless::gpu
