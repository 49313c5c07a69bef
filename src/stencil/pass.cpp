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
}  // namespace

std::int64_t given_before(Grid const& grid, StencilKernel const& kernel, Box const& box) {
  std::int64_t const given = grid.boundary[2] == GridBoundary::dirichlet ? kernel.radius[2] : 0;
  return std::max(given - box.low[2], std::int64_t{0});
}

Pass::Pass(Grid const& grid, StencilKernel const& kernel, std::array<bool, 3> wraps, CoreCaches const& caches)
    : grid_(grid), kernel_(kernel), wraps_(wraps), caches_(caches) {
  in_.resize(at(kernel.rows_read()));
  out_.resize(at(kernel.fields));
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
  std::vector<Copies> copies;
  add_copies(copies, array, box);
  for (Copies const& one : copies) copy(one);
}

void Pass::copy(Copies const& one) {
  std::byte const* from = one.from;
  std::byte* to = one.to;
  if (one.bytes == 4) return copy_values<float>(from, to, one.next, one.rows);
  if (one.bytes == 8) return copy_values<double>(from, to, one.next, one.rows);
  for (std::int64_t row = 0; row < one.rows; ++row, from += one.next, to += one.next)
    std::memcpy(to, from, static_cast<std::size_t>(one.bytes));
}

void Pass::add_copies(std::vector<Copies>& copies, GridArray const& array, Box const& box) const {
  std::int64_t const bytes = array.value_bytes();
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
        std::int64_t const off = axis == 2 ? (to - from) * bytes : (to - from) * array.stride(axis) * bytes;
        std::byte* const first = array.at(cells.low[0], cells.low[1], cells.low[2]);
        std::int64_t const row = cells.extent(2) * bytes;
        if (axis == 0 && is_whole) {  // with what lies between rows, which is nobody's
          copies.push_back({first, first + off, 0, 1, (cells.extent(1) - 1) * array.stride(1) * bytes + row});
          continue;
        }
        // rows of the longer of the two other axes one after the other
        int const inner = cells.extent(0) > cells.extent(1) ? 0 : 1, outer = 1 - inner;
        for (std::int64_t i = 0; i < cells.extent(outer); ++i) {
          std::byte* const start = first + i * array.stride(outer) * bytes;
          copies.push_back({start, start + off, array.stride(inner) * bytes, cells.extent(inner), row});
        }
      }
    if (begins && box.low[a] < radius) around.low[a] = -radius;
    if (ends && box.high[a] > n - radius) around.high[a] = n + radius;
  }
}

void Pass::begin_at_the_end(Step& step, CellBlock& block) const {
  std::int64_t const to_last =
      (block.planes - 1) * block.to_plane * static_cast<std::int64_t>(kernel_.value_bytes);
  for (auto one = step.in.end() - std::ssize(in_); one != step.in.end(); ++one)
    *one = static_cast<std::byte const*>(*one) + to_last;
  for (auto one = step.out.end() - std::ssize(out_); one != step.out.end(); ++one)
    *one = static_cast<std::byte*>(*one) + to_last;
  block.to_plane = -block.to_plane;
}

void Pass::add_piece(Step& step, Box const& cells) const {
  auto const& written = step.arrays->written;
  GridArray const& out = *written[0];
  // the longer of the first two axes is that of the rows of a block: so that a call has much to do
  bool const planes = cells.extent(1) > 1;
  Piece piece;
  CellBlock& block = piece.block;
  block.out_stride = out.stride(planes ? 1 : 0);
  block.rows = planes ? cells.extent(1) : cells.extent(0);
  block.cells = cells.extent(2);
  block.parameters = kernel_.parameters.data();
  block.along = planes ? 1 : 0;
  block.planes = planes ? cells.extent(0) : 1;
  block.to_plane = out.stride(0);
  if (kernel_.update_ends != nullptr && is_mirrored(2)) {
    std::int64_t const n = grid_.extent[2], beyond = wraps_[2] ? n - 1 : 0;
    if (cells.low[2] == 0) block.before = beyond;
    if (cells.high[2] == n) block.after = -beyond;
  }
  piece.step_rows = block.before == -1 && block.after == 1 ? kernel_.update : kernel_.update_ends;
  for (GridArray const* const one : written)
    step.out.push_back(one->at(cells.low[0], cells.low[1], cells.low[2]));
  auto const& r = kernel_.radius;  // in the order of StencilKernel::row
  for (GridArray const* const array : step.arrays->read)
    for (int a = -r[0]; a <= r[0]; ++a)
      for (int b = -r[1]; b <= r[1]; ++b)
        step.in.push_back(array->at(cells.low[0] + a, cells.low[1] + b, cells.low[2]));
  // every other step goes through the planes from the last one on: where both arrays are more than a cache, it still has
  // what the step before wrote last (80^3 cells in fp32, one thread: 190 us and 179)
  auto const first_of = [&](GridArray const& array) {
    return array.at(cells.low[0], cells.low[1], cells.low[2]);
  };
  if (planes && first_of(out) > first_of(*step.arrays->read[0])) begin_at_the_end(step, block);
  step.strides.insert(step.strides.end(), in_.size(), block.out_stride);  // all arrays are alike
  step.pieces.push_back(piece);
}

void Pass::make(Step& step, StepArrays const& arrays, Box const& wanted, bool mirrored) const {
  step.arrays = &arrays, step.wanted = wanted, step.mirrored = mirrored;
  step.pieces.clear(), step.copies.clear(), step.in.clear(), step.strides.clear(), step.out.clear();
  Box const cells = grown(wanted, 0);
  if (cells.extent(0) <= 0 || cells.extent(1) <= 0 || cells.extent(2) <= 0) return;
  std::int64_t const origin = arrays.written[0]->line_begin();
  for (Box piece = cells; piece.low[2] < cells.high[2]; piece.low[2] = piece.high[2]) {
    piece.high[2] = piece.low[2] - (piece.low[2] - origin) % columns_ + columns_;
    if (cells.high[2] - piece.high[2] < columns_ / 4) piece.high[2] = cells.high[2];
    add_piece(step, piece);
  }
  for (std::size_t k = 0; k < step.pieces.size(); ++k) {
    CellBlock& block = step.pieces[k].block;
    block.in = step.in.data() + k * in_.size(), block.in_stride = step.strides.data() + k * in_.size();
    block.out = step.out.data() + k * out_.size();
  }
  if (!mirrored) return;
  for (GridArray const* const one : arrays.written) add_copies(step.copies, *one, cells);
}

void Pass::take(Step const& step) {
  for (Piece const& piece : step.pieces) {
    if (kernel_.steps_planes || piece.block.planes == 1)
      piece.step_rows(piece.block);
    else
      take_planes(piece);
  }
  for (Copies const& one : step.copies) copy(one);
}

void Pass::take_planes(Piece const& piece) {
  std::copy_n(piece.block.in, in_.size(), in_.begin());
  std::copy_n(piece.block.out, out_.size(), out_.begin());
  CellBlock block = piece.block;
  block.in = in_.data(), block.out = out_.data(), block.planes = 1;
  std::int64_t const bytes = block.to_plane * static_cast<std::int64_t>(kernel_.value_bytes);
  for (std::int64_t plane = 0; plane < piece.block.planes; ++plane) {
    piece.step_rows(block);
    for (void const*& one : in_) one = static_cast<std::byte const*>(one) + bytes;
    for (void*& one : out_) one = static_cast<std::byte*>(one) + bytes;
  }
}

void Pass::step(StepArrays const& arrays, Box const& wanted, bool mirrored) {
  make(once_, arrays, wanted, mirrored);
  take(once_);
}

void Pass::step_again(StepArrays const& arrays, Box const& wanted, bool mirrored) {
  constexpr std::size_t most = 64;  // steps between exchanges, to and fro; of more each has much to do
  std::size_t const known = known_.size();
  std::size_t next = last_ + 1 < known ? last_ + 1 : 0;  // mostly they come in the same order again
  if (next >= known || !known_[next].is(arrays, wanted, mirrored))
    next = at(std::find_if(known_.begin(), known_.end(),
                           [&](Step const& one) { return one.is(arrays, wanted, mirrored); }) -
              known_.begin());
  if (next == known) {
    if (known == most) return step(arrays, wanted, mirrored);
    make(known_.emplace_back(), arrays, wanted, mirrored);
  }
  last_ = next;
  take(known_[next]);
}

void Pass::take(std::array<StepArrays const*, 2> const& arrays, int steps, Box const& wanted, bool mirrored) {
  if (steps == 1) return step_again(*arrays[0], wanted, mirrored);
  blocked(arrays, steps, wanted, mirrored);
}

}  // namespace hostless
