#pragma once
// What every exchange asks of the caller's arrays and options before it is bound. Each throws a usage error
// that names the field or the option, and its value.

#include <span>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/exchange/field.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

[[noreturn]] void refuse_fields(std::string const& what);
[[noreturn]] void refuse_options(std::string const& what);

/// An exchange is started before the last one is complete.
[[noreturn]] void refuse_start();

/// Both limits are times.
void require_limits(WaitLimits const& limits);
/// What an exchange writes is nothing that it reads, and no two fields' at once.
void require_apart(ExchangePlan const& plan, std::span<Field const> fields);
/// Collective. A message carries the same on both sides.
void require_same_sizes(Group& group, std::span<Field const> fields);
/// Memory, elements and values fit the plan, and ghosts share no bytes with what they are added to.
void require_room(ReversePlan const& plan, std::vector<SumField> const& fields);
/// Collective. Bytes of other meanings would be added as if they were one's own.
void require_elements(Group& group, std::vector<SumField> const& fields);

}  // namespace hostless
