#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exchange/peer_copies.hpp"

namespace hostless {

/// The kernel of one rank that executes an exchange: all its blocks are resident.
struct KernelShape {
  int blocks = 1;
  /// Which block has an owned item when an exchange starts, and so sends it. Empty: they are dealt out
  /// evenly.
  std::function<std::int32_t(std::int32_t item)> block_of_item;
  /// [blocks] what else keeps a block busy, in items: rows that others read, or that read ghosts. Empty: what
  /// it sends.
  std::vector<std::int64_t> boundary_rows;
  /// Whether ghosts arrive as flagged words that a block takes, each once, to where it wants them; otherwise
  /// they are stored where they are read, and nobody has a duty at them.
  bool lands = false;
  /// [ghosts] with `lands`: which block takes each. Empty: those with the fewest boundary rows.
  std::vector<std::int32_t> block_of_ghost;
};

/// That a block has read all words of one exchange that a block of `target` had stored: told in answer `slot`
/// of that rank.
struct DutyAnswer {
  std::int32_t target = 0, slot = 0;
  bool operator==(DutyAnswer const&) const = default;
};

/// What each block of one rank's kernel does for an exchange, in this order: `copies` of level 0, of level 1,
/// ...; then its landings, then its answers.
///
/// Copies of level 0 take owned items, which the block has: all of them, whatever message of the plan they
/// belong to, since each word travels by itself. Those of later levels take an item out of this rank's
/// staging memory, whose flagged word they await first: one copy of a lower level, of some block of some
/// rank, stores it. So whoever waits, waits for what stands on a lower level, and since all blocks are
/// resident none waits for ever, in whatever order the others come along.
struct KernelDuties {
  int blocks = 0, levels = 0;               ///< levels: of all ranks alike, at least one
  std::int64_t staging = 0;                 ///< flagged words of one epoch; two epochs take turns
  std::vector<PeerCopy> copies;             ///< by (block, level), then as in PeerCopies
  std::vector<std::int32_t> first;          ///< [blocks * levels + 1] the first copy of (block, level)
  std::vector<std::int32_t> landings;       ///< ghosts, block after block, rising
  std::vector<std::int32_t> first_landing;  ///< [blocks + 1]
  /// Without a sum over all ranks between two exchanges: what a block says after an
  /// exchange, and which answers to the last but one it awaits before it stores anything.
  std::vector<DutyAnswer> answers;          ///< block after block
  std::vector<std::int32_t> first_answer;   ///< [blocks + 1]
  std::vector<std::int32_t> first_awaited;  ///< [blocks + 1] a block awaits those from here to the next's

  std::int64_t answers_here() const { return first_awaited.back(); }  ///< that others say to this rank
  std::int32_t first_of(int block, int level) const {
    return first[static_cast<std::size_t>(block * levels + level)];
  }
};

/// The first field of a shape that does not fit, by its name, or an empty string.
std::string shape_flaw(KernelShape const& shape, std::int64_t ghosts);

/// Deals the copies of a plan out to blocks. What is passed on goes, level by level, in portions of some
/// `grain` copies to the block that has least to do, counted from its boundary rows on; copies of one staged
/// item on one level stay together. Ghosts that land likewise.
///
/// shape   such that shape_flaw is empty
/// ghosts  of this rank
/// Errors  usage  more copies than indices of 32 bits can name; a block that does not exist has an item
/// Cost    O(n log n) in this rank's copies and ghosts
KernelDuties share_duties(PeerCopies const& copies, KernelShape const& shape, std::int64_t ghosts);

/// Copies that a block takes at a time of what is passed on: a warp's.
constexpr std::int64_t duty_grain = 32;

/// How a kernel executes an exchange, beside the shape of its own.
struct DutyOptions {
  /// A sum over all ranks lies between the last read of an exchange and the first store of the next but one:
  /// then two epochs are enough, and nobody answers. Without one, blocks answer blocks.
  bool has_sums = false;
  std::size_t item_bytes = 8;  ///< a multiple of 8: flagged words carry so many
};

/// The first field of a plan, its options or the kernel's shape that duties do not honour, by its name, or an
/// empty string.
std::string duty_refusal(ExchangePlan const& plan, KernelShape const& shape, DutyOptions const& options);

/// Lowers a plan of any route to duties of the blocks of this rank's kernel (decision 0020). Ghosts and
/// staging memory hold flagged words of two epochs that take turns; a word is overwritten by the next
/// exchange but one, and why it may be is what the plan says: `reduction` is honoured where options.has_sums;
/// for the others every block that reads words answers every block that stores them, and a block stores
/// nothing of an exchange before the answers to the last but one have come.
///
/// With `lands` a ghost is named by its number, otherwise by its offset (as PeerCopy::to).
///
/// Collective over `group`; rank r passes plan r and its own shape, all the same options.
/// Errors  usage  on every rank: what duty_refusal says; what peer_copies refuses
/// Cost    that of peer_copies; O(n log n) in the items of this rank; without sums three exchanges more
KernelDuties kernel_duties(ExchangePlan const& plan, Group& group, KernelShape const& shape,
                           DutyOptions const& options);

}  // namespace hostless
