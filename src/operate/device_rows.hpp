#pragma once
// A matrix as kernels read it: layouts for thousands of threads, made from the same rows as
// LocalMatrix and multiplied in the same order (a row's products in rising column, acc = fma(value, x, acc)
// from +0.0), hence with the same bits.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hostless/base/host_device.hpp"
#include "hostless/operate/gpu_array.hpp"
#include "hostless/operate/local_rows.hpp"
#include "hostless/operate/tiling.hpp"
#include "operate/array.hpp"

namespace hostless {
namespace problems {
struct Recipe;
}
struct CallerShare;
struct ShareCount;

enum class DeviceFormat : std::uint8_t {
  diagonals,  ///< every entry lies on one of a few diagonals (BSR: of blocks); symmetric: one triangle is
              ///< stored
  sell,       ///< sliced ELL: groups of 32 block rows, shorter ones leave no holes, 16- or 32-bit block row
              ///< columns
  csr,        ///< rows one after the other, 32-bit columns
  merge,      ///< the same, rows and entries shared out evenly over threads
  vendor      ///< the same, multiplied by the vendor's library
};
char const* name(DeviceFormat format);
/// Whose arrays are rows one after the other.
HOSTLESS_HOST_DEVICE constexpr bool is_csr(DeviceFormat format) { return format >= DeviceFormat::csr; }
/// A format whose product is made by kernels of its own, in an order of sums that is not the plan's.
constexpr bool multiplied_apart(DeviceFormat format) { return format >= DeviceFormat::merge; }

constexpr int most_diagonals = 32;
constexpr int tile_block_rows = 32;
/// Accumulators without a block row look up to this many block rows past the last one.
constexpr int block_rows_past = 4 * Tiling::accumulators;

/// Entries by diagonals of the whole matrix; zeros where there is none. The first `mirrored` diagonals lie
/// below the main one and are read from the other triangle: transposed, from the block row they point at.
///
/// block 1   entry of row i at value[plane * stride + i]: an address for each diagonal, and constants from it
/// else      block of block row i at value[(i / 32 * planes + plane) * 32 + i % 32], its b * b entries 32
///           values
///           apart, column-major
///
/// Block rows before the first and after the last exist in memory, as far as diagonals reach, with zeros, or
/// with what own rows read from the local column of a ghost; so must entries of the vector (rows_before,
/// rows_after): nothing asks whether a neighbour exists. Ghosts lie there at their local columns
/// (LocalPanel).
struct DiagonalsView {
  int count = 0, mirrored = 0, planes = 0;
  std::int64_t stride = 0;
  std::int32_t offset[most_diagonals] = {};  ///< column block row - row block row, rising
  std::int32_t plane[most_diagonals] = {};   ///< of the block's first entry
  double const* value = nullptr;
  float const* rounded = nullptr;  ///< the same values in fp32, or null; in each layout
  bool operator==(DiagonalsView const&) const = default;
};

/// 32 block rows of one slice, the k-th block of every one side by side, the entries of a block
/// (column-major) as far apart as there are such blocks: all 32 for the first `head`, then those of the lanes
/// in mask[k - head]. No zeros are stored for block rows with fewer blocks than others.
struct DeviceGroup {
  std::int64_t value = 0;
  std::int64_t column = 0;  ///< in `narrow` or `wide`
  std::int32_t width = 0;   ///< blocks of the longest block row
  std::int32_t head = 0;    ///< of the shortest
  std::int32_t mask = 0;    ///< of block `head`, in `mask`
  std::int32_t base = 0;    ///< narrow: column = base + stored; may be negative
  std::int32_t wide = 0;
  std::int32_t unused = 0;
};
/// Where a block of a block row lies in its group, counted in blocks from the group's first: entry e of it at
/// (before * b * b) + e * stride + rank, its column at before + rank.
struct SellPosition {
  std::int64_t before = 0;  ///< blocks
  std::int32_t rank = 0, stride = 0;
};
/// Blocks of the group before the k-th ones. `mask`: the group's, of its tail.
HOSTLESS_HOST_DEVICE std::int64_t blocks_before(DeviceGroup const& group, std::uint32_t const* mask, int k) {
  std::int64_t before = std::int64_t{k < group.head ? k : group.head} * 32;
  for (int t = 0; t < k - group.head; ++t) before += __builtin_popcount(mask[t]);
  return before;
}
/// Of the k-th block of a lane; the (k + 1)-th ones begin `stride` blocks later.
HOSTLESS_HOST_DEVICE SellPosition sell_position(DeviceGroup const& group, std::uint32_t const* mask, int lane,
                                                int k, std::int64_t before) {
  if (k < group.head) return {before, lane, 32};
  std::uint32_t const here = mask[k - group.head];
  return {before, __builtin_popcount(here & ((1u << lane) - 1)), __builtin_popcount(here)};
}
struct SellView {
  std::int32_t const* first_group = nullptr;  ///< [slices + 1]
  DeviceGroup const* group = nullptr;
  std::uint32_t const* mask = nullptr;
  double const* value = nullptr;
  float const* rounded = nullptr;
  std::uint16_t const* narrow = nullptr;
  std::int32_t const* wide = nullptr;
};

struct CsrView {
  std::int64_t const* start = nullptr;  ///< [rows + 1]
  std::int32_t const* column = nullptr;
  double const* value = nullptr;
  float const* rounded = nullptr;
  std::int32_t threads_per_row =
      1;  ///< accumulators of a row, each a thread's: Tiling::threads_per_row where sums are ordered
};

/// Threads that share a row of CSR where the order of sums is free: so many that each has two products on
/// average.
inline int free_threads_per_row(std::int64_t entries, std::int64_t rows) {
  int threads = 1;
  while (threads < Tiling::most_threads_per_row && 4 * threads * rows <= entries) threads *= 2;
  return threads;
}

/// What kernels see; a phase's threads all take the same branch.
struct RowsView {
  DeviceFormat format = DeviceFormat::csr;
  Tiling tiling;
  std::int64_t farthest = 0;  ///< block rows between a row and its columns
  DiagonalsView diagonals;
  SellView sell;
  CsrView csr;
  double* ready = nullptr;  ///< [rows] products that were made apart
};

struct DeviceRequest {
  bool automatic = true;
  DeviceFormat format = DeviceFormat::diagonals;
  bool halves = true;  ///< store once what both triangles hold alike, bit for bit
  /// The rows' values are indices into an array elsewhere, + 1: they say nothing of the triangles, which are
  /// taken to be alike where `halves` is wanted.
  bool value_indices = false;
};

/// The layout in host memory, ready to be copied; or, with a recipe or a share, all of it but the values and
/// columns, which the GPU makes by itself.
struct DeviceRows {
  DeviceFormat format = DeviceFormat::csr;
  Tiling tiling;
  std::int64_t farthest = 0;                        ///< block rows between a row and its columns, ghosts too
  std::int64_t ghosts_below = 0, ghosts_above = 0;  ///< rows
  DiagonalsView diagonals;                          ///< its pointer is null here
  std::int64_t origin = 0;                          ///< of diagonals: where block row 0 lies in `value`
  std::vector<std::int32_t> first_group;
  std::vector<DeviceGroup> group;
  std::vector<std::uint32_t> mask;  ///< of the groups' tails: which lanes have a block there
  std::vector<std::int64_t> start;
  Array<double> value;
  Array<std::uint16_t> narrow;
  Array<std::int32_t> wide;                        ///< of CSR: its columns
  std::string why;                                 ///< the bytes of a sweep of each candidate
  std::shared_ptr<problems::Recipe const> recipe;  ///< of a generated matrix; else null
  std::shared_ptr<CallerShare const> share;        ///< of rows that lie in a GPU's memory; else null
  struct {
    std::int64_t value = 0, narrow = 0, wide = 0, start = 0;
  } made_there;  ///< with a recipe or a share: what the sizes of these arrays are on the GPU
  bool is_made_there() const { return recipe || share; }
  /// `value` holds indices into `from` + 1, or 0 where no entry is: the GPU puts the values there.
  bool value_indices = false;
  GpuArray from;
  /// Products that are made apart are written and read once more.
  std::int64_t bytes_per_sweep() const {
    std::int64_t const products = multiplied_apart(format) ? 16 * tiling.rows() : 0;
    return products + made_there.value * 8 + made_there.narrow * 2 + made_there.wide * 4 +
           made_there.start * 8 +
           static_cast<std::int64_t>(value.size() * 8 + narrow.size() * 2 + wide.size() * 4 +
                                     start.size() * 8 + group.size() * sizeof(DeviceGroup) + mask.size() * 4 +
                                     first_group.size() * 4);
  }
  /// With the values in fp32.
  std::int64_t rounded_bytes_per_sweep() const {
    return bytes_per_sweep() - (made_there.value + static_cast<std::int64_t>(value.size())) * 4;
  }
  /// Entries of the vector that must be readable before the first and after the last row, finite: ghosts are
  /// there, diagonals reach there, and accumulators without a block row.
  std::int64_t rows_before() const { return std::max(ghosts_below, tiling.block * reach()); }
  std::int64_t rows_after() const {
    return std::max(ghosts_above, tiling.block * (reach() + block_rows_past));
  }
  /// For bodies that are tested on the host: a view of these arrays, and of `value` rounded to fp32.
  RowsView view(float const* rounded = nullptr) const;

 private:
  /// Block rows that diagonals reach beyond the matrix, on either side.
  std::int64_t reach() const {
    if (format != DeviceFormat::diagonals || diagonals.count == 0) return 0;
    std::int64_t const up = diagonals.offset[diagonals.count - 1], down = -diagonals.offset[0];
    return up > down ? (up > 0 ? up : 0) : (down > 0 ? down : 0);
  }
};

/// Errors  usage  a format that the matrix does not fit: more than 32 diagonals; any but CSR with several row
///                lanes
/// Cost    two passes over the rows, by up to `threads` threads where they can be read so, a third for the
/// second
///         triangle of a halved layout then, and one where the triangles turn out to differ; the final bytes
DeviceRows make_device_rows(LocalRows const& rows, Tiling const& tiling, DeviceRequest request,
                            int threads = 1);
/// The same layout, of all rows that a recipe makes, for operate/gpu/generate.impl.hpp to fill.
/// Errors  usage  a format that the matrix does not fit, or one of the arrays of CSR, which nothing fills
/// Cost    time and memory in proportion to block rows, not to entries
DeviceRows make_device_rows(problems::Recipe const& recipe, Tiling const& tiling, DeviceRequest request);
/// The same of rows that lie in a GPU's memory, for operate/gpu/share.impl.hpp to fill. Where `halves` is
/// wanted, their triangles are taken to be alike.
/// Errors  usage  as for rows of the host
/// Cost    time and memory in proportion to block rows
DeviceRows make_device_rows(CallerShare share, ShareCount const& found, Tiling const& tiling,
                            DeviceRequest request);
/// Entries of a generated matrix.
std::int64_t count_entries(problems::Recipe const& recipe);

}  // namespace hostless
