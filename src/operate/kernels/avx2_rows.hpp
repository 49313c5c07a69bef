#pragma once
// CSR.

#include "operate/kernels/avx2_vector.hpp"
#include "operate/kernels/scalar.hpp"

namespace hostless::avx2 {

/// Four rows in flight, as far as the shortest goes.
template <class Column>
HOSTLESS_VECTOR void csr_slot(std::uint32_t const* start, double const* value, Column column, int rows,
                              double const* x, double* out) {
  constexpr int count = 4;
  int row = 0;
  for (; row + count <= rows; row += count) {
    double sum[count] = {};
    double const* stream = value + start[row];
    for (std::int64_t k = start[row]; k < start[row + count]; k += 8, stream += 8) fetch_ahead<64>(stream);
    std::int64_t shortest = INT64_MAX;
    for (int i = 0; i < count; ++i) {
      std::int64_t const length = std::int64_t{start[row + i + 1]} - start[row + i];
      if (length < shortest) shortest = length;
    }
    for (std::int64_t k = 0; k < shortest; ++k) {
      for (int i = 0; i < count; ++i) {
        std::int64_t const at = start[row + i] + k;
        sum[i] = __builtin_fma(value[at], x[column[at]], sum[i]);
      }
    }
    for (int i = 0; i < count; ++i) {
      for (std::int64_t at = start[row + i] + shortest; at < start[row + i + 1]; ++at) {
        sum[i] = __builtin_fma(value[at], x[column[at]], sum[i]);
      }
      out[row + i] = sum[i];
    }
  }
  for (; row < rows; ++row) {
    double sum = 0.0;
    for (std::int64_t at = start[row]; at < start[row + 1]; ++at)
      sum = __builtin_fma(value[at], x[column[at]], sum);
    out[row] = sum;
  }
}

HOSTLESS_VECTOR void csr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                         double const* x, double* out) {
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_block_row * a.tiling.block + s;
  double const* value = a.value + slice.value;
  int const rows = block_rows * a.tiling.block;
  if (slice.wide != 0) {
    csr_slot(start, value, Columns<std::int32_t>{a.wide + slice.column, 0}, rows, x, out);
  } else {
    csr_slot(start, value, Columns<std::uint16_t>{a.narrow + slice.column, slice.base}, rows, x, out);
  }
}

}  // namespace hostless::avx2
