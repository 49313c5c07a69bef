#include "hostless/plan/reverse.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hostless/base/error.hpp"
#include "hostless/plan/shape.hpp"
#include "plan/index.hpp"
#include "plan/wires.hpp"

namespace hostless {
namespace {

/// [ranks][ghosts] the items that the ghosts of each rank are copies of, as they lie.
std::vector<std::vector<Item>> items_of_ghosts(std::vector<Pattern> const& patterns) {
  if (std::string const text = flaw(patterns); !text.empty())
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot plan an exchange: {} (all ranks must plan from the same, valid data). Correct "
                    "the patterns",
                    text));
  std::vector<std::vector<Item>> read(patterns.size());
  for (std::size_t s = 0; s < patterns.size(); ++s)
    for (std::size_t k = 0; k < patterns[s].item.size(); ++k)
      for (std::int64_t j = patterns[s].first[k]; j < patterns[s].first[k + 1]; ++j)
        read[at(patterns[s].receiver[at(j)])].push_back({static_cast<Rank>(s), patterns[s].item[k]});
  for (std::size_t r = 0; r < patterns.size(); ++r) {
    if (patterns[r].position.empty()) continue;
    std::vector<Item> lying(read[r].size());
    for (std::size_t g = 0; g < lying.size(); ++g) lying[at(patterns[r].position[g])] = read[r][g];
    read[r] = std::move(lying);
  }
  return read;
}

std::vector<Pattern> patterns_of(std::vector<std::vector<Item>> const& ghosts) {
  std::vector<Pattern> all;
  for (auto const& items : ghosts) {
    Pattern pattern;
    pattern.owned = static_cast<std::int64_t>(items.size());
    pattern.first.push_back(0);
    for (std::size_t g = 0; g < items.size(); ++g) {
      pattern.item.push_back(static_cast<std::int32_t>(g));
      pattern.receiver.push_back(items[g].source);
      pattern.first.push_back(static_cast<std::int64_t>(g) + 1);
    }
    all.push_back(std::move(pattern));
  }
  return all;
}

}  // namespace

std::vector<Pattern> transposed(std::vector<Pattern> const& patterns) {
  return patterns_of(items_of_ghosts(patterns));
}

ReversePlan make_reverse_plan(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                              Rank rank, PlanOptions options) {
  options.apart = true;
  auto const ghosts = items_of_ghosts(patterns);
  ReversePlan plan;
  plan.exchange = make_plan(route, patterns_of(ghosts), nodes, rank, options);
  plan.owned = patterns[at(rank)].owned;
  for (auto const& items : ghosts)
    for (Item const& item : items)
      if (item.source == rank) plan.sum.push_back(item.item);
  return plan;
}

}  // namespace hostless
