#pragma once
// One function for each of `hostless machine ...`.

#include "commands.hpp"

namespace hostless {

void add_machine_list(CLI::App& machine, std::function<int()>& work);
void add_machine_show(CLI::App& machine, std::function<int()>& work);
void add_machine_measure(CLI::App& machine, Arguments const& arguments, std::function<int()>& work);
void add_machine_price(CLI::App& machine, std::function<int()>& work);
void add_machine_halo(CLI::App& machine, std::function<int()>& work);
void add_machine_forms(CLI::App& machine, std::function<int()>& work);
void add_machine_figures(CLI::App& machine, std::function<int()>& work);
void add_machine_compare(CLI::App& machine, std::function<int()>& work);
void add_machine_fit(CLI::App& machine, std::function<int()>& work);

}  // namespace hostless
