#pragma once
// The diagonal of a layout, however it came to be: one block row a thread.

#include "operate/gpu/generate.impl.hpp"

namespace hostless::gpu {

/// to[j * B + c] = entry (j, c) of a block row's block on the diagonal, 0 where none is stored.
template <int B>
HOSTLESS_HOST_DEVICE void read_diagonal_block(RowsView const& rows, std::int64_t block_row, double* to) {
  for (int e = 0; e < B * B; ++e) to[e] = 0;
  if (is_csr(rows.format)) {
    CsrView const& a = rows.csr;
    for (int j = 0; j < B; ++j) {
      for (std::int64_t k = a.start[block_row * B + j]; k < a.start[block_row * B + j + 1]; ++k) {
        std::int64_t const inside = a.column[k] - block_row * B;
        if (inside >= 0 && inside < B) to[j * B + inside] = a.value[k];
      }
    }
    return;
  }
  // Entries of a block lie column by column, `stride` apart.
  auto const read = [to](double const* from, std::int64_t stride) {
    for (int j = 0; j < B; ++j)
      for (int c = 0; c < B; ++c) to[j * B + c] = from[(c * B + j) * stride];
  };
  if (rows.format == DeviceFormat::diagonals) {
    DiagonalsView const& a = rows.diagonals;
    int k = 0;
    while (k < a.count && a.offset[k] != 0) ++k;
    if (k == a.count) return;
    if (B == 1) return read(a.value + a.plane[k] * a.stride + block_row, 0);
    return read(a.value + (block_row / tile_block_rows * a.planes + a.plane[k]) * tile_block_rows +
                    block_row % tile_block_rows,
                tile_block_rows);
  }
  GroupOfBlockRow const at = group_of(rows, block_row);
  DeviceGroup const& group = *at.group;
  std::int64_t before = 0;
  for (int k = 0; k < group.width; ++k) {
    if (k >= group.head && (at.mask[k - group.head] >> at.lane & 1u) == 0) return;
    SellPosition const position = sell_position(group, at.mask, at.lane, k, before);
    before += position.stride;
    std::int64_t const column = group.column + position.before + position.rank;
    if ((group.wide != 0 ? rows.sell.wide[column] : group.base + rows.sell.narrow[column]) != block_row)
      continue;
    return read(rows.sell.value + group.value + position.before * (B * B) + position.rank, position.stride);
  }
}

}  // namespace hostless::gpu
