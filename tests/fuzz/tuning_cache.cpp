// Reads any text as the cache of measured runs; lines that are understood must be understood again alone, and
// have times that can be compared.
#include "solve/gpu_solver/tuning_cache.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace hostless::gpu;
  for (CacheEntry const& entry : cache_entries({reinterpret_cast<char const*>(data), size})) {
    if (entry.timings.empty() || entry.line.find('\n') != std::string::npos) std::abort();
    for (Timing const& timing : entry.timings) {
      if (!(timing.us > 0) || !std::isfinite(timing.us)) std::abort();
    }
    auto const again = cache_entries(entry.line);
    if (again.size() != 1 || again[0].key != entry.key || again[0].timings != entry.timings) std::abort();
  }
  return 0;
}
