#pragma once

#include "hostless/base/deadline.hpp"

namespace hostless {

/// How long a set-up collective waits for the slowest rank: one rank may read or partition for minutes while
/// the others wait, so ten times the first wait of a solve (docs/waits.md).
inline double setup_limit_s(WaitLimits const& limits) { return 10.0 * limits.first_s; }
inline Deadline setup_deadline(WaitLimits const& limits) { return Deadline::after(setup_limit_s(limits)); }

constexpr char const* left_in_setup =
    "another rank left during set-up (nothing goes on without it). See its message.";
constexpr char const* late_in_setup =
    "a rank did not arrive in time during set-up (it hangs or is much slower). "
    "Raise HOSTLESS_DEADLINE_SCALE if it is only slow.";

}  // namespace hostless
