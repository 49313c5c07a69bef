#pragma once

#include <vector>

#include "hostless/solve/option_table.hpp"

namespace hostless {

/// Made anew with each call: all_options keeps them.
std::vector<Option> list_options();

}  // namespace hostless
