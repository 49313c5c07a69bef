#pragma once

#include <nlohmann/json.hpp>

#include "hostless/model/closed_forms.hpp"

namespace hostless {

nlohmann::ordered_json json_of(ExchangeSymbols const& symbols);
/// All rows of table 6 in both readings, with their parts.
nlohmann::ordered_json json_of(ClosedForms const& forms, ExchangeSymbols const& symbols);

}  // namespace hostless
