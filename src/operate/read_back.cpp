#include "fp32.hpp"
#include "storage.hpp"

namespace hostless {
namespace {

/// The diagonal block of one block row, into block[b * b] which holds zeros.
void csr_block(MatrixStorage const& storage, int s, std::int64_t block_row, double* block) {
  int const b = storage.tiling.block;
  SliceStart const& slice = storage.shape.slice[s];
  for (int j = 0; j < b; ++j) {
    std::uint32_t const* start = storage.shape.start.data() + block_row * b + j + s;
    for (std::int64_t k = start[0]; k < start[1]; ++k) {
      std::int64_t const column = column_at(storage, slice, slice.column + k) - block_row * b;
      if (column >= 0 && column < b) block[j * b + column] = storage.value[slice.value + k];
    }
  }
}

void bsr_block(MatrixStorage const& storage, int s, std::int64_t block_row, double* block) {
  int const b = storage.tiling.block;
  Shape const& shape = storage.shape;
  SliceStart const& slice = shape.slice[s];
  for (std::int64_t k = shape.start[block_row + s]; k < shape.start[block_row + s + 1]; ++k) {
    if (column_at(storage, slice, slice.column + k) != block_row) continue;
    double const* value = storage.value.data() + slice.value + k * b * b;
    for (int j = 0; j < b; ++j) {
      for (int c = 0; c < b; ++c) block[j * b + c] = value[c * b + j];
    }
  }
}

void sell_block(MatrixStorage const& storage, int s, std::int64_t block_row, double* block) {
  int const b = storage.tiling.block;
  SliceStart const& slice = storage.shape.slice[s];
  std::int64_t const inside = block_row - storage.tiling.first(s), lane = inside % group_block_rows;
  SellGroup const& group = storage.shape.group[storage.shape.first_group[s] + inside / group_block_rows];
  for (std::int64_t k = 0; k < group.width; ++k) {
    if (group.kind != SellGroup::Kind::listed) {
      Diagonal const& diagonal = storage.shape.diagonal[group.column + k];
      if (diagonal.first + lane == block_row) block[0] = storage.value[group.value + diagonal.low + lane];
      continue;
    }
    for (int j = 0; j < b; ++j) {
      std::int64_t const at = (k * b + j) * group_block_rows + lane;
      std::int64_t const column = column_at(storage, slice, group.column + at) - block_row * b;
      // Padding names the row's own column with value 0: added, it leaves the entry as it is.
      if (column >= 0 && column < b) block[j * b + column] += storage.value[group.value + at];
    }
  }
}

/// The first of `count` values, `stride` apart, that does not fit.
double const* first_unfit(double const* value, std::int64_t count, std::int64_t stride = 1) {
  for (std::int64_t k = 0; k < count; ++k)
    if (!fits_fp32(value[k * stride])) return value + k * stride;
  return nullptr;
}

double const* unfit_in_csr(MatrixStorage const& storage, int s, std::int64_t row) {
  std::uint32_t const* start = storage.shape.start.data() + row + s;
  return first_unfit(storage.value.data() + storage.shape.slice[s].value + start[0], start[1] - start[0]);
}

double const* unfit_in_bsr(MatrixStorage const& storage, int s, std::int64_t row) {
  int const b = storage.tiling.block;
  Shape const& shape = storage.shape;
  std::int64_t const block_row = row / b;
  std::uint32_t const* start = shape.start.data() + block_row + s;
  for (std::int64_t k = start[0]; k < start[1]; ++k) {  // column-major
    double const* const block = storage.value.data() + shape.slice[s].value + k * b * b;
    if (double const* const found = first_unfit(block + row % b, b, b)) return found;
  }
  return nullptr;
}

double const* unfit_in_sell(MatrixStorage const& storage, int s, std::int64_t row) {
  int const b = storage.tiling.block;
  std::int64_t const inside = row / b - storage.tiling.first(s), lane = inside % group_block_rows;
  SellGroup const& group = storage.shape.group[storage.shape.first_group[s] + inside / group_block_rows];
  for (std::int64_t k = 0; k < group.width; ++k) {
    std::int64_t at = group.value + (k * b + row % b) * group_block_rows + lane;
    if (group.kind != SellGroup::Kind::listed) {
      Diagonal const& diagonal = storage.shape.diagonal[group.column + k];
      if ((diagonal.mask >> lane & 1u) == 0 || diagonal.mirrored != 0) continue;
      at = group.value + diagonal.low + lane;
    }
    if (double const* const found = first_unfit(storage.value.data() + at, 1)) return found;
  }
  return nullptr;
}

}  // namespace

// Whatever is stored is looked at first, which is all there is to do for a matrix that fits.
std::optional<LocalMatrix::Entry> find_beyond_fp32(MatrixStorage const& storage) {
  auto const all = [](Array<double> const& values) {
    return first_unfit(values.data(), static_cast<std::int64_t>(values.size()));
  };
  if (all(storage.value) == nullptr && all(storage.far_value) == nullptr) return {};
  for (int s = 0; s < storage.tiling.slices; ++s) {
    std::int64_t const first = storage.tiling.first(s) * storage.tiling.block;
    std::int64_t const last = storage.tiling.first(s + 1) * storage.tiling.block;
    for (std::int64_t row = first; row < last; ++row) {
      double const* const found = storage.shape.format == Format::csr   ? unfit_in_csr(storage, s, row)
                                  : storage.shape.format == Format::bsr ? unfit_in_bsr(storage, s, row)
                                                                        : unfit_in_sell(storage, s, row);
      if (found != nullptr) return LocalMatrix::Entry{row, *found};
    }
  }
  int const b = storage.tiling.block;
  for (std::size_t f = 0; f < storage.shape.far_block_row.size(); ++f) {
    for (std::int64_t k = storage.shape.far_start[f] * b * b; k < storage.shape.far_start[f + 1] * b * b; ++k)
      if (!fits_fp32(storage.far_value[k]))
        return LocalMatrix::Entry{std::int64_t{storage.shape.far_block_row[f]} * b + k % b,
                                  storage.far_value[k]};
  }
  return {};
}

void read_diagonal_blocks(MatrixStorage const& storage, std::vector<double>& out) {
  std::int64_t const square = std::int64_t{storage.tiling.block} * storage.tiling.block;
  out.assign(static_cast<std::size_t>(storage.tiling.block_rows * square), 0.0);
  for (int s = 0; s < storage.tiling.slices; ++s) {
    for (std::int64_t block_row = storage.tiling.first(s); block_row < storage.tiling.first(s + 1);
         ++block_row) {
      double* block = out.data() + block_row * square;
      switch (storage.shape.format) {
        case Format::csr:
          csr_block(storage, s, block_row, block);
          break;
        case Format::bsr:
          bsr_block(storage, s, block_row, block);
          break;
        case Format::sell:
          sell_block(storage, s, block_row, block);
          break;
      }
    }
  }
}

}  // namespace hostless
