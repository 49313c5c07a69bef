#include "stencil/pass.hpp"

#include <algorithm>
#include <cstring>

#include "plan/index.hpp"

namespace hostless {

namespace {
/// Copies the one cell that a box has of each row by `apart` cells along it.
template <class T>
void copy_values(GridArray const& array, Box const& cells, std::int64_t apart) {
  std::int64_t const next = array.stride(1) * static_cast<std::int64_t>(sizeof(T));
  std::int64_t const moved = apart * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t a = cells.low[0]; a < cells.high[0]; ++a) {
    std::byte* from = array.at(a, cells.low[1], cells.low[2]);
    for (std::int64_t b = cells.low[1]; b < cells.high[1]; ++b, from += next)
      std::memcpy(from + moved, from,
                  sizeof(T));  // of constant length: an instruction, where others are a call
  }
}
void copy_along_rows(GridArray const& array, Box const& cells, std::int64_t apart) {
  if (array.value_bytes() == 4) {
    copy_values<float>(array, cells, apart);
  } else {
    copy_values<double>(array, cells, apart);
  }
}
}  // namespace

Pass::Pass(Grid const& grid, StencilKernel const& kernel, std::array<bool, 3> wraps, std::int64_t cache_bytes)
    : grid_(grid), kernel_(kernel), wraps_(wraps), cache_bytes_(cache_bytes) {
  for (std::size_t a = 0; a < 3; ++a)
    mirrors_ = mirrors_ || wraps[a] || (grid.boundary[a] == GridBoundary::neumann && kernel.radius[a] > 0);
  in_rows_.resize(at(kernel.rows_read()));
  in_strides_.resize(at(kernel.rows_read()));
  out_rows_.resize(at(kernel.fields));
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
    box.low[a] = std::max(box.low[a], fixed);
    box.high[a] = std::max(box.low[a], std::min(box.high[a], grid_.extent[a] - fixed));
  }
  return box;
}

void Pass::mirror(GridArray const& array, Box const& box, int first, int last) const {
  if (!mirrors_) return;
  std::size_t const bytes = static_cast<std::size_t>(array.value_bytes());
  Box around = box;  // grows axis by axis, so that corners are mirrored along all of theirs
  for (int axis = 2; axis >= 0; --axis) {
    std::size_t const a = at(axis);
    std::int64_t const n = grid_.extent[a];
    if (!wraps_[a] && grid_.boundary[a] != GridBoundary::neumann) continue;
    bool const begins = array.box().low[a] == 0, ends = array.box().high[a] == n;
    for (std::int64_t k = 1; k <= kernel_.radius[a] && axis >= first && axis <= last; ++k)
      for (bool const below : {true, false}) {
        if (below ? !begins : !ends) continue;
        bool const from_low = below != wraps_[a];
        std::int64_t const to = below ? -k : n - 1 + k;
        std::int64_t const from = from_low ? k - 1 : n - k;
        Box cells = around;
        cells.low[a] = from, cells.high[a] = from + 1;
        if (axis == 2) {
          copy_along_rows(array, cells, to - from);
          continue;
        }
        std::size_t const row = static_cast<std::size_t>(cells.extent(2)) * bytes;
        each_row(array, cells, [&](std::byte const* source, std::int64_t i, std::int64_t j) {
          std::memcpy(array.at(axis == 0 ? to : i, axis == 1 ? to : j, cells.low[2]), source, row);
        });
      }
    if (begins) around.low[a] = -kernel_.radius[a];
    if (ends) around.high[a] = n + kernel_.radius[a];
  }
}

bool Pass::step(std::vector<GridArray const*> const& in, std::vector<GridArray const*> const& out,
                Box const& wanted, bool mirrored) {
  Box const cells = grown(wanted, 0);
  if (cells.cells() <= 0) return false;
  auto const& r = kernel_.radius;
  // the longer of the first two axes is that of the rows of a block: so that a call has much to do
  bool const planes = cells.extent(1) > 1;
  CellBlock block{out_rows_.data(), in_rows_.data(),          in_strides_.data(), 0, 0,
                  cells.extent(2),  kernel_.parameters.data()};
  block.rows = planes ? cells.extent(1) : cells.extent(0);
  block.out_stride = out[0]->stride(planes ? 1 : 0);
  for (int f = 0; f < kernel_.arrays(); ++f)
    for (int a = -r[0]; a <= r[0]; ++a)
      for (int b = -r[1]; b <= r[1]; ++b)
        in_strides_[at(kernel_.row(f, a, b))] = in[at(f)]->stride(planes ? 1 : 0);
  for (std::int64_t plane = cells.low[0]; plane < (planes ? cells.high[0] : cells.low[0] + 1); ++plane) {
    for (int f = 0; f < kernel_.fields; ++f)
      out_rows_[at(f)] = out[at(f)]->at(plane, cells.low[1], cells.low[2]);
    for (int f = 0; f < kernel_.arrays(); ++f)
      for (int a = -r[0]; a <= r[0]; ++a)
        for (int b = -r[1]; b <= r[1]; ++b)
          in_rows_[at(kernel_.row(f, a, b))] = in[at(f)]->at(plane + a, cells.low[1] + b, cells.low[2]);
    kernel_.update(block);
    if (!planes || !mirrored || !mirrors_) continue;
    Box stepped = cells;
    stepped.low[0] = plane, stepped.high[0] = plane + 1;
    for (GridArray const* const one : out) mirror(*one, stepped, 1, 2);
  }
  return planes && mirrored;
}

bool Pass::take(std::vector<GridArray const*> const& in, std::vector<GridArray const*> const& out, int steps,
                Box const& wanted, bool mirrored) {
  if (steps == 1) return step(in, out, wanted, mirrored);
  blocked(in, out, steps, wanted);
  return false;
}

}  // namespace hostless
