#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hostless/plan/halo_plan.hpp"

namespace hostless {

/// What a plan is made for, beside its route. Equal on all ranks.
struct PlanOptions {
  /// reduction: landing places have two epochs, and an all-rank sum lies between two uses of one.
  /// credit: one epoch; a stage in front of all others returns a zero-byte message for every message, so that
  /// a source sends only after its target has begun the same exchange (and is done with the ghosts of the
  /// last).
  Free free = Free::reduction;
  Space space = Space::host;
  int block = 1;      ///< rows of a leaf; must divide the owned rows of every rank
  int slices = 264;   ///< of the tiling
  int row_lanes = 1;  ///< of the tiling
};

/// One rank's plan for the exchange that `patterns` describe.
///
/// patterns  [ranks] the pattern of every rank; an item whose receiver is its own rank (a periodic stencil)
/// becomes a
///           move, without a message
/// Stages    direct: X; two_step: L beside N, N -> R; three_step: L beside G, G -> N -> R. They are listed in
/// an order
///           in which they can run; stages without work for a rank are kept, so ids mean the same on every
///           rank.
/// Layout    ghosts by (source rank, item) behind the owned items of buffer 0. Items that lie together, in
/// order, are
///           sent from where they lie and received where they belong; all others pass through a staging
///           buffer.
/// needs     set to the safe answer, every slice needs every stage that writes ghosts, until `set_needs`
/// Local: no communication. All ranks that pass equal arguments get plans that fit together.
/// Errors    usage  patterns, node map and rank do not fit together; a block that does not divide the rows; a
/// reason
///                  other than reduction and credit; more than 2^31 - 1 items in one buffer
/// Cost      O(n log n) time, O(n) memory, n = (item, receiver) pairs of all ranks
/// Source    Lockhart et al. 2022, section 2.3 (docs/references.md)
HaloPlan make_plan(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes, Rank rank,
                   PlanOptions const& options = {});

/// The plans of all ranks, equal to make_plan for each.
std::vector<HaloPlan> make_plans(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                                 PlanOptions const& options = {});

/// Hash (64-bit FNV-1a) of everything that decides the plans of all ranks.
std::uint64_t fingerprint(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                          PlanOptions const& options);

/// Replaces `plan.needs` by what each slice really waits for: the stages that write the ghosts it reads.
///
/// tiling  must equal plan.tiling, which the fingerprint covers
/// first   [slices + 1] the ghosts that slice s reads are ghost[first[s] .. first[s + 1])
/// ghost   indices in [0, plan.ghosts), any order, repeats allowed
/// Errors  usage  sizes or indices out of range, another tiling, a ghost that no stage writes
void set_needs(HaloPlan& plan, Tiling const& tiling, std::span<std::int64_t const> first,
               std::span<std::int32_t const> ghost);

}  // namespace hostless
