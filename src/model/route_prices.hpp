#pragma once
// What the exchange of plans costs by every route on a machine, as `hostless plan --machine` and Python's
// hostless.plan(machine=...) tell it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hostless/model/plan_price.hpp"
#include "hostless/plan/store.hpp"

namespace hostless {

/// Errors  bad_input  of load_machine; a machine without data of messages, which could price nothing
MachineModel machine_with_costs(std::string const& name_or_file);

/// The plans' own route as they are; the others alike: from the patterns alone, or, where buffers are free by messages
/// of their own, from plans that have these. Local. Cost  that of making plans of all routes
/// Errors  usage  item_bytes below 0 or not finite
std::vector<PricedWay> price_routes(MachineModel const& machine, PlanSet const& set, MemoryKind memory,
                                    double item_bytes);

/// Plans of the cheapest route in the place of those that nobody named.
/// Errors  bad_input  nothing has a price
void take_cheapest(std::vector<PricedWay> const& ways, PlanSet& set);

/// For people: a line for each way, the cheapest one and why. Errors  bad_input  nothing has a price
std::string table(MachineModel const& machine, std::vector<PricedWay> const& ways, double item_bytes);

/// For programs. Errors  bad_input  nothing has a price
nlohmann::ordered_json json_of(MachineModel const& machine, std::vector<PricedWay> const& ways,
                               double item_bytes);

/// The JSON text of a PlanSummary with these prices in it, as a text. Errors  bad_input  nothing has a price
std::string with_prices(std::string const& summary, MachineModel const& machine,
                        std::vector<PricedWay> const& ways, double item_bytes);

}  // namespace hostless
