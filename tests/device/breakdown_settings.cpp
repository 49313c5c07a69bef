// The places of the tables of tests/numerics/breakdown_case.hpp on a GPU.
#include "breakdown_settings.hpp"

#include "gpu_setting.hpp"

namespace hostless::test {

std::vector<BreakdownSetting> everywhere() {
  std::vector<BreakdownSetting> all;
  for (Method method : all_methods()) {
    for (RunKind run : gpu_runs()) {
      for (char const* format : {"auto", "sell", "csr"}) {
        all.push_back({method, 1, {std::string(name(run)) + "_" + format, run, 1, 1, 1, format}});
      }
    }
  }
  return all;
}

void need(RunChoice const&) { need_gpu(); }

}  // namespace hostless::test
