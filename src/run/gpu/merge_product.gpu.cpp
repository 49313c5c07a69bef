// The merge-path product as one kernel: a block works on one tile of the list of row ends and entries, 7
// items a thread. Products of a tile are formed by coalesced loads into shared memory, rows are summed from
// there; the last block to arrive adds what tiles have carried out of their last rows. Threads: 512 a block,
// a block for each 3584 items. Bytes a sweep: 12 an entry, 8 a row, x from L1 and L2, 8 a row written.
// Reduction order: a thread's items, lanes of a warp, warps, tiles, each from the left; the same every time.
#include <algorithm>

#include "operate/gpu/merge.impl.hpp"
#include "run/gpu/products.hpp"
#include "run/gpu/stream.gpu.hpp"

namespace hostless::gpu {
namespace {

constexpr int tile_items = merge_items * block_threads;

struct MergeCall {
  PhaseMemory memory;
  Gate gate = Gate::solve;
  CsrView csr;
  std::int32_t rows = 0;
  std::int64_t entries = 0;
  std::int32_t const* tile_row = nullptr;  ///< [tiles + 1]
  double* carry = nullptr;                 ///< [tiles]
};

/// Of a block. Items are row ends (4 bytes) and entries (8 bytes): both lie in one array, entries first.
struct MergeShared {
  double item[tile_items + 1];
  double warp_sum[warps];
  int warp_ended[warps];
  bool last;
};

HOSTLESS_HOST_DEVICE std::int64_t first_item(int tile, std::int32_t rows, std::int64_t entries) {
  std::int64_t const item = static_cast<std::int64_t>(tile) * tile_items, all = rows + entries;
  return item < all ? item : all;
}

__global__ void find_tiles_kernel(CsrView csr, std::int32_t rows, std::int64_t entries, int ends,
                                  std::int32_t* tile_row) {
  int const tile = static_cast<int>(blockIdx.x) * block_threads + static_cast<int>(threadIdx.x);
  if (tile >= ends) return;
  tile_row[tile] = merge_position(first_item(tile, rows, entries), rows, [&](std::int32_t row) {
                     return load_constant(csr.start + row + 1);
                   }).row;
}

/// What threads before this one leave for the first row that ends here, of this block; the last thread also
/// stores what the block carries out.
__device__ __forceinline__ double carry_in(MergeCarry carry, MergeShared& shared, double* carry_out) {
  int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  HOSTLESS_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    MergeCarry const before{of_thread(carry.sum, lane - distance),
                            of_thread(int{carry.ended}, lane - distance) != 0};
    if (lane >= distance) carry = follow(before, carry);
  }
  if (lane == 31) {
    shared.warp_sum[warp] = carry.sum;
    shared.warp_ended[warp] = carry.ended;
  }
  __syncthreads();
  MergeCarry warps_before;
  for (int w = 0; w < warp; ++w)
    warps_before = follow(warps_before, {shared.warp_sum[w], shared.warp_ended[w] != 0});
  if (threadIdx.x == block_threads - 1) *carry_out = follow(warps_before, carry).sum;
  MergeCarry const before{of_thread(carry.sum, lane - 1), of_thread(int{carry.ended}, lane - 1) != 0};
  return lane == 0 ? warps_before.sum : follow(warps_before, before).sum;
}

__global__ void HOSTLESS_LAUNCH_BOUNDS(block_threads, 3)
    merge_kernel(HOSTLESS_PARAMETER MergeCall const call, double const* x, double* y) {
  if (!call.memory.state->open(call.gate)) return;
  __shared__ MergeShared shared;
  int const tile_number = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  std::int32_t const first = load_constant(call.tile_row + tile_number),
                     last = load_constant(call.tile_row + tile_number + 1);
  MergeTile const tile = merge_tile({first, first_item(tile_number, call.rows, call.entries) - first},
                                    {last, first_item(tile_number + 1, call.rows, call.entries) - last});
  auto* const row_end = reinterpret_cast<std::int32_t*>(shared.item + tile.entries);
  stage_tile<merge_items>(call.csr, tile, thread, block_threads, x, shared.item, row_end);
  __syncthreads();
  MergeFirst ends;
  MergeCarry const carry =
      walk_tile<merge_items>(tile, thread, shared.item, row_end, ends,
                             [&](std::int32_t row, double sum) { y[tile.first_row + row] = sum; });
  double const before = carry_in(carry, shared, call.carry + tile_number);
  if (ends.row >= 0) y[tile.first_row + ends.row] = before + ends.sum;
  if (!arrive(call.memory, 0, static_cast<int>(gridDim.x), shared.last)) return;
  auto const tiles = static_cast<int>(gridDim.x);
  for (int k = thread; k < tiles; k += block_threads)
    add_carries(k, tiles, call.rows, call.tile_row, call.carry, y);
}

class MergeProduct final : public Product {
 public:
  MergeProduct(RowsView const& rows, std::int64_t entries) {
    call_.csr = rows.csr;
    call_.rows = static_cast<std::int32_t>(rows.tiling.rows());
    call_.entries = entries;
    tiles_ = std::max(1, static_cast<int>((call_.rows + entries + tile_items - 1) / tile_items));
    tile_row_ = Array<std::int32_t>(static_cast<std::size_t>(tiles_) + 1);
    carry_ = Array<double>(static_cast<std::size_t>(tiles_));
    call_.tile_row = tile_row_.data();
    call_.carry = carry_.data();
    Stream const stream;
    int ends = tiles_ + 1;
    std::int32_t* to = tile_row_.data();
    void* parameters[] = {&call_.csr, &call_.rows, &call_.entries, &ends, &to};
    check(HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(&find_tiles_kernel),
                                     dim3(static_cast<unsigned>(ends / block_threads + 1)),
                                     dim3(block_threads), parameters, 0, stream.get()),
          "placing the tiles of a product");
    stream.wait();
  }
  void multiply(Queue& queue, Gate gate, PhaseMemory const& memory, double const* x,
                double* y) const override {
    MergeCall call = call_;
    call.memory = memory;
    call.gate = gate;
    void* parameters[] = {&call, &x, &y};
    queue.launch({reinterpret_cast<void const*>(&merge_kernel), tiles_, parameters, false});
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(tile_row_.bytes() + carry_.bytes());
  }
  bool guards_hold() const override { return tile_row_.guards_hold() && carry_.guards_hold(); }
  std::string describe() const override {
    return "products by merge path, " + std::to_string(tiles_) + " tiles of " + std::to_string(tile_items) +
           " items";
  }

 private:
  MergeCall call_;
  int tiles_ = 0;
  Array<std::int32_t> tile_row_;
  Array<double> carry_;
};

}  // namespace

std::unique_ptr<Product> make_merge_product(RowsView const& rows, std::int64_t entries) {
  return std::make_unique<MergeProduct>(rows, entries);
}

}  // namespace hostless::gpu
