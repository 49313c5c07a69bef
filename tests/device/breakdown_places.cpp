// The places of the table of tests/numerics/breakdown_test.cpp on a GPU.
#include "breakdown_places.hpp"

#include "gpu_place.hpp"

namespace hostless::test {

std::vector<BreakdownPlace> everywhere() {
  std::vector<BreakdownPlace> all;
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
