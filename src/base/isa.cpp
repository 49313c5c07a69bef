#include "hostless/base/isa.hpp"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace hostless {
namespace {

Isa best_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool const v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool const v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return v4 ? Isa::v4 : v3 ? Isa::v3 : Isa::baseline;
#else
  return Isa::baseline;
#endif
}

Isa chosen_isa() {
  Isa const best = best_isa();
  char const* wanted = std::getenv("HOSTLESS_ISA");
  if (wanted == nullptr) return best;
  for (Isa isa : {Isa::baseline, Isa::v3, Isa::v4}) {
    if (std::strcmp(wanted, name(isa)) == 0 && isa <= best) return isa;
  }
  return best;
}

}  // namespace

char const* name(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::v3:
      return "v3";
    case Isa::v4:
      return "v4";
  }
  return "baseline";
}

Isa active_isa() {
  static Isa const isa = chosen_isa();
  return isa;
}

bool runs_on_intel() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

}  // namespace hostless
