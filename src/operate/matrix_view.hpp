#pragma once

#include <cstdint>

#include "hostless/base/isa.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "hostless/plan/tiling.hpp"

namespace hostless {

/// Where the entries (BSR: blocks) of a slice begin and how its columns are stored. Column units: rows, in
/// BSR leaves.
struct SliceStart {
  std::int64_t value = 0;   ///< first value; sliced ELL has its own in each group
  std::int64_t column = 0;  ///< first column in `narrow` or `wide`
  std::int64_t mirror = 0;  ///< first position in `mirror`; BSR
  std::int32_t base = 0;    ///< narrow: column = base + stored
  std::int32_t wide = 0;    ///< 1: 32-bit columns
};

/// 32 leaves of a sliced-ELL slice.
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
/// Places count from the group's value + lane.
struct Diagonal {
  std::int32_t first = 0;  ///< column of lane 0; outside the matrix where lane 0 is masked out
  std::uint32_t mask = 0;
  std::int32_t low = 0, high = 0;
  std::int16_t split = 32;
  std::int8_t mirrored = 0;
  std::int8_t whole = 0;  ///< 1: every lane has an x, and those outside the mask find a 0
};
constexpr int group_leaves = 32;
/// Values allocated past the last one: kernels load whole vectors and whole groups.
constexpr std::int64_t value_padding = group_leaves;

/// Blocks of a leaf in rising column, in BSR with mirrored blocks: `far` stored ones, then the mirrored ones,
/// then stored ones to the end. A mirrored block (i, j), j < i, has bit for bit the values of the transposed
/// block (j, i), which lies not far before in memory, hence still in the cache: it is read from there and not
/// stored.
struct MirrorCounts {
  std::uint32_t before = 0;  ///< mirrored blocks of the slice before this leaf
  std::uint32_t far = 0;
};
/// Positions allocated past the last one: kernels fetch ahead.
constexpr std::int64_t mirror_padding = 64;

/// What the kernels see. `start` holds, per slice, the number of entries (CSR) or blocks (BSR) before every
/// row or leaf of the slice, and one more: slice s begins at index rows before it + s.
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
  MirrorCounts const* mirrored = nullptr;  ///< like `start`; nullptr: every block is stored
  /// Blocks from the slice's first one to the block that a mirrored one is read from.
  std::int32_t const* mirror = nullptr;
};

using Kernel = void (*)(MatrixView const&, int slice, std::int64_t first_leaf, int leaves, double const* x,
                        double* out) noexcept;
/// The kernel for one format and block; `block` matters to BSR and sliced ELL.
Kernel find_kernel_baseline(Format format, int block);
Kernel find_kernel_v3(Format format, int block);
Kernel find_kernel_v4(Format format, int block);

}  // namespace hostless
