#pragma once

#include <vector>

#include "hostless/transport/transport.hpp"

namespace hostless::contract {

/// One promise of Group, Endpoint or Transport, as a text that any transport runs. It throws when the promise
/// is broken.
struct Case {
  char const* name;
  int least_ranks;
  bool breaks_world;  ///< afterwards the ranks are out of step: last of its process
  void (*run)(Transport& transport);
};

std::vector<Case> const& cases();
Case const& find_case(char const* name);

}  // namespace hostless::contract
