// A thread works on a row or a block row. All functions return when the GPU is done.
#include "operate/gpu/caller_rows.hpp"

#include <algorithm>
#include <climits>
#include <vector>

#include "device/block.hpp"
#include "operate/gpu/numbers.gpu.hpp"
#include "operate/gpu/share.impl.hpp"
#include "operate/with_block.hpp"

namespace hostless::gpu {
namespace {

using Count = unsigned long long;  // as atomics want it

__global__ void __launch_bounds__(number_threads)
    fault_kernel(HOSTLESS_PARAMETER RowsOfCaller const a, std::int64_t entries, std::int64_t first,
                 std::int64_t count, Count* lowest) {
  each(count, [&](std::int64_t i) {
    if (fault_of(a, entries, first + i).kind != RowFault::Kind::none)
      atomicMin(lowest, static_cast<Count>(first + i));
  });
}
__global__ void __launch_bounds__(number_threads)
    describe_fault_kernel(HOSTLESS_PARAMETER RowsOfCaller const a, std::int64_t entries, std::int64_t row,
                          RowFault* to) {
  each(1, [&](std::int64_t) { *to = fault_of(a, entries, row); });
}

/// What the threads of all blocks have, added up.
__device__ __forceinline__ void add_up(Count mine, Count* to) {
  __shared__ Count sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(to, sum);
  __syncthreads();
}

__device__ __forceinline__ void mark(std::uint32_t* bits, std::int64_t k) {
  std::uint32_t const bit = 1u << (k % 32);
  std::uint32_t volatile* const word = bits + k / 32;
  if ((*word & bit) == 0) atomicOr(bits + k / 32, bit);
}

/// sums: the pattern, entries.
__global__ void __launch_bounds__(number_threads)
    pattern_kernel(HOSTLESS_PARAMETER RowsOfCaller const a, std::int64_t first, std::int64_t last,
                   std::uint32_t* outside, Count* sums) {
  Count word = 0, entries = 0;
  each(last - first, [&](std::int64_t i) {
    std::int64_t const row = first + i;
    word += pattern_word(a, row, first, last, [&](std::int64_t column) { mark(outside, column); });
    entries += static_cast<Count>(a.offset.whole(row + 1) - a.offset.whole(row));
  });
  add_up(word, sums);
  add_up(entries, sums + 1);
}

template <int B>
__global__ void __launch_bounds__(number_threads)
    blocks_kernel(HOSTLESS_PARAMETER RowsOfCaller const a, std::int64_t first, std::int64_t last,
                  Count* sum) {
  Count blocks = 0;
  each((last - first + B - 1) / B, [&](std::int64_t i) {
    std::int64_t const row = first + i * B, left = last - row;
    blocks += static_cast<Count>(count_blocks<B>(a, row, left < B ? static_cast<int>(left) : B));
  });
  add_up(blocks, sum);
}

/// Different numbers, until there are more than most_diagonals: a table in which each has its entry.
struct Offsets {
  static constexpr int entries = 128, free = INT_MIN;
  int* table = nullptr;
  int* count = nullptr;

  __device__ __forceinline__ void add(int offset) const {
    if (*static_cast<int volatile*>(count) > most_diagonals) return;
    unsigned at = static_cast<unsigned>(mixed(static_cast<std::uint32_t>(offset)));
    for (int k = 0; k < entries; ++k) {
      int* const here = table + at++ % entries;
      int found = *static_cast<int volatile*>(here);
      if (found == free) {
        found = atomicCAS(here, free, offset);
        if (found == free) atomicAdd(count, 1);
      }
      if (found == free || found == offset) return;
    }
  }
};

/// ShareCount, as kernels write it.
struct Counted {
  std::int32_t const* first_group = nullptr;
  std::int32_t *width = nullptr, *least = nullptr, *most = nullptr, *farthest = nullptr;
  std::uint32_t* reads = nullptr;
  std::int64_t words = 0;  ///< of reads, a slice
  Offsets offsets;
};

template <int B>
__global__ void __launch_bounds__(number_threads)
    count_kernel(HOSTLESS_PARAMETER ShareView const from, HOSTLESS_PARAMETER Tiling const tiling,
                 HOSTLESS_PARAMETER Counted const to) {
  each(tiling.block_rows, [&](std::int64_t block_row) {
    int const slice = tiling.slice_of(block_row);
    std::uint32_t* const reads = to.reads + slice * to.words;
    std::int32_t width = 0, least = INT_MAX, most = INT_MIN, far = 0;
    auto const outside = [&](std::int64_t ghost) { mark(reads, ghost); };
    walk_blocks<B>(
        from.rows, from.first_row + block_row * B, B, [](int, int, std::int64_t) {},
        [&](std::int64_t column) {
          auto const local_column = static_cast<std::int32_t>(local_column_in<B>(from, column, outside));
          auto const offset = local_column - static_cast<std::int32_t>(block_row);
          least = width == 0 ? local_column : least;
          most = local_column;
          far = max(far, offset < 0 ? -offset : offset);
          to.offsets.add(offset);
          ++width;
        });
    to.width[block_row] = width;
    if (width == 0) return;
    std::int64_t const group = to.first_group[slice] + (block_row - tiling.first(slice)) / tile_block_rows;
    atomicMin(to.least + group, least);
    atomicMax(to.most + group, most);
    if (far > *static_cast<std::int32_t volatile*>(to.farthest)) atomicMax(to.farthest, far);
  });
}

__global__ void __launch_bounds__(number_threads)
    whole_kernel(HOSTLESS_PARAMETER Numbers const from, std::int64_t first, std::int64_t count,
                 std::int64_t* to) {
  each(count, [&](std::int64_t k) { to[k] = from.whole(first + k); });
}

template <int B>
__global__ void __launch_bounds__(number_threads)
    block_rows_kernel(HOSTLESS_PARAMETER LayoutArrays const to, HOSTLESS_PARAMETER RowsView const rows,
                      HOSTLESS_PARAMETER ShareView const from) {
  each(from.block_rows, [&](std::int64_t block_row) { write_block_row<B>(to, rows, from, block_row); });
}
template <int B>
__global__ void __launch_bounds__(number_threads)
    rows_kernel(HOSTLESS_PARAMETER LayoutArrays const to, HOSTLESS_PARAMETER ShareView const from) {
  each(from.block_rows * B, [&](std::int64_t row) { write_row<B>(to, from, row); });
}
template <class T>
Array<T> filled(std::size_t size, T value) {
  std::vector<T> const values(size, value);
  Array<T> array(size);
  array.put(values.data(), size);
  return array;
}
template <class T>
std::vector<T> brought(Array<T> const& array) {
  std::vector<T> values(array.size());
  array.get(values.data(), values.size());
  return values;
}

/// The GPU of the arrays is in use, and comes after what the caller has queued for them, while it lives.
class OnRows {
 public:
  explicit OnRows(GpuRows const& rows) : device_(rows.offsets.device) {
    for (GpuArray const* array : {&rows.offsets, &rows.columns, &rows.values}) wait_for(*array);
  }

 private:
  OnDevice device_;
};

/// The ghosts' numbers lie on the GPU while it lives.
class ShareThere {
 public:
  ShareThere(CallerShare const& share, Tiling const& tiling) : ghost_(share.ghost_block_row.size()) {
    ghost_.put(share.ghost_block_row.data(), share.ghost_block_row.size());
    view = {numbers_of(share.rows),
            share.first_row,
            tiling.block_rows,
            ghost_.data(),
            static_cast<std::int64_t>(share.ghost_block_row.size()),
            share.block_rows_below};
  }
  ShareView view;

 private:
  Array<std::int64_t> ghost_;
};

std::vector<std::int64_t> whole_numbers(GpuArray const& from, std::int64_t first, std::int64_t count) {
  Array<std::int64_t> wide(static_cast<std::size_t>(count));
  char const* const what = "reading a pattern";
  launch_each(what, reinterpret_cast<void const*>(&whole_kernel), count, numbers_of(from), first, count,
              wide.data());
  settle(what);
  return brought(wide);
}

}  // namespace

RowFault CallerPatternScan::find_fault(GpuRows const& rows, std::int64_t first, std::int64_t last) const {
  if (first >= last) return {};
  OnRows const on(rows);
  char const* const what = "checking a pattern";
  RowsOfCaller const a = numbers_of(rows);
  std::int64_t const entries = std::min(rows.columns.size, rows.values.size);
  Array<Count> lowest = filled(1, ~Count{0});
  launch_each(what, reinterpret_cast<void const*>(&fault_kernel), last - first, a, entries, first,
              last - first, lowest.data());
  settle(what);
  Count const row = brought(lowest)[0];
  if (row == ~Count{0}) return {};
  Array<RowFault> fault = filled(1, RowFault{});
  launch_each(what, reinterpret_cast<void const*>(&describe_fault_kernel), 1, a, entries,
              static_cast<std::int64_t>(row), fault.data());
  settle(what);
  return brought(fault)[0];
}

ScannedRows CallerPatternScan::scan(GpuRows const& rows, std::int64_t first, std::int64_t last,
                                    bool in_blocks) const {
  OnRows const on(rows);
  char const* const what = "looking at a pattern";
  RowsOfCaller const a = numbers_of(rows);
  bool const all = first == 0 && last == rows.rows;
  auto outside = filled<std::uint32_t>(static_cast<std::size_t>(all ? 0 : words_of_bits(rows.rows)), 0);
  constexpr std::size_t sizes = BlockStatistics::sizes.size();
  Array<Count> sums = filled<Count>(2 + sizes, 0);
  launch_each(what, reinterpret_cast<void const*>(&pattern_kernel), last - first, a, first, last,
              outside.data(), sums.data());
  for (std::size_t k = 0; in_blocks && k < sizes; ++k) {
    int const size = BlockStatistics::sizes[k];
    with_block(size, [&](auto block) {
      launch_each(what, reinterpret_cast<void const*>(&blocks_kernel<block()>),
                  (last - first + size - 1) / size, a, first, last, sums.data() + 2 + k);
    });
  }
  settle(what);
  std::vector<Count> const found = brought(sums);
  ScannedRows scanned;
  scanned.pattern = found[0];
  scanned.statistics.rows = last - first;
  scanned.statistics.entries = static_cast<std::int64_t>(found[1]);
  for (std::size_t k = 0; k < sizes; ++k)
    scanned.statistics.blocks[k] = static_cast<std::int64_t>(found[2 + k]);
  for_each_bit(brought(outside), [&](std::int64_t column) { scanned.outside.push_back(column); });
  return scanned;
}

ShareCount CallerPatternScan::count(CallerShare const& share, Tiling const& tiling) const {
  OnRows const on(share.rows);
  char const* const what = "counting a layout";
  ShareThere const there(share, tiling);
  std::vector<std::int32_t> const first_group = first_groups(tiling);
  auto const groups = static_cast<std::size_t>(first_group.back());
  Array<std::int32_t> firsts(first_group.size()), width(static_cast<std::size_t>(tiling.block_rows));
  firsts.put(first_group.data(), first_group.size());
  auto least = filled<std::int32_t>(groups, INT_MAX), most = filled<std::int32_t>(groups, INT_MIN),
       farthest = filled<std::int32_t>(1, 0), table = filled<std::int32_t>(Offsets::entries, Offsets::free),
       offsets = filled<std::int32_t>(1, 0);
  std::int64_t const words = words_of_bits(there.view.ghosts);
  Array<std::uint32_t> reads(static_cast<std::size_t>(words * tiling.slices));
  reads.clear();
  Counted const to{firsts.data(),   width.data(), least.data(), most.data(),
                   farthest.data(), reads.data(), words,        {table.data(), offsets.data()}};
  with_block(tiling.block, [&](auto block) {
    launch_each(what, reinterpret_cast<void const*>(&count_kernel<block()>), tiling.block_rows, there.view,
                tiling, to);
  });
  settle(what);
  ShareCount found;
  GpuArray const& ends = share.rows.offsets;
  found.entries =
      whole_numbers(ends, share.first_row + tiling.rows(), 1)[0] - whole_numbers(ends, share.first_row, 1)[0];
  found.width = brought(width);
  found.least = brought(least);
  found.most = brought(most);
  found.farthest = brought(farthest)[0];
  for (std::int32_t const offset : brought(table))
    if (offset != Offsets::free) found.offset.push_back(offset);
  std::sort(found.offset.begin(), found.offset.end());
  found.reads = reads_of(brought(reads), tiling.slices, there.view.ghosts, tiling.block);
  return found;
}

RowPanel CallerPatternScan::pattern(GpuRows const& rows, std::int64_t first, std::int64_t last) const {
  OnRows const on(rows);
  RowPanel panel;
  panel.offset = whole_numbers(rows.offsets, first, last - first + 1);
  panel.column =
      whole_numbers(rows.columns, panel.offset.front(), panel.offset.back() - panel.offset.front());
  return panel;
}

void lay_out_share(CallerShare const& share, RowsView const& view, LayoutArrays const& to) {
  OnRows const on(share.rows);
  ShareThere const there(share, view.tiling);
  char const* const what = "laying out a caller's rows";
  with_block(view.tiling.block, [&](auto block) {
    if (is_csr(view.format))
      return launch_each(what, reinterpret_cast<void const*>(&rows_kernel<block()>), view.tiling.rows(), to,
                         there.view);
    launch_each(what, reinterpret_cast<void const*>(&block_rows_kernel<block()>), view.tiling.block_rows, to,
                view, there.view);
  });
  settle(what);
}

}  // namespace hostless::gpu
