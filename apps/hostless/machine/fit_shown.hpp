#pragma once

#include <nlohmann/json.hpp>

#include "hostless/model/fit.hpp"

namespace hostless {

nlohmann::ordered_json json_of(Fit const& fit, ModelErrors const& errors);
/// Errors  usage  a text that a machine's file cannot hold: control characters
void check_text(char const* option, std::string const& text);
/// Writes a machine with fitted costs, as its reader takes it.
/// Errors  bad_input  a value that cannot be of its unit: nothing was written
void write_fitted(std::string const& file, MachineModel const& machine);
void print_fit(Fit const& fit, ModelErrors const& errors);

}  // namespace hostless
