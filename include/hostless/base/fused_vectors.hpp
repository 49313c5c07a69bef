#pragma once

#include "hostless/base/isa.hpp"

#if defined(__x86_64__) && !defined(HOSTLESS_GPU_COMPILER)
#include <immintrin.h>
#endif

namespace hostless {

/// Whether vectors of so many bytes have `fused_product`: in functions of an instruction set that has it, where what is
/// written for one value is not left to a compiler to make vectors of.
#if defined(__x86_64__) && !defined(HOSTLESS_GPU_COMPILER)
template <class T, int bytes>
constexpr bool is_fused = bytes == 32 || bytes == 64;

typedef float Floats16 __attribute__((vector_size(64)));
typedef double Doubles8 __attribute__((vector_size(64)));
typedef float Floats8 __attribute__((vector_size(32)));
typedef double Doubles4 __attribute__((vector_size(32)));

/// to = a * b + c, rounded once.
HOSTLESS_TARGET_V4 inline void fused_product(Floats16 const& a, Floats16 const& b, Floats16 const& c,
                                             Floats16& to) {
  to = (Floats16)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
HOSTLESS_TARGET_V4 inline void fused_product(Doubles8 const& a, Doubles8 const& b, Doubles8 const& c,
                                             Doubles8& to) {
  to = (Doubles8)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
HOSTLESS_TARGET_V3 inline void fused_product(Floats8 const& a, Floats8 const& b, Floats8 const& c,
                                             Floats8& to) {
  to = (Floats8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
HOSTLESS_TARGET_V3 inline void fused_product(Doubles4 const& a, Doubles4 const& b, Doubles4 const& c,
                                             Doubles4& to) {
  to = (Doubles4)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
/// Whether any value of a is NaN, or that of b.
HOSTLESS_TARGET_V4 inline bool any_is_nan_or(Floats16 const& a, Floats16 const& b) {
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_UQ) != 0;
}
HOSTLESS_TARGET_V4 inline bool any_is_nan_or(Doubles8 const& a, Doubles8 const& b) {
  return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_EQ_UQ) != 0;
}
HOSTLESS_TARGET_V3 inline bool any_is_nan_or(Floats8 const& a, Floats8 const& b) {
  return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_UQ)) != 0;
}
HOSTLESS_TARGET_V3 inline bool any_is_nan_or(Doubles4 const& a, Doubles4 const& b) {
  return _mm256_movemask_pd(_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_EQ_UQ)) != 0;
}
#else
template <class T, int bytes>
constexpr bool is_fused = false;
template <class Values>
void fused_product(Values const& a, Values const& b, Values const& c, Values& to) = delete;
template <class Values>
bool any_is_nan_or(Values const& a, Values const& b) = delete;
#endif

}  // namespace hostless
