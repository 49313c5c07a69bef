#pragma once
// Several steps of a stencil of three axes in one pass over memory. A block takes a window of rows and columns
// and goes through its planes: a plane that comes in is the newest of step 0, and lets each step make one
// more, a plane before the one before. Of each step the last two planes stay in registers, a thread's cells
// of them; what threads need of their neighbours' cells lies in shared memory since the plane came, so that
// blocks meet once a plane, however many steps they take. What windows and chunks of planes need of each
// other, they compute twice.

#include "stencil/gpu/planes.hpp"
#include "stencil/gpu/window.gpu.hpp"

namespace hostless::gpu {

/// Cells that travel together.
template <class T, int count>
struct alignas(count * sizeof(T)) Together {
  T cell[count];
};

/// A thread's cells of a plane.
template <class T, int width, int rows>
struct PlanePart {
  Together<T, width> row[rows];
};

/// What lies around them.
template <class T, int width, int rows>
struct AroundPart {
  Together<T, width> above, below;
  Together<T, rows> left, right;
};

/// a / 6 in every bit, without a division: what the product misses is a number without loss, and the second
/// product of it mends the first; but where the quotient lies halfway between two of the smallest numbers, which
/// it misses by half of the last bit, and of infinities. There the first one is right, but for its last bit.
/// (All floats were tried, and doubles by chance and around the smallest.)
__device__ __forceinline__ float sixth_of(float a) {
  constexpr float sixth = 1.0f / 6.0f, three_of_the_least = 0x3p-149f;  // above 1 / 6
  float const near = a * sixth, over = fmaf(6.0f, near, -a);
  bool const is_near = !(fabsf(over) < three_of_the_least || fabsf(over) > three_of_the_least);
  float const even = __uint_as_float(__float_as_uint(near) & ~1u);
  return is_near ? even : fmaf(over, -sixth, near);
}
__device__ __forceinline__ double sixth_of(double a) {
  constexpr double sixth = 1.0 / 6.0, three_of_the_least = 0x3p-1074;  // below 1 / 6
  double const near = a * sixth, over = fma(6.0, near, -a);
  bool const is_near = !(fabs(over) < three_of_the_least || fabs(over) > three_of_the_least);
  long long const bits = __double_as_longlong(near), odd = over == over ? bits & 1 : 0;
  return is_near ? __longlong_as_double(bits + odd) : fma(over, -sixth, near);
}

/// Of a star of radius 1: what a functor sees of the neighbourhood of cell (r, i) of a thread.
template <class T, class Body, int width, int rows>
class PlaneCell {
  static constexpr int fields = FactsOf<Body>::fields;

 public:
  using value_type = T;
  using Around = AroundPart<T, width, rows>;
  __device__ __forceinline__ PlaneCell(PlanePart<T, width, rows> const (&before)[fields],
                                       PlanePart<T, width, rows> const (&middle)[fields],
                                       PlanePart<T, width, rows> const (&after)[fields],
                                       Around const (&around)[fields], int r, int i)
      : before_(before), middle_(middle), after_(after), around_(around), r_(r), i_(i) {}
  __device__ __forceinline__ T sixth_of(T a) const { return gpu::sixth_of(a); }
  __device__ __forceinline__ T of(int field, int z, int y, int x) const {
    if (z != 0) return (z < 0 ? before_ : after_)[field].row[r_].cell[i_];
    if (y != 0) {
      int const r = r_ + y;
      if (r < 0) return around_[field].above.cell[i_];
      return r >= rows ? around_[field].below.cell[i_] : middle_[field].row[r].cell[i_];
    }
    int const i = i_ + x;
    if (i < 0) return around_[field].left.cell[r_];
    return i >= width ? around_[field].right.cell[r_] : middle_[field].row[r_].cell[i];
  }
  template <class... Offsets>
  __device__ __forceinline__ T operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }

 private:
  PlanePart<T, width, rows> const (&before_)[fields];
  PlanePart<T, width, rows> const (&middle_)[fields];
  PlanePart<T, width, rows> const (&after_)[fields];
  Around const (&around_)[fields];
  int r_, i_;
};

/// even: rows of the grid and of windows are whole chunks of threads.
template <class T, class Body, int rows, int steps, int most_threads, bool even>
class PlaneWindow {
  static constexpr int fields = FactsOf<Body>::fields, width = Chunk<T>::cells;
  using Row = Together<T, width>;
  using Side = Together<T, rows>;
  using Part = PlanePart<T, width, rows>;
  using Around = AroundPart<T, width, rows>;
  using Call = PlanesCall<T, fields>;

 public:
  __device__ __forceinline__ PlaneWindow(Call const& call, unsigned char* shared, int window, int chunk)
      : call_(call) {
    int const threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
    int const across = call.threads_x, down = threads / across;
    int const ty = thread / across, tx = thread % across;
    int const tile_y = window / call.x.count, tile_x = window % call.x.count;
    row_ = shared + thread * row_bytes;
    side_ = shared + thread * side_bytes;
    // beyond the window: the own cells, which is what neumann mirrors
    above_ = ty > 0 ? row_ + lasts - across * row_bytes : row_;
    below_ = ty < down - 1 ? row_ + across * row_bytes : row_ + lasts;
    before_ = tx > 0 ? side_ + rights - side_bytes : side_ + lefts;
    after_ = tx < across - 1 ? side_ + lefts + side_bytes : side_ + rights;

    column_ = call.x.low(tile_x) + tx * width;
    int const row = call.y.low(tile_y) + ty * rows;
    int const column = even ? call.x.wrapped(column_) : column_;
    bool const keeps_y = call.y.boundary == GridBoundary::dirichlet;
    bool const keeps_x = call.x.boundary == GridBoundary::dirichlet;
    keeps_first_row_ = keeps_y && row == 0;
    keeps_last_row_ = keeps_y && row + rows == call.y.extent;
    keeps_first_ = keeps_x && column_ == 0;
    keeps_last_ = keeps_x && column_ + width == call.x.extent;
    HOSTLESS_UNROLL
    for (int r = 0; r < rows; ++r) {
      int const y = row + r;
      from_[r] = call.y.wrapped(y) * static_cast<int>(call.stride[1]) + (even ? column : 0);
      owns_[r] = y >= call.y.own_low(tile_y) && y < call.y.own_high(tile_y);
    }
    own_low_ = call.x.own_low(tile_x);
    own_high_ = call.x.own_high(tile_x);
    if (even) HOSTLESS_UNROLL
    for (int r = 0; r < rows; ++r) owns_[r] = owns_[r] && column_ >= own_low_ && column_ < own_high_;
    low_ = chunk * call.chunk_planes;
    high_ = low_ + call.chunk_planes < call.planes ? low_ + call.chunk_planes : call.planes;
  }

  __device__ __forceinline__ void run(Body const& body) {
    bool const wraps = call_.planes_boundary == GridBoundary::periodic;
    int const first = !wraps && low_ < steps ? 0 : low_ - steps;
    // where no plane that is made is the grid's first or last
    int const ends = high_ + steps;
    int inner_low = first, inner_high = ends;
    if (!wraps) {
      inner_low = first > 0 ? first : steps + 1;
      inner_high = ends < call_.planes ? ends : call_.planes;
    }
    fetch(0, first);
    fetch(1, first + 1);
    for (int z = first; z < ends; z += 2) {
      if (z >= inner_low && z + 1 < inner_high) {
        advance<0, true>(body, z);
        advance<1, true>(body, z + 1);
      } else {
        advance<0, false>(body, z);
        advance<1, false>(body, z + 1);
      }
    }
    await_copies<0>();  // what nobody takes
  }

 private:
  static constexpr int row_bytes = width * static_cast<int>(sizeof(T)),
                       side_bytes = rows * static_cast<int>(sizeof(T));
  /// Where a level of shared memory has first rows (at 0), last rows, left sides and right sides.
  static constexpr int lasts = rows > 1 ? most_threads *row_bytes : 0,
                       lefts = lasts + most_threads * row_bytes, rights = lefts + most_threads * side_bytes,
                       level_bytes = rights + most_threads * side_bytes;

  /// Queues the copy of a plane of step 0 into a thread's own part of shared memory.
  __device__ __forceinline__ void fetch(int parity, int z) {
    if (call_.planes_boundary == GridBoundary::periodic)
      z = z < 0 ? z + call_.planes : z >= call_.planes ? z - call_.planes : z;
    if (z >= call_.planes) z = call_.planes - 1;  // beyond the end: of no meaning, but memory
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) {
      T const* const from = call_.in[f] + z * call_.stride[0];
      HOSTLESS_UNROLL
      for (int r = 0; r < rows; ++r) {
        unsigned char* const to = row_ + coming(parity, f, r);
        if constexpr (even) {
          copy_async<row_bytes>(to, from + from_[r]);
        } else {
          HOSTLESS_UNROLL
          for (int i = 0; i < width; ++i)
            copy_async<static_cast<int>(sizeof(T))>(to + i * sizeof(T),
                                                    from + from_[r] + call_.x.wrapped(column_ + i));
        }
      }
    }
    end_copies();
  }
  __device__ __forceinline__ void take(int parity, Part (&part)[fields]) const {
    await_copies<1>();
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) HOSTLESS_UNROLL
    for (int r = 0; r < rows; ++r)
      part[f].row[r] = *reinterpret_cast<Row const*>(row_ + coming(parity, f, r));
  }
  __device__ __forceinline__ void store(int z, Part const (&part)[fields]) const {
    if (z < low_ || z >= high_) return;
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) {
      T* const to = call_.out[f] + z * call_.stride[0];
      HOSTLESS_UNROLL
      for (int r = 0; r < rows; ++r) {
        if (!owns_[r]) continue;
        if constexpr (even) {
          *reinterpret_cast<Row*>(to + from_[r]) = part[f].row[r];
        } else {
          HOSTLESS_UNROLL
          for (int i = 0; i < width; ++i)
            if (column_ + i >= own_low_ && column_ + i < own_high_)
              to[from_[r] + column_ + i] = part[f].row[r].cell[i];
        }
      }
    }
  }
  __device__ __forceinline__ static int coming(int parity, int f, int r) {
    return level(2, 0, 0) + ((parity * fields + f) * rows + r) * most_threads * row_bytes;
  }
  __device__ __forceinline__ static int level(int parity, int s, int f) {
    return ((parity * steps + s) * fields + f) * level_bytes;
  }
  __device__ __forceinline__ void show(int parity, int s, int f, Part const& part) const {
    int const at = level(parity, s, f);
    *reinterpret_cast<Row*>(row_ + at) = part.row[0];
    if (rows > 1) *reinterpret_cast<Row*>(row_ + at + lasts) = part.row[rows - 1];
    Side left, right;
    HOSTLESS_UNROLL
    for (int r = 0; r < rows; ++r) {
      left.cell[r] = part.row[r].cell[0];
      right.cell[r] = part.row[r].cell[width - 1];
    }
    *reinterpret_cast<Side*>(side_ + at + lefts) = left;
    *reinterpret_cast<Side*>(side_ + at + rights) = right;
  }
  __device__ __forceinline__ Around look(int parity, int s, int f) const {
    int const at = level(parity, s, f);
    return {*reinterpret_cast<Row const*>(above_ + at), *reinterpret_cast<Row const*>(below_ + at),
            *reinterpret_cast<Side const*>(before_ + at), *reinterpret_cast<Side const*>(after_ + at)};
  }

  /// Plane z of the next step, between planes that are a step older.
  template <int parity, bool inner>
  __device__ __forceinline__ void make(Body const& body, int s, int z, Part (&newest)[fields],
                                       Part (&made)[fields]) {
    Part(&before)[fields] = kept_[s][parity];
    Part(&middle)[fields] = kept_[s][1 - parity];
    Around around[fields];
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) around[f] = look(1 - parity, s, f);
    bool const first = !inner && z == 0, last = !inner && z == call_.planes - 1;
    if (!inner && call_.planes_boundary == GridBoundary::dirichlet && (first || last)) {
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) made[f] = middle[f];
      return;
    }
    Part after[fields];
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) after[f] = newest[f];
    if (!inner && call_.planes_boundary == GridBoundary::neumann) HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) {
      if (first) before[f] = middle[f];
      if (last) after[f] = middle[f];
    }
    HOSTLESS_UNROLL
    for (int r = 0; r < rows; ++r) HOSTLESS_UNROLL
    for (int i = 0; i < width; ++i) {
      PlaneCell<T, Body, width, rows> const here(before, middle, after, around, r, i);
      if constexpr (fields == 1) {
        made[0].row[r].cell[i] = body(here);
      } else {
        auto const values = body(here);
        HOSTLESS_UNROLL
        for (int f = 0; f < fields; ++f) made[f].row[r].cell[i] = reinterpret_cast<T const*>(&values)[f];
      }
    }
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) {
      HOSTLESS_UNROLL
      for (int i = 0; i < width; ++i) {
        if (keeps_first_row_) made[f].row[0].cell[i] = middle[f].row[0].cell[i];
        if (keeps_last_row_) made[f].row[rows - 1].cell[i] = middle[f].row[rows - 1].cell[i];
      }
      HOSTLESS_UNROLL
      for (int r = 0; r < rows; ++r) {
        if (keeps_first_) made[f].row[r].cell[0] = middle[f].row[r].cell[0];
        if (keeps_last_) made[f].row[r].cell[width - 1] = middle[f].row[r].cell[width - 1];
      }
    }
  }

  /// Plane z of step 0 has come: each step makes one.
  template <int parity, bool inner>
  __device__ __forceinline__ void advance(Body const& body, int z) {
    Part newest[fields];
    take(parity, newest);
    HOSTLESS_UNROLL
    for (int s = 0; s < steps; ++s) {
      Part made[fields];
      make<parity, inner>(body, s, z - s - 1, newest, made);
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) {
        show(parity, s, f, newest[f]);
        kept_[s][parity][f] = newest[f];
        newest[f] = made[f];
      }
      if (s == 0) fetch(parity, z + 2);  // what was there has been taken
    }
    store(z - steps, newest);
    __syncthreads();
  }

  Call const& call_;
  unsigned char *row_, *side_, *above_, *below_, *before_, *after_;
  int column_, own_low_, own_high_, low_, high_;
  int from_[rows];
  bool owns_[rows];
  bool keeps_first_row_, keeps_last_row_, keeps_first_, keeps_last_;
  Part kept_[steps][2][fields] = {};  ///< of each step the last two planes, by the parity of when they came
};

template <class T, class Body, int rows, int steps, int most_threads, bool even>
__global__ void __launch_bounds__(most_threads, 1)
    planes_kernel(HOSTLESS_PARAMETER PlanesCall<T, fields_of_body<Body>()> const call, Body const body) {
  extern __shared__ __align__(16) unsigned char shared[];
  int const windows = call.x.count * call.y.count;
  int const window = static_cast<int>(blockIdx.x) % windows, chunk = static_cast<int>(blockIdx.x) / windows;
  PlaneWindow<T, Body, rows, steps, most_threads, even>(call, shared, window, chunk).run(body);
}

}  // namespace hostless::gpu
