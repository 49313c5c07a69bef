// The kernels of one instruction set and the function that finds them. Included by one file for each set,
// which names its target (HOSTLESS_KERNEL_TARGET), the namespace of the texts to compile with it
// (HOSTLESS_KERNEL_TEXTS) and the functions (HOSTLESS_FIND_KERNEL, HOSTLESS_FIND_WIDE_KERNEL): an attribute
// cannot be a template's argument. HOSTLESS_WIDE_TEXTS: the texts have some for several right-hand sides.
#include "operate/matrix_view.hpp"

namespace hostless {
namespace {

HOSTLESS_KERNEL_TARGET void csr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                                double const* x, double* out, double*) noexcept {
  HOSTLESS_KERNEL_TEXTS::csr(a, s, first_block_row, block_rows, x, out);
}

// Rows with several accumulators are plain loops in every set: their lanes are what the compiler vectorises.
template <int w>
HOSTLESS_KERNEL_TARGET void csr_accumulators(MatrixView const& a, int s, std::int64_t first_block_row,
                                             int block_rows, double const* x, double* out, double*) noexcept {
  scalar::csr_accumulators<w>(a, s, first_block_row, block_rows, x, out);
}
inline Kernel find_csr(int threads_per_row) {
  switch (threads_per_row) {
    case 2:
      return csr_accumulators<2>;
    case 4:
      return csr_accumulators<4>;
    case 8:
      return csr_accumulators<8>;
    case 16:
      return csr_accumulators<16>;
    case 32:
      return csr_accumulators<32>;
    default:
      return csr;
  }
}

template <int b>
HOSTLESS_KERNEL_TARGET void bsr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                                double const* x, double* out, double*) noexcept {
  HOSTLESS_KERNEL_TEXTS::bsr<b>(a, s, first_block_row, block_rows, x, out);
}

template <int b>
HOSTLESS_KERNEL_TARGET void halved(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                                   double const* x, double* out, double* ring) noexcept {
  HOSTLESS_KERNEL_TEXTS::halved<b>(a, s, first_block_row, block_rows, x, out, ring);
}

template <int b>
HOSTLESS_KERNEL_TARGET void sell(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                                 double const* x, double* out, double*) noexcept {
  HOSTLESS_KERNEL_TEXTS::sell<b>(a, s, first_block_row, block_rows, x, out);
}

#if HOSTLESS_WIDE_TEXTS
HOSTLESS_KERNEL_TARGET void wide_csr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                                     RightHandSides const& of) noexcept {
  HOSTLESS_KERNEL_TEXTS::csr_of_sides(a, s, first_block_row, block_rows, of);
}
template <int b>
HOSTLESS_KERNEL_TARGET void wide_bsr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                                     RightHandSides const& of) noexcept {
  HOSTLESS_KERNEL_TEXTS::bsr_of_sides<b>(a, s, first_block_row, block_rows, of);
}
template <int b>
HOSTLESS_KERNEL_TARGET void wide_halved(MatrixView const& a, int s, std::int64_t first_block_row,
                                        int block_rows, RightHandSides const& of) noexcept {
  HOSTLESS_KERNEL_TEXTS::halved_of_sides<b>(a, s, first_block_row, block_rows, of);
}
template <int b>
HOSTLESS_KERNEL_TARGET void wide_sell(MatrixView const& a, int s, std::int64_t first_block_row,
                                      int block_rows, RightHandSides const& of) noexcept {
  HOSTLESS_KERNEL_TEXTS::sell_of_sides<b>(a, s, first_block_row, block_rows, of);
}
template <int b>
WideKernel find_wide(KernelWanted const& wanted) {
  if (wanted.format == Format::sell) return wide_sell<b>;
  return wanted.is_halved ? wide_halved<b> : wide_bsr<b>;
}
#endif

template <int b>
Kernel find(Format format, bool is_halved) {
  if (format == Format::sell) return sell<b>;
  return is_halved ? halved<b> : bsr<b>;
}

}  // namespace

Kernel HOSTLESS_FIND_KERNEL(KernelWanted const& wanted) {
  if (wanted.format == Format::csr) return find_csr(wanted.threads_per_row);
  switch (wanted.block) {
    case 2:
      return find<2>(wanted.format, wanted.is_halved);
    case 3:
      return find<3>(wanted.format, wanted.is_halved);
    case 4:
      return find<4>(wanted.format, wanted.is_halved);
    case 6:
      return find<6>(wanted.format, wanted.is_halved);
  }
  return sell<1>;
}

WideKernel HOSTLESS_FIND_WIDE_KERNEL([[maybe_unused]] KernelWanted const& wanted) {
#if HOSTLESS_WIDE_TEXTS
  if (wanted.format == Format::csr) return wanted.threads_per_row > 1 ? nullptr : wide_csr;
  switch (wanted.block) {
    case 2:
      return find_wide<2>(wanted);
    case 3:
      return find_wide<3>(wanted);
    case 4:
      return find_wide<4>(wanted);
    case 6:
      return find_wide<6>(wanted);
  }
  return wide_sell<1>;
#else
  return nullptr;
#endif
}

}  // namespace hostless
