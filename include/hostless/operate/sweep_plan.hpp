#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hostless/operate/tiling.hpp"
#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// What products with a matrix need beside the exchange of their vector: in which pieces one rank's rows are
/// worked on, and what each piece waits for. Pure data, as an ExchangePlan is.
struct SweepPlan {
  Tiling tiling;
  /// [tiling.slices] stages of the exchange that must be complete before a slice is (empty: an interior one)
  std::vector<std::vector<StageId>> needs;
  /// Whether a slice must await anything that other ranks send.
  bool awaits(int slice) const {
    auto const i = static_cast<std::size_t>(slice);
    return i < needs.size() && !needs[i].empty();
  }
};

/// The safe answer: every slice needs every stage that writes ghosts.
/// Errors  usage  a tiling that is none, or not of the plan's owned items
SweepPlan make_sweep(ExchangePlan const& plan, Tiling const& tiling);

/// What each slice really waits for: the stages that write the ghosts it reads.
///
/// first   [slices + 1] the ghosts that slice s reads are ghost[first[s] .. first[s + 1])
/// ghost   indices in [0, plan.ghosts), any order, repeats allowed
/// Errors  usage  as above; sizes or indices out of range, a ghost that no stage writes
SweepPlan make_sweep(ExchangePlan const& plan, Tiling const& tiling, std::span<std::int64_t const> first,
                     std::span<std::int32_t const> ghost);

/// Of the exchange and of what decides the order of sums, whatever the GPUs of ranks: where it is equal the bits of a
/// solve are.
std::uint64_t fingerprint(ExchangePlan const& plan, SweepPlan const& sweep);

}  // namespace hostless
