#pragma once
// Conway's Life on a torus, each rank a box of it with a halo of one cell from its eight neighbours (Bridges
// et al., section VI-A3): what a step costs when a queue starts and waits, and when the host does.

#include <cstdint>

#include "bench/queue_messages.hpp"

namespace hostless::bench {

struct Life {
  QueueType type = QueueType::automatic;
  std::int64_t rows = 64, columns = 64;  ///< each a multiple of 8
  int ranks_along[2] = {1, 1};           ///< [rows, columns], whose product is the number of ranks
};

struct LifeTiming {
  Timing step;                           ///< of the slowest rank
  std::int64_t alive = 0;                ///< cells, at the end; as many as in the beginning
  bool is_right = false;                 ///< every glider is where it must be
  std::int64_t messages = 0, bytes = 0;  ///< sent by the rank that sends most, a step
};

/// Errors  usage  a size that is no multiple of 8, or gives a rank no cells; ranks_along of other ranks
void check_life(Life const& what, int ranks);

/// How n ranks lie: as square as can be, rows at most columns.
void square_of(int ranks, int along[2]);

/// A glider in every block of 8 x 8, all on their way down to the right. A step exchanges halos, edges and
/// corners, and computes the new cells; with a queue all steps of a repeat are enqueued before the first one
/// is begun. After 4 n steps the torus is that of the beginning, shifted by n along both axes: so the number
/// of all steps is rounded up to a multiple of 4 by some that are not timed.
///
/// Ready sends go to receives that were started a step before (two sets of buffers): whoever has heard a
/// neighbour's message of a step knows that it has started its receive of the next one.
///
/// Collective; the same on every rank.
/// Errors  usage      a size that is no multiple of 8, or gives a rank no cells; ranks_along of other ranks
///         peer_lost  a rank fell silent past its deadline
LifeTiming life(Transport& transport, Life const& what, Driver driver, Protocol const& protocol);

}  // namespace hostless::bench
