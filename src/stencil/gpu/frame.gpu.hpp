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

/// Cells that travel together: of which row and column of the window, where they lie in the frame, and whether there
/// are any.
struct FrameUnit {
  int row, column, offset;
  bool wanted;
};

/// `unit`: cells that travel together. `columns`: of a row of the window.
template <class T, int fields, int columns, int unit>
struct Frame {
  T* memory;
  OwnRange y, x;
  int depth, height;

  __device__ static int thread() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int warps() { return static_cast<int>(blockDim.x) / 32; }
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

  /// Calls use(units) for what this thread is to send (`out`) or to receive, `some` at a time, until it is
  /// false: of whole rows, then of the columns beside other rows. Warps take turns, so that where a unit lies
  /// takes no division each: with them an exchange had as many instructions as four steps.
  /// A narrow window has few, which are better asked for all at once: there by their numbers, rows and columns in one.
  template <bool out, int some, class Use>
  __device__ __forceinline__ bool each(Use const& use) const {
    if constexpr (columns == 32 * unit) {
      return each_by_number<out, some>(use);
    } else {
      return each_of_rows<out, some>(y.below ? 0 : depth, y.above ? 2 * depth : depth, use) &&
             each_beside<out, some>(use);
    }
  }
  template <bool out, int some, class Use>
  __device__ __forceinline__ bool each_by_number(Use const& use) const {
    int const of_rows = 2 * depth * (columns / unit), a_row = 2 * depth / unit;
    int const count = of_rows + (y.high - y.low) * a_row, threads = 32 * warps();
    for (int first = 32 * warp() + thread(); first < count; first += some * threads) {
      FrameUnit units[some];
      HOSTLESS_UNROLL
      for (int t = 0; t < some; ++t) {
        int const k = first + t * threads;
        units[t] = k < of_rows ? of_whole_row<out>(k)
                               : beside_row<out>((k - of_rows) / a_row, (k - of_rows) % a_row);
        units[t].wanted = units[t].wanted && k < count;
      }
      if (!use(units)) return false;
    }
    return true;
  }
  template <bool out>
  __device__ __forceinline__ FrameUnit of_whole_row(int k) const {
    int const j = k / (columns / unit), column = k % (columns / unit) * unit;
    bool const low = j < depth;
    int const row = j + (low ? y.low - (out ? 0 : depth) : y.high - (out ? 2 : 1) * depth);
    bool const wanted = (low ? y.below : y.above) && (out ? x.owns(column) : x.holds(column, depth));
    return {row, column, (j + (out ? depth : low ? 0 : 2 * depth)) * columns + column, wanted};
  }
  template <bool out>
  __device__ __forceinline__ FrameUnit beside_row(int number, int q) const {
    int const cell = q * unit, row = y.low + (out && y.below ? depth : 0) + number;
    bool const low = cell < depth;
    int const column = cell + (low ? x.low - (out ? 0 : depth) : x.high - (out ? 2 : 1) * depth);
    bool const wanted = (low ? x.below : x.above) && row < y.high - (out && y.above ? depth : 0);
    return {row, column, offset_of(row, column), wanted};
  }
  /// Of the rows that are whole: those at the low end have numbers below depth.
  template <bool out, int some, class Use>
  __device__ __forceinline__ bool each_of_rows(int from, int to, Use const& use) const {
    constexpr int turns = columns / unit / 32;  // of a warp, in a row
    for (int item = from * turns + warp(); item < to * turns; item += some * warps()) {
      FrameUnit units[some];
      HOSTLESS_UNROLL
      for (int t = 0; t < some; ++t) {
        int const at = item + t * warps(), j = at / turns, column = (at % turns * 32 + thread()) * unit;
        bool const low = j < depth;
        int const begin = low ? y.low - (out ? 0 : depth) : y.high - (out ? 2 : 1) * depth;
        int const whole = j + (out ? depth : low ? 0 : 2 * depth);
        bool const ours = out ? x.owns(column) : x.holds(column, depth);
        units[t] = {begin + j, column, whole * columns + column, at < to * turns && ours};
      }
      if (!use(units)) return false;
    }
    return true;
  }
  template <bool out, int some, class Use>
  __device__ __forceinline__ bool each_beside(Use const& use) const {
    if (!x.below && !x.above) return true;
    unsigned const a_row = static_cast<unsigned>(2 * depth / unit), number = static_cast<unsigned>(thread());
    unsigned const together = a_row < 32 ? a_row : 32, at_once = 32 / together;
    int const begin = y.low + (out && y.below ? depth : 0), end = y.high - (out && y.above ? depth : 0);
    int const on = warps() * static_cast<int>(at_once);
    int const mine = begin + warp() * static_cast<int>(at_once) + static_cast<int>(number / together);
    bool const has_any = number < at_once * together;
    for (unsigned q = number % together; q < a_row; q += together) {
      int const cell = static_cast<int>(q) * unit;
      bool const low = cell < depth, wanted = has_any && (low ? x.below : x.above);
      int const column = cell + (low ? x.low - (out ? 0 : depth) : x.high - (out ? 2 : 1) * depth);
      for (int row = mine; row < end; row += on * some) {
        FrameUnit units[some];
        HOSTLESS_UNROLL
        for (int t = 0; t < some; ++t) {
          int const at = row + t * on;
          units[t] = {at, column, offset_of(at, column), wanted && at < end};
        }
        if (!use(units)) return false;
      }
    }
    return true;
  }
};

/// Where words of a cell lie among those of the grid.
template <class T, int fields>
__device__ __forceinline__ int word_of(ResidentCall<T, fields> const& call, int y, int x) {
  return call.y.wrapped(y) * call.row_words + call.x.wrapped(x) * words_of_cell<T>;
}

/// What stores units of a frame as words of an exchange into `words`, of this GPU or of another.
template <class T, int fields, int columns, int unit>
struct Sender {
  Frame<T, fields, columns, unit> const& frame;
  ResidentCall<T, fields> const& call;
  std::uint64_t* words;
  std::uint32_t epoch;
  template <int some>
  __device__ __forceinline__ bool operator()(FrameUnit const (&units)[some]) const {
    int const of_field = call.y.extent * call.row_words, of_parity = parity_of(epoch) * fields * of_field;
    HOSTLESS_UNROLL
    for (int t = 0; t < some; ++t) {
      if (!units[t].wanted) continue;
      std::uint64_t* const to =
          words + (word_of(call, frame.y.first + units[t].row, frame.x.first + units[t].column) + of_parity);
      T const* const from = frame.memory + units[t].offset;
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f)
        CellWords<T, unit>::put(to + f * of_field, from + f * frame.field_cells(), epoch);
    }
    return true;
  }
};

/// By all threads, after a barrier of the block behind what was written into the frame.
template <class T, int fields, int columns, int unit>
__device__ __forceinline__ void send(Frame<T, fields, columns, unit> const& frame,
                                     ResidentCall<T, fields> const& call, std::uint32_t epoch) {
  constexpr int some =
      columns == 32 * unit ? 1 : 4;  // few: where a unit lies is found of those alone that there are
  frame.template each<true, some>(Sender<T, fields, columns, unit>{frame, call, call.words, epoch});
}

/// The first and the last rows, into the memory of the GPUs whose tiles come before and after; of other tiles
/// nothing.
template <class T, int fields, int columns, int unit>
__device__ __forceinline__ void send_beyond(Frame<T, fields, columns, unit> const& frame,
                                            ResidentCall<T, fields> const& call, std::uint32_t epoch) {
  for (int side = 0; side < 2; ++side) {
    std::uint64_t* const words = call.beyond[side];
    if (words == nullptr || blockIdx.y != (side == 0 ? 0 : gridDim.y - 1)) continue;
    Sender<T, fields, columns, unit> const sender{frame, call, words, epoch};
    frame.template each_of_rows<true, 4>(side * frame.depth, (side + 1) * frame.depth, sender);
  }
}

/// By each thread; false: it waited in vain.
template <class T, int fields, int columns, int unit>
__device__ __forceinline__ bool receive(Frame<T, fields, columns, unit> const& frame,
                                        ResidentCall<T, fields> const& call, std::uint32_t epoch) {
  constexpr int together = fields > 2 ? 1 : 4 / fields;
  int const of_field = call.y.extent * call.row_words, of_parity = parity_of(epoch) * fields * of_field;
  return frame.template each<false, together>([&](FrameUnit const(&units)[together]) {
    std::uint64_t const* from[together];
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      from[u] = call.words + (of_parity + (units[u].wanted ? word_of(call, frame.y.first + units[u].row,
                                                                     frame.x.first + units[u].column)
                                                           : 0));
    CellWords<T, unit> words[together][fields];
    std::uint64_t begin = 0;
    for (std::uint32_t polls = 1;; ++polls) {
      bool whole = true;
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u)
        for (int f = 0; f < fields; ++f)
          if (units[u].wanted) words[u][f].ask(from[u] + f * of_field);
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u)
        for (int f = 0; f < fields; ++f) whole = whole && (!units[u].wanted || words[u][f].is_of(epoch));
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
        if (units[u].wanted) words[u][f].get(frame.memory + units[u].offset + f * frame.field_cells());
    return true;
  });
}

}  // namespace hostless::gpu
