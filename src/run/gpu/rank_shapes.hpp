#pragma once
// What ranks must know of each other before their run is made, and where their memory is. Plain data,
// gathered by the caller; both sides of the loader include it.

#include "transport/memory/lent_memory.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

struct PeerShape {
  int partials = 0, blocks = 0, tiles = 0;
  bool fits = false;                                 ///< the persistent kernel
  bool by_memory = false, by_flagged_words = false;  ///< it could form neighbours' values so
  bool can_record = false;                           ///< a graph can hold what carries
};

/// Where a rank's memory is, for others to store to.
struct PeerMemory {
  int device = 0;
  UniqueId unique_id;  ///< of a stream endpoint
  LentMemory flagged_words, phase_flagged_words;
  LentMemory sent[2];                       ///< row 0 of the gathered field, of the one that is shown
  LentMemory halo_source_flagged_words[2];  ///< row 0 of its flagged words, of both parities
  LentMemory staging, staged[2];            ///< in doubles, of phases; in flagged words of both parities
};

}  // namespace hostless::gpu
