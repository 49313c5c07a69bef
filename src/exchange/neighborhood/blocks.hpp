#pragma once
// Where the blocks of a neighbourhood collective lie, in bytes, as its caller says it. Each function throws a
// usage error that names the rank, the block and the value.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/extents.hpp"

namespace hostless {

/// One side of a rank's call, and what to call it.
struct NamedSide {
  Rank rank = 0;
  char const* name = "";  ///< sent, received
  std::size_t neighbours = 0;
};

/// So many blocks that lie side by side and fill the memory.
std::vector<Extent> equal_blocks(NamedSide const& side, std::size_t bytes);

/// Of a v-variant. Blocks of no bytes lie at the start.
struct GivenBlocks {
  std::size_t memory_bytes, item_bytes;
  std::span<std::int64_t const> counts, displacements;
};
std::vector<Extent> given_blocks(NamedSide const& side, GivenBlocks const& given);

/// Where the last one ends.
std::int64_t end_of_blocks(std::vector<Extent> const& blocks);

/// No two that are received share bytes.
void require_disjoint(Rank rank, std::vector<Extent> const& blocks);

}  // namespace hostless
