#pragma once
// Cells in the registers of a warp: a row of the window is 32 threads with `width` consecutive cells each.

#include "device/runtime.hpp"
#include "hostless/stencil/body.hpp"

namespace hostless::gpu {

template <class T>
struct alignas(16) Chunk {
  static constexpr int cells = 16 / static_cast<int>(sizeof(T));
  T cell[cells];
};

/// As values: a kernel may not call what says them.
template <class Body>
struct FactsOf {
  static constexpr int fields = fields_of_body<Body>();
  static constexpr bool star = star_of_body<Body>();
};

/// A thread's part of a row, and the cells beside it, which other threads hold.
template <class T, int width>
struct ThreadRow {
  T cell[width];
  T before, after;
};

/// One of two values, by a mask of all bits or none. Compilers make branches of conditions that each row asks
/// again, and a branch costs as much as a row: so masks are made once, of bits that they do not know.
template <class T>
__device__ __forceinline__ T chosen(std::uint32_t mask, T yes, T no) {
  constexpr int words = static_cast<int>(sizeof(T) / 4);
  std::uint32_t a[words], b[words];
  __builtin_memcpy(a, &yes, sizeof(T));
  __builtin_memcpy(b, &no, sizeof(T));
  HOSTLESS_UNROLL
  for (int k = 0; k < words; ++k) a[k] = (a[k] & mask) | (b[k] & ~mask);
  T found;
  __builtin_memcpy(&found, a, sizeof(T));
  return found;
}

/// What stands beyond the ends of an axis, where this thread is the last one: masks.
struct Ends {
  std::uint32_t mirrors_first = 0, mirrors_last = 0;  ///< neumann
  std::uint32_t keeps_first = 0, keeps_last = 0;      ///< dirichlet
  __device__ static Ends of(std::uint32_t all_bits, bool first, bool last, GridBoundary boundary) {
    bool const mirrors = boundary == GridBoundary::neumann, keeps = boundary == GridBoundary::dirichlet;
    return {first && mirrors ? all_bits : 0, last && mirrors ? all_bits : 0, first && keeps ? all_bits : 0,
            last && keeps ? all_bits : 0};
  }
};

/// Asks the neighbouring threads. What lies beyond the window is any value.
template <class T, int width>
__device__ __forceinline__ void look_beside(ThreadRow<T, width>& row, int thread, Ends const& x) {
  row.before = of_thread(row.cell[width - 1], thread - 1);
  row.after = of_thread(row.cell[0], thread + 1);
  row.before = chosen(x.mirrors_first, row.cell[0], row.before);
  row.after = chosen(x.mirrors_last, row.cell[width - 1], row.after);
}

/// The same where the axis ends inside the window: after cell `last` of this thread, if that is one.
template <class T, int width>
__device__ __forceinline__ void mirror_after(ThreadRow<T, width>& row, int last) {
  row.after = last == width - 1 ? row.cell[width - 1] : row.after;
  HOSTLESS_UNROLL
  for (int i = width - 1; i > 0; --i) row.cell[i] = last == i - 1 ? row.cell[i - 1] : row.cell[i];
}

/// Of radius 1: what a functor sees of the neighbourhood of cell `i` of a thread.
template <class T, class Body, int width>
class WindowCell {
 public:
  using value_type = T;
  using Rows = ThreadRow<T, width> const (&)[FactsOf<Body>::fields][3];
  __device__ __forceinline__ WindowCell(Rows rows, int i) : rows_(rows), i_(i) {}
  __device__ __forceinline__ T of(int field, int y, int x) const {
    ThreadRow<T, width> const& row = rows_[field][y + 1];
    int const at = i_ + x;
    return at < 0 ? row.before : at >= width ? row.after : row.cell[at];
  }
  template <class... Offsets>
  __device__ __forceinline__ T operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }

 private:
  Rows rows_;
  int i_;
};

/// The middle row's new cells. Those of an end that stays as given do.
template <class T, class Body, int width>
__device__ __forceinline__ void update_row(Body const& body,
                                           ThreadRow<T, width> const (&rows)[FactsOf<Body>::fields][3],
                                           T (&to)[FactsOf<Body>::fields][width], Ends const& x) {
  constexpr int fields = FactsOf<Body>::fields;
  HOSTLESS_UNROLL
  for (int i = 0; i < width; ++i) {
    WindowCell<T, Body, width> const here(rows, i);
    if constexpr (fields == 1) {
      to[0][i] = body(here);
    } else {
      auto const values = body(here);
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) to[f][i] = reinterpret_cast<T const*>(&values)[f];
    }
  }
  HOSTLESS_UNROLL
  for (int f = 0; f < fields; ++f) {
    to[f][0] = chosen(x.keeps_first, rows[f][1].cell[0], to[f][0]);
    to[f][width - 1] = chosen(x.keeps_last, rows[f][1].cell[width - 1], to[f][width - 1]);
  }
}

}  // namespace hostless::gpu
