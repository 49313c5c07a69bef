#pragma once

namespace hostless::kernel {

/// First of all in KernelExchange: what a kernel was compiled with must be what the library was.
constexpr unsigned exchange_magic = 0x484c5358u, exchange_version = 1;
/// Ranks that kernels know of at most.
constexpr int most_ranks = 8;

/// Eight bytes of an item and the exchange they belong to: {low half, epoch}, {high half, epoch}. Each half
/// is stored at once, and a word is there when both are of the awaited epoch.
struct alignas(16) ItemWord {
  unsigned long long half[2];
};
/// An item that is stored into the memory of a rank: an owned one, or one that this rank passes on.
struct ItemCopy {
  int from, to;
  short target;
  bool from_staging, to_staging;
};
/// Where a block says that it has read what a block of that rank had stored.
struct ReadAnswer {
  int target, slot;
};
/// Of one block: the last two exchanges that it has ended; 0: there was none.
struct EndedExchanges {
  unsigned last, before;
};

/// All that the blocks of one rank's kernel know of an exchange: a parameter of the kernel. What it points to
/// is device memory, of this rank or of others.
struct KernelExchange {
  unsigned magic, version, size;
  int rank, blocks, levels;
  int words;                ///< of an item: its bytes / 8
  int owned, ghosts_below;  ///< where ghosts lie around owned items; else -1 and 0
  unsigned long long deadline_cycles;
  ItemCopy const* copies;                       ///< by (block, level)
  int const* first;                             ///< [blocks * levels + 1]
  int const* landings;                          ///< ghosts, block after block
  int const* first_landing;                     ///< [blocks + 1]
  ReadAnswer const* answers;                    ///< block after block
  int const* first_answer;                      ///< [blocks + 1]
  int const* first_awaited;                     ///< [blocks + 1] answers that come to this rank
  ItemWord* staged[2][most_ranks];              ///< what each rank passes on, by the parity of the epoch,
  ItemWord* ghosts[2][most_ranks];              ///< its ghosts,
  unsigned long long* answered[2][most_ranks];  ///< and what it is answered
  EndedExchanges* ended;                        ///< [blocks]
  unsigned* lost;                               ///< a block of this rank has given up
};

}  // namespace hostless::kernel
