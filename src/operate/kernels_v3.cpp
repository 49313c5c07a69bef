#include "kernels_avx2.hpp"

namespace hostless {
namespace {

HOSTLESS_TARGET_V3 void csr(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                            double* out, double*) noexcept {
  avx2::csr(a, s, first_leaf, leaves, x, out);
}

template <int b>
HOSTLESS_TARGET_V3 void bsr(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                            double* out, double*) noexcept {
  avx2::bsr<b>(a, s, first_leaf, leaves, x, out);
}

template <int b>
HOSTLESS_TARGET_V3 void halved(MatrixView const& a, int s, std::int64_t first_leaf, int leaves,
                               double const* x, double* out, double* ring) noexcept {
  avx2::halved<b>(a, s, first_leaf, leaves, x, out, ring);
}

template <int b>
HOSTLESS_TARGET_V3 void sell(MatrixView const& a, int s, std::int64_t first_leaf, int leaves, double const* x,
                             double* out, double*) noexcept {
  avx2::sell<b>(a, s, first_leaf, leaves, x, out);
}

template <int b>
Kernel find(Format format, bool is_halved) {
  if (format == Format::sell) return sell<b>;
  return is_halved ? halved<b> : bsr<b>;
}

}  // namespace

Kernel find_kernel_v3(Format format, int block, bool is_halved) {
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
