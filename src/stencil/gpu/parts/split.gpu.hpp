#pragma once
// CPU-free stepping by two kernels at a time (Ismayilov et al. 2023, sections 3.3 and 4.1.2): `border_kernel`
// steps the rows at the ends of a GPU's part and exchanges them with other GPUs, while `inner_kernel` (or that
// of cached.gpu.hpp) steps those between. They join once a step.
//
// A border cell is stored as words in the other GPU's memory by the thread that computes it. What comes is
// awaited before the join that ends the same step, so that all blocks see it in the next. Words are
// double-buffered by the parity of the exchange: a part stores those of e + 2 after a join behind which it has
// all of e + 1, and its neighbour stored these after a join behind which it had all of e.

#include "stencil/gpu/cell_words.gpu.hpp"
#include "stencil/gpu/parts/parted.hpp"
#include "stencil/gpu/parts/split.hpp"
#include "stencil/gpu/plain.gpu.hpp"

namespace hostless::gpu {

constexpr int most_border_threads = 1024;

/// By all threads of a block of one of two kernels.
class Joiner {
 public:
  __device__ __forceinline__ explicit Joiner(KernelJoin const& join)
      : join_(join), own_(join.own.before), other_(join.other.before) {}
  /// False: somebody waited in vain.
  __device__ __forceinline__ bool wait() {
    own_ += gridDim.x;
    other_ += join_.other_blocks;
    return arrive_and_wait(join_.own, [&] {
      return has_arrived(join_.own.arrived, own_) && has_arrived(join_.other.arrived, other_);
    });
  }

 private:
  KernelJoin const& join_;
  std::uint32_t own_, other_;
};

template <class T, class Body>
class Border {
  static constexpr int fields = ArraysOf<Body>::fields;
  using Words = CellWords<T, 1>;
  using Call = PlainCallOf<T, Body>;
  struct Cell {
    int a, b, c;
    std::int64_t at;
    bool wanted;
  };

 public:
  __device__ __forceinline__ Border(Call const& call, SplitRows const& rows, HaloWords const& halo,
                                    BlockBarrier const& barrier)
      : call_(call), rows_(rows), halo_(halo), barrier_(barrier), epoch_(halo.epoch) {
    for (int side = 0; side < 2; ++side) {
      if (halo.from[side] == nullptr) continue;
      halo_rows_[side].low = halo.halo_first[side] / call.stride[0];
      halo_rows_[side].high = halo_rows_[side].low + halo.cells / call.stride[0];
    }
  }

  /// Takes a step (`computes`), and is_shown the other parts what it led to (`is_shown`); else what there was.
  template <bool computes>
  __device__ __forceinline__ void step(T const* const* in, T* const* out, Body const& body,
                                       bool is_shown) const {
    each<1>(rows_.border, [&](Cell const(&cells)[1]) {
      Cell const& cell = cells[0];
      if (!cell.wanted) return true;
      T values[fields];
      bool const is_stepped = computes && cell.a >= call_.low[0] && cell.a < call_.high[0];
      if (is_stepped)
        compute(in, out, body, cell, values);
      else
        for (int f = 0; f < fields; ++f) values[f] = in[f][cell.at];
      if (is_shown) show(cell.at, values);
      return true;
    });
  }
  /// Halos into the arrays that the next step reads. False: words were waited for in vain.
  __device__ __forceinline__ bool receive(T* const* arrays) {
    constexpr int together = fields > 2 ? 1 : 4 / fields;
    bool const whole = each<together>(
        halo_rows_, [&](Cell const(&cells)[together]) { return await<together>(cells, arrays); });
    epoch_ = next_epoch(epoch_);
    if (!whole) *static_cast<std::uint32_t volatile*>(barrier_.lost) = 1;
    return __syncthreads_or(whole ? 0 : 1) == 0;
  }

 private:
  /// Calls use(cells) for this thread's of two ranges of rows, `some` at a time, until it is false. Warps take
  /// turns, 32 cells of a row each.
  template <int some, class Use>
  __device__ __forceinline__ bool each(RowRange const (&rows)[2], Use const& use) const {
    int const warps = static_cast<int>(gridDim.x * blockDim.x) / 32;
    int const warp = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int const planes = call_.high[1] - call_.low[1];
    int const chunks = (call_.high[2] - call_.low[2] + 31) / 32;
    int const first_rows = static_cast<int>(rows[0].rows());
    std::int64_t const items = (rows[0].rows() + rows[1].rows()) * planes * chunks;
    for (std::int64_t item = warp; item < items; item += std::int64_t{some} * warps) {
      Cell cells[some];
      HOSTLESS_UNROLL
      for (int t = 0; t < some; ++t) {
        std::int64_t const at = item + std::int64_t{t} * warps;
        std::int64_t const strip = at / chunks;
        int const row = static_cast<int>(strip / planes);
        Cell& cell = cells[t];
        cell.a = static_cast<int>(row < first_rows ? rows[0].low + row : rows[1].low + row - first_rows);
        cell.b = call_.low[1] + static_cast<int>(strip % planes);
        cell.c = call_.low[2] + static_cast<int>(at % chunks) * 32 + static_cast<int>(threadIdx.x) % 32;
        cell.at = cell.a * call_.stride[0] + cell.b * call_.stride[1] + cell.c;
        cell.wanted = at < items && cell.c < call_.high[2];
      }
      if (!use(cells)) return false;
    }
    return true;
  }
  __device__ __forceinline__ void compute(T const* const* in, T* const* out, Body const& body,
                                          Cell const& cell, T (&values)[fields]) const {
    if (is_inner<T, Body>(call_, cell.a, cell.b, cell.c))
      values_of<T, Body>(body, MemoryCell<T, Body, true>(call_, in, cell.a, cell.b, cell.c), values);
    else
      values_of<T, Body>(body, MemoryCell<T, Body, false>(call_, in, cell.a, cell.b, cell.c), values);
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) out[f][cell.at] = values[f];
  }
  __device__ __forceinline__ void show(std::int64_t at, T const (&values)[fields]) const {
    for (int side = 0; side < 2; ++side) {
      std::int64_t const k = at - halo_.own_first[side];
      if (halo_.to[side] == nullptr || k < 0 || k >= halo_.cells) continue;
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) Words::put(halo_.to[side] + word(k, f), values + f, epoch_);
    }
  }
  __device__ __forceinline__ std::int64_t word(std::int64_t k, int f) const {
    return ((parity_of(epoch_) * fields + f) * halo_.cells + k) * Words::words;
  }
  /// Of which side a cell of a halo is.
  __device__ __forceinline__ std::uint64_t const* words_of(std::int64_t at, int f) const {
    std::int64_t const above = at - halo_.halo_first[1];
    int const side = halo_.from[1] != nullptr && above >= 0 ? 1 : 0;
    return halo_.from[side] + word(side == 1 ? above : at - halo_.halo_first[0], f);
  }
  template <int together>
  __device__ __forceinline__ bool await(Cell const (&cells)[together], T* const* arrays) const {
    Words words[together][fields];
    std::uint64_t begin = 0;
    for (std::uint32_t polls = 1;; ++polls) {
      bool whole = true;
      HOSTLESS_UNROLL
      for (int t = 0; t < together; ++t)
        for (int f = 0; f < fields; ++f)
          if (cells[t].wanted) words[t][f].ask(words_of(cells[t].at, f));
      HOSTLESS_UNROLL
      for (int t = 0; t < together; ++t)
        for (int f = 0; f < fields; ++f) whole = whole && (!cells[t].wanted || words[t][f].is_of(epoch_));
      if (whole) break;
      if (polls % 1024 != 0) continue;
      std::uint64_t now;
      HOSTLESS_READ_NANOSECONDS(now);
      if (begin == 0) begin = now;
      if (now - begin > barrier_.deadline_ns || *static_cast<std::uint32_t volatile*>(barrier_.lost) != 0)
        return false;
    }
    HOSTLESS_UNROLL
    for (int t = 0; t < together; ++t)
      for (int f = 0; f < fields; ++f)
        if (cells[t].wanted) words[t][f].get(arrays[f] + cells[t].at);
    return true;
  }

  Call const& call_;
  SplitRows const& rows_;
  HaloWords const& halo_;
  BlockBarrier const& barrier_;
  std::uint32_t epoch_;
  RowRange halo_rows_[2];
};

/// call.tiles: 0 where no cell is computed.
template <class T, class Body>
__global__ void __launch_bounds__(most_border_threads)
    border_kernel(HOSTLESS_PARAMETER PlainCallOf<T, Body> const call, Body const body, std::int64_t steps,
                  HOSTLESS_PARAMETER SplitRows const rows, HOSTLESS_PARAMETER KernelJoin const join,
                  HOSTLESS_PARAMETER HaloWords const halo) {
  constexpr int fields = ArraysOf<Body>::fields;
  ArrayPair<T, Body> arrays(call);
  T* given[fields];
  for (int f = 0; f < fields; ++f) given[f] = const_cast<T*>(arrays.in[f]);
  Joiner joiner(join);
  Border<T, Body> border(call, rows, halo, join.own);
  bool const computes = call.tiles > 0;
  for (std::int64_t step = -1; step < steps; ++step) {  // first what was given is exchanged
    if (step > 0) arrays.swap();
    bool const is_shown = step + 1 < steps;
    if (step >= 0 && computes)
      border.template step<true>(arrays.in, arrays.out, body, is_shown);
    else if (is_shown)
      border.template step<false>(arrays.in, arrays.out, body, true);
    if (!is_shown) return;
    if (!border.receive(step < 0 ? given : arrays.out)) return;
    if (!joiner.wait()) return;
  }
}

template <class T, class Body>
__global__ void __launch_bounds__(plain_threads)
    inner_kernel(HOSTLESS_PARAMETER PlainCallOf<T, Body> const call, Body const body, std::int64_t steps,
                 HOSTLESS_PARAMETER KernelJoin const join) {
  ArrayPair<T, Body> arrays(call);
  Joiner joiner(join);
  for (std::int64_t step = 0; step < steps; ++step) {
    if (!joiner.wait()) return;
    if (step > 0) arrays.swap();
    step_tiles<T, Body>(call, arrays.in, arrays.out, body);
  }
}

}  // namespace hostless::gpu
