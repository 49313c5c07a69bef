#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exchange/copy_step.hpp"
#include "hostless/exchange/field.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// A stage whose places are addresses and whose messages are numbers of a binding.
struct LoweredStage {
  std::vector<int> after;              ///< positions of stages
  std::vector<CopyStep> pack, unpack;  ///< the plan's moves, and what no message can take from where it lies
  std::vector<int> out, in;            ///< indices into binding.out and binding.in; the farthest leave first
};

/// A plan over one rank's memory: what is executed, and what a transport is told.
///
/// An item of a staging buffer is one item of every field, in the order of the fields; so any range of a
/// buffer is one piece of memory, and all fields travel in one message. A message whose items are of one
/// field and lie together in the caller's memory is sent from there, or received there, where that is
/// allowed; all others pass through staging.
struct LoweredPlan {
  std::vector<LoweredStage> stages;
  std::vector<int> position_of_stage;  ///< by id, -1: there is none
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  std::vector<std::unique_ptr<std::byte[]>> staging;  ///< what `out`, `in` and the steps point into
  std::vector<std::unique_ptr<std::int32_t[]>> index;
};

/// plan      such that refusal(plan) is empty
/// in_place  whether messages may be sent from and received in the fields' memory
/// Errors  usage  no fields for a plan that moves items; an item without bytes, or of more than there can be;
///                two arrays for a plan of one; ghosts that share bytes with owned items or other ghosts
LoweredPlan lower_plan(ExchangePlan const& plan, std::span<Field const> fields, bool in_place = true);

}  // namespace hostless
