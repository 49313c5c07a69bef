#pragma once
// Any stencil, on one to three axes: a thread a cell, from arrays to arrays. As a kernel a step, or as one
// kernel whose blocks all wait for each other after each step.

#include "device/runtime.hpp"
#include "stencil/gpu/plain.hpp"
#include "stencil/gpu/window.gpu.hpp"

namespace hostless::gpu {

constexpr int plain_threads = 256;

template <class Body>
struct ArraysOf {
  static constexpr int fields = fields_of_body<Body>(), coefficients = coefficients_of_body<Body>(),
                       arrays = fields + coefficients, axes = Body::axes,
                       reach0 = axes > 1 ? Body::radius : 0, reach1 = axes > 2 ? Body::radius : 0;
};
template <class T, class Body>
using PlainCallOf = PlainCall<T, ArraysOf<Body>::arrays, ArraysOf<Body>::fields>;

/// Where a neighbour beyond an end is found.
template <class Call>
__device__ __forceinline__ int found_beyond(Call const& call, int axis, int i) {
  int const n = call.extent[axis];
  bool const mirrors = call.boundary[axis] == GridBoundary::neumann;
  if (i < 0) return mirrors ? -1 - i : i + n;
  if (i >= n) return mirrors ? 2 * n - 1 - i : i - n;
  return i;
}

/// What a functor sees of one cell of arrays in memory. inner: no neighbour lies beyond an end.
template <class T, class Body, bool inner>
class MemoryCell {
  using Call = PlainCallOf<T, Body>;

 public:
  using value_type = T;
  __device__ __forceinline__ MemoryCell(Call const& call, T const* const* in, int a, int b, int c)
      : call_(call), in_(in), a_(a), b_(b), c_(c), here_(a * call.stride[0] + b * call.stride[1] + c) {}
  __device__ __forceinline__ T of(int field, int x) const requires(ArraysOf<Body>::axes == 1) {
    return at(field, 0, 0, x);
  }
  __device__ __forceinline__ T of(int field, int y, int x) const requires(ArraysOf<Body>::axes == 2) {
    return at(field, y, 0, x);
  }
  __device__ __forceinline__ T of(int field, int z, int y, int x) const requires(ArraysOf<Body>::axes == 3) {
    return at(field, z, y, x);
  }
  template <class... Offsets>
  __device__ __forceinline__ T operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }

 private:
  __device__ __forceinline__ T at(int field, int a, int b, int c) const {
    T const* const from = in_[field];
    if constexpr (inner) return from[here_ + a * call_.stride[0] + b * call_.stride[1] + c];
    return from[found_beyond(call_, 0, a_ + a) * call_.stride[0] +
                found_beyond(call_, 1, b_ + b) * call_.stride[1] + found_beyond(call_, 2, c_ + c)];
  }

  Call const& call_;
  T const* const* in_;
  int a_, b_, c_;
  std::int64_t here_;
};

/// No neighbour lies beyond an end.
template <class T, class Body>
__device__ __forceinline__ bool is_inner(PlainCallOf<T, Body> const& call, int a, int b, int c) {
  using Facts = ArraysOf<Body>;
  return a >= Facts::reach0 && a < call.extent[0] - Facts::reach0 && b >= Facts::reach1 &&
         b < call.extent[1] - Facts::reach1 && c >= Body::radius && c < call.extent[2] - Body::radius;
}

/// What a functor makes of a cell.
template <class T, class Body, class Cell>
__device__ __forceinline__ void values_of(Body const& body, Cell const& here,
                                          T (&to)[ArraysOf<Body>::fields]) {
  if constexpr (ArraysOf<Body>::fields == 1) {
    to[0] = body(here);
  } else {
    auto const values = body(here);
    HOSTLESS_UNROLL
    for (int f = 0; f < ArraysOf<Body>::fields; ++f) to[f] = reinterpret_cast<T const*>(&values)[f];
  }
}

template <class T, class Body, bool inner>
__device__ __forceinline__ void step_cell(PlainCallOf<T, Body> const& call, T const* const* in, T* const* out,
                                          Body const& body, int a, int b, int c) {
  T values[ArraysOf<Body>::fields];
  values_of<T, Body>(body, MemoryCell<T, Body, inner>(call, in, a, b, c), values);
  std::int64_t const to = a * call.stride[0] + b * call.stride[1] + c;
  HOSTLESS_UNROLL
  for (int f = 0; f < ArraysOf<Body>::fields; ++f) out[f][to] = values[f];
}

/// This block's share of one step.
template <class T, class Body>
__device__ __forceinline__ void step_tiles(PlainCallOf<T, Body> const& call, T const* const* in,
                                           T* const* out, Body const& body) {
  int const columns = 1 << call.columns_log2, rows = static_cast<int>(blockDim.x) >> call.columns_log2;
  int const column = static_cast<int>(threadIdx.x) & (columns - 1);
  int const row = static_cast<int>(threadIdx.x) >> call.columns_log2;
  for (std::int64_t tile = blockIdx.x; tile < call.tiles; tile += gridDim.x) {
    std::int64_t const strip = tile / call.column_tiles;
    int const c = call.low[2] + static_cast<int>(tile % call.column_tiles) * columns + column;
    int const r = static_cast<int>(strip % call.row_tiles) * rows + row;
    int const plane = static_cast<int>(strip / call.row_tiles);
    int const a = call.low[0] + (call.row_axis == 0 ? r : plane);
    int const b = call.low[1] + (call.row_axis == 0 ? plane : r);
    if (a >= call.high[0] || b >= call.high[1] || c >= call.high[2]) continue;
    if (is_inner<T, Body>(call, a, b, c))
      step_cell<T, Body, true>(call, in, out, body, a, b, c);
    else
      step_cell<T, Body, false>(call, in, out, body, a, b, c);
  }
}

template <class T, class Body>
__global__ void __launch_bounds__(plain_threads)
    plain_kernel(HOSTLESS_PARAMETER PlainCallOf<T, Body> const call, Body const body) {
  step_tiles<T, Body>(call, call.in, call.out, body);
}

__device__ __forceinline__ bool has_arrived(std::uint32_t const* arrived, std::uint32_t target) {
  return static_cast<std::int32_t>(*static_cast<std::uint32_t const volatile*>(arrived) - target) >= 0;
}
/// By all threads of a block. False: somebody waited in vain. all(): whether all have arrived whom it waits for.
template <class All>
__device__ __forceinline__ bool arrive_and_wait(BlockBarrier const& barrier, All const& all) {
  __syncthreads();
  bool in_time = true;
  if (threadIdx.x == 0) {
    fence_gpu();
    atomicAdd(barrier.arrived, 1u);
    std::uint64_t begin = 0;
    for (std::uint32_t polls = 1;; ++polls) {
      if (all()) break;
      if (polls % 1024 != 0) continue;
      std::uint64_t now;
      HOSTLESS_READ_NANOSECONDS(now);
      if (begin == 0) begin = now;
      in_time =
          now - begin <= barrier.deadline_ns && *static_cast<std::uint32_t volatile*>(barrier.lost) == 0;
      if (!in_time) break;
    }
    if (!in_time) *static_cast<std::uint32_t volatile*>(barrier.lost) = 1;
    fence_gpu();
  }
  return __syncthreads_or(in_time ? 0 : 1) == 0;
}
/// `target`: blocks of this kernel that have arrived in all when it ends.
__device__ __forceinline__ bool wait_for_blocks(BlockBarrier const& barrier, std::uint32_t target) {
  return arrive_and_wait(barrier, [&] { return has_arrived(barrier.arrived, target); });
}

/// The arrays of a kernel that takes many steps.
template <class T, class Body>
struct ArrayPair {
  static constexpr int arrays = ArraysOf<Body>::arrays, fields = ArraysOf<Body>::fields;
  T const* in[arrays];
  T* out[fields];
  __device__ __forceinline__ explicit ArrayPair(PlainCallOf<T, Body> const& call) {
    for (int k = 0; k < arrays; ++k) in[k] = call.in[k];
    for (int f = 0; f < fields; ++f) out[f] = call.out[f];
  }
  __device__ __forceinline__ void swap() {
    for (int f = 0; f < fields; ++f) {
      T* const was = const_cast<T*>(in[f]);
      in[f] = out[f];
      out[f] = was;
    }
  }
};

template <class T, class Body>
__global__ void __launch_bounds__(plain_threads)
    barrier_kernel(HOSTLESS_PARAMETER PlainCallOf<T, Body> const call, Body const body, std::int64_t steps,
                   BlockBarrier const barrier) {
  ArrayPair<T, Body> arrays(call);
  std::uint32_t target = barrier.before;
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step > 0) {
      target += gridDim.x;
      if (!wait_for_blocks(barrier, target)) return;
      arrays.swap();
    }
    step_tiles<T, Body>(call, arrays.in, arrays.out, body);
  }
}

}  // namespace hostless::gpu
