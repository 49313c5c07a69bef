#pragma once
// Stores of what nobody reads soon: a line goes to memory whole, and is not read before it is overwritten.

#include <cstdint>

#include "hostless/base/isa.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace hostless {

/// Values of a cache line.
constexpr std::int64_t line_values = 8;

#if defined(__SSE2__)
inline void lines_past_caches(double* to, double const* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 2) _mm_stream_pd(to + i, _mm_loadu_pd(from + i));
}
/// One store a line: the processor keeps few stores that wait, and goes on meanwhile.
HOSTLESS_TARGET_V4 inline void lines_past_caches_v4(double* to, double const* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += line_values) _mm512_stream_pd(to + i, _mm512_loadu_pd(from + i));
}
#endif

/// Copies `count` values: whole lines, and what is of a line that begins before or ends behind as always. Other
/// threads see them behind `end_of_stores_past_caches`.
inline void store_past_caches(double* to, double const* from, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__SSE2__)
  for (; i < count && reinterpret_cast<std::uintptr_t>(to + i) % 64 != 0; ++i) to[i] = from[i];
  std::int64_t const lines = (count - i) / line_values * line_values;
  if (active_isa() == Isa::v4) {
    lines_past_caches_v4(to + i, from + i, lines);
  } else {
    lines_past_caches(to + i, from + i, lines);
  }
  i += lines;
#endif
  for (; i < count; ++i) to[i] = from[i];
}
inline void end_of_stores_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace hostless
