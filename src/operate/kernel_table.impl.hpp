// The kernels of one instruction set and the function that finds them. Included by one file for each set,
// which names its target (HOSTLESS_KERNEL_TARGET), the namespace of the texts to compile with it
// (HOSTLESS_KERNEL_TEXTS) and the function (HOSTLESS_FIND_KERNEL): an attribute cannot be a template's
// argument.
#include "matrix_view.hpp"

namespace hostless {
namespace {

HOSTLESS_KERNEL_TARGET void csr(MatrixView const& a, int s, std::int64_t first_leaf, int leaves,
                                double const* x, double* out, double*) noexcept {
  HOSTLESS_KERNEL_TEXTS::csr(a, s, first_leaf, leaves, x, out);
}

template <int b>
HOSTLESS_KERNEL_TARGET void bsr(MatrixView const& a, int s, std::int64_t first_leaf, int leaves,
                                double const* x, double* out, double*) noexcept {
  HOSTLESS_KERNEL_TEXTS::bsr<b>(a, s, first_leaf, leaves, x, out);
}

template <int b>
HOSTLESS_KERNEL_TARGET void halved(MatrixView const& a, int s, std::int64_t first_leaf, int leaves,
                                   double const* x, double* out, double* ring) noexcept {
  HOSTLESS_KERNEL_TEXTS::halved<b>(a, s, first_leaf, leaves, x, out, ring);
}

template <int b>
HOSTLESS_KERNEL_TARGET void sell(MatrixView const& a, int s, std::int64_t first_leaf, int leaves,
                                 double const* x, double* out, double*) noexcept {
  HOSTLESS_KERNEL_TEXTS::sell<b>(a, s, first_leaf, leaves, x, out);
}

template <int b>
Kernel find(Format format, bool is_halved) {
  if (format == Format::sell) return sell<b>;
  return is_halved ? halved<b> : bsr<b>;
}

}  // namespace

Kernel HOSTLESS_FIND_KERNEL(Format format, int block, bool is_halved) {
  if (format == Format::csr) return csr;
  switch (block) {
    case 2:
      return find<2>(format, is_halved);
    case 3:
      return find<3>(format, is_halved);
    case 4:
      return find<4>(format, is_halved);
    case 6:
      return find<6>(format, is_halved);
  }
  return sell<1>;
}

}  // namespace hostless
