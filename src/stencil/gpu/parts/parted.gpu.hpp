#pragma once
// Any stencil on one GPU's part of a grid whose other parts other GPUs step at the same time: blocks of this
// GPU wait for each other after each step; after `every` steps the parts exchange halos so many rows deep.
// Between exchanges what lies in a halo gets wrong row by row from its far end, as far as steps reach, and no
// own cell has read it when it is replaced.
//
// Words are double-buffered by the parity of the exchange: a part stores those of e + 2 after it has all of
// e + 1, which its neighbour stored when all its blocks had read those of e.

#include "stencil/gpu/cell_words.gpu.hpp"
#include "stencil/gpu/parts/parted.hpp"
#include "stencil/gpu/plain.gpu.hpp"

namespace hostless::gpu {

template <class T, class Body>
class Halos {
  static constexpr int fields = ArraysOf<Body>::fields;
  static constexpr int unit = sizeof(T) == 4 ? 2 : 1;  // a flagged word
  using Words = CellWords<T, unit>;

 public:
  __device__ __forceinline__ Halos(HaloWords const& halo, BlockBarrier const& barrier)
      : halo_(halo), barrier_(barrier), epoch_(halo.epoch) {}

  /// Of the arrays that the next step reads; false: words were waited for in vain.
  __device__ __forceinline__ bool exchange(T* const* arrays) {
    std::int64_t const units = halo_.cells / unit;
    for (int side = 0; side < 2; ++side)
      if (halo_.to[side] != nullptr)
        each(units, [&](std::int64_t k, int f) {
          Words::put(halo_.to[side] + word(units, k, f), arrays[f] + halo_.own_first[side] + k * unit,
                     epoch_);
        });
    bool whole = true;
    for (int side = 0; side < 2; ++side)
      if (halo_.from[side] != nullptr)
        each(units, [&](std::int64_t k, int f) {
          Words words;
          whole = whole && await(words, halo_.from[side] + word(units, k, f));
          if (whole) words.get(arrays[f] + halo_.halo_first[side] + k * unit);
        });
    epoch_ = next_epoch(epoch_);
    if (!whole) *static_cast<std::uint32_t volatile*>(barrier_.lost) = 1;
    return __syncthreads_or(whole ? 0 : 1) == 0;
  }

 private:
  template <class Use>
  __device__ __forceinline__ void each(std::int64_t units, Use const& use) const {
    std::int64_t const threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < units;
         k += threads)
      for (int f = 0; f < fields; ++f) use(k, f);
  }
  __device__ __forceinline__ std::int64_t word(std::int64_t units, std::int64_t k, int f) const {
    return ((parity_of(epoch_) * fields + f) * units + k) * Words::words;
  }
  __device__ __forceinline__ bool await(Words& words, std::uint64_t const* from) const {
    std::uint64_t begin = 0;
    for (std::uint32_t polls = 1;; ++polls) {
      words.ask(from);
      if (words.is_of(epoch_)) return true;
      if (polls % 1024 != 0) continue;
      std::uint64_t now;
      HOSTLESS_READ_NANOSECONDS(now);
      if (begin == 0) begin = now;
      if (now - begin > barrier_.deadline_ns || *static_cast<std::uint32_t volatile*>(barrier_.lost) != 0)
        return false;
    }
  }

  HaloWords const& halo_;
  BlockBarrier const& barrier_;
  std::uint32_t epoch_;
};

template <class T, class Body>
__global__ void __launch_bounds__(plain_threads)
    parted_kernel(HOSTLESS_PARAMETER PlainCallOf<T, Body> const call, Body const body, std::int64_t steps,
                  BlockBarrier const barrier, HOSTLESS_PARAMETER HaloWords const halo) {
  constexpr int fields = ArraysOf<Body>::fields;
  ArrayPair<T, Body> arrays(call);
  T* shown[fields];
  std::uint32_t target = barrier.before;
  Halos<T, Body> halos(halo, barrier);
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step > 0) {
      target += gridDim.x;
      if (!wait_for_blocks(barrier, target)) return;
      arrays.swap();
    }
    if (step % halo.every == 0) {
      for (int f = 0; f < fields; ++f) shown[f] = const_cast<T*>(arrays.in[f]);
      if (!halos.exchange(shown)) return;
      target += gridDim.x;
      if (!wait_for_blocks(barrier, target)) return;
    }
    step_tiles<T, Body>(call, arrays.in, arrays.out, body);
  }
}

}  // namespace hostless::gpu
