#include "hostless/model/counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/shape.hpp"
#include "plan/index.hpp"
#include "plan/wires.hpp"

namespace hostless {
namespace {

[[noreturn]] void cannot_count(std::string const& problem) {
  throw Error(ErrorCode::usage,
              fmt::format("cannot count an exchange: {} (its messages follow from all ranks' data). Correct "
                          "the arguments of count_exchange.",
                          problem));
}

void require_countable(std::vector<Pattern> const& patterns, NodeMap const& nodes,
                       ItemWeights const& weights) {
  std::string problem = flaw(nodes);
  if (problem.empty() && patterns.size() != nodes.node.size())
    problem =
        fmt::format("{} for {}", counted(patterns.size(), "pattern"), counted(nodes.node.size(), "rank"));
  if (problem.empty()) problem = flaw(patterns);
  if (problem.empty() && !weights.empty() && weights.size() != patterns.size())
    problem = fmt::format("weights of {} for {}", counted(weights.size(), "rank"), patterns.size());
  for (std::size_t r = 0; problem.empty() && r < weights.size(); ++r)
    if (std::ssize(weights[r]) != patterns[r].owned)
      problem =
          fmt::format("weights[{}]: {} for {}", r, weights[r].size(), counted(patterns[r].owned, "item"));
    else if (std::any_of(weights[r].begin(), weights[r].end(), [](std::int64_t w) { return w < 1; }))
      problem = fmt::format("weights[{}]: one below 1", r);
  if (!problem.empty()) cannot_count(problem);
}

// Items of buffer 0 that a plan sends or copies: those that anybody reads.
std::int64_t items_read(ExchangePlan const& plan) {
  std::vector<bool> read(at(plan.owned), false);
  auto const mark = [&](std::int64_t item) {
    if (item >= 0 && item < plan.owned) read[at(item)] = true;
  };
  for (Stage const& stage : plan.stages) {
    for (Message const& message : stage.out)
      if (message.from == 0)
        for (std::int64_t k = 0; k < message.items; ++k) mark(message.from_first + k);
    for (auto const* moves : {&stage.pack, &stage.unpack})
      for (Move const& move : *moves) {
        Pieces const& from = move.from;
        if (from.buffer != 0) continue;
        for (std::int32_t offset : from.index) mark(from.first + offset);
        if (from.index.empty())
          for (std::int32_t row = 0; row < from.rows; ++row)
            for (std::int32_t k = 0; k < from.count; ++k)
              mark(from.first + std::int64_t{row} * from.stride + k);
      }
  }
  return std::count(read.begin(), read.end(), true);
}

// The stages of a plan, and nothing that they send. Ids are numbers of the plan's own.
std::vector<CountedStage> stages_of(ExchangePlan const& plan) {
  std::vector<CountedStage> stages(plan.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (StageId before : plan.stages[s].after) {
      auto const found = std::find_if(plan.stages.begin(), plan.stages.begin() + std::ptrdiff_t(s),
                                      [&](Stage const& stage) { return stage.id == before; });
      if (found == plan.stages.begin() + std::ptrdiff_t(s))
        cannot_count(fmt::format("stage {} of rank {} waits for stage {}, which is none in front of it",
                                 plan.stages[s].id, plan.rank, before));
      stages[s].after.push_back(static_cast<int>(found - plan.stages.begin()));
    }
  return stages;
}

void sort_messages(ExchangeCounts& counts) {
  for (CountedStage& stage : counts.stages)
    std::sort(stage.messages.begin(), stage.messages.end(), [](auto const& a, auto const& b) {
      return std::tuple(a.source, a.target, a.items) < std::tuple(b.source, b.target, b.items);
    });
}

}  // namespace

bool cuts_items(Route route) { return route == Route::split || route == Route::leader; }

ExchangeCounts count_exchange(std::vector<ExchangePlan> const& plans) {
  if (plans.empty() || std::ssize(plans) != plans.front().ranks)
    cannot_count(fmt::format("{} of {}", counted(plans.size(), "plan"),
                             counted(plans.empty() ? 0 : plans.front().ranks, "rank")));
  ExchangeCounts counts{plans.front().route, plans.front().nodes, {}, {}, stages_of(plans.front())};
  for (ExchangePlan const& plan : plans) {
    if (auto const position = &plan - plans.data();
        plan.rank != position || plan.fingerprint != plans.front().fingerprint)
      cannot_count(fmt::format("plan {} of the list is that of rank {}{}", position, plan.rank,
                               plan.rank == position ? " of another exchange" : ""));
    if (plan.stages.size() != counts.stages.size())
      cannot_count(fmt::format("rank {} has {} stages and rank 0 {}", plan.rank, plan.stages.size(),
                               counts.stages.size()));
    counts.leaving.push_back(items_read(plan));
    counts.ghosts.push_back(plan.ghosts);
    for (std::size_t s = 0; s < plan.stages.size(); ++s)
      for (Message const& message : plan.stages[s].out)
        counts.stages[s].messages.push_back({message.source, message.target, message.items});
  }
  sort_messages(counts);
  return counts;
}

ExchangeCounts count_exchange(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                              ItemWeights const& weights, PlanOptions const& options) {
  require_countable(patterns, nodes, weights);
  if (std::string const problem = flaw(route, options, nodes); !problem.empty()) cannot_count(problem);
  if (!weights.empty() && cuts_items(route))
    cannot_count(fmt::format("weights with route {}, which cuts what they hold together", name(route)));
  auto const weight = [&](Rank rank, std::int32_t item) {
    return weights.empty() ? 1 : weights[at(rank)][at(item)];
  };
  ExchangeCounts counts{route,
                        nodes,
                        std::vector<std::int64_t>(patterns.size(), 0),
                        std::vector<std::int64_t>(patterns.size(), 0),
                        {}};
  for (Rank rank = 0; rank < nodes.ranks(); ++rank) {
    Pattern const& pattern = patterns[at(rank)];
    for (std::size_t k = 0; k < pattern.item.size(); ++k) {
      std::int64_t const items = weight(rank, pattern.item[k]);
      if (pattern.first[k + 1] > pattern.first[k]) counts.leaving[at(rank)] += items;
      for (auto j = pattern.first[k]; j < pattern.first[k + 1]; ++j)
        counts.ghosts[at(pattern.receiver[at(j)])] += items;
    }
  }
  std::vector<Step> steps;
  for (auto const& [step, follows] : steps_of(route, options.by_socket)) {
    steps.push_back(step);
    counts.stages.emplace_back();
    if (follows >= 0) counts.stages.back().after.push_back(follows);
  }
  for (Wire const& wire : wires(route, patterns, nodes, options, weights)) {
    std::int64_t items = 0;
    for (Item const& item : wire.items) items += weight(item.source, item.item);
    auto const stage = std::find(steps.begin(), steps.end(), wire.step) - steps.begin();
    counts.stages[at(stage)].messages.push_back({wire.source, wire.target, items});
  }
  sort_messages(counts);
  return counts;
}

namespace {

template <class Wanted>
CoarsePatterns strips_of(BoxPartition const& partition, std::array<std::int64_t, 3> depth, bool faces_only,
                         Wanted const& wanted) {
  CoarsePatterns coarse;
  for (Rank rank = 0; rank < partition.ranks(); ++rank) {
    BoxHalo halo = box_halo(partition, rank, depth, faces_only);
    std::erase_if(halo.out, [&](HaloStrip const& strip) { return !wanted(strip.direction); });
    Pattern& pattern = coarse.patterns.emplace_back();
    auto& weights = coarse.weights.emplace_back();
    pattern.owned = std::ssize(halo.out);
    pattern.first.push_back(0);
    for (HaloStrip const& strip : halo.out) {
      pattern.item.push_back(static_cast<std::int32_t>(weights.size()));
      weights.push_back(strip.cells.cells());
      pattern.receiver.push_back(strip.neighbour);
      pattern.first.push_back(std::ssize(pattern.receiver));
    }
  }
  return coarse;
}

}  // namespace

CoarsePatterns box_strips(BoxPartition const& partition, std::array<std::int64_t, 3> depth, bool faces_only) {
  return strips_of(partition, depth, faces_only, [](Direction) { return true; });
}

CoarsePatterns box_strips(BoxPartition const& partition, std::array<std::int64_t, 3> depth,
                          std::vector<Direction> const& directions) {
  return strips_of(partition, depth, false, [&](Direction direction) {
    return std::find(directions.begin(), directions.end(), direction) != directions.end();
  });
}

std::vector<ExchangeCounts> count_strips(CoarsePatterns const& strips, NodeMap const& nodes) {
  std::vector<ExchangeCounts> counts;
  for (Route const route : all_routes)
    if (!cuts_items(route)) counts.push_back(count_exchange(route, strips.patterns, nodes, strips.weights));
  return counts;
}

}  // namespace hostless
