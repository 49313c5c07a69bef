#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/plan/halo_plan.hpp"

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
  std::int64_t staging_items = 0;  ///< of one epoch, all buffers but the bound vector
};

/// What the plans of one exchange move: `hostless plan` prints it.
struct PlanSummary {
  Route route = Route::direct;
  std::uint64_t fingerprint = 0;
  int ranks = 0, nodes = 0, stages = 0;
  int item_bytes = 8;
  std::vector<RankSummary> rank;  ///< [ranks]
  RankSummary total;              ///< sums over ranks; its rank and node mean nothing
  RankSummary most;               ///< the largest of any rank, number by number
};

/// plans       of all ranks
/// item_bytes  bytes of one item: 8 for one fp64 field
/// Errors  usage  no plans, or item_bytes < 1
PlanSummary summarise(std::vector<HaloPlan> const& plans, int item_bytes = 8);

/// For people: one line a rank, then total and most.
std::string table(PlanSummary const& summary);

/// For programs: an object with `version` 1, `route`, `ranks`, `nodes`, `total`, `most` and `per_rank`.
std::string to_json(PlanSummary const& summary);

}  // namespace hostless
