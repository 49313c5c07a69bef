#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hostless/plan/boxes.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless {

/// A message of an exchange, counted: no item of it is known.
struct CountedMessage {
  Rank source = 0, target = 0;
  std::int64_t items = 0;  ///< 0: a credit
  bool operator==(CountedMessage const&) const = default;
};

/// The messages of one stage of all ranks.
struct CountedStage {
  std::vector<int> after;                ///< positions of the stages that it waits for, each in front of it
  std::vector<CountedMessage> messages;  ///< rising by source, then by target
};

/// What one exchange of all ranks sends: all that prices of it need.
struct ExchangeCounts {
  Route route = Route::direct;
  NodeMap nodes;
  std::vector<std::int64_t> leaving;  ///< [ranks] owned items that anybody reads, the rank itself too
  std::vector<std::int64_t> ghosts;   ///< [ranks] items that the rank reads
  std::vector<CountedStage> stages;
};

/// Of plans that are made.
///
/// plans   of all ranks, in their order
/// Local. Errors  usage  no plans, or not those of all ranks of one exchange in order; a stage that waits for one behind it
/// Cost    one walk over the plans
ExchangeCounts count_exchange(std::vector<ExchangePlan> const& plans);

/// Whether a route sends parts of what one rank reads of another by several ways: split and leader do.
bool cuts_items(Route route);

/// Of a route, without making its plans: the messages are those of make_plans with an all-rank sum between
/// two exchanges (ReuseGuarantee::reduction).
///
/// patterns  [ranks]
/// weights   [ranks][owned] items that each item stands for, which always travel together; empty: 1 each
/// options   of which `message_cap`, `by_socket` and `dies` decide messages
/// Local. Errors  usage  patterns, weights, options and nodes do not fit together; weights with a route that
///                       cuts what travels together (cuts_items)
/// Cost    O(n log n) time, O(n) memory, n = (item, receiver) pairs of all ranks, whatever their weights
ExchangeCounts count_exchange(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                              std::vector<std::vector<std::int64_t>> const& weights = {},
                              PlanOptions const& options = {});

/// Patterns of items that stand for several.
struct CoarsePatterns {
  std::vector<Pattern> patterns;
  std::vector<std::vector<std::int64_t>> weights;  ///< [ranks][owned]
};

/// The halos of a grid in boxes, one item a strip of cells: what `box_patterns` has an item a cell for. Counts
/// of routes that send all cells of a strip by one way are equal for both.
///
/// Local. Errors  as box_halo
/// Cost    O(strips): at most 26 a rank, whatever the size of the grid
CoarsePatterns box_strips(BoxPartition const& partition, std::array<std::int64_t, 3> depth, bool faces_only);

/// Of the neighbours in these directions alone.
CoarsePatterns box_strips(BoxPartition const& partition, std::array<std::int64_t, 3> depth,
                          std::vector<Direction> const& directions);

/// Of every route that sends all cells of a strip by one way. Errors and cost  as count_exchange
std::vector<ExchangeCounts> count_strips(CoarsePatterns const& strips, NodeMap const& nodes);

}  // namespace hostless
