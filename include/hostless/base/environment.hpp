#pragma once

namespace hostless {

/// Refuses environment variables that would be ignored: HOSTLESS_ISA that names no instruction set of this
/// processor, HOSTLESS_DEADLINE_SCALE that is no positive number. Empty ones count as not set. The library
/// itself falls back to its defaults; programs call this when they start.
///
/// Errors  usage  such a variable
void check_environment();

}  // namespace hostless
