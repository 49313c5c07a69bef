#pragma once
// What the tables of breakdowns share: breakdown_test.cpp and null_space_test.cpp.

#include <gtest/gtest.h>

#include "breakdown_settings.hpp"

namespace hostless::test {

class Breakdown : public testing::TestWithParam<BreakdownSetting> {
 protected:
  void SetUp() override { need(GetParam().run); }
  Setting setting() const {
    Setting p;
    p.ranks = GetParam().ranks;
    p.solve.method = GetParam().method;
    p.solve.limits = {20, 20};
    use(p, GetParam().run);
    return p;
  }
};

/// Of methods that need A positive definite, and of those that need it symmetric at least.
class DefiniteBreakdown : public Breakdown {};
class SymmetricBreakdown : public Breakdown {};

/// `everywhere`, of the methods that demand so much.
inline std::vector<BreakdownSetting> everywhere(Demands least) {
  std::vector<BreakdownSetting> some;
  for (BreakdownSetting const& one : everywhere())
    if (facts_of(one.method).demands >= least) some.push_back(one);
  return some;
}

}  // namespace hostless::test
