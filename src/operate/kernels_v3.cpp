#include "kernels_avx2.hpp"

namespace hostless {
namespace {

HOSTLESS_TARGET_V3 void csr(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                            double* out) noexcept {
  avx2::csr(a, s, first_leaf, leaves, x, out);
}

template <int b>
HOSTLESS_TARGET_V3 void bsr(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                            double* out) noexcept {
  avx2::bsr<b>(a, s, first_leaf, leaves, x, out);
}

template <int b>
HOSTLESS_TARGET_V3 void sell(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                             double* out) noexcept {
  avx2::sell<b>(a, s, first_leaf, leaves, x, out);
}

template <int b>
Kernel find(Format format) {
  return format == Format::bsr ? bsr<b> : sell<b>;
}

}  // namespace

Kernel find_kernel_v3(Format format, int block) {
  if (format == Format::csr) return csr;
  switch (block) {
    case 2:
      return find<2>(format);
    case 3:
      return find<3>(format);
    case 4:
      return find<4>(format);
    case 6:
      return find<6>(format);
  }
  return sell<1>;
}

}  // namespace hostless
