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

inline bool begins_line(double const* value) { return reinterpret_cast<std::uintptr_t>(value) % 64 == 0; }

/// Copies `count` values, whole lines, to where one begins.
using LinesPastCaches = void (*)(double* to, double const* from, std::int64_t count);

inline void lines_past_caches_baseline(double* to, double const* from, std::int64_t count) {
#if defined(__SSE2__)
  for (std::int64_t i = 0; i < count; i += 2) _mm_stream_pd(to + i, _mm_loadu_pd(from + i));
#else
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
#endif
}
#if defined(__SSE2__)
/// One store a line: the processor keeps few stores that wait, and goes on meanwhile.
HOSTLESS_TARGET_V4 inline void lines_past_caches_v4(double* to, double const* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += line_values) _mm512_stream_pd(to + i, _mm512_loadu_pd(from + i));
}
#endif
/// Of this process.
inline LinesPastCaches lines_past_caches() {
#if defined(__SSE2__)
  if (active_isa() == Isa::v4) return &lines_past_caches_v4;
#endif
  return &lines_past_caches_baseline;
}

/// Copies `count` values: whole lines, and what is of a line that begins before or ends behind as always. Other
/// threads see them behind `end_of_stores_past_caches`.
inline void store_past_caches(double* to, double const* from, std::int64_t count, LinesPastCaches lines) {
  std::int64_t i = 0;
  for (; i < count && !begins_line(to + i); ++i) to[i] = from[i];
  std::int64_t const whole = (count - i) / line_values * line_values;
  lines(to + i, from + i, whole);
  for (i += whole; i < count; ++i) to[i] = from[i];
}
inline void end_of_stores_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace hostless
