#pragma once

#include <string>
#include <vector>

#include "hostless/model/price.hpp"

namespace hostless {

/// Of a message behind another one of the same rank: measured, or as its transfer lets it (price.hpp).
double following_seconds(CostTables const& tables, MessageCosts const& costs, double bytes);
[[noreturn]] void throw_no_data(CostTables const& tables, MessageSpan span, MemoryKind memory);
/// Short names by what the machine's file says that they stand for.
std::vector<std::string> in_words(MachineModel const& machine, std::vector<std::string> sources);

/// Errors  bad_input  the machine has no data of it
MemoryRate const& memory_rate(MachineModel const& machine, MemoryKind memory);

/// Ranks of a node whose bytes pass the limit together; they fill one socket after the other.
int ranks_at_limit(InjectionLimit const& limit, NodeShape const& node, MemoryKind memory, int ranks);
/// (ranks^p + all^p - own^p)^(1/p), scaled so that no power overflows; at least `ranks`.
double join_injection(double ranks, double all, double own, double p);

}  // namespace hostless
