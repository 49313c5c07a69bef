#pragma once

#include <nlohmann/json.hpp>

#include "hostless/model/fit.hpp"

namespace hostless {

nlohmann::ordered_json json_of(Fit const& fit, ModelErrors const& errors);
void print_fit(Fit const& fit, ModelErrors const& errors);

}  // namespace hostless
