#pragma once
// What ranks must know of each other before their run is made, and where their memory is. Plain data,
// gathered by the caller; both sides of the loader include it.

#include <vector>

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
  StreamContact contact;  ///< of a stream endpoint
  LentMemory flagged_words, phase_flagged_words;
  LentMemory sent[2];                       ///< row 0 of the gathered field, of the one that is shown
  LentMemory halo_source_flagged_words[2];  ///< row 0 of its flagged words, of both parities
  LentMemory staging, staged[2];            ///< in doubles, of phases; in flagged words of both parities
};

inline std::vector<StreamContact> contacts_of(std::vector<PeerMemory> const& all) {
  std::vector<StreamContact> contacts;
  for (PeerMemory const& memory : all) contacts.push_back(memory.contact);
  return contacts;
}

}  // namespace hostless::gpu
