#include "operate/kernels/avx512.hpp"

#define HOSTLESS_KERNEL_TARGET HOSTLESS_TARGET_V4
#define HOSTLESS_KERNEL_TEXTS avx512
#define HOSTLESS_FIND_KERNEL find_kernel_v4
#define HOSTLESS_FIND_WIDE_KERNEL find_wide_kernel_v4
#define HOSTLESS_WIDE_TEXTS HOSTLESS_HAS_VECTORS
#include "operate/kernels/table.impl.hpp"
