#pragma once
// The cells near a window's border, in shared memory: between the registers of the threads that step them and
// the words that other tiles read, or have written.

#include "hostless/stencil/body.hpp"
#include "stencil/gpu/cell_words.gpu.hpp"
#include "stencil/gpu/resident.hpp"

namespace hostless::gpu {

/// A range of a window's rows or columns that it owns, and whether others own what comes before and after.
struct OwnRange {
  int low, high, first;  ///< first: cell of the grid of the window's first
  bool below, above;
  __device__ static OwnRange of(AxisTiles const& axis, int k) {
    int const first = axis.low(k);
    return {axis.own_low(k) - first, axis.own_high(k) - first, first, axis.goes_on_below(k),
            axis.goes_on_above(k)};
  }
  __device__ bool owns(int at) const { return at >= low && at < high; }
  __device__ bool holds(int at, int depth) const {
    return at >= low - (below ? depth : 0) && at < high + (above ? depth : 0);
  }
};

/// `unit`: cells that travel together. `columns`: of a row of the window.
template <class T, int fields, int columns, int unit>
struct Frame {
  T* memory;
  OwnRange y, x;
  int depth, height;

  __device__ int field_cells() const { return 4 * depth * (columns + height); }
  /// Number of a row among those that lie whole in the frame; -1: it does not.
  __device__ __forceinline__ int whole_row(int row) const {
    int const from_low = row - (y.low - depth), from_high = row - (y.high - depth);
    if (y.below && from_low >= 0 && from_low < 2 * depth) return from_low;
    if (y.above && from_high >= 0 && from_high < 2 * depth) return 2 * depth + from_high;
    return -1;
  }
  /// Where the cells of a row lie; `whole` as whole_row says. Others have their columns near the border only.
  __device__ __forceinline__ int of_row(int row, int whole) const {
    return whole >= 0 ? whole * columns : 4 * depth * (columns + row);
  }
  __device__ __forceinline__ int of_column(int column, int whole) const {
    if (whole >= 0) return column;
    return column < x.low + depth ? column - (x.low - depth) : 2 * depth + column - (x.high - depth);
  }
  __device__ __forceinline__ int offset_of(int row, int column) const {
    int const whole = whole_row(row);
    return of_row(row, whole) + of_column(column, whole);
  }

  /// Units to be sent (`out`) or received are numbered: those of whole rows, then those of the columns
  /// beside. Finds one of them; false: that number is of nothing.
  template <bool out>
  __device__ __forceinline__ bool unit_of(int k, int& row, int& column) const {
    constexpr int row_units = columns / unit;
    if (k < 2 * depth * row_units) {
      int const j = k / row_units;
      bool const low = j < depth;
      column = k % row_units * unit;
      row = (low ? y.low - (out ? 0 : depth) : y.high - (out ? depth : 0) - depth) + j;
      return (low ? y.below : y.above) && (out ? x.owns(column) : x.holds(column, depth));
    }
    k -= 2 * depth * row_units;
    int const a_row = 2 * depth / unit, q = k % a_row * unit;
    bool const low = q < depth;
    row = y.low + (out && y.below ? depth : 0) + k / a_row;
    column = (low ? x.low - (out ? 0 : depth) : x.high - (out ? depth : 0) - depth) + q;
    return (low ? x.below : x.above) && row < y.high - (out && y.above ? depth : 0);
  }
  __device__ __forceinline__ int units() const {
    return 2 * depth * (columns / unit) + (y.high - y.low) * (2 * depth / unit);
  }
};

/// Where words of a cell lie among those of the grid.
template <class T, int fields>
__device__ __forceinline__ std::int64_t word_of(ResidentCall<T, fields> const& call, int y, int x) {
  return call.y.wrapped(y) * call.row_words + call.x.wrapped(x) * words_of_cell<T>;
}

/// By all threads, after a barrier of the block behind what was written into the frame.
template <class T, int fields, int columns, int unit>
__device__ __forceinline__ void send(Frame<T, fields, columns, unit> const& frame,
                                     ResidentCall<T, fields> const& call, std::uint32_t epoch) {
  std::int64_t const of_field = call.y.extent * call.row_words;
  std::int64_t const of_parity = parity_of(epoch) * fields * of_field;
  for (int k = static_cast<int>(threadIdx.x); k < frame.units(); k += static_cast<int>(blockDim.x)) {
    int row, column;
    if (!frame.template unit_of<true>(k, row, column)) continue;
    std::uint64_t* const to =
        call.words + word_of(call, frame.y.first + row, frame.x.first + column) + of_parity;
    T const* const from = frame.memory + frame.offset_of(row, column);
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f)
      CellWords<T, unit>::put(to + f * of_field, from + f * frame.field_cells(), epoch);
  }
}

/// The first and the last rows, into the memory of the GPUs whose tiles come before and after; of other tiles
/// nothing.
template <class T, int fields, int columns, int unit>
__device__ __forceinline__ void send_beyond(Frame<T, fields, columns, unit> const& frame,
                                            ResidentCall<T, fields> const& call, std::uint32_t epoch) {
  constexpr int row_units = columns / unit;
  std::int64_t const of_field = call.y.extent * call.row_words;
  std::int64_t const of_parity = parity_of(epoch) * fields * of_field;
  for (int side = 0; side < 2; ++side) {
    std::uint64_t* const words = call.beyond[side];
    if (words == nullptr || blockIdx.y != (side == 0 ? 0 : gridDim.y - 1)) continue;
    for (int k = static_cast<int>(threadIdx.x); k < frame.depth * row_units;
         k += static_cast<int>(blockDim.x)) {
      int row, column;
      if (!frame.template unit_of<true>(side * frame.depth * row_units + k, row, column)) continue;
      std::uint64_t* const to =
          words + word_of(call, frame.y.first + row, frame.x.first + column) + of_parity;
      T const* const from = frame.memory + frame.offset_of(row, column);
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f)
        CellWords<T, unit>::put(to + f * of_field, from + f * frame.field_cells(), epoch);
    }
  }
}

/// By each thread; false: it waited in vain.
template <class T, int fields, int columns, int unit>
__device__ __forceinline__ bool receive(Frame<T, fields, columns, unit> const& frame,
                                        ResidentCall<T, fields> const& call, std::uint32_t epoch) {
  constexpr int together = fields > 2 ? 1 : 4 / fields;
  std::int64_t const of_field = call.y.extent * call.row_words;
  std::int64_t const of_parity = parity_of(epoch) * fields * of_field;
  int const threads = static_cast<int>(blockDim.x), units = frame.units();
  for (int first = static_cast<int>(threadIdx.x); first < units; first += together * threads) {
    std::uint64_t const* from[together];
    int to[together];
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u) {
      int row, column;
      int const k = first + u * threads;
      bool const wanted = k < units && frame.template unit_of<false>(k, row, column);
      to[u] = wanted ? frame.offset_of(row, column) : -1;
      from[u] = wanted ? call.words + word_of(call, frame.y.first + row, frame.x.first + column) + of_parity
                       : nullptr;
    }
    CellWords<T, unit> words[together][fields];
    std::uint64_t begin = 0;
    for (std::uint32_t polls = 1;; ++polls) {
      bool whole = true;
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u)
        for (int f = 0; f < fields; ++f)
          if (to[u] >= 0) words[u][f].ask(from[u] + f * of_field);
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u)
        for (int f = 0; f < fields; ++f) whole = whole && (to[u] < 0 || words[u][f].is_of(epoch));
      if (whole) break;
      if (polls % 1024 != 0) continue;
      std::uint64_t now;
      HOSTLESS_READ_NANOSECONDS(now);
      if (begin == 0) begin = now;
      if (now - begin > call.deadline_ns || *static_cast<std::uint32_t volatile*>(call.lost) != 0)
        return false;
    }
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      for (int f = 0; f < fields; ++f)
        if (to[u] >= 0) words[u][f].get(frame.memory + to[u] + f * frame.field_cells());
  }
  return true;
}

}  // namespace hostless::gpu
