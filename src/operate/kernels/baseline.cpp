#include "operate/kernels/scalar.hpp"

#define HOSTLESS_KERNEL_TARGET HOSTLESS_TARGET_BASELINE
#define HOSTLESS_KERNEL_TEXTS scalar
#define HOSTLESS_FIND_KERNEL find_kernel_baseline
#define HOSTLESS_FIND_WIDE_KERNEL find_wide_kernel_baseline
#define HOSTLESS_WIDE_TEXTS 0
#include "operate/kernels/table.impl.hpp"
