#include "operate/kernels/avx2.hpp"

#define HOSTLESS_KERNEL_TARGET HOSTLESS_TARGET_V3
#define HOSTLESS_KERNEL_TEXTS avx2
#define HOSTLESS_FIND_KERNEL find_kernel_v3
#include "operate/kernels/table.impl.hpp"
