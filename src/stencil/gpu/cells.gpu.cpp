// A thread a cell.
#include "stencil/gpu/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hostless::gpu {
namespace {

constexpr int cell_threads = 256;
constexpr std::int64_t most_cell_blocks = 2048;

/// Where a caller's cells are, in bytes from the first.
struct Strides {
  std::int64_t of[3];
};

/// use(own index, a, b, c) for this thread's cells.
template <class Use>
__device__ __forceinline__ void each_cell(OwnCells const& cells, Use const& use) {
  std::int64_t const n1 = cells.extent[1], n2 = cells.extent[2];
  std::int64_t const all = cells.extent[0] * n1 * n2;
  std::int64_t const step = static_cast<std::int64_t>(gridDim.x) * cell_threads;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * cell_threads + threadIdx.x; k < all;
       k += step) {
    std::int64_t const c = k % n2, row = k / n2, b = row % n1, a = row / n1;
    use(a * cells.stride[0] + b * cells.stride[1] + c, a, b, c);
  }
}

template <class T, bool in>
__global__ void __launch_bounds__(cell_threads)
    copy_kernel(HOSTLESS_PARAMETER OwnCells const own, unsigned char* theirs,
                HOSTLESS_PARAMETER Strides const stride) {
  each_cell(own, [&](std::int64_t k, std::int64_t a, std::int64_t b, std::int64_t c) {
    auto* const cell = reinterpret_cast<T*>(theirs + a * stride.of[0] + b * stride.of[1] + c * stride.of[2]);
    T* const ours = static_cast<T*>(own.data) + k;
    if (in)
      *ours = *cell;
    else
      *cell = *ours;
  });
}

template <class T>
__device__ __forceinline__ double difference(OwnCells const& before, OwnCells const& after, std::int64_t k) {
  return static_cast<double>(static_cast<T const*>(after.data)[k]) -
         static_cast<double>(static_cast<T const*>(before.data)[k]);
}

/// Doubles that are not negative are ordered as their bits are; infinity and NaN lie above all others.
__device__ __forceinline__ unsigned long long rank_of_size(double value) {
  return __builtin_bit_cast(unsigned long long, fabs(value));
}
template <class T>
__global__ void __launch_bounds__(cell_threads)
    largest_change_kernel(HOSTLESS_PARAMETER OwnCells const before, HOSTLESS_PARAMETER OwnCells const after,
                          ChangeSums* sums) {
  __shared__ unsigned long long most;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  unsigned long long mine = 0;
  each_cell(after, [&](std::int64_t k, std::int64_t, std::int64_t, std::int64_t) {
    unsigned long long const one = rank_of_size(difference<T>(before, after, k));
    mine = mine > one ? mine : one;
  });
  if (mine != 0) atomicMax(&most, mine);
  __syncthreads();
  if (threadIdx.x == 0 && most != 0) atomicMax(&sums->largest, most);
}

/// scale: two powers of two whose product is that of change::squares, which may be too large for one double.
template <class T>
__global__ void __launch_bounds__(cell_threads)
    square_kernel(HOSTLESS_PARAMETER OwnCells const before, HOSTLESS_PARAMETER OwnCells const after,
                  double scale, double scale_again, ChangeSums* sums) {
  constexpr double one = 1152921504606846976.0;  // 2^60
  __shared__ unsigned long long of_block[3];
  if (threadIdx.x < 3) of_block[threadIdx.x] = 0;
  __syncthreads();
  unsigned long long mine[3] = {0, 0, 0};
  each_cell(after, [&](std::int64_t k, std::int64_t, std::int64_t, std::int64_t) {
    double const scaled = difference<T>(before, after, k) * scale * scale_again;
    auto const square = static_cast<unsigned long long>(scaled * scaled * one);
    for (int d = 0; d < 3; ++d) mine[d] += square >> (20 * d) & 0xfffffu;
  });
  for (int d = 0; d < 3; ++d)
    if (mine[d] != 0) atomicAdd(&of_block[d], mine[d]);
  __syncthreads();
  if (threadIdx.x < 3) atomicAdd(&sums->digit[threadIdx.x], of_block[threadIdx.x]);
}

template <class T>
__global__ void __launch_bounds__(cell_threads)
    finite_kernel(HOSTLESS_PARAMETER OwnCells const cells, ChangeSums* sums) {
  bool finite = true;
  each_cell(cells, [&](std::int64_t k, std::int64_t, std::int64_t, std::int64_t) {
    finite = finite && static_cast<T const*>(cells.data)[k] * T(0) == T(0);
  });
  if (!finite) atomicOr(&sums->not_finite, 1u);
}

template <class... Values>
void launch_cells(void const* kernel, OwnCells const& cells, Stream const& stream, Values... values) {
  void* parameters[] = {&values...};
  std::int64_t const all = cells.extent[0] * cells.extent[1] * cells.extent[2];
  auto const blocks = std::clamp<std::int64_t>((all + cell_threads - 1) / cell_threads, 1, most_cell_blocks);
  check(HOSTLESS_GPU(LaunchKernel)(kernel, dim3(static_cast<unsigned>(blocks)), dim3(cell_threads),
                                   parameters, 0, stream.get()),
        "launching a kernel over cells");
}
template <class Of4, class Of8>
void const* of_type(OwnCells const& cells, Of4* of4, Of8* of8) {
  return cells.value_bytes == 4 ? reinterpret_cast<void const*>(of4) : reinterpret_cast<void const*>(of8);
}

struct Rows {
  std::byte* first;
  std::size_t pitch;
};
/// Rows that lie further apart than the runtime's copies of rows take, which is what its MaxPitch says on every
/// GPU, are copied one by one.
void copy_rows(Rows const& to, Rows const& from, std::size_t width, std::size_t rows, Stream const& stream) {
  constexpr std::size_t most_pitch = 0x7fffffff;
  if (to.pitch <= most_pitch && from.pitch <= most_pitch) {
    check(HOSTLESS_GPU(Memcpy2DAsync)(to.first, to.pitch, from.first, from.pitch, width, rows,
                                      HOSTLESS_GPU(MemcpyDefault), stream.get()),
          "copying cells");
    return;
  }
  for (std::size_t r = 0; r < rows; ++r)
    check(HOSTLESS_GPU(MemcpyAsync)(to.first + r * to.pitch, from.first + r * from.pitch, width,
                                    HOSTLESS_GPU(MemcpyDefault), stream.get()),
          "copying cells");
}

/// Planes of rows, by whole rows where the caller's are contiguous, else through a plane in between.
template <bool in>
void copy_host(OwnCells const& own, CellArray const& theirs, Stream const& stream) {
  bool const flat = own.extent[1] == 1;  // the first axis is that of the rows
  std::size_t const rows = static_cast<std::size_t>(flat ? own.extent[0] : own.extent[1]);
  std::int64_t const planes = flat ? 1 : own.extent[0];
  std::int64_t const pitch = own.stride[flat ? 0 : 1] * own.value_bytes;
  std::int64_t const their_pitch = theirs.stride[flat ? 0 : 1];
  std::size_t const width = static_cast<std::size_t>(own.extent[2] * own.value_bytes);
  bool const whole = theirs.stride[2] == own.value_bytes && their_pitch >= static_cast<std::int64_t>(width);
  std::vector<std::byte> between(whole ? 0 : rows * width);
  auto const bytes = static_cast<std::size_t>(own.value_bytes);
  for (std::int64_t p = 0; p < planes; ++p) {
    std::byte* const ours = static_cast<std::byte*>(own.data) + p * own.stride[0] * own.value_bytes;
    std::byte* const plane = static_cast<std::byte*>(theirs.data) + p * theirs.stride[0];
    auto const each = [&](auto const& copy) {
      for (std::size_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < own.extent[2]; ++c)
          copy(between.data() + r * width + static_cast<std::size_t>(c) * bytes,
               plane + static_cast<std::int64_t>(r) * their_pitch + c * theirs.stride[2]);
    };
    if (in && !whole)
      each([&](std::byte* packed, std::byte const* cell) { std::memcpy(packed, cell, bytes); });
    Rows const on_gpu{ours, static_cast<std::size_t>(pitch)};
    Rows const on_host =
        whole ? Rows{plane, static_cast<std::size_t>(their_pitch)} : Rows{between.data(), width};
    copy_rows(in ? on_gpu : on_host, in ? on_host : on_gpu, width, rows, stream);
    if (!whole || p + 1 == planes) stream.wait();
    if (!in && !whole)
      each([&](std::byte const* packed, std::byte* cell) { std::memcpy(cell, packed, bytes); });
  }
}

template <bool in>
void copy_either(OwnCells const& own, CellArray const& theirs, bool on_gpu, Stream const& stream) {
  if (!on_gpu) {
    copy_host<in>(own, theirs, stream);
    return;
  }
  // bounded: by what the caller has queued
  check(HOSTLESS_GPU(DeviceSynchronize)(), "waiting for what is queued on the GPU");
  Strides const strides{{theirs.stride[0], theirs.stride[1], theirs.stride[2]}};
  launch_cells(of_type(own, copy_kernel<float, in>, copy_kernel<double, in>), own, stream, own,
               static_cast<unsigned char*>(theirs.data), strides);
  stream.wait();
}

}  // namespace

void copy_cells_in(OwnCells const& to, CellArray const& from, bool on_gpu, Stream const& stream) {
  copy_either<true>(to, from, on_gpu, stream);
}
void copy_cells_out(CellArray const& to, OwnCells const& from, bool on_gpu, Stream const& stream) {
  copy_either<false>(from, to, on_gpu, stream);
}

ChangeSums ChangeMeter::read(Stream const& stream) {
  ChangeSums sums{};
  check(HOSTLESS_GPU(MemcpyAsync)(&sums, sums_.data(), sizeof sums, HOSTLESS_GPU(MemcpyDeviceToHost),
                                  stream.get()),
        "reading what a step changed");
  stream.wait();
  return sums;
}

double ChangeMeter::largest(OwnCells const& before, OwnCells const& after, Stream const& stream) {
  sums_.clear();
  launch_cells(of_type(after, largest_change_kernel<float>, largest_change_kernel<double>), after, stream,
               before, after, sums_.data());
  double const found = __builtin_bit_cast(double, read(stream).largest);
  return std::isfinite(found) ? found : std::numeric_limits<double>::quiet_NaN();
}

std::array<std::uint64_t, 3> ChangeMeter::squares(OwnCells const& before, OwnCells const& after, double top,
                                                  Stream const& stream) {
  if (!(top > 0) || !std::isfinite(top)) return {};
  int exponent = 0;
  (void)std::frexp(top, &exponent);
  int const half = -exponent / 2;
  sums_.clear();
  launch_cells(of_type(after, square_kernel<float>, square_kernel<double>), after, stream, before, after,
               std::ldexp(1.0, half), std::ldexp(1.0, -exponent - half), sums_.data());
  ChangeSums const sums = read(stream);
  return {sums.digit[0], sums.digit[1], sums.digit[2]};
}

bool ChangeMeter::is_finite(OwnCells const& cells, Stream const& stream) {
  sums_.clear();
  launch_cells(of_type(cells, finite_kernel<float>, finite_kernel<double>), cells, stream, cells,
               sums_.data());
  return read(stream).not_finite == 0;
}

}  // namespace hostless::gpu
