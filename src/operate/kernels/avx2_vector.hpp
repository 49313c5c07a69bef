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

/// Values are read once a sweep, and the processor's own prefetching stops at pages and is confused by several rows at
/// once: fetching ahead took a product of hex8 elasticity from 12.9 to 8.2 ms (Zen 3), from 14.6 to 11.1 (Sapphire Rapids).
///
/// On AMD's cores into the second cache, where the other triangle finds them too, and early. Fetched as if they were read
/// once (NTA), 3072 bytes before, they came too late and left the first cache before their turn (Zen 4, one thread, products
/// of one side: 7-point 128^3 8.0 to 5.8 ms, 27-point 64^3 4.3 to 2.2, hex8 with 648,000 rows 10.4 to 8.8; of four sides, which
/// were fetched into both caches, the last one 4.2 to 3.5 a column; 4096 bytes before 1.05 to 1.1 of that, 16384 the same).
/// On Intel's into both, nearer: two threads of an Emerald Rapids, products of 7-point 128^3 7.9 to 3.8 ms, of hex8 10.9 for 14.7.
inline bool const is_intel = runs_on_intel();
constexpr int ahead_into_second = 8192, ahead_into_both = 3072;  // bytes
template <int bytes>
HOSTLESS_VECTOR void fetch_into_both(void const* from) {
  for (int at = 0; at < bytes; at += 64) _mm_prefetch(static_cast<char const*>(from) + at, _MM_HINT_T0);
}
template <int bytes>
HOSTLESS_VECTOR void fetch_into_second(void const* from) {
  for (int at = 0; at < bytes; at += 64) _mm_prefetch(static_cast<char const*>(from) + at, _MM_HINT_T1);
}
/// What lies so far after `from`; past the end of an array nothing is fetched and nothing fails.
HOSTLESS_VECTOR void const* ahead_of(void const* from, int bytes) {
  return reinterpret_cast<void const*>(reinterpret_cast<std::uintptr_t>(from) +
                                       static_cast<std::uintptr_t>(bytes));
}
template <int bytes>
HOSTLESS_VECTOR void fetch_ahead(void const* from) {
  if (is_intel) return fetch_into_both<bytes>(ahead_of(from, ahead_into_both));
  fetch_into_second<bytes>(ahead_of(from, ahead_into_second));
}

}  // namespace hostless::avx2
