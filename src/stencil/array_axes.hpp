#pragma once
// Which axes of a Grid the axes of a caller's array are: two are {y, 1, x}.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hostless/files/array_file.hpp"
#include "hostless/plan/boxes.hpp"
#include "hostless/stencil/stencil.hpp"

namespace hostless {

inline std::vector<std::size_t> grid_axes(int axes) {
  if (axes == 1) return {2};
  if (axes == 2) return {0, 2};
  return {0, 1, 2};
}

/// Numbers of a grid's axes as the caller has them: "10 x 12".
template <class Number>
std::string axes_text(std::array<Number, 3> const& of_grid, int axes) {
  std::string text;
  for (std::size_t const a : grid_axes(axes))
    text += (text.empty() ? "" : " x ") + std::to_string(of_grid[a]);
  return text;
}
/// The caller's number of a grid's axis.
inline std::size_t array_axis(std::size_t of_grid, int axes) {
  auto const all = grid_axes(axes);
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), of_grid) - all.begin());
}

inline ArrayForm array_form_of(Grid const& grid, int axes, std::size_t value_bytes) {
  ArrayForm form{{}, static_cast<int>(value_bytes)};
  for (std::size_t const a : grid_axes(axes)) form.shape.push_back(grid.extent[a]);
  return form;
}

inline ArrayPart array_part_of(Box const& box, int axes) {
  ArrayPart part;
  for (std::size_t const a : grid_axes(axes)) {
    part.low.push_back(box.low[a]);
    part.high.push_back(box.high[a]);
  }
  return part;
}

/// Of cells of a box alone, the last axis fastest, as StencilRun::give and take have global arrays.
inline CellArray cells_of_box(void* first, Box const& box, std::size_t value_bytes) {
  auto const bytes = static_cast<std::int64_t>(value_bytes);
  CellArray cells{first, {box.extent(1) * box.extent(2) * bytes, box.extent(2) * bytes, bytes}};
  std::int64_t before = 0;
  for (std::size_t a = 0; a < 3; ++a) before += box.low[a] * cells.stride[a];
  cells.data = static_cast<std::byte*>(first) - before;
  return cells;
}

}  // namespace hostless
