#pragma once
// What the texts in vectors share: how they are compiled, and how they fetch ahead.

#include <immintrin.h>

#include <cstdint>

#include "hostless/base/isa.hpp"

/// No lambda holds an intrinsic: it would not inherit the target.
#define HOSTLESS_VECTOR HOSTLESS_TARGET_V3 __attribute__((always_inline)) inline
/// Before a loop whose vectors then stay in registers.
#if defined(__clang__)
#define HOSTLESS_UNROLLED _Pragma("unroll")
#else
#define HOSTLESS_UNROLLED _Pragma("GCC unroll 8")
#endif

namespace hostless::avx2 {

/// How far ahead values are fetched, past the caches that the vectors live in: values are read once a sweep.
/// The processor's own prefetching stops at pages and is confused by several rows at once: on hex8 elasticity
/// fetching ahead took a product from 12.9 to 8.2 ms (Zen 3), from 14.6 to 11.1 (Sapphire Rapids); stored
/// once for both triangles 4.2 (Zen 3, one core; a plain block loop 11.8).
constexpr int stream_ahead = 3072;  // bytes
/// What is fetched as if it were read once (NTA) comes past the second cache on Intel's cores, and leaves the
/// first one before the other triangle reads it. There it is fetched into both: two threads of an Emerald
/// Rapids, products of 7-point 128^3 7.9 to 3.8 ms, of hex8 elasticity with 648,000 rows 14.7 to 10.9.
inline bool const nta_misses_second_cache = [] {
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0;
}();
template <int bytes>
HOSTLESS_VECTOR void fetch_into_both(void const* from) {
  for (int at = 0; at < bytes; at += 64) _mm_prefetch(static_cast<char const*>(from) + at, _MM_HINT_T0);
}
template <int bytes>
HOSTLESS_VECTOR void fetch_into_second(void const* from) {
  for (int at = 0; at < bytes; at += 64) _mm_prefetch(static_cast<char const*>(from) + at, _MM_HINT_T1);
}
template <int bytes>
HOSTLESS_VECTOR void fetch(void const* from) {
  if (nta_misses_second_cache) return fetch_into_both<bytes>(from);
  for (int at = 0; at < bytes; at += 64) _mm_prefetch(static_cast<char const*>(from) + at, _MM_HINT_NTA);
}
/// What lies so far after `from`; past the end of an array nothing is fetched and nothing fails.
HOSTLESS_VECTOR void const* ahead_of(void const* from, int bytes) {
  return reinterpret_cast<void const*>(reinterpret_cast<std::uintptr_t>(from) +
                                       static_cast<std::uintptr_t>(bytes));
}
template <int bytes>
HOSTLESS_VECTOR void fetch_ahead(void const* from) {
  fetch<bytes>(ahead_of(from, stream_ahead));
}
/// Values that several right-hand sides share: their x fill the first cache, which loses such values before their
/// turn (two threads of a Zen 4, four sides of hex8 elasticity with 648,000 rows: 3.07 to 2.9 ms a column).
template <int bytes>
HOSTLESS_VECTOR void fetch_shared_ahead(void const* from) {
  fetch_into_both<bytes>(ahead_of(from, stream_ahead));
}

}  // namespace hostless::avx2
