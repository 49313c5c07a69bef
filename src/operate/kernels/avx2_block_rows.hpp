#pragma once
// BSR, whole and halved.

#include "operate/kernels/avx2_block_row_sums.hpp"
#include "operate/kernels/scalar.hpp"

namespace hostless::avx2 {

/// `count` block rows at once, as far as the shortest goes; then each by itself.
template <int b, int count, class Column>
HOSTLESS_VECTOR void bsr_block_rows(std::uint32_t const* start, double const* value, Column column,
                                    double const* x, double* out) {
  BlockRowSums<b> sums[count];
  std::int64_t shortest = INT64_MAX;
  for (int i = 0; i < count; ++i) {
    sums[i].clear();
    std::int64_t const length = std::int64_t{start[i + 1]} - start[i];
    if (length < shortest) shortest = length;
  }
  double const* stream = value + std::int64_t{start[0]} * b * b;
  for (std::int64_t k = 0; k < shortest; ++k, stream += count * b * b) {
    fetch_ahead<count * b * b * 8>(stream);
    for (int i = 0; i < count; ++i) {
      std::int64_t const at = start[i] + k;
      sums[i].add(value + at * b * b, x + column[at] * b);
    }
  }
  for (int i = 0; i < count; ++i) {
    for (std::int64_t at = start[i] + shortest; at < start[i + 1]; ++at) {
      sums[i].add(value + at * b * b, x + column[at] * b);
    }
    sums[i].store(out + i * b);
  }
}

template <int b, class Column>
HOSTLESS_VECTOR void bsr_slot(std::uint32_t const* start, double const* value, Column column, int block_rows,
                              double const* x, double* out) {
  constexpr int count = BlockRowSums<b>::in_flight;
  int block_row = 0;
  for (; block_row + count <= block_rows; block_row += count) {
    bsr_block_rows<b, count>(start + block_row, value, column, x, out + block_row * b);
  }
  for (; block_row < block_rows; ++block_row)
    bsr_block_rows<b, 1>(start + block_row, value, column, x, out + block_row * b);
}

/// One block row of halved BSR: its blocks are added to its own sum and, transposed, to those of later block
/// rows.
template <int b, class Column>
HOSTLESS_VECTOR void halved_block_row(MatrixView const& a, std::uint32_t const* start, double const* value,
                                      Column column, std::int64_t block_row, double const* x, double* out,
                                      double* ring) {
  double* mine = scalar::waiting<b>(a, ring, block_row);
  BlockRowSums<b> sum, other;
  sum.take(mine);
  typename BlockRowSums<b>::Spread own;
  BlockRowSums<b>::spread(x + block_row * b, own);
  for (std::int64_t k = start[0]; k < start[1]; ++k) {
    double const* block = value + k * b * b;
    fetch_ahead<b * b * 8>(block);
    std::int64_t const at = column[k];
    sum.add(block, x + at * b);
    if (!column.once(k)) continue;
    double* later = scalar::waiting<b>(a, ring, at);
    other.load(later);
    other.add_transposed(block, own);
    other.keep(later);
  }
  sum.store(out);
}

/// Where the blocks of some block rows lie.
struct BlockRows {
  std::uint32_t const* start;
  double const* value;
  std::int64_t first;
  int count;
};

template <int b, class Column>
HOSTLESS_VECTOR void halved_slot(MatrixView const& a, BlockRows rows, Column column, double const* x,
                                 double* out, double* ring) {
  for (int block_row = 0; block_row < rows.count; ++block_row)
    halved_block_row<b>(a, rows.start + block_row, rows.value, column, rows.first + block_row, x,
                        out + block_row * b, ring);
}

template <int b>
HOSTLESS_VECTOR void halved(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                            double const* x, double* out, double* ring) {
  HalvedView const& h = a.halved;
  FarRange const far = scalar::far_range(a, s, first_block_row);
  for (std::int32_t f = far.first; f < far.last; ++f) {
    BlockRowSums<b> sum;
    sum.clear();
    for (std::int64_t k = h.far_start[f]; k < h.far_start[f + 1]; ++k) {
      fetch_ahead<b * b * 8>(h.far_value + k * b * b);
      sum.add(h.far_value + k * b * b, x + std::int64_t{h.far_column[k]} * b);
    }
    sum.keep(scalar::waiting<b>(a, ring, h.far_block_row[f]));
  }
  SliceStart const& slice = a.slice[s];
  BlockRows const rows{a.start + first_block_row + s, a.value + slice.value, first_block_row, block_rows};
  if (slice.wide != 0) {
    halved_slot<b>(a, rows, MarkedColumns<std::int32_t>{a.wide + slice.column, slice.base}, x, out, ring);
  } else {
    halved_slot<b>(a, rows, MarkedColumns<std::uint16_t>{a.narrow + slice.column, slice.base}, x, out, ring);
  }
}

template <int b>
HOSTLESS_VECTOR void bsr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                         double const* x, double* out) {
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_block_row + s;
  double const* value = a.value + slice.value;
  if (slice.wide != 0) {
    bsr_slot<b>(start, value, Columns<std::int32_t>{a.wide + slice.column, 0}, block_rows, x, out);
  } else {
    bsr_slot<b>(start, value, Columns<std::uint16_t>{a.narrow + slice.column, slice.base}, block_rows, x,
                out);
  }
}

}  // namespace hostless::avx2
