#pragma once
// A stencil one step at a time on whole arrays, a cell at a time: what every run must equal bit for bit.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "hostless/plan/boxes.hpp"

namespace hostless::contract {

/// Cells of a grid of three axes, the last one fastest.
template <class T>
struct Cells {
  std::array<std::int64_t, 3> extent{1, 1, 1};
  std::vector<T> value;
  explicit Cells(std::array<std::int64_t, 3> shape)
      : extent(shape), value(static_cast<std::size_t>(shape[0] * shape[1] * shape[2])) {}
  T& at(std::int64_t a, std::int64_t b, std::int64_t c) { return value[index(a, b, c)]; }
  T const& at(std::int64_t a, std::int64_t b, std::int64_t c) const { return value[index(a, b, c)]; }

 private:
  std::size_t index(std::int64_t a, std::int64_t b, std::int64_t c) const {
    return static_cast<std::size_t>((a * extent[1] + b) * extent[2] + c);
  }
};

/// Where a neighbour beyond an end is found.
inline std::int64_t inside(std::int64_t i, std::int64_t n, GridBoundary boundary) {
  if (boundary == GridBoundary::periodic) return (i % n + n) % n;
  if (boundary == GridBoundary::neumann) return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i;
  return i;
}

/// update(read) gives the new values of one cell, where read(array, a, b, c) is a neighbour's old one.
template <class T>
using Update = std::function<std::vector<T>(std::function<T(int, int, int, int)> const& read)>;

/// arrays: fields, then coefficients; the first `fields` of them are stepped.
template <class T>
void step_by_step(std::vector<Cells<T>>& arrays, int fields, Grid const& grid, std::array<int, 3> radius,
                  Update<T> const& update, int steps) {
  auto const& n = grid.extent;
  for (int step = 0; step < steps; ++step) {
    std::vector<Cells<T>> old = arrays;
    for (std::int64_t a = 0; a < n[0]; ++a)
      for (std::int64_t b = 0; b < n[1]; ++b)
        for (std::int64_t c = 0; c < n[2]; ++c) {
          std::array<std::int64_t, 3> const cell{a, b, c};
          bool stays = false;
          for (std::size_t k = 0; k < 3; ++k)
            stays = stays || (grid.boundary[k] == GridBoundary::dirichlet &&
                              (cell[k] < radius[k] || cell[k] >= n[k] - radius[k]));
          if (stays) continue;
          auto const values = update([&](int array, int da, int db, int dc) {
            return old[static_cast<std::size_t>(array)].at(inside(a + da, n[0], grid.boundary[0]),
                                                           inside(b + db, n[1], grid.boundary[1]),
                                                           inside(c + dc, n[2], grid.boundary[2]));
          });
          for (int f = 0; f < fields; ++f)
            arrays[static_cast<std::size_t>(f)].at(a, b, c) = values[static_cast<std::size_t>(f)];
        }
  }
}

}  // namespace hostless::contract
