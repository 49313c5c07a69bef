#include "kernels_scalar.hpp"

#define HOSTLESS_KERNEL_TARGET HOSTLESS_TARGET_BASELINE
#define HOSTLESS_KERNEL_TEXTS scalar
#define HOSTLESS_FIND_KERNEL find_kernel_baseline
#include "kernel_table.impl.hpp"
