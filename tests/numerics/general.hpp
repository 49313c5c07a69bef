#pragma once
// Methods that take some matrices that are not positive definite, in every run.
#include <gtest/gtest.h>

#include <vector>

#include "systems.hpp"

namespace hostless::test {

struct Where {
  Method method;
  RunChoice run;
  int ranks;
};
inline std::vector<Where> all_runs_of_each() {
  std::vector<Where> all;
  for (Method method :
       methods_that([](MethodFacts const& one) { return one.demands < Demands::positive_definite; }))
    for (RunChoice const& run : all_runs()) all.push_back({method, run, run.threads == 3 ? 1 : 2});
  return all;
}
class General : public testing::TestWithParam<Where> {
 protected:
  Setting setting() const {
    Setting p;
    p.ranks = GetParam().ranks;
    p.solve.method = GetParam().method;
    use(p, GetParam().run);
    return p;
  }
  bool is(Method method) const { return GetParam().method == method; }
  bool needs_symmetric() const { return facts_of(GetParam().method).needs_symmetric(); }
};

}  // namespace hostless::test
