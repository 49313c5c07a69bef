#pragma once
// Two ranks of four rows that store into each other's memory.

#include <vector>

#include "run/gpu/peer_window.hpp"

namespace hostless::gpu {

inline PeerMemory lent(PeerWindow const& window) {
  PeerMemory memory;
  window.lend(memory);
  return memory;
}

struct Peers {
  PeerCopies copies;
  PeerRank who;
  Layout layout;
  explicit Peers(int ranks = 2, int rounds = 1) {
    copies.rounds.resize(static_cast<std::size_t>(rounds));
    copies.rounds[0] = {{0, 8, 1}, {3, 9, 1}};
    copies.staging = 5;
    who.ranks = ranks;
    layout.tiling.block_rows = 4;
    layout.tiling.slices = 2;
    layout.blocks = 1;
  }
  std::vector<PeerMemory> memory(PeerWindow const& mine, std::vector<double>& others) const {
    std::vector<PeerMemory> all(2);
    all[0] = lent(mine);
    all[1].device = 1;
    all[1].staging.address = others.data();
    return all;
  }
};

}  // namespace hostless::gpu
