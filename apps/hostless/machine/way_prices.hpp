#pragma once
// Prices of an exchange by every route: `hostless plan --machine` and `hostless machine halo`.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hostless/model/plan_price.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hostless {

/// The word --memory: where the items lie.
CLI::Option* add_memory(CLI::App& command, MemoryKind& memory);

/// For people: a line for each way, the cheapest one and why. Errors  bad_input  nothing has a price
void print_ways(MachineModel const& machine, std::vector<PricedWay> const& ways, double item_bytes);

/// For programs. Errors  bad_input  nothing has a price
nlohmann::ordered_json json_of(MachineModel const& machine, std::vector<PricedWay> const& ways,
                               double item_bytes);

}  // namespace hostless
