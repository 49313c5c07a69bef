#pragma once

#include <string>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// The first thing wrong with the shape of plan data, or an empty string: counts, ranges, ids and sizes,
/// everything that code which walks the data relies on. The text starts with the place in the structure, as
/// in `stages[2].in[0].to: buffer 9 does not exist`.
///
/// Local: no other rank's data is looked at; what holds between ranks is the checker's (checker.hpp).
/// Cost  one pass over the data, no allocation larger than the data
std::string flaw(NodeMap const& nodes);
std::string flaw(std::vector<Pattern> const& patterns);
std::string flaw(ExchangePlan const& plan);

}  // namespace hostless
