#pragma once

#include <cstdint>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless {

/// Where an item with a length of its own lies in an array, in units.
struct Extent {
  std::int64_t first = 0, units = 0;
  bool operator==(Extent const&) const = default;
};

/// Where the items of one rank lie.
struct Extents {
  std::int64_t send_units = 0, receive_units = 0;  ///< of the arrays that hold the items and the ghosts
  /// [Pattern::owned] They may share units, because they are only read; those that nobody reads may be empty.
  std::vector<Extent> owned;
  /// [ghosts] in the order in which they lie in a plan of equal items. They share no unit, and units that are
  /// no ghost's are gaps: nothing is written there.
  std::vector<Extent> ghosts;
};

/// Plans whose items have lengths of their own, made from plans of equal items: what was an item is as many
/// units, which lie together wherever the item lies. So a plan is made of as many items as there are blocks,
/// and not of as many as there are numbers.
///
/// plans    of all ranks, or of some, made from `patterns` with ghosts in an array of their own
/// options  with which they were made. The cap of route split is of items, whatever their lengths
/// extents  [ranks] equal on whoever calls this for the same patterns
/// Returns  [plans] plans for fields whose items are units, in the same stages. What no longer lies together
///          passes through staging buffers of its own. A message knows its end on a rank without a plan here
///          by nothing
/// Local. Errors  usage  plans that are not of these patterns and options or have ghosts around their items;
///                       extents that do not fit them, leave their array or share units; a ghost of another
///                       length than its item, an item that is read and is empty; more than 2^31 - 1 units in
///                       a buffer
/// Cost    O(n log n) time, n = (item, receiver) pairs of all ranks, and that of copying the plans; whatever
///         the lengths
std::vector<ExchangePlan> stretched(std::vector<ExchangePlan> const& plans,
                                    std::vector<Pattern> const& patterns, PlanOptions const& options,
                                    std::vector<Extents> const& extents);

}  // namespace hostless
