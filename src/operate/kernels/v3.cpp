#include "operate/kernels/avx2.hpp"

#define HOSTLESS_KERNEL_TARGET HOSTLESS_TARGET_V3
#define HOSTLESS_KERNEL_TEXTS avx2
#define HOSTLESS_FIND_KERNEL find_kernel_v3
#define HOSTLESS_FIND_WIDE_KERNEL find_wide_kernel_v3
#define HOSTLESS_WIDE_TEXTS HOSTLESS_HAS_VECTORS
#include "operate/kernels/table.impl.hpp"
