#pragma once

// Kernels in vectors of four doubles with fma. The v4 build compiles the same text but for what avx512.hpp has:
// 32 registers and mask registers are the compiler's to use, and wider vectors gain nothing where memory is the
// limit.
//
// Products of one row stay in rising column order, one chain of fma (latency 4 cycles): the speed comes from
// several rows at once: the rows of a block or group in the lanes of a vector, some rows or block rows in
// flight, and the processor's own look ahead into the next row. Values are best read in the order of memory,
// so block rows with large blocks go one by one.

#if defined(__x86_64__)
#include "operate/kernels/avx2_block_rows.hpp"
#include "operate/kernels/avx2_groups.hpp"
#include "operate/kernels/avx2_rows.hpp"
#include "operate/kernels/avx2_sides_groups.hpp"
#include "operate/kernels/avx2_sides_rows.hpp"
#define HOSTLESS_HAS_VECTORS 1
#else
#define HOSTLESS_HAS_VECTORS 0
#include "operate/kernels/scalar.hpp"
namespace hostless::avx2 {  // other processors: the compiler's own vectors
using namespace scalar;
}
#endif
