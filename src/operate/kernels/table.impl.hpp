// The kernels of one instruction set and the function that finds them. Included by one file for each set,
// which names its target (HOSTLESS_KERNEL_TARGET), the namespace of the texts to compile with it
// (HOSTLESS_KERNEL_TEXTS) and the function (HOSTLESS_FIND_KERNEL): an attribute cannot be a template's
// argument.
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

}  // namespace hostless
