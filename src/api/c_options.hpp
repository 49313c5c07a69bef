#pragma once
// hostless_options by the one table of options (option_table.hpp).

#include <cstdint>
#include <string>

#include "hostless/hostless.h"
#include "hostless/solve/option_table.hpp"

namespace hostless::c_interface {

/// The options of the caller, or all defaults; those that a shorter struct has not are the default.
/// Errors  usage  a struct_size that no version has
hostless_options options_or_default(hostless_options const* given);
/// All members but the callback. Errors  usage  a value that the option cannot have
Choices choices_of(hostless_options const& options);

/// What options are of: all ranks make it together.
enum class Made : std::uint8_t { matrix, matrix_read, solver };
/// It, and its options that all ranks must have alike, as agreement.hpp compares them: "a solver, options.rtol: 1e-08, ...".
std::string words_of(Made what, hostless_options const& options);
}  // namespace hostless::c_interface
