#include "exchange/neighborhood/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"

namespace hostless {
namespace {

[[noreturn]] void refuse_blocks(std::string const& what) {
  throw Error(ErrorCode::usage, what + " (each neighbour has one block). Correct what is passed.");
}

}  // namespace

std::vector<Extent> equal_blocks(NamedSide const& side, std::size_t bytes) {
  if (side.neighbours == 0) return {};
  if (bytes % side.neighbours != 0)
    refuse_blocks(fmt::format("rank {}: {} are {} in {} equal blocks", side.rank, counted(bytes, "byte"),
                              side.name, side.neighbours));
  auto const block = static_cast<std::int64_t>(bytes / side.neighbours);
  std::vector<Extent> blocks;
  for (std::size_t k = 0; k < side.neighbours; ++k)
    blocks.push_back({static_cast<std::int64_t>(k) * block, block});
  return blocks;
}

std::vector<Extent> given_blocks(NamedSide const& side, GivenBlocks const& given) {
  auto const refuse = [&](std::string const& what) {
    refuse_blocks(fmt::format("rank {}: {}", side.rank, what));
  };
  auto const refuse_block = [&](std::size_t k, std::string const& what) {
    refuse(fmt::format("{} block {} {}", side.name, k, what));
  };
  if (given.counts.size() != side.neighbours)
    refuse(fmt::format("{} of {} blocks for {}", counted(given.counts.size(), "count"), side.name,
                       counted(side.neighbours, "neighbour")));
  bool const dense = given.displacements.empty();
  if (!dense && given.displacements.size() != side.neighbours)
    refuse(fmt::format("{} of {} blocks for {}", counted(given.displacements.size(), "displacement"),
                       side.name, counted(side.neighbours, "neighbour")));
  if (given.item_bytes == 0) refuse(fmt::format("{} blocks of items of 0 bytes", side.name));
  constexpr auto most_bytes = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  auto const items = static_cast<std::int64_t>(std::min(given.memory_bytes, most_bytes) / given.item_bytes);
  auto const item_bytes = static_cast<std::int64_t>(std::min(given.item_bytes, most_bytes));
  std::vector<Extent> blocks;
  std::int64_t next = 0;
  for (std::size_t k = 0; k < side.neighbours; ++k) {
    std::int64_t const count = given.counts[k], first = dense ? next : given.displacements[k];
    if (count < 0) refuse_block(k, fmt::format("has {} items", count));
    if (first < 0) refuse_block(k, fmt::format("begins at item {}, in front of the memory", first));
    if (count > 0 && (first > items || count > items - first))
      refuse_block(
          k, fmt::format("has {} of {} from item {} on, which leave the memory's {}", counted(count, "item"),
                         counted(given.item_bytes, "byte"), first, counted(given.memory_bytes, "byte")));
    blocks.push_back(count == 0 ? Extent{} : Extent{first * item_bytes, count * item_bytes});
    next = first + count;
  }
  return blocks;
}

std::int64_t end_of_blocks(std::vector<Extent> const& blocks) {
  std::int64_t end = 0;
  for (Extent const& block : blocks) end = std::max(end, block.first + block.units);
  return end;
}

void require_disjoint(Rank rank, std::vector<Extent> const& blocks) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < blocks.size(); ++k)
    if (blocks[k].units > 0) order.push_back(k);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return blocks[a].first < blocks[b].first; });
  for (std::size_t k = 1; k < order.size(); ++k) {
    Extent const &before = blocks[order[k - 1]], &block = blocks[order[k]];
    if (block.first < before.first + before.units)
      refuse_blocks(fmt::format("rank {}: received blocks {} and {} share bytes, from byte {} on", rank,
                                std::min(order[k - 1], order[k]), std::max(order[k - 1], order[k]),
                                block.first));
  }
}

}  // namespace hostless
