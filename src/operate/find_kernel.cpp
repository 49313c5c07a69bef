#include "operate/matrix_view.hpp"

namespace hostless {

Kernel find_kernel(Isa isa, KernelWanted const& wanted) {
  switch (isa) {
    case Isa::baseline:
      return find_kernel_baseline(wanted);
    case Isa::v3:
      return find_kernel_v3(wanted);
    case Isa::v4:
      return find_kernel_v4(wanted);
  }
  return find_kernel_baseline(wanted);
}

WideKernel find_wide_kernel(Isa isa, KernelWanted const& wanted) {
  switch (isa) {
    case Isa::baseline:
      return find_wide_kernel_baseline(wanted);
    case Isa::v3:
      return find_wide_kernel_v3(wanted);
    case Isa::v4:
      return find_wide_kernel_v4(wanted);
  }
  return nullptr;
}

}  // namespace hostless
