#pragma once
// What `hostless bench neighbor` says of a way: the row of its JSON, and the line of its table that is made of it.

#include <string>

#include "../messages.hpp"
#include "bench/neighbor/neighbors.hpp"

namespace hostless {

/// multiplies  its bytes are those that all ranks gather, and it says of what (blocks, rows)
Json row_of_way(bench::NeighborWay const& way, bench::NeighborTiming const& timing, bool multiplies);
std::string line_of_way(Json const& row, bench::Timing const& call);
std::string head_of_ways();

}  // namespace hostless
