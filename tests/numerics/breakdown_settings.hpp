#pragma once
// Where the tables of breakdown_test.cpp and null_space_test.cpp are checked: two programs hold them, each
// has settings of its own.

#include <vector>

#include "systems.hpp"

namespace hostless::test {

struct BreakdownSetting {
  Method method;
  int ranks;
  RunChoice run;
};
std::vector<BreakdownSetting> everywhere();
/// For SetUp. Skips the test, with the reason, where this machine does not have what the run needs.
void need(RunChoice const& run);

}  // namespace hostless::test
