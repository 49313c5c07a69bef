#include "breakdown_settings.hpp"

namespace hostless::test {

std::vector<BreakdownSetting> everywhere() {
  std::vector<BreakdownSetting> all;
  for (Method method : all_methods()) {
    for (RunChoice const& run : all_runs()) {
      bool const plain = run.kind == RunKind::host;
      for (int ranks : plain ? std::vector<int>{1, 2, 4} : std::vector<int>{run.threads == 3 ? 2 : 3})
        all.push_back({method, ranks, run});
    }
  }
  return all;
}

void need(RunChoice const&) {}  // a processor is there

}  // namespace hostless::test
