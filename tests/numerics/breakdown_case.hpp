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

}  // namespace hostless::test
