#include <algorithm>
#include <cstring>

#include "plan/index.hpp"
#include "stencil/pass.hpp"

namespace hostless {

namespace {

/// Where the values of a plane lie: the cell (low 1, low 2) of a tile, and the stride of its rows in values.
struct Plane {
  std::byte* first = nullptr;
  std::int64_t stride = 0;
  std::byte* at(std::int64_t b, std::int64_t c, std::int64_t bytes) const {
    return first + (b * stride + c) * bytes;
  }
};

}  // namespace

/// One tile of a blocked pass: `steps` steps for the cells of `wanted`.
struct Pass::Front {
  Pass& pass;
  std::vector<GridArray const*> const& in;
  std::vector<GridArray const*> const& out;
  int steps;
  Box wanted;
  std::array<int, 3> r = pass.kernel_.radius;
  std::int64_t bytes = static_cast<std::int64_t>(pass.kernel_.value_bytes);
  std::int64_t slots = 2 * r[0] + 1;
  std::int64_t low1 = wanted.low[1] - std::int64_t{steps} * r[1],
               low2 = wanted.low[2] - std::int64_t{steps} * r[2];
  std::int64_t stride = row_values(wanted.extent(2), steps, r[2], bytes);
  std::int64_t plane_values = stride * (wanted.extent(1) + 2 * std::int64_t{steps} * r[1]);
  std::vector<Box> cells = levels();
  std::vector<Plane> window =
      std::vector<Plane>(static_cast<std::size_t>(steps * pass.kernel_.arrays() * slots));
  std::vector<std::int64_t> slot = slots_of_planes();  ///< [planes from cells[0].low[0] on] bytes of the ring

  static std::int64_t row_values(std::int64_t extent, int steps, int radius, std::int64_t bytes) {
    std::int64_t const values_a_line = 64 / bytes;
    std::int64_t const values = extent + 2 * std::int64_t{steps} * radius;
    std::int64_t const whole = (values + values_a_line - 1) / values_a_line * values_a_line;
    return whole * bytes % 4096 == 0 ? whole + values_a_line : whole;
  }
  /// Bytes of all planes under way.
  std::int64_t ring_bytes() const { return (steps - 1) * slots * pass.kernel_.fields * plane_values * bytes; }

  std::vector<Box> levels() const {
    std::vector<Box> found;
    for (int level = 0; level <= steps; ++level) found.push_back(pass.grown(wanted, steps - level));
    return found;
  }

  std::vector<std::int64_t> slots_of_planes() const {
    std::vector<std::int64_t> found(static_cast<std::size_t>(cells[0].extent(0)));
    for (std::size_t k = 0; k < found.size(); ++k)
      found[k] = static_cast<std::int64_t>(k) % slots * pass.kernel_.fields * plane_values * bytes;
    return found;
  }

  /// Plane `i` of an array as it is after `level` steps. (b, c) are numbers of the grid minus (low1, low2).
  Plane plane(int array, int level, std::int64_t i) const {
    bool const stepped = array < pass.kernel_.fields;
    if (stepped && level > 0) {
      std::int64_t const n = pass.grid_.extent[0];
      if (pass.grid_.boundary[0] == GridBoundary::neumann) i = i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i;
      if (i >= cells[at(level)].low[0] && i < cells[at(level)].high[0]) {
        if (level == steps) return of_array(*out[at(array)], i);
        std::int64_t const first = (level - 1) * slots * pass.kernel_.fields + array;
        return {pass.ring_.data() + first * plane_values * bytes +
                    slot[static_cast<std::size_t>(i - cells[0].low[0])],
                stride};
      }
    }
    return of_array(*in[at(array)], i);
  }
  Plane of_array(GridArray const& array, std::int64_t i) const {
    return {array.at(i, low1, low2), array.stride(1)};
  }

  /// The planes of an array that level `level` reads for plane `i`, [slots]: those of the plane before, moved
  /// on.
  Plane const* seen(int array, int level, std::int64_t i) {
    Plane* const planes = window.data() + ((level - 1) * pass.kernel_.arrays() + array) * slots;
    bool const first = i == cells[at(level)].low[0];
    for (std::int64_t a = 0; a + 1 < slots; ++a)
      planes[a] = first ? plane(array, level - 1, i + a - r[0]) : planes[a + 1];
    planes[slots - 1] = plane(array, level - 1, i + r[0]);
    return planes;
  }

  void compute(int level, std::int64_t i) {
    Box const& box = cells[at(level)];
    std::int64_t const b0 = box.low[1] - low1, c0 = box.low[2] - low2;
    StencilKernel const& kernel = pass.kernel_;
    std::size_t row = 0;  // in the order of StencilKernel::row
    for (int f = 0; f < kernel.arrays(); ++f) {
      Plane const* const planes = seen(f, level, i);
      for (std::int64_t a = 0; a < slots; ++a)
        for (std::int64_t b = b0 - r[1]; b <= b0 + r[1]; ++b, ++row) {
          pass.in_rows_[row] = planes[a].at(b, c0, bytes);
          pass.in_strides_[row] = planes[a].stride;
        }
    }
    CellBlock block{pass.out_rows_.data(), pass.in_rows_.data(), pass.in_strides_.data(), 0,
                    box.extent(1),         box.extent(2),        kernel.parameters.data()};
    for (int f = 0; f < kernel.fields; ++f) {
      Plane const to = plane(f, level, i);
      pass.out_rows_[at(f)] = to.at(b0, c0, bytes);
      block.out_stride = to.stride;
    }
    kernel.update(block);
    if (level < steps)
      for (int f = 0; f < kernel.fields; ++f) edges(f, level, i);
  }

  /// What the next level reads beside the cells of this one: cells that stay as given, or mirrored ones.
  void edges(int field, int level, std::int64_t i) const {
    Plane const to = plane(field, level, i), given = of_array(*in[at(field)], i);
    Box const& box = cells[at(level)];
    for (std::int64_t k = 1; k <= r[2]; ++k)
      for (bool const below : {true, false})
        edge(2, below ? box.low[2] : box.high[2], below, k,
             [&](std::int64_t cell, std::int64_t from, bool mirrored) {
               for (std::int64_t b = box.low[1] - low1; b < box.high[1] - low1; ++b)
                 copy_value(to.at(b, cell - low2, bytes), (mirrored ? to : given).at(b, from - low2, bytes));
             });
    std::int64_t const c0 = box.low[2] - r[2], c1 = box.high[2] + r[2];
    std::size_t const row = static_cast<std::size_t>((c1 - c0) * bytes);
    for (std::int64_t k = 1; k <= r[1]; ++k)
      for (bool const below : {true, false})
        edge(1, below ? box.low[1] : box.high[1], below, k,
             [&](std::int64_t cell, std::int64_t from, bool mirrored) {
               std::memcpy(to.at(cell - low1, c0 - low2, bytes),
                           (mirrored ? to : given).at(from - low1, c0 - low2, bytes), row);
             });
  }
  void copy_value(std::byte* to, std::byte const* from) const {
    if (bytes == 4) {
      std::memcpy(to, from, 4);  // of constant length: an instruction, where others are a call
    } else {
      std::memcpy(to, from, 8);
    }
  }
  /// Calls copy(cell, from, mirrored) for the k-th cell beyond an end of the stepped cells, where the grid
  /// ends there.
  template <class Copy>
  void edge(int axis, std::int64_t end, bool below, std::int64_t k, Copy const& copy) const {
    std::int64_t const n = pass.grid_.extent[at(axis)];
    GridBoundary const boundary = pass.grid_.boundary[at(axis)];
    std::int64_t const cell = below ? end - k : end - 1 + k;
    if (boundary == GridBoundary::dirichlet && end == (below ? std::int64_t{r[at(axis)]} : n - r[at(axis)]))
      copy(cell, cell, false);
    if (boundary == GridBoundary::neumann && end == (below ? 0 : n)) copy(cell, below ? k - 1 : n - k, true);
  }

  void run() {
    if (cells[at(steps)].cells() <= 0) return;
    if (std::int64_t const need = ring_bytes(); static_cast<std::int64_t>(pass.ring_.size()) < need)
      pass.ring_.resize(static_cast<std::size_t>(need));
    std::int64_t const last = cells[at(steps)].high[0] - 1 + std::int64_t{steps - 1} * r[0];
    for (std::int64_t front = cells[1].low[0]; front <= last; ++front)
      for (int level = 1; level <= steps; ++level) {
        std::int64_t const i = front - std::int64_t{level - 1} * r[0];
        if (i >= cells[at(level)].low[0] && i < cells[at(level)].high[0]) compute(level, i);
      }
  }
};

void Pass::blocked(std::vector<GridArray const*> const& in, std::vector<GridArray const*> const& out,
                   int steps, Box const& wanted) {
  // Tiles of the last two axes, so large that their planes under way fit: rows are cut last, for they are
  // long copies.
  std::int64_t tile1 = wanted.extent(1), tile2 = wanted.extent(2);
  auto const bytes_of = [&](std::int64_t extent1, std::int64_t extent2) {
    return (extent1 + 2 * std::int64_t{steps} * kernel_.radius[1]) *
           (extent2 + 2 * std::int64_t{steps} * kernel_.radius[2]) * (2 * kernel_.radius[0] + 1) *
           (steps - 1) * kernel_.fields * static_cast<std::int64_t>(kernel_.value_bytes);
  };
  while (tile1 > 16 && bytes_of(tile1, tile2) > cache_bytes_) tile1 = (tile1 + 1) / 2;
  while (tile2 > 256 && bytes_of(tile1, tile2) > cache_bytes_) tile2 = (tile2 + 1) / 2;
  for (std::int64_t b = wanted.low[1]; b < wanted.high[1]; b += tile1)
    for (std::int64_t c = wanted.low[2]; c < wanted.high[2]; c += tile2) {
      Box tile = wanted;
      tile.low[1] = b, tile.high[1] = std::min(b + tile1, wanted.high[1]);
      tile.low[2] = c, tile.high[2] = std::min(c + tile2, wanted.high[2]);
      Front{*this, in, out, steps, tile}.run();
    }
}

}  // namespace hostless
