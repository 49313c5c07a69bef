// Rows in blocks. The size of a block is known when these are compiled: dividing by it costs little then.
#include <algorithm>

#include "operate/with_block.hpp"
#include "storage.hpp"

namespace hostless {
namespace {

/// The block row of a local column, negative in front of the first owned row.
template <int B>
std::int32_t block_row_of(std::int32_t column) {
  return column >= 0 ? column / B : (column + 1) / B - 1;
}

template <int B>
bool rows_are_alike(LocalPanel const& panel, std::int64_t row) {
  auto const at = [&](int j) { return panel.column.begin() + panel.offset[row + j]; };
  for (int j = 1; j < B; ++j)
    if (!std::equal(at(0), at(1), at(j), at(j + 1))) return false;
  return true;
}

template <int B>
void columns_of(LocalPanel const& panel, std::int64_t row, std::vector<std::int32_t>& out) {
  out.clear();
  if (rows_are_alike<B>(panel, row)) {  // the unknowns of a node mostly have the same neighbours
    for (std::int64_t k = panel.offset[row]; k < panel.offset[row + 1]; ++k) {
      std::int32_t const block_row = block_row_of<B>(panel.column[k]);
      if (out.empty() || out.back() != block_row) out.push_back(block_row);
    }
    return;
  }
  std::int64_t at[B], end[B];
  for (int j = 0; j < B; ++j) {
    at[j] = panel.offset[row + j];
    end[j] = panel.offset[row + j + 1];
  }
  for (;;) {
    std::int32_t least = INT32_MAX;
    for (int j = 0; j < B; ++j)
      if (at[j] < end[j]) least = std::min(least, block_row_of<B>(panel.column[at[j]]));
    if (least == INT32_MAX) return;
    out.push_back(least);
    for (int j = 0; j < B; ++j)
      while (at[j] < end[j] && block_row_of<B>(panel.column[at[j]]) == least) ++at[j];
  }
}

template <int B>
void blocks_of(LocalPanel const& panel, std::int64_t row, std::vector<std::int32_t> const& columns,
               std::vector<double>& out) {
  out.assign(columns.size() * (B * B), 0.0);
  for (int j = 0; j < B; ++j) {
    std::int64_t at = 0;
    for (std::int64_t k = panel.offset[row + j]; k < panel.offset[row + j + 1]; ++k) {
      std::int64_t inside = std::int64_t{panel.column[k]} - std::int64_t{columns[at]} * B;
      for (; inside >= B; inside = std::int64_t{panel.column[k]} - std::int64_t{columns[at]} * B) ++at;
      out[(at * B + inside) * B + j] = panel.value[k];
    }
  }
}

}  // namespace

void block_row_columns(LocalPanel const& panel, std::int64_t row, int block, std::vector<std::int32_t>& out) {
  with_block(block, [&](auto size) { columns_of<size()>(panel, row, out); });
}

void block_row_blocks(LocalPanel const& panel, std::int64_t row, int block,
                      std::vector<std::int32_t> const& columns, std::vector<double>& out) {
  with_block(block, [&](auto size) { blocks_of<size()>(panel, row, columns, out); });
}

}  // namespace hostless
