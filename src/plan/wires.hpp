#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless {

/// An item, named so that every rank means the same.
struct Item {
  Rank source = 0;
  std::int32_t item = 0;
  auto operator<=>(Item const&) const = default;
};

/// Part of a route that a message belongs to: `near` are X and L (owner to reader), the others C, G, N, S, R
/// and H of the table of routes in docs/protocols.md.
enum class Step : std::uint8_t { near, collect, gather, network, share, redistribute, hand_on };

/// One message of a route before buffers are laid out. Its items are rising and not empty.
struct Wire {
  Step step = Step::near;
  Rank source = 0, target = 0;
  std::vector<Item> items;
};

/// [ranks][owned] items that each item stands for; empty: 1 each.
using ItemWeights = std::vector<std::vector<std::int64_t>>;

/// The steps of a route in the order of their stages, and for each the position of the step that it follows
/// (-1: none).
std::vector<std::pair<Step, int>> steps_of(Route route, bool by_socket);

/// All messages of all ranks, ordered by (step, source, target); the position is the id of the message.
///
/// direct      near: every owner to every reader
/// two_step    near: inside nodes; network: every owner to its paired rank of each node that reads;
///             redistribute
/// three_step  near: inside nodes; collect (by socket alone), gather, network, redistribute: one network
///             message for an ordered pair of nodes
/// split       as three_step, with pieces of what goes to a node dealt over the ranks of both nodes
/// leader      near, share: of what several ranks of a GPU read each gets a part, and they exchange parts;
///             network, redistribute: the same for the leaders of another node's GPUs; hand_on: leader to GPU
/// weights     by which three_step orders pairs of nodes; split and leader count items
/// Cost    O(n log n) time and O(n) memory in the total number n of (item, receiver) pairs
/// Source  Lockhart et al. 2022, section 2.3; Temuçin et al. 2024, section V
std::vector<Wire> wires(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                        PlanOptions const& options, ItemWeights const& weights = {});

}  // namespace hostless
