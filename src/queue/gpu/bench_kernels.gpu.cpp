#include "queue/gpu/bench_kernels.hpp"

#include <algorithm>

#include "device/dependent_launch.hpp"
#include "device/queue.hpp"
#include "queue/gpu/message_kernels.hpp"

namespace hostless::gpu {
namespace {

using queue::LifeGrid;

struct PlusEach {
  std::uint8_t plus;
  __device__ std::uint8_t operator()(std::uint8_t value) const {
    return static_cast<std::uint8_t>(value + plus);
  }
  __device__ std::uint32_t operator()(std::uint32_t four) const {  // no byte carries into the next
    std::uint32_t const all = 0x01010101u * plus;
    return ((four & 0x7f7f7f7fu) + (all & 0x7f7f7f7fu)) ^ ((four ^ all) & 0x80808080u);
  }
  __device__ uint4 operator()(uint4 value) const {
    return {(*this)(value.x), (*this)(value.y), (*this)(value.z), (*this)(value.w)};
  }
};

// What all threads have under way at once; longer ones find some of what was stored last in the cache.
constexpr std::size_t long_bytes = std::size_t{8} << 20;
constexpr unsigned long_together = 4;

/// A multiple of 16 bytes, where both sides are: a block has its part of them, and goes.
__global__ void add_to_long_kernel(HOSTLESS_PARAMETER AddToBytes const what) {
  PlusEach const change{what.plus};
  std::size_t const block = what.goes_backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  std::size_t const first = block * long_together * blockDim.x + threadIdx.x;
  std::size_t const items = what.bytes / sizeof(uint4);
  auto* const to = reinterpret_cast<uint4*>(what.to) + first;
  auto const* const from = reinterpret_cast<uint4 const*>(what.from) + first;
  await_kernel_before();
  uint4 value[long_together];
  HOSTLESS_UNROLL
  for (unsigned u = 0; u < long_together; ++u)
    if (first + u * blockDim.x < items) value[u] = load_last(from + u * blockDim.x);
  HOSTLESS_UNROLL
  for (unsigned u = 0; u < long_together; ++u)
    if (first + u * blockDim.x < items) to[u * blockDim.x] = change(value[u]);
  let_next_kernel_come();
}

bool has_whole_items(AddToBytes const& what) {
  return ((reinterpret_cast<std::uintptr_t>(what.to) | reinterpret_cast<std::uintptr_t>(what.from) |
           what.bytes) &
          15u) == 0;
}

__global__ void add_to_bytes_kernel(HOSTLESS_PARAMETER AddToBytes const what) {
  SharedWork const work{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x),
                        static_cast<int>(blockDim.x)};
  std::uint32_t const me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  bool const is_short = what.bytes <= long_bytes;
  if (is_short) let_next_kernel_come();
  // Where each thread has one item, in few instructions: the shorter, the more they count.
  std::uintptr_t const all =
      reinterpret_cast<std::uintptr_t>(what.to) | reinterpret_cast<std::uintptr_t>(what.from) | what.bytes;
  PlusEach const change{what.plus};
  if ((all & 15u) == 0 && what.bytes / 16 <= threads) {
    auto* const to = reinterpret_cast<uint4*>(what.to) + me;
    auto const* const from = reinterpret_cast<uint4 const*>(what.from) + me;
    await_kernel_before();
    if (me < what.bytes / 16) *to = change(*from);
    return;
  }
  if ((all & 3u) == 0 && what.bytes / 4 <= threads) {
    auto* const to = reinterpret_cast<std::uint32_t*>(what.to) + me;
    auto const* const from = reinterpret_cast<std::uint32_t const*>(what.from) + me;
    await_kernel_before();
    if (me < what.bytes / 4) *to = change(*from);
    return;
  }
  await_kernel_before();
  pass_bytes(work, what.to, what.from, what.bytes, change);
  if (!is_short) let_next_kernel_come();  // whose blocks would take room before
}

__global__ void hold_kernel(HOSTLESS_PARAMETER Hold const what) {
  await_kernel_before();
  std::uint64_t begin = 0, now = 0;
  HOSTLESS_READ_NANOSECONDS(begin);
  for (now = begin; load_host(what.released) != what.number;) {
    HOSTLESS_READ_NANOSECONDS(now);
    if (now - begin < what.limit_ns) continue;
    *what.went_on = 1;
    break;
  }
}

// ---- Life

__device__ __forceinline__ std::int64_t thread_of_grid() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void fill_life_kernel(std::byte* cells, HOSTLESS_PARAMETER LifeGrid const grid) {
  std::int64_t const step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t k = thread_of_grid(); k < grid.rows * grid.columns; k += step) {
    std::int64_t const row = k / grid.columns, column = k % grid.columns;
    cells[grid.at(row + 1, column + 1)] =
        static_cast<std::byte>(queue::glider_cell(grid.first_row + row, grid.first_column + column, 0));
  }
}

__global__ void count_life_kernel(HOSTLESS_PARAMETER CountLife const what) {
  LifeGrid const& grid = what.grid;
  std::int64_t const step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long alive = 0, wrong = 0;
  for (std::int64_t k = thread_of_grid(); k < grid.rows * grid.columns; k += step) {
    std::int64_t const row = k / grid.columns, column = k % grid.columns;
    auto const cell = static_cast<std::uint8_t>(what.cells[grid.at(row + 1, column + 1)]);
    alive += cell;
    wrong += cell != queue::glider_cell(grid.first_row + row, grid.first_column + column, what.shift);
  }
  auto* const counts = reinterpret_cast<unsigned long long*>(what.counts);
  if (alive != 0) atomicAdd(counts, alive);
  if (wrong != 0) atomicAdd(counts + 1, wrong);
}

/// Sixteen cells of a line, four a word, and the words beside them.
struct Line {
  std::uint32_t word[6];
};
__device__ __forceinline__ Line load_line(std::byte const* first) {
  auto const* const words = reinterpret_cast<std::uint32_t const*>(first);
  uint4 const mine = *reinterpret_cast<uint4 const*>(first);
  return {{words[-1], mine.x, mine.y, mine.z, mine.w, words[4]}};
}
/// 1 in each byte that is `value`; no byte is above 9.
__device__ __forceinline__ std::uint32_t bytes_that_are(std::uint32_t bytes, std::uint32_t value) {
  std::uint32_t const differ = bytes ^ value * 0x01010101u;
  return (((differ + 0x7f7f7f7fu) ^ 0x80808080u) >> 7) & 0x01010101u;
}

constexpr std::int64_t lines_of_thread = 8;

/// queue::next_cell, of four cells at once. A thread has sixteen columns.
__global__ void step_life_kernel(HOSTLESS_PARAMETER StepLife const what) {
  await_kernel_before();
  LifeGrid const& grid = what.grid;
  std::int64_t const me = thread_of_grid(), group = me % grid.groups();
  std::int64_t const begin = me / grid.groups() * lines_of_thread;
  std::int64_t const end = begin + lines_of_thread < grid.rows ? begin + lines_of_thread : grid.rows;
  std::int64_t const line = grid.line();
  std::int64_t at = grid.at(begin, 1) + group * LifeGrid::item;
  if (begin < end) {
    Line above = load_line(what.from + at), own = load_line(what.from + at + line);
    for (std::int64_t row = begin; row < end; ++row) {
      at += line;
      Line const below = load_line(what.from + at + line);
      std::uint32_t sum[6], next[4];
      HOSTLESS_UNROLL
      for (int k = 0; k < 6; ++k) sum[k] = above.word[k] + own.word[k] + below.word[k];
      HOSTLESS_UNROLL
      for (int k = 0; k < 4; ++k) {
        std::uint32_t const left = sum[k + 1] << 8 | sum[k] >> 24, right = sum[k + 1] >> 8 | sum[k + 2] << 24;
        std::uint32_t const alive = left + sum[k + 1] + right;
        next[k] = bytes_that_are(alive, 3) | (bytes_that_are(alive, 4) & own.word[k + 1]);
      }
      *reinterpret_cast<uint4*>(what.to + at) = {next[0], next[1], next[2], next[3]};
      above = own;
      own = below;
    }
  }
  let_next_kernel_come();
}

template <class Call>
void launch_early_if(BenchLaunch const& on, void (*kernel)(Call const), int blocks, int threads, Call call) {
  void* parameters[] = {&call};
  launch_dependent(reinterpret_cast<void const*>(kernel), blocks, threads, on.stream, parameters,
                   on.gpu->launches_early());
}

std::size_t cells_of(LifeGrid const& grid) { return static_cast<std::size_t>(grid.rows * grid.columns); }

}  // namespace

void launch_add_to_bytes(BenchLaunch const& on, AddToBytes const& what) {
  std::size_t const items = what.bytes / item_bytes;
  if (what.bytes > long_bytes && has_whole_items(what)) {
    constexpr std::size_t of_block = long_together * block_threads;
    launch_early_if(on, &add_to_long_kernel, static_cast<int>((items + of_block - 1) / of_block),
                    block_threads, what);
    return;
  }
  launch_early_if(on, &add_to_bytes_kernel, blocks_of(items, block_threads, 2 * on.gpu->multiprocessors()),
                  threads_of(items), what);
}
void launch_hold(BenchLaunch const& on, Hold const& what) {
  launch_kernel(reinterpret_cast<void const*>(&hold_kernel), 1, 1, on.stream, what);
}
void launch_fill_life(BenchLaunch const& on, std::byte* cells, LifeGrid const& grid) {
  launch_kernel(reinterpret_cast<void const*>(&fill_life_kernel),
                blocks_of(cells_of(grid), block_threads, 4 * on.gpu->multiprocessors()), block_threads,
                on.stream, cells, grid);
}
void launch_step_life(BenchLaunch const& on, StepLife const& what) {
  constexpr int threads = 128;
  std::int64_t const all = what.grid.groups() * ((what.grid.rows + lines_of_thread - 1) / lines_of_thread);
  launch_early_if(on, &step_life_kernel, static_cast<int>((all + threads - 1) / threads), threads, what);
}
void launch_count_life(BenchLaunch const& on, CountLife const& what) {
  launch_kernel(reinterpret_cast<void const*>(&count_life_kernel),
                blocks_of(cells_of(what.grid), block_threads, 4 * on.gpu->multiprocessors()), block_threads,
                on.stream, what);
}
void load_bench_kernels() {
  for (void const* const kernel :
       {reinterpret_cast<void const*>(&add_to_bytes_kernel),
        reinterpret_cast<void const*>(&add_to_long_kernel), reinterpret_cast<void const*>(&hold_kernel),
        reinterpret_cast<void const*>(&fill_life_kernel), reinterpret_cast<void const*>(&count_life_kernel),
        reinterpret_cast<void const*>(&step_life_kernel)})
    load_kernel(kernel);
}

}  // namespace hostless::gpu
