#pragma once
// Several steps of a stencil in one pass over memory. A warp takes a strip of columns and goes down its rows:
// a row that comes in is the newest of step 0, and lets each step make one more row, a row above the one
// before. Of each step the last two rows stay in registers, so that memory sees the first and the last alone;
// no warp waits for another. What strips and chunks of rows need of each other, they compute twice. Warps have
// as many rows each, so the slowest decides: what is asked at an end of the grid is asked near it alone.

#include "stencil/gpu/streamed.hpp"
#include "stencil/gpu/window.gpu.hpp"

namespace hostless::gpu {

constexpr int streamed_threads = 128;

/// at_end: the strip touches the first or the last column. even: rows are whole chunks of threads.
template <class T, class Body, int width, int steps, bool at_end, bool even>
class Strip {
  static constexpr int fields = fields_of_body<Body>();
  static constexpr bool star = star_of_body<Body>();
  static constexpr int chunk = width * static_cast<int>(sizeof(T)) < 16 ? width : Chunk<T>::cells;
  struct alignas(chunk * sizeof(T)) Some {
    T cell[chunk];
  };
  using Row = ThreadRow<T, width>;
  using Call = StreamedCall<T, fields>;

 public:
  __device__ __forceinline__ Strip(Call const& call, int strip, int part)
      : call_(call), thread_(static_cast<int>(threadIdx.x) % 32) {
    column_ = call.x.low(strip) + thread_ * width;
    own_low_ = call.x.own_low(strip);
    own_high_ = call.x.own_high(strip);
    low_ = part * call.chunk_rows;
    high_ = low_ + call.chunk_rows < call.rows ? low_ + call.chunk_rows : call.rows;
    first_column_ = even ? call.x.wrapped(column_) : column_;
    if (at_end) {
      bool const first = thread_ == 0 && !call.x.goes_on_below(strip);
      last_ = call.x.goes_on_above(strip) ? -1 : call.x.extent - 1 - column_;
      ends_ = Ends::of(call.all_bits, first, even && last_ == width - 1, call.x.boundary);
      mirrored_column_ = call.x.boundary == GridBoundary::neumann ? last_ : -1;
      kept_column_ = call.x.boundary == GridBoundary::dirichlet ? last_ : -1;
    }
  }

  __device__ __forceinline__ void run(Body const& body) {
    bool const wraps = call_.rows_boundary == GridBoundary::periodic;
    int const first = !wraps && low_ < steps ? 0 : low_ - steps, end = high_ + steps;
    // where no row that is made is the grid's first or last, and the one that is fetched is there
    int const inner_low = wraps ? -2 : low_ < steps ? steps + 1 : first, inner_high = call_.rows - 2;
    fetch<false>(first, coming_[0]);
    fetch<false>(first + 1, coming_[1]);
    for (int y = first; y < end; y += 2) {
      if (y >= inner_low && y + 1 < inner_high) {
        advance<0, true>(body, y);
        advance<1, true>(body, y + 1);
      } else {
        advance<0, false>(body, y);
        advance<1, false>(body, y + 1);
      }
    }
  }

 private:
  template <bool inner>
  __device__ __forceinline__ void fetch(int y, Row (&row)[fields]) const {
    if (!inner && call_.rows_boundary == GridBoundary::periodic)
      y = y < 0 ? y + call_.rows : y >= call_.rows ? y - call_.rows : y;
    if (!inner && y >= call_.rows) y = call_.rows - 1;  // beyond the end: of no meaning, but memory
    if constexpr (even) {
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) {
        T const* const from = call_.in[f] + y * call_.pitch + first_column_;
        HOSTLESS_UNROLL
        for (int k = 0; k < width; k += chunk) {
          Some const some = *reinterpret_cast<Some const*>(from + k);
          HOSTLESS_UNROLL
          for (int i = 0; i < chunk; ++i) row[f].cell[k + i] = some.cell[i];
        }
      }
    } else {
      HOSTLESS_UNROLL
      for (int i = 0; i < width; ++i) {
        int const x = call_.x.wrapped(column_ + i);
        bool const there = x >= 0 && x < call_.x.extent;
        HOSTLESS_UNROLL
        for (int f = 0; f < fields; ++f) row[f].cell[i] = there ? call_.in[f][y * call_.pitch + x] : T(0);
      }
    }
  }
  __device__ __forceinline__ void store(int y, Row const (&row)[fields]) const {
    if (y < low_ || y >= high_) return;
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) {
      T* const to = call_.out[f] + y * call_.pitch + column_;
      if constexpr (even) {
        HOSTLESS_UNROLL
        for (int k = 0; k < width; k += chunk) {
          Some some;
          HOSTLESS_UNROLL
          for (int i = 0; i < chunk; ++i) some.cell[i] = row[f].cell[k + i];
          if (column_ + k >= own_low_ && column_ + k < own_high_) *reinterpret_cast<Some*>(to + k) = some;
        }
      } else {
        HOSTLESS_UNROLL
        for (int i = 0; i < width; ++i)
          if (column_ + i >= own_low_ && column_ + i < own_high_) to[i] = row[f].cell[i];
      }
    }
  }
  /// What a row's cells see beside them.
  __device__ __forceinline__ void look(Row& row) const {
    look_beside(row, thread_, ends_);
    if constexpr (at_end && !even) mirror_after(row, mirrored_column_);
  }
  /// Row y of the next step, between rows that are a step older.
  template <bool inner>
  __device__ __forceinline__ void make(Body const& body, int y, Row (&rows)[fields][3], Row (&made)[fields]) {
    if constexpr (!inner) {
      bool const first = y == 0, last = y == call_.rows - 1;
      if (call_.rows_boundary == GridBoundary::dirichlet && (first || last)) {
        HOSTLESS_UNROLL
        for (int f = 0; f < fields; ++f) made[f] = rows[f][1];
        return;
      }
      if (call_.rows_boundary == GridBoundary::neumann) HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) {
        if (first) rows[f][0] = rows[f][1];
        if (last) rows[f][2] = rows[f][1];
      }
    }
    T found[fields][width];
    update_row<T, Body, width>(body, rows, found, ends_);
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) HOSTLESS_UNROLL
    for (int i = 0; i < width; ++i) {
      bool const keeps = at_end && !even && i == kept_column_;
      made[f].cell[i] = keeps ? rows[f][1].cell[i] : found[f][i];
    }
  }

  /// Row y of step 0 has come: each step makes one.
  template <int parity, bool inner>
  __device__ __forceinline__ void advance(Body const& body, int y) {
    Row newest[fields];
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) newest[f] = coming_[parity][f];
    fetch<inner>(y + 2, coming_[parity]);
    HOSTLESS_UNROLL
    for (int s = 0; s < steps; ++s) {
      Row rows[fields][3];
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) {
        if constexpr (star) {
          look(kept_[s][1 - parity][f]);
        } else {
          look(newest[f]);
        }
        rows[f][0] = kept_[s][parity][f];
        rows[f][1] = kept_[s][1 - parity][f];
        rows[f][2] = kept_[s][parity][f] = newest[f];
      }
      make<inner>(body, y - s - 1, rows, newest);
    }
    store(y - steps, newest);
  }

  Call const& call_;
  int thread_, column_, first_column_, own_low_, own_high_, low_, high_, last_ = -1;
  int mirrored_column_ = -1, kept_column_ = -1;
  Ends ends_;
  Row coming_[2][fields];
  Row kept_[steps][2][fields] = {};  ///< of each step the last two rows, by the parity of when they came
};

/// Registers that hold rows: with more than half of them a multiprocessor has fewer warps.
template <class T, class Body, int width, int steps>
constexpr int streamed_blocks = FactsOf<Body>::fields* width*(steps + 1) * static_cast<int>(sizeof(T)) > 180
                                    ? 2
                                : FactsOf<Body>::fields* width*(steps + 1) * static_cast<int>(sizeof(T)) > 110
                                    ? 3
                                    : 4;

template <class T, class Body, int width, int steps, bool even>
__global__ void HOSTLESS_LAUNCH_BOUNDS(streamed_threads, (streamed_blocks<T, Body, width, steps>))
    streamed_kernel(HOSTLESS_PARAMETER StreamedCall<T, fields_of_body<Body>()> const call, Body const body) {
  int const unit = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  int const strip = unit % call.x.count, part = unit / call.x.count;
  if (part >= call.chunks) return;
  if (!even || !call.x.goes_on_below(strip) || !call.x.goes_on_above(strip)) {
    Strip<T, Body, width, steps, true, even>(call, strip, part).run(body);
  } else if constexpr (even) {
    Strip<T, Body, width, steps, false, true>(call, strip, part).run(body);
  }
}

}  // namespace hostless::gpu
