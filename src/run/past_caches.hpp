#pragma once
// Stores of what nobody reads soon: a line goes to memory whole, and is not read before it is overwritten.

#include <cstdint>

#include "hostless/base/host_device.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hostless {

/// Copies `count` values. Other threads see them behind `end_of_stores_past_caches`.
HOSTLESS_HOST_DEVICE void store_past_caches(double* to, double const* from, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__SSE2__)
  for (; i < count && (reinterpret_cast<std::uintptr_t>(to + i) & 63) != 0; ++i) to[i] = from[i];
  for (; i + 8 <= count; i += 8) {
    _mm_stream_pd(to + i, _mm_loadu_pd(from + i));
    _mm_stream_pd(to + i + 2, _mm_loadu_pd(from + i + 2));
    _mm_stream_pd(to + i + 4, _mm_loadu_pd(from + i + 4));
    _mm_stream_pd(to + i + 6, _mm_loadu_pd(from + i + 6));
  }
#endif
  for (; i < count; ++i) to[i] = from[i];
}
inline void end_of_stores_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace hostless
