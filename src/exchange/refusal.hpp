#pragma once

#include <string>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// The first field of a plan that no executor here honours, by its name, or an empty string: the memory space
/// of buffers (it is the executor that chooses it), triggers that are not those of stages.
std::string unserved_field(ExchangePlan const& plan);

/// As above for the executor on the host: what is wrong with the plan's shape (`flaw`), fields that it does
/// not honour, reasons that cannot hold on this rank, writes to what is the caller's to write.
///
/// has_sums  an all-rank sum lies between two uses
std::string refusal(ExchangePlan const& plan, bool has_sums);

}  // namespace hostless
