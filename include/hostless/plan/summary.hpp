#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// Messages and items in one direction, split by whether they leave a node. Credits carry nothing and are
/// counted apart.
struct Traffic {
  std::int64_t messages_inside = 0, items_inside = 0;
  std::int64_t messages_between = 0, items_between = 0;
  std::int64_t credits = 0;
};

struct RankSummary {
  Rank rank = 0;
  int node = 0;
  std::int64_t owned = 0, ghosts = 0;
  Traffic sent, received;
  std::int64_t items_moved = 0;    ///< packed, unpacked and copied
  std::int64_t staging_items = 0;  ///< of one epoch, all buffers but the caller's
};

/// What one rank sends to another in one exchange; credits not counted.
struct PairTraffic {
  Rank source = 0, target = 0;
  std::int64_t messages = 0, items = 0;
};

/// Rising by target. Local; costs a walk over the messages of the plan.
std::vector<PairTraffic> pairs_sent(ExchangePlan const& plan);

/// What the plans of one exchange move: `hostless plan` prints it.
struct PlanSummary {
  Route route = Route::direct;
  std::uint64_t fingerprint = 0;
  int ranks = 0, nodes = 0, stages = 0;
  int item_bytes = 8;
  std::vector<RankSummary> rank;   ///< [ranks]
  std::vector<PairTraffic> pairs;  ///< those that send anything, rising by source, then by target
  RankSummary total;               ///< sums over ranks; its rank and node mean nothing
  RankSummary most;                ///< the largest of any rank, number by number
};

/// plans       of all ranks
/// item_bytes  bytes of one item: 8 for one fp64 field
/// Errors  usage  no plans, or item_bytes < 1
PlanSummary summarise(std::vector<ExchangePlan> const& plans, int item_bytes = 8);

/// For people: one line a rank, then total and most.
std::string table(PlanSummary const& summary);

/// For programs: an object with `version` 1, `route`, `ranks`, `nodes`, `total`, `most`, `per_rank` and
/// `pairs`, whose lists `source`, `target`, `messages` and `bytes` have one entry each for each pair.
std::string to_json(PlanSummary const& summary);
/// The object `pairs` of it alone.
std::string to_json(std::vector<PairTraffic> const& pairs, int item_bytes);

}  // namespace hostless
