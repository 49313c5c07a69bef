#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// What connects the ranks of a node, for route leader: the same on every node, rank by its place in the
/// list of the node's ranks. Empty (dies 0): all alike, and shares are equal.
struct DieLinks {
  int dies = 0;            ///< rows and columns; at least as many as any node has ranks
  std::vector<int> links;  ///< [from][to] direct links between two dies, 0 to 1000
  std::vector<int> hops;   ///< [from][to] hops between them, 0 to 1000
};

/// What a plan is made for, beside its route. Equal on all ranks.
struct PlanOptions {
  /// reduction: buffers have two epochs, and an all-rank sum lies between two uses of one.
  /// credit: one epoch; a stage in front of all others returns a zero-byte message for every message, so that
  /// a source sends only after its target has begun the same exchange (and is done with the ghosts of the
  /// last).
  /// answer: two epochs and no sums; of two ranks that send to each other each message is the other's answer,
  /// and nothing is awaited that an exchange would not await anyway. Messages without an opposite one get a
  /// credit. What an exchange without a solver wants.
  ReuseGuarantee reuse_guarantee = ReuseGuarantee::reduction;
  Space space = Space::host;
  bool apart = false;  ///< ghosts lie in an array of their own instead of around the owned items
  /// Route split: items of a message between nodes, unless a node would receive more messages than it has
  /// ranks. Items of the plan, whatever they hold: where they are of several lengths, so are messages. The
  /// default is 8 KiB of fp64, from where the machines of the reference change to the rendezvous protocol.
  std::int64_t message_cap = 1024;
  bool by_socket = false;  ///< route three_step: each socket gathers before its node does
  DieLinks dies = {};      ///< route leader: what shares on the node of their source follow
};

/// Why a route cannot follow `message_cap`, `by_socket` and `dies` on these nodes; empty if it can.
std::string flaw(Route route, PlanOptions const& options, NodeMap const& nodes);

/// The route where nobody names one: three_step between nodes, direct on one.
Route automatic_route(NodeMap const& nodes);

/// One rank's plan for the exchange that `patterns` describe.
///
/// patterns  [ranks] the pattern of every rank; an item whose receiver is its own rank (a periodic stencil)
///           becomes a move, without a message
/// Stages    direct: X; two_step: L beside N, N -> R; three_step, split: L beside G, G -> N -> R (three_step
///           by socket: C -> G); leader: L -> S beside N -> R -> H (docs/protocols.md). With credits one
///           more, in front of the others or (answer) beside them. They are listed in an order in which they
///           can run; stages without work for a rank are kept, so ids mean the same on every rank.
/// Layout    ghosts by (source rank, item), or by Pattern::position, behind the owned items of buffer 0 or in
///           buffer 1. Items that lie together, in order, are sent from where they lie and received where
///           they belong; all others pass through a staging buffer.
/// Local: no communication. All ranks that pass equal arguments get plans that fit together.
/// Order     a rank r sends the messages of a stage to r + 1, r + 2, ... in turn, round to r - 1
/// Errors    usage  patterns, node map and rank do not fit together; positions without `apart`; a cap below
///                  1; `by_socket` or `dies` with a route that has no use for them; the reason
///                  promise; values that are none; more than 2^31 - 1 items in one buffer
/// Cost      O(n log n) time, O(n) memory, n = (item, receiver) pairs of all ranks
/// Source    Lockhart et al. 2022, section 2.3; leader: Temuçin et al. 2024, section V (docs/references.md)
ExchangePlan make_plan(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes, Rank rank,
                       PlanOptions const& options = {});

/// The plans of all ranks, equal to make_plan for each.
std::vector<ExchangePlan> make_plans(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                                     PlanOptions const& options = {});

/// Hash (64-bit FNV-1a) of everything that decides the plans of all ranks, with mark_of_devices.
std::uint64_t fingerprint(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                          PlanOptions const& options);
/// What the GPUs of ranks add to it by exclusive or: they decide which rank sends and in what order, and no bit of
/// what is computed with ghosts. 0: all ranks are on the processor.
std::uint64_t mark_of_devices(NodeMap const& nodes);

/// [plan.ghosts] the stage that writes each ghost, -1 if none does.
std::vector<StageId> ghost_writers(ExchangePlan const& plan);

}  // namespace hostless
