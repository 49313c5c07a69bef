#pragma once

#include <cstdint>

#include "hostless/base/host_device.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "hostless/operate/tiling.hpp"

namespace hostless {

/// Where the entries (BSR: blocks) of a slice begin and how its columns are stored. Column units: rows, in
/// BSR block rows.
struct SliceStart {
  std::int64_t value = 0;   ///< first value; sliced ELL has its own in each group
  std::int64_t column = 0;  ///< first column in `narrow` or `wide`
  std::int32_t base = 0;    ///< narrow, and wide with marks: column = base + stored; may be negative
  std::int32_t wide = 0;    ///< 1: 32-bit columns
};

/// 32 block rows of a sliced-ELL slice.
///
/// listed     value[value + (k * block + j) * 32 + lane] with its column at the same place from `column` on
/// diagonals  diagonal[column + k], k < width, in rising column; only for block 1. One index serves 32
///            entries, and x is loaded without gathering.
/// masked     the same, and some diagonal is not whole
struct SellGroup {
  std::int64_t value = 0;
  std::int64_t column = 0;
  std::int32_t width = 0;
  enum class Kind : std::int32_t { listed, diagonals, masked } kind = Kind::listed;
};
/// The entries of a group on one diagonal: those of the lanes in `mask`.
///
/// stored    32 values of its own
/// mirrored  the other triangle holds the same values a short way before in memory, hence still in the cache:
///           those of lanes below `split` in one group, those from there on in the next
/// Value indices count from the group's value + lane.
struct Diagonal {
  std::int32_t first = 0;  ///< column of lane 0; where lane 0 is masked out there need be none
  std::uint32_t mask = 0;
  std::int32_t low = 0, high = 0;
  std::int16_t split = 32;
  std::int8_t mirrored = 0;
  std::int8_t whole = 0;  ///< 1: every lane has an x, and those outside the mask find a 0
};
constexpr int group_block_rows = 32;
/// Values allocated past the last one: kernels load whole vectors and whole groups.
constexpr std::int64_t value_padding = group_block_rows;

/// Far blocks to add before a slot of 256 block rows: indices into far_block_row.
struct FarRange {
  std::int32_t first = 0, last = 0;
};

/// BSR that stores a block (i, j), i < j, once where the block (j, i) has bit for bit its transposed values.
///
/// Row i then adds block (i, j) to its own sum and the transposed block to the sum of block row j, which
/// waits in a ring of `ring` (a power of two) block rows until row j comes: its last lower blocks have then
/// been added in rising column, and its far ones before them (`far_*`, at the first slot that adds to that
/// block row), so the chain of products is that of the whole row. A block row with blocks that lie in another
/// group of slices (SweepOrder) or too far away has them stored in its own row, or as far blocks.
/// A block row that reads ghosts of lower ranks stores its row whole: as far blocks they would be added
/// before they have arrived. The column of a block that is added twice carries the mark `once`.
struct HalvedView {
  std::int64_t const* first_slot = nullptr;  ///< [slices + 1]
  FarRange const* far_range = nullptr;       ///< [slots]; nullptr: every block is stored
  std::int32_t const* far_block_row = nullptr;
  std::int64_t const* far_start = nullptr;  ///< blocks
  std::int32_t const* far_column = nullptr;
  double const* far_value = nullptr;
  std::int64_t ring = 0;
};
constexpr std::uint16_t once_narrow = 0x8000;
constexpr std::int64_t most_narrow_once = 0x7fff;
constexpr std::int32_t once_wide = INT32_MIN;
HOSTLESS_HOST_DEVICE constexpr std::int64_t without_mark(std::uint16_t column) {
  return column & most_narrow_once;
}
HOSTLESS_HOST_DEVICE constexpr std::int64_t without_mark(std::int32_t column) { return column & INT32_MAX; }
HOSTLESS_HOST_DEVICE constexpr bool has_mark(std::uint16_t column) { return (column & once_narrow) != 0; }
HOSTLESS_HOST_DEVICE constexpr bool has_mark(std::int32_t column) { return column < 0; }
/// Doubles of one block row in the ring.
constexpr int ring_stride(int block) { return block == 3 ? 4 : block == 6 ? 8 : block; }

/// What a slot of 256 block rows reads of x as it is stored: columns [first, last), in the units of the
/// format, what its rows are multiplied with for later rows included. Of groups in diagonals nothing.
struct SlotReads {
  std::int32_t first = 0, last = 0;
};

/// What the kernels see. `start` holds, per slice, the number of entries (CSR) or blocks (BSR) before every
/// row or block row of the slice, and one more: slice s begins at index rows before it + s.
struct MatrixView {
  Tiling tiling;
  SliceStart const* slice = nullptr;
  std::uint32_t const* start = nullptr;
  double const* value = nullptr;
  std::uint16_t const* narrow = nullptr;
  std::int32_t const* wide = nullptr;
  SellGroup const* group = nullptr;
  std::int64_t const* first_group = nullptr;  ///< [slices + 1]
  Diagonal const* diagonal = nullptr;
  HalvedView halved;                          ///< BSR
  std::int64_t const* first_reads = nullptr;  ///< [slices + 1]: where a slice's slots begin
  SlotReads const* reads = nullptr;           ///< [slots]
};

/// Right-hand sides that one reading of the matrix serves: the lanes of a vector.
constexpr int wide_sides = 4;

/// x of several right-hand sides as the rows at hand read it, entries of the same row beside each other: one
/// load has them all, and what is read again lies in one place instead of four. A sweep fills it ahead of its
/// rows and overwrites what is behind them.
struct SidesWindow {
  double* values = nullptr;         ///< [size][rows of a unit][wide_sides]
  std::int64_t size = 0;            ///< units, a power of two; 0: x is read where it lies
  std::int64_t first = 0, end = 0;  ///< units since the last gap; those of [end - size, end) are there
};

/// Whether a slot can go on with a window of `size` units that has those of [end - size, end), not before
/// `first`.
HOSTLESS_HOST_DEVICE bool follows(SlotReads const& slot, std::int64_t first, std::int64_t end,
                                  std::int64_t size) {
  return slot.first >= first && slot.first >= end - size && slot.first <= end;
}

/// Several right-hand sides: their x and products, and what they share. The last ones of x and out repeat
/// others where there are fewer than `wide_sides`.
struct RightHandSides {
  double const* x[wide_sides];
  double* out[wide_sides];
  int count;            ///< of them, whose products are wanted
  double* ring;         ///< as that of one, with the entries of all sides beside each other
  SidesWindow* window;  ///< of this thread and these sides
};
using WideKernel = void (*)(MatrixView const&, int slice, std::int64_t first_block_row, int block_rows,
                            RightHandSides const& of) noexcept;

using Kernel = void (*)(MatrixView const&, int slice, std::int64_t first_block_row, int block_rows,
                        double const* x, double* out, double* ring) noexcept;
struct KernelWanted {
  Format format;
  int block;            ///< matters to BSR and sliced ELL
  bool is_halved;       ///< to BSR
  int threads_per_row;  ///< to CSR
};
/// Of an instruction set.
Kernel find_kernel(Isa isa, KernelWanted const& wanted);
/// For several right-hand sides; null where there is none: they then come one after the other.
WideKernel find_wide_kernel(Isa isa, KernelWanted const& wanted);
Kernel find_kernel_baseline(KernelWanted const& wanted);
Kernel find_kernel_v3(KernelWanted const& wanted);
Kernel find_kernel_v4(KernelWanted const& wanted);
WideKernel find_wide_kernel_baseline(KernelWanted const& wanted);
WideKernel find_wide_kernel_v3(KernelWanted const& wanted);
WideKernel find_wide_kernel_v4(KernelWanted const& wanted);

}  // namespace hostless
