#include "operate/kernels/scalar.hpp"

#define HOSTLESS_KERNEL_TARGET HOSTLESS_TARGET_BASELINE
#define HOSTLESS_KERNEL_TEXTS scalar
#define HOSTLESS_FIND_KERNEL find_kernel_baseline
#include "operate/kernels/table.impl.hpp"
