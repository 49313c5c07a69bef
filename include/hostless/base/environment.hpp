#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hostless {

/// Refuses environment variables that would be ignored: HOSTLESS_ISA that names no instruction set of this
/// processor, HOSTLESS_DEADLINE_SCALE that is no number above 0, up to 1e6, a switch that is neither 0 nor 1. Empty
/// ones count as not set. The library itself falls back to its defaults; programs call this when they start.
///
/// Errors  usage  such a variable
void check_environment();

/// Of them, those of queues and of MPIS_..., and names HOSTLESS_QUEUE_... that nothing asks for: looked at when a
/// communicator is made, as programs with queues need not call the above. Errors  usage  such a variable
void check_queue_environment();

/// Of HOSTLESS_QUEUE_SMALL_BYTES: a kernel counts the words of all slots that it waits for in 32 bits.
constexpr std::int64_t most_small_bytes = std::int64_t{1} << 28;

/// That of the transport composite, also looked at when one is opened. Errors  usage  such a variable
void check_composite_environment();

/// A sentence for each variable HOSTLESS_... that nothing asks for and that is not empty, with the name that
/// may have been meant.
std::vector<std::string> unknown_variables();
/// Prints them on standard error, once a process: when a program starts, or where a communicator is made. Not
/// where `variables_are_told` is 1, by whoever has started this process.
void tell_unknown_variables() noexcept;
constexpr char const* variables_are_told = "HOSTLESS_IS_TOLD";

}  // namespace hostless
