#pragma once
// One function for each of `hostless predict ...`.

#include "commands.hpp"

namespace hostless {

void add_predict_stencil(CLI::App& predict, std::function<int()>& work);
void add_predict_collective(CLI::App& predict, std::function<int()>& work);

}  // namespace hostless
