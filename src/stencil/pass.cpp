#include "stencil/pass.hpp"

#include <algorithm>
#include <cstring>

#include "plan/index.hpp"

namespace hostless {

namespace {
/// Copies one value of each of some rows, which are `next` bytes apart.
template <class T>
void copy_values(std::byte const* from, std::byte* to, std::int64_t next, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row, from += next, to += next)
    std::memcpy(to, from, sizeof(T));  // of constant length: an instruction, where others are a call
}
void copy_column(std::byte const* from, std::byte* to, std::int64_t next, std::int64_t rows,
                 std::size_t value_bytes) {
  if (value_bytes == 4) {
    copy_values<float>(from, to, next, rows);
  } else {
    copy_values<double>(from, to, next, rows);
  }
}
}  // namespace

Pass::Pass(Grid const& grid, StencilKernel const& kernel, std::array<bool, 3> wraps, CoreCaches const& caches)
    : grid_(grid), kernel_(kernel), wraps_(wraps), caches_(caches) {
  in_rows_.resize(at(kernel.rows_read()));
  in_strides_.resize(at(kernel.rows_read()));
  out_rows_.resize(at(kernel.fields));
  // of rows so long that all which a row is made of keep half of the nearest cache
  auto const bytes = static_cast<std::int64_t>(kernel.value_bytes);
  std::int64_t const columns = caches.nearest / 2 / (kernel.rows_read() + kernel.fields) / bytes;
  columns_ = std::max(columns - columns % (256 / bytes), 256 / bytes);
}

bool Pass::is_mirrored(std::size_t axis) const {
  return kernel_.radius[axis] > 0 && (wraps_[axis] || grid_.boundary[axis] == GridBoundary::neumann);
}

bool Pass::mirrors(std::size_t axis) const {
  return is_mirrored(axis) && (axis < 2 || kernel_.update_ends == nullptr);
}

Box Pass::grown(Box const& wanted, int steps) const {
  Box box = wanted;
  for (std::size_t a = 0; a < 3; ++a) {
    if (wraps_[a]) continue;
    std::int64_t const reach = std::int64_t{steps} * kernel_.radius[a];
    box.low[a] -= reach;
    box.high[a] += reach;
    if (grid_.boundary[a] == GridBoundary::periodic) continue;
    std::int64_t const fixed = grid_.boundary[a] == GridBoundary::dirichlet ? kernel_.radius[a] : 0;
    // fewer cells than are fixed at one end: none is stepped
    box.low[a] = std::min(std::max(box.low[a], fixed), grid_.extent[a]);
    box.high[a] = std::max(box.low[a], std::min(box.high[a], grid_.extent[a] - fixed));
  }
  return box;
}

void Pass::mirror(GridArray const& array, Box const& box) const {
  std::size_t const bytes = static_cast<std::size_t>(array.value_bytes());
  std::int64_t const given = grid_.boundary[2] == GridBoundary::dirichlet ? kernel_.radius[2] : 0;
  // all cells of rows, but for those that never change
  bool const is_whole =
      box.low[2] <= array.box().low[2] + given && box.high[2] >= array.box().high[2] - given;
  Box around = box;  // grows axis by axis, so that corners are mirrored along all of theirs
  for (int axis = 2; axis >= 0; --axis) {
    std::size_t const a = at(axis);
    std::int64_t const n = grid_.extent[a], radius = kernel_.radius[a];
    if (!mirrors(a)) continue;
    bool const begins = array.box().low[a] == 0, ends = array.box().high[a] == n;
    for (std::int64_t k = 1; k <= radius; ++k)
      for (bool const below : {true, false}) {
        if (below ? !begins : !ends) continue;
        bool const from_low = below != wraps_[a];
        std::int64_t const to = below ? -k : n - 1 + k;
        std::int64_t const from = from_low ? k - 1 : n - k;
        if (from < box.low[a] || from >= box.high[a]) continue;
        Box cells = around;
        cells.low[a] = from, cells.high[a] = from + 1;
        if (axis == 2) {
          for (std::int64_t i = cells.low[0]; i < cells.high[0]; ++i) {
            std::byte* const first = array.at(i, cells.low[1], from);
            copy_column(first, first + (to - from) * array.value_bytes(),
                        array.stride(1) * array.value_bytes(), cells.extent(1), bytes);
          }
          continue;
        }
        std::size_t const row = static_cast<std::size_t>(cells.extent(2)) * bytes;
        if (axis == 0 && is_whole) {  // with what lies between rows, which is nobody's
          std::size_t const rows = static_cast<std::size_t>((cells.extent(1) - 1) * array.stride(1)) * bytes;
          std::memcpy(array.at(to, cells.low[1], cells.low[2]), array.at(from, cells.low[1], cells.low[2]),
                      rows + row);
          continue;
        }
        each_row(array, cells, [&](std::byte const* source, std::int64_t i, std::int64_t j) {
          std::memcpy(array.at(axis == 0 ? to : i, axis == 1 ? to : j, cells.low[2]), source, row);
        });
      }
    if (begins && box.low[a] < radius) around.low[a] = -radius;
    if (ends && box.high[a] > n - radius) around.high[a] = n + radius;
  }
}

void Pass::update(StepArrays const& arrays, Box const& cells) {
  GridArray const& out = *arrays.written[0];
  // the longer of the first two axes is that of the rows of a block: so that a call has much to do
  bool const planes = cells.extent(1) > 1;
  std::int64_t const rows = planes ? cells.extent(1) : cells.extent(0), next = out.stride(planes ? 1 : 0);
  std::int64_t const bytes = out.value_bytes(), to_plane = out.stride(0) * bytes,
                     to_row = out.stride(1) * bytes;
  CellBlock block{out_rows_.data(), in_rows_.data(),          in_strides_.data(), next, rows,
                  cells.extent(2),  kernel_.parameters.data()};
  if (kernel_.update_ends != nullptr && is_mirrored(2)) {
    std::int64_t const n = grid_.extent[2], beyond = wraps_[2] ? n - 1 : 0;
    if (cells.low[2] == 0) block.before = beyond;
    if (cells.high[2] == n) block.after = -beyond;
  }
  CellFunction const step_rows =
      block.before == -1 && block.after == 1 ? kernel_.update : kernel_.update_ends;
  std::fill(in_strides_.begin(), in_strides_.end(), next);  // all arrays are alike
  for (int f = 0; f < kernel_.fields; ++f)
    out_rows_[at(f)] = arrays.written[at(f)]->at(cells.low[0], cells.low[1], cells.low[2]);
  auto const& r = kernel_.radius;
  std::size_t row = 0;  // in the order of StencilKernel::row
  for (GridArray const* const array : arrays.read) {
    std::byte const* const here = array->at(cells.low[0], cells.low[1], cells.low[2]);
    for (int a = -r[0]; a <= r[0]; ++a)
      for (int b = -r[1]; b <= r[1]; ++b) in_rows_[row++] = here + a * to_plane + b * to_row;
  }
  for (std::int64_t plane = cells.low[0]; plane < (planes ? cells.high[0] : cells.low[0] + 1); ++plane) {
    step_rows(block);
    for (void const*& one : in_rows_) one = static_cast<std::byte const*>(one) + to_plane;
    for (void*& one : out_rows_) one = static_cast<std::byte*>(one) + to_plane;
  }
}

void Pass::step(StepArrays const& arrays, Box const& cells, bool mirrored) {
  if (cells.extent(0) <= 0 || cells.extent(1) <= 0 || cells.extent(2) <= 0) return;
  std::int64_t const origin = arrays.written[0]->box().low[2];  // where a cache line begins
  Box piece = cells;
  for (; piece.low[2] < cells.high[2]; piece.low[2] = piece.high[2]) {
    piece.high[2] = piece.low[2] - (piece.low[2] - origin) % columns_ + columns_;
    if (cells.high[2] - piece.high[2] < columns_ / 4) piece.high[2] = cells.high[2];
    update(arrays, piece);
  }
  if (!mirrored) return;
  for (GridArray const* const one : arrays.written) mirror(*one, cells);
}

void Pass::take(std::array<StepArrays const*, 2> const& arrays, int steps, Box const& wanted, bool mirrored) {
  if (steps == 1) return step(*arrays[0], grown(wanted, 0), mirrored);
  blocked(arrays, steps, wanted, mirrored);
}

}  // namespace hostless
