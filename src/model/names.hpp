#pragma once
// The words of machine files, in the order of the enumerators.

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "hostless/model/machine_model.hpp"

namespace hostless {

inline constexpr double endless = std::numeric_limits<double>::infinity();  // of the last piece

inline constexpr std::array all_protocols = {Protocol::short_message, Protocol::eager, Protocol::rendezvous};
inline constexpr std::array all_transfers = {Transfer::inlined, Transfer::buffered, Transfer::direct};
inline constexpr std::array all_copy_directions = {CopyDirection::host_to_device,
                                                   CopyDirection::device_to_host};

inline constexpr std::array<std::pair<char const*, std::optional<double> TriggerCosts::*>, 6>
    trigger_members = {{{"kernel_launch_s", &TriggerCosts::kernel_launch},
                        {"graph_node_s", &TriggerCosts::graph_node},
                        {"grid_barrier_s", &TriggerCosts::grid_barrier},
                        {"flagged_word_s", &TriggerCosts::flagged_word},
                        {"stream_flag_s", &TriggerCosts::stream_flag},
                        {"all_reduce_s", &TriggerCosts::all_reduce}}};

/// The piece of a line in pieces that has these bytes; the last one has no end.
template <class Piece>
Piece const& piece_of(std::vector<Piece> const& pieces, double bytes) {
  return *std::find_if(pieces.begin(), pieces.end() - 1,
                       [&](Piece const& piece) { return bytes <= piece.up_to; });
}

template <class Values>
std::vector<std::string> names_of(Values const& values) {
  std::vector<std::string> all;
  for (auto value : values) all.emplace_back(name(value));
  return all;
}

}  // namespace hostless
