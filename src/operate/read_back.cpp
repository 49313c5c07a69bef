#include "storage.hpp"

namespace hostless {
namespace {

/// The diagonal block of one leaf, into block[b * b] which holds zeros.
void csr_block(MatrixStorage const& storage, int s, std::int64_t leaf, double* block) {
  int const b = storage.tiling.block;
  SliceStart const& slice = storage.shape.slice[s];
  for (int j = 0; j < b; ++j) {
    std::uint32_t const* start = storage.shape.start.data() + leaf * b + j + s;
    for (std::int64_t k = start[0]; k < start[1]; ++k) {
      std::int64_t const column = column_at(storage, slice, slice.column + k) - leaf * b;
      if (column >= 0 && column < b) block[j * b + column] = storage.value[slice.value + k];
    }
  }
}

void bsr_block(MatrixStorage const& storage, int s, std::int64_t leaf, double* block) {
  int const b = storage.tiling.block;
  Shape const& shape = storage.shape;
  SliceStart const& slice = shape.slice[s];
  for (std::int64_t k = shape.start[leaf + s]; k < shape.start[leaf + s + 1]; ++k) {
    if (column_at(storage, slice, slice.column + k) != leaf) continue;
    double const* value = storage.value.data() + slice.value + k * b * b;
    for (int j = 0; j < b; ++j) {
      for (int c = 0; c < b; ++c) block[j * b + c] = value[c * b + j];
    }
  }
}

void sell_block(MatrixStorage const& storage, int s, std::int64_t leaf, double* block) {
  int const b = storage.tiling.block;
  SliceStart const& slice = storage.shape.slice[s];
  std::int64_t const inside = leaf - storage.tiling.first(s), lane = inside % group_leaves;
  SellGroup const& group = storage.shape.group[storage.shape.first_group[s] + inside / group_leaves];
  for (std::int64_t k = 0; k < group.width; ++k) {
    if (group.kind != SellGroup::Kind::listed) {
      Diagonal const& diagonal = storage.shape.diagonal[group.column + k];
      if (diagonal.first + lane == leaf) block[0] = storage.value[group.value + diagonal.low + lane];
      continue;
    }
    for (int j = 0; j < b; ++j) {
      std::int64_t const at = (k * b + j) * group_leaves + lane;
      std::int64_t const column = column_at(storage, slice, group.column + at) - leaf * b;
      // Padding names the row's own column with value 0: added, it leaves the entry as it is.
      if (column >= 0 && column < b) block[j * b + column] += storage.value[group.value + at];
    }
  }
}

}  // namespace

void read_diagonal_blocks(MatrixStorage const& storage, std::vector<double>& out) {
  std::int64_t const square = std::int64_t{storage.tiling.block} * storage.tiling.block;
  out.assign(static_cast<std::size_t>(storage.tiling.leaves * square), 0.0);
  for (int s = 0; s < storage.tiling.slices; ++s) {
    for (std::int64_t leaf = storage.tiling.first(s); leaf < storage.tiling.first(s + 1); ++leaf) {
      double* block = out.data() + leaf * square;
      switch (storage.shape.format) {
        case Format::csr:
          csr_block(storage, s, leaf, block);
          break;
        case Format::bsr:
          bsr_block(storage, s, leaf, block);
          break;
        case Format::sell:
          sell_block(storage, s, leaf, block);
          break;
      }
    }
  }
}

}  // namespace hostless
