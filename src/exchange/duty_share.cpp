// The part of kernel_duties.hpp that asks no other rank. GPU libraries have it too, since they know how many
// blocks a kernel has: so without fmt.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "exchange/kernel_duties.hpp"
#include "hostless/base/error.hpp"
#include "plan/index.hpp"

namespace hostless {
namespace {

std::string entry(char const* field, std::size_t k) {
  return std::string(field) + "[" + std::to_string(k) + "]: ";
}

/// Blocks by what they have to do.
class Loads {
 public:
  explicit Loads(std::vector<std::int64_t> const& begin) {
    for (std::size_t b = 0; b < begin.size(); ++b) least_.emplace(begin[b], static_cast<std::int32_t>(b));
  }
  /// Gives something to the block that has least.
  std::int32_t give(std::int64_t work) {
    auto const [load, block] = least_.top();
    least_.pop();
    least_.emplace(load + work, block);
    return block;
  }

 private:
  using Entry = std::pair<std::int64_t, std::int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> least_;
};

class Dealer {
 public:
  Dealer(PeerCopies const& copies, KernelShape const& shape, std::int64_t ghosts)
      : shape_(shape), ghosts_(ghosts), level_(copies.rounds.size()), block_(copies.rounds.size()) {
    made_.blocks = shape.blocks;
    made_.levels = static_cast<int>(copies.rounds.size());
    made_.staging = copies.staging;
    std::size_t all = 0;
    for (auto const& round : copies.rounds) all += round.size();
    if (std::max(all, at(ghosts)) > at(std::numeric_limits<std::int32_t>::max()))
      throw Error(ErrorCode::usage, std::to_string(all) +
                                        " copies of one rank (duties of its kernel are named by 32 bits). "
                                        "Use more ranks.");
    for (std::size_t round = 0; round < copies.rounds.size(); ++round)
      for (PeerCopy const& copy : copies.rounds[round]) level_[copy.from_staging ? round : 0].push_back(copy);
    auto const key = [](PeerCopy const& c) { return std::tuple(c.from, c.target, c.to_staging, c.to); };
    std::sort(level_[0].begin(), level_[0].end(),
              [&](PeerCopy const& a, PeerCopy const& b) { return key(a) < key(b); });
  }

  KernelDuties run() {
    send_own();
    Loads loads(begin_);
    for (std::size_t level = 1; level < block_.size(); ++level) hand_on(level, loads);
    list_copies();
    if (shape_.lands) land(loads);
    made_.first_landing.resize(at(shape_.blocks) + 1, static_cast<std::int32_t>(made_.landings.size()));
    made_.first_answer.assign(at(shape_.blocks) + 1, 0);
    made_.first_awaited.assign(at(shape_.blocks) + 1, 0);
    return std::move(made_);
  }

 private:
  /// Whoever has an item sends it, at once: no word waits for a message that it would be part of.
  void send_own() {
    begin_.assign(at(shape_.blocks), 0);
    auto const& own = level_[0];
    for (std::size_t k = 0; k < own.size(); ++k) {
      std::int32_t block = 0;
      if (shape_.block_of_item) {
        block = shape_.block_of_item(own[k].from);
        if (block < 0 || block >= shape_.blocks)
          throw Error(ErrorCode::usage, "block_of_item: " + std::to_string(block) + " for item " +
                                            std::to_string(own[k].from) + " (the kernel has " +
                                            std::to_string(shape_.blocks) +
                                            " blocks). Name the block that has the item.");
      } else {
        block = static_cast<std::int32_t>(k * at(shape_.blocks) / own.size());
      }
      block_[0].push_back(block);
      ++begin_[at(block)];
    }
    if (!shape_.boundary_rows.empty()) begin_ = shape_.boundary_rows;
  }

  void hand_on(std::size_t level, Loads& loads) {
    auto const& all = level_[level];
    auto const belongs = [&](std::size_t k) { return all[k].from == all[k - 1].from; };
    for (std::size_t low = 0, high = 0; low < all.size(); low = high) {
      while (high < all.size() && (high - low < at(duty_grain) || belongs(high))) ++high;
      block_[level].insert(block_[level].end(), high - low,
                           loads.give(static_cast<std::int64_t>(high - low)));
    }
  }

  void list_copies() {
    std::size_t const levels = block_.size(), lists = at(shape_.blocks) * levels;
    made_.first.assign(lists + 1, 0);
    auto const list = [&](std::size_t level, std::size_t k) { return at(block_[level][k]) * levels + level; };
    for (std::size_t level = 0; level < levels; ++level)
      for (std::size_t k = 0; k < block_[level].size(); ++k) ++made_.first[list(level, k) + 1];
    std::partial_sum(made_.first.begin(), made_.first.end(), made_.first.begin());
    std::vector<std::int32_t> next(made_.first.begin(), made_.first.end() - 1);
    made_.copies.resize(at(made_.first.back()));
    for (std::size_t level = 0; level < levels; ++level)
      for (std::size_t k = 0; k < block_[level].size(); ++k)
        made_.copies[at(next[list(level, k)]++)] = level_[level][k];
  }

  void land(Loads& loads) {
    std::vector<std::pair<std::int32_t, std::int32_t>> all;  // block, ghost
    for (std::int64_t low = 0, high = 0; low < ghosts_; low = high) {
      high = std::min(low + duty_grain, ghosts_);
      std::int32_t const block = shape_.block_of_ghost.empty() ? loads.give(high - low) : -1;
      for (std::int64_t g = low; g < high; ++g)
        all.emplace_back(block < 0 ? shape_.block_of_ghost[at(g)] : block, static_cast<std::int32_t>(g));
    }
    std::sort(all.begin(), all.end());
    for (auto const& [block, ghost] : all) {
      made_.first_landing.resize(at(block) + 1, static_cast<std::int32_t>(made_.landings.size()));
      made_.landings.push_back(ghost);
    }
  }

  KernelShape const& shape_;
  std::int64_t ghosts_;
  std::vector<std::vector<PeerCopy>> level_;
  std::vector<std::vector<std::int32_t>> block_;  // [level][copy]
  std::vector<std::int64_t> begin_;               // what blocks do anyway
  KernelDuties made_;
};

}  // namespace

std::string shape_flaw(KernelShape const& shape, std::int64_t ghosts) {
  if (shape.blocks < 1) return "blocks: " + std::to_string(shape.blocks) + ", a kernel has at least one";
  if (!shape.boundary_rows.empty() && shape.boundary_rows.size() != at(shape.blocks))
    return "boundary_rows: of " + std::to_string(shape.boundary_rows.size()) + " blocks, there are " +
           std::to_string(shape.blocks);
  for (std::size_t b = 0; b < shape.boundary_rows.size(); ++b)
    if (shape.boundary_rows[b] < 0)
      return entry("boundary_rows", b) + std::to_string(shape.boundary_rows[b]) + " rows";
  if (shape.block_of_ghost.empty()) return {};
  if (!shape.lands) return "block_of_ghost: given, but no ghosts land (`lands` is false)";
  if (shape.block_of_ghost.size() != at(ghosts))
    return "block_of_ghost: of " + std::to_string(shape.block_of_ghost.size()) + " ghosts, there are " +
           std::to_string(ghosts);
  for (std::size_t g = 0; g < shape.block_of_ghost.size(); ++g)
    if (shape.block_of_ghost[g] < 0 || shape.block_of_ghost[g] >= shape.blocks)
      return entry("block_of_ghost", g) + std::to_string(shape.block_of_ghost[g]) +
             ", there are blocks 0 to " + std::to_string(shape.blocks - 1);
  return {};
}

KernelDuties share_duties(PeerCopies const& copies, KernelShape const& shape, std::int64_t ghosts) {
  return Dealer(copies, shape, ghosts).run();
}

}  // namespace hostless
