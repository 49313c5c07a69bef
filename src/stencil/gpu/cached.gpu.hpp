#pragma once
// Any stencil whose cells stay on chip from step to step as far as they fit, as PERKS has it (Zhang et al. 2023;
// Ismayilov et al. 2023, section 4.1.3): each block keeps a box of cells in shared memory. Of a step only what
// lies within reach of a box's faces is stored to memory, and only the cells around the box are read from
// there: those of other boxes, of the border that another kernel steps, or fixed ones. Rows that fit into no
// box are stepped from memory to memory. Blocks join the border's kernel once a step.

#include "stencil/gpu/cached.hpp"
#include "stencil/gpu/parts/split.gpu.hpp"

namespace hostless::gpu {

template <class T, class Body>
struct CachedCall {
  PlainCallOf<T, Body> rest;  ///< of what is in no box
  CachedBoxes boxes;          ///< at most as many as blocks
};

/// What a functor sees of one cell of a box; coefficients are in memory.
template <class T, class Body>
class CachedCell {
  static constexpr int fields = ArraysOf<Body>::fields;

 public:
  using value_type = T;
  __device__ __forceinline__ CachedCell(T const* here, int field_cells, int plane, int row,
                                        MemoryCell<T, Body, false> const& memory)
      : here_(here), field_cells_(field_cells), plane_(plane), row_(row), memory_(memory) {}
  __device__ __forceinline__ T of(int field, int x) const requires(ArraysOf<Body>::axes == 1) {
    return field < fields ? at(field, 0, 0, x) : memory_.of(field, x);
  }
  __device__ __forceinline__ T of(int field, int y, int x) const requires(ArraysOf<Body>::axes == 2) {
    return field < fields ? at(field, y, 0, x) : memory_.of(field, y, x);
  }
  __device__ __forceinline__ T of(int field, int z, int y, int x) const requires(ArraysOf<Body>::axes == 3) {
    return field < fields ? at(field, z, y, x) : memory_.of(field, z, y, x);
  }
  template <class... Offsets>
  __device__ __forceinline__ T operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }

 private:
  __device__ __forceinline__ T at(int field, int a, int b, int c) const {
    return here_[field * field_cells_ + a * plane_ + b * row_ + c];
  }

  T const* here_;
  int field_cells_, plane_, row_;
  MemoryCell<T, Body, false> const& memory_;
};

template <class T, class Body>
class CachedBox {
  using Facts = ArraysOf<Body>;
  static constexpr int fields = Facts::fields, reach0 = Facts::reach0, reach1 = Facts::reach1,
                       reach2 = Body::radius;

 public:
  __device__ __forceinline__ CachedBox(CachedCall<T, Body> const& call, T* shared) : call_(call.rest) {
    CachedBoxes const& boxes = call.boxes;
    int const k = static_cast<int>(blockIdx.x);
    if (k >= boxes.boxes()) return;
    int const number[3] = {k / (boxes.count[1] * boxes.count[2]), k / boxes.count[2] % boxes.count[1],
                           k % boxes.count[2]};
    HOSTLESS_UNROLL
    for (int axis = 0; axis < 3; ++axis) {
      low_[axis] = boxes.begin(axis, number[axis]);
      size_[axis] = boxes.begin(axis, number[axis] + 1) - low_[axis];
    }
    row_ = size_[2] + 2 * reach2;
    plane_ = row_ * (size_[1] + 2 * reach1);
    field_cells_ = plane_ * (size_[0] + 2 * reach0);
    now_ = shared;
    next_ = shared + fields * field_cells_;
  }

  /// By all threads. The first step takes all cells from memory, the last one leaves all of them there.
  __device__ __forceinline__ void step(T const* const* in, T* const* out, Body const& body, bool first,
                                       bool last) {
    if (now_ == nullptr) return;
    load(in, first);
    __syncthreads();
    each_row(0, [&](int a, int b) {
      bool const edge = a < reach0 || a >= size_[0] - reach0 || b < reach1 || b >= size_[1] - reach1;
      for (int c = thread(); c < size_[2]; c += 32) {
        int const at = shared_offset(a, b, c);
        T values[fields];
        MemoryCell<T, Body, false> const memory(call_, in, low_[0] + a, low_[1] + b, low_[2] + c);
        values_of<T, Body>(body, CachedCell<T, Body>(now_ + at, field_cells_, plane_, row_, memory), values);
        bool const stores = last || edge || c < reach2 || c >= size_[2] - reach2;
        std::int64_t const to = in_memory(low_[0] + a, low_[1] + b, low_[2] + c);
        HOSTLESS_UNROLL
        for (int f = 0; f < fields; ++f) {
          next_[f * field_cells_ + at] = values[f];
          if (stores) out[f][to] = values[f];
        }
      }
    });
    T* const was = now_;
    now_ = next_;
    next_ = was;
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x) % 32; }
  /// Calls use(a, b) for each warp's rows of the box, by its first cell, and of so much around it (times reach).
  template <class Use>
  __device__ __forceinline__ void each_row(int around, Use const& use) const {
    int const beyond0 = around * reach0, beyond1 = around * reach1;
    int const high1 = Facts::axes > 2 ? size_[1] + 2 * beyond1 : 1;
    int const rows = (size_[0] + 2 * beyond0) * high1;
    for (int row = static_cast<int>(threadIdx.x) / 32; row < rows; row += static_cast<int>(blockDim.x) / 32)
      use(row / high1 - beyond0, row % high1 - beyond1);
  }
  __device__ __forceinline__ int shared_offset(int a, int b, int c) const {
    return (a + reach0) * plane_ + (b + reach1) * row_ + c + reach2;
  }
  __device__ __forceinline__ std::int64_t in_memory(int a, int b, int c) const {
    return a * call_.stride[0] + b * call_.stride[1] + c;
  }
  __device__ __forceinline__ void take(T const* const* in, int a, int b, int c) const {
    // rows of the first axis beyond the box are the border's, which no axis ends before
    std::int64_t const from =
        in_memory(low_[0] + a, found_beyond(call_, 1, low_[1] + b), found_beyond(call_, 2, low_[2] + c));
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) now_[f * field_cells_ + shared_offset(a, b, c)] = in[f][from];
  }
  /// The cells around the box; `whole`: and its own.
  __device__ __forceinline__ void load(T const* const* in, bool whole) const {
    each_row(1, [&](int a, int b) {
      bool const own = a >= 0 && a < size_[0] && b >= 0 && b < size_[1];
      if (own && !whole) return;
      for (int c = thread() - reach2; c < size_[2] + reach2; c += 32) take(in, a, b, c);
    });
    if (whole) return;
    constexpr int beside = 2 * reach2;
    int const high1 = Facts::axes > 2 ? size_[1] : 1;
    for (int k = static_cast<int>(threadIdx.x); k < size_[0] * high1 * beside;
         k += static_cast<int>(blockDim.x)) {
      int const row = k / beside, c = k % beside;
      take(in, row / high1, row % high1, c < reach2 ? c - reach2 : size_[2] + c - reach2);
    }
  }

  PlainCallOf<T, Body> const& call_;
  int low_[3] = {}, size_[3] = {};
  int row_ = 0, plane_ = 0, field_cells_ = 0;
  T *now_ = nullptr, *next_ = nullptr;  ///< in shared memory; null: this block has no box
};

template <class T, class Body>
__global__ void __launch_bounds__(cached_threads, 1)
    cached_kernel(HOSTLESS_PARAMETER CachedCall<T, Body> const call, Body const body, std::int64_t steps,
                  HOSTLESS_PARAMETER KernelJoin const join) {
  extern __shared__ __align__(16) unsigned char shared[];
  CachedBox<T, Body> box(call, reinterpret_cast<T*>(shared));
  ArrayPair<T, Body> arrays(call.rest);
  Joiner joiner(join);
  for (std::int64_t step = 0; step < steps; ++step) {
    if (!joiner.wait()) return;
    if (step > 0) arrays.swap();
    box.step(arrays.in, arrays.out, body, step == 0, step + 1 == steps);
    step_tiles<T, Body>(call.rest, arrays.in, arrays.out, body);
  }
}

}  // namespace hostless::gpu
