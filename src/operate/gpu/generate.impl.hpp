#pragma once
// Fills the layout of a generated matrix, one leaf a thread. Bytes: those of the layout, written once. The
// arrays are zero before.

#include "device/runtime.hpp"
#include "operate/device_rows.hpp"
#include "problems/recipe.hpp"

namespace hostless::gpu {

/// The arrays that a view reads, to be written.
struct GeneratedArrays {
  double* value = nullptr;  ///< the first one; of diagonals, `origin` values before leaf 0
  std::int64_t origin = 0;
  std::uint16_t* narrow = nullptr;
  std::int32_t* wide = nullptr;
};

HOSTLESS_ANYWHERE int slice_of(Tiling const& tiling, std::int64_t leaf) {
  auto slice = static_cast<int>(leaf * tiling.slices / tiling.leaves);  // or one before, where rounded
  while (tiling.first(slice + 1) <= leaf) ++slice;
  return slice;
}

/// The block at a diagonal; those of the mirrored ones are not stored.
template <int B>
HOSTLESS_ANYWHERE void write_on_diagonal(GeneratedArrays const& to, DiagonalsView const& a, std::int64_t leaf,
                                         std::int64_t shift, double const (&block)[B * B]) {
  int k = a.mirrored;
  while (k < a.count && a.offset[k] != shift) ++k;
  if (k == a.count) return;
  for (int j = 0; j < B; ++j) {
    for (int c = 0; c < B; ++c) {  // rows come row by row and are stored column by column
      std::int64_t const at =
          B == 1
              ? a.plane[k] * a.stride + leaf
              : (leaf / tile_leaves * a.planes + a.plane[k] + c * B + j) * tile_leaves + leaf % tile_leaves;
      to.value[to.origin + at] = block[j * B + c];
    }
  }
}

/// The block of a leaf that `place` says, in its group.
template <int B>
HOSTLESS_ANYWHERE void write_in_group(GeneratedArrays const& to, DeviceGroup const& group,
                                      SellPlace const& place, std::int64_t column,
                                      double const (&block)[B * B]) {
  std::int64_t const at = group.column + place.before + place.rank;
  if (group.wide != 0) {
    to.wide[at] = static_cast<std::int32_t>(column);
  } else {
    to.narrow[at] = static_cast<std::uint16_t>(column - group.base);
  }
  double* const value = to.value + group.value + place.before * (B * B) + place.rank;
  for (int j = 0; j < B; ++j)
    for (int c = 0; c < B; ++c) value[(c * B + j) * place.stride] = block[j * B + c];
}

/// All entries of a leaf.
template <int B>
HOSTLESS_ANYWHERE void write_leaf(GeneratedArrays const& to, RowsView const& rows,
                                  problems::Recipe const& recipe, std::int64_t leaf) {
  if (rows.format == DeviceFormat::diagonals) {
    problems::make_leaf<B>(recipe, leaf, [&](int, std::int64_t shift, double const(&block)[B * B]) {
      write_on_diagonal<B>(to, rows.diagonals, leaf, shift, block);
    });
    return;
  }
  int const slice = slice_of(rows.tiling, leaf);
  std::int64_t const inside = leaf - rows.tiling.first(slice);
  auto const lane = static_cast<int>(inside % tile_leaves);
  DeviceGroup const& group = rows.sell.group[rows.sell.first_group[slice] + inside / tile_leaves];
  std::uint32_t const* const mask = rows.sell.mask + group.mask;
  problems::make_leaf<B>(recipe, leaf, [&](int slot, std::int64_t shift, double const(&block)[B * B]) {
    std::int64_t const before = blocks_before(group, mask, slot);  // slots do not come in turn
    write_in_group<B>(to, group, sell_place(group, mask, lane, slot, before), leaf + shift, block);
  });
}

/// to[e] = the diagonal block of a leaf, row-major as LocalMatrix::diagonal_blocks has it.
template <int B>
HOSTLESS_ANYWHERE void write_diagonal_block(problems::Recipe const& recipe, std::int64_t leaf, double* to) {
  problems::make_leaf<B>(recipe, leaf, [&](int, std::int64_t shift, double const(&block)[B * B]) {
    if (shift != 0) return;
    for (int e = 0; e < B * B; ++e) to[e] = block[e];
  });
}

}  // namespace hostless::gpu
