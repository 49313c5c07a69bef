#pragma once

#include "hostless/base/host_device.hpp"
#include "hostless/base/order.hpp"
#include "operate/matrix_view.hpp"

namespace hostless {

/// The columns of a slice, 16 or 32 bits wide.
template <class Column>
struct Columns {
  Column const* stored;
  std::int64_t base;
  HOSTLESS_HOST_DEVICE std::int64_t operator[](std::int64_t k) const { return base + stored[k]; }
};

/// Those of halved BSR, with marks.
template <class Column>
struct MarkedColumns {
  Column const* stored;
  std::int64_t base;
  HOSTLESS_HOST_DEVICE std::int64_t operator[](std::int64_t k) const {
    return base + without_mark(stored[k]);
  }
  HOSTLESS_HOST_DEVICE bool once(std::int64_t k) const { return has_mark(stored[k]); }
};

}  // namespace hostless

/// Plain kernels: the ones of processors without AVX2, and the remainders of the others. Included into
/// functions that carry the target, so nothing here names an instruction.
namespace hostless::scalar {

/// Calls body(columns) with the 16- or 32-bit columns of a slice, counted from `at`.
template <class Body>
inline void with_columns(MatrixView const& a, SliceStart const& slice, std::int64_t at, Body&& body) {
  if (slice.wide != 0) {
    body(Columns<std::int32_t>{a.wide + at, 0});
  } else {
    body(Columns<std::uint16_t>{a.narrow + at, slice.base});
  }
}

template <class Body>
inline void with_marked_columns(MatrixView const& a, SliceStart const& slice, Body&& body) {
  if (slice.wide != 0) {
    body(MarkedColumns<std::int32_t>{a.wide + slice.column, slice.base});
  } else {
    body(MarkedColumns<std::uint16_t>{a.narrow + slice.column, slice.base});
  }
}

/// out = row_sum(value, column, begin, end) of each row's entries.
template <class RowSum>
inline void each_csr_row(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                         double* out, RowSum const& row_sum) {
  int const rows = block_rows * a.tiling.block;
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_block_row * a.tiling.block + s;
  double const* value = a.value + slice.value;
  with_columns(a, slice, slice.column, [&](auto column) {
    for (int i = 0; i < rows; ++i) out[i] = row_sum(value, column, start[i], start[i + 1]);
  });
}

inline void csr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows, double const* x,
                double* out) {
  each_csr_row(a, s, first_block_row, block_rows, out,
               [x](double const* value, auto column, std::int64_t k, std::int64_t end) {
                 double sum = 0.0;
                 for (; k < end; ++k) sum = __builtin_fma(value[k], x[column[k]], sum);
                 return sum;
               });
}

/// The same with w accumulators a row.
template <int w>
inline void csr_accumulators(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows,
                             double const* x, double* out) {
  each_csr_row(a, s, first_block_row, block_rows, out,
               [x](double const* value, auto column, std::int64_t k, std::int64_t end) {
                 double sum[w] = {};
                 for (; k + w <= end; k += w) {
                   for (int lane = 0; lane < w; ++lane)
                     sum[lane] = __builtin_fma(value[k + lane], x[column[k + lane]], sum[lane]);
                 }
                 for (int lane = 0; k + lane < end; ++lane)
                   sum[lane] = __builtin_fma(value[k + lane], x[column[k + lane]], sum[lane]);
                 return tree(sum, w);
               });
}

/// sum += block * x, or the transposed block; column-major.
template <int b>
inline void add_block(double const* value, double const* x, double* sum) {
  for (int c = 0; c < b; ++c) {
    for (int j = 0; j < b; ++j) sum[j] = __builtin_fma(value[c * b + j], x[c], sum[j]);
  }
}
template <int b>
inline void add_transposed(double const* value, double const* x, double* sum) {
  for (int c = 0; c < b; ++c) {
    for (int j = 0; j < b; ++j) sum[j] = __builtin_fma(value[j * b + c], x[c], sum[j]);
  }
}

template <int b>
inline void bsr(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows, double const* x,
                double* out) {
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_block_row + s;
  double const* value = a.value + slice.value;
  with_columns(a, slice, slice.column, [&](auto column) {
    for (int block_row = 0; block_row < block_rows; ++block_row) {
      double sum[b] = {};
      for (std::int64_t k = start[block_row]; k < start[block_row + 1]; ++k)
        add_block<b>(value + k * b * b, x + column[k] * b, sum);
      for (int j = 0; j < b; ++j) out[block_row * b + j] = sum[j];
    }
  });
}

/// The block row's place in the ring.
template <int b>
HOSTLESS_HOST_DEVICE double* waiting(MatrixView const& a, double* ring, std::int64_t block_row) {
  return ring + (block_row & (a.halved.ring - 1)) * ring_stride(b);
}
/// Where a slot begins; none inside it.
inline FarRange far_range(MatrixView const& a, int s, std::int64_t first_block_row) {
  std::int64_t const in_slice = first_block_row - a.tiling.first(s);
  if (in_slice % Tiling::accumulators != 0) return {};
  return a.halved.far_range[a.halved.first_slot[s] + in_slice / Tiling::accumulators];
}

template <int b>
inline void halved(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows, double const* x,
                   double* out, double* ring) {
  HalvedView const& h = a.halved;
  FarRange const far = far_range(a, s, first_block_row);
  for (std::int32_t f = far.first; f < far.last; ++f) {
    double* sum = waiting<b>(a, ring, h.far_block_row[f]);
    for (std::int64_t k = h.far_start[f]; k < h.far_start[f + 1]; ++k)
      add_block<b>(h.far_value + k * b * b, x + std::int64_t{h.far_column[k]} * b, sum);
  }
  SliceStart const& slice = a.slice[s];
  std::uint32_t const* start = a.start + first_block_row + s;
  double const* value = a.value + slice.value;
  with_marked_columns(a, slice, [&](auto column) {
    for (int i = 0; i < block_rows; ++i) {
      std::int64_t const block_row = first_block_row + i;
      double* mine = waiting<b>(a, ring, block_row);
      double sum[b];
      for (int j = 0; j < b; ++j) {
        sum[j] = mine[j];
        mine[j] = 0.0;
      }
      for (std::int64_t k = start[i]; k < start[i + 1]; ++k) {
        add_block<b>(value + k * b * b, x + column[k] * b, sum);
        if (column.once(k))
          add_transposed<b>(value + k * b * b, x + block_row * b, waiting<b>(a, ring, column[k]));
      }
      for (int j = 0; j < b; ++j) out[i * b + j] = sum[j];
    }
  });
}

inline void diagonals(MatrixView const& a, SellGroup const& group, int lanes, double const* x, double* out) {
  double sum[group_block_rows] = {};
  for (std::int32_t k = 0; k < group.width; ++k) {
    Diagonal const diagonal = a.diagonal[group.column + k];
    double const* value = a.value + group.value;
    for (int lane = 0; lane < lanes; ++lane) {
      if ((diagonal.mask >> lane & 1u) == 0) continue;
      double const entry = value[(lane < diagonal.split ? diagonal.low : diagonal.high) + lane];
      sum[lane] = __builtin_fma(entry, x[diagonal.first + lane], sum[lane]);
    }
  }
  for (int lane = 0; lane < lanes; ++lane) out[lane] = sum[lane];
}

template <int b, class Column>
inline void listed(MatrixView const& a, SellGroup const& group, int lanes, Column column, double const* x,
                   double* out) {
  for (int j = 0; j < b; ++j) {
    double sum[group_block_rows] = {};
    for (std::int64_t k = 0; k < group.width; ++k) {
      std::int64_t const at = (k * b + j) * group_block_rows;
      for (int lane = 0; lane < lanes; ++lane) {
        sum[lane] = __builtin_fma(a.value[group.value + at + lane], x[column[at + lane]], sum[lane]);
      }
    }
    for (int lane = 0; lane < lanes; ++lane) out[lane * b + j] = sum[lane];
  }
}

template <int b>
inline void sell(MatrixView const& a, int s, std::int64_t first_block_row, int block_rows, double const* x,
                 double* out) {
  SellGroup const* group =
      a.group + a.first_group[s] + (first_block_row - a.tiling.first(s)) / group_block_rows;
  for (int block_row = 0; block_row < block_rows; block_row += group_block_rows, ++group) {
    int const lanes = block_rows - block_row < group_block_rows ? block_rows - block_row : group_block_rows;
    if (group->kind != SellGroup::Kind::listed) {
      diagonals(a, *group, lanes, x, out + block_row);
    } else {
      with_columns(a, a.slice[s], group->column,
                   [&](auto column) { listed<b>(a, *group, lanes, column, x, out + block_row * b); });
    }
  }
}

}  // namespace hostless::scalar
