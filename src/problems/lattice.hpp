#pragma once

#include <algorithm>
#include <cstdint>

#include "hostless/base/host_device.hpp"
#include "problems/random.hpp"

namespace hostless::problems {

/// A number for each dimension: std::array has no functions in a kernel.
struct Triple {
  std::int64_t of[3];
  HOSTLESS_HOST_DEVICE std::int64_t operator[](int dimension) const { return of[dimension]; }
  HOSTLESS_HOST_DEVICE std::int64_t& operator[](int dimension) { return of[dimension]; }
};

/// A box of nodes that carry unknowns; x runs fastest.
struct Lattice {
  Triple nodes{1, 1, 1};
  HOSTLESS_HOST_DEVICE std::int64_t count() const { return nodes[0] * nodes[1] * nodes[2]; }
  HOSTLESS_HOST_DEVICE std::int64_t stride(int dx, int dy, int dz) const {
    return dx + nodes[0] * (dy + nodes[1] * dz);
  }
  HOSTLESS_HOST_DEVICE bool holds(int dimension, std::int64_t index) const {
    return index >= 0 && index < nodes[dimension];
  }
};

/// Consecutive nodes of one lattice line: x in [x0, x1) at (y, z). Panels are made run by run, because all a
/// line needs of its surroundings is a few lines of cells.
struct Run {
  std::int64_t x0, x1, y, z;
};

/// Calls `visit(Run)` for nodes [first, last) in order, in runs short enough for buffers that stay in the
/// cache.
template <class Visit>
void for_each_run(Lattice const& lattice, std::int64_t first, std::int64_t last, Visit&& visit) {
  constexpr std::int64_t longest = 512;
  for (std::int64_t node = first; node < last;) {
    std::int64_t const x = node % lattice.nodes[0], line = node / lattice.nodes[0];
    std::int64_t const length = std::min({longest, lattice.nodes[0] - x, last - node});
    visit(Run{x, x + length, line % lattice.nodes[1], line / lattice.nodes[1]});
    node += length;
  }
}

/// A coefficient that is constant in each cell of a box of cells, and 0 outside it: no cell, nothing conducts
/// there.
class CellField {
 public:
  /// Cells [lowest, end) in each dimension, lowest >= -1. The value of a cell depends on its coordinates, the
  /// node counts and the seed alone, so Dirichlet and Neumann problems share the cells they both have.
  CellField(Lattice const& lattice, Triple lowest, Triple end, LogNormal random)
      : lowest_(lowest),
        end_(end),
        across_(lattice.nodes[0] + 2),
        up_(lattice.nodes[1] + 2),
        random_(random) {}

  /// Stiff layers across y: `layers` layers, every second one `factor` times stiffer.
  void stack_layers(std::int64_t layers, double factor) {
    layers_ = layers;
    stiff_ = factor;
  }

  /// out[i] = value of cell (x + i, y, z) for i in [0, count).
  void line(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t count, double* out) const {
    bool const outside = !in_range(1, y) || !in_range(2, z);
    std::int64_t const from = outside ? count : std::clamp<std::int64_t>(lowest_[0] - x, 0, count);
    std::int64_t const to = outside ? count : std::clamp<std::int64_t>(end_[0] - x, from, count);
    std::uint64_t const first = number(x, y, z);
    double const factor = layer_factor(y);
    std::fill(out, out + from, 0.0);
    for (std::int64_t i = from; i < to; ++i) out[i] = factor * random_(first + static_cast<std::uint64_t>(i));
    std::fill(out + to, out + count, 0.0);
  }

  /// The same of one cell.
  HOSTLESS_HOST_DEVICE double at(std::int64_t x, std::int64_t y, std::int64_t z) const {
    if (!in_range(0, x) || !in_range(1, y) || !in_range(2, z)) return 0.0;
    return layer_factor(y) * random_(number(x, y, z));
  }

 private:
  HOSTLESS_HOST_DEVICE bool in_range(int dimension, std::int64_t cell) const {
    return cell >= lowest_[dimension] && cell < end_[dimension];
  }
  HOSTLESS_HOST_DEVICE std::uint64_t number(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return static_cast<std::uint64_t>(x + 1 + across_ * (y + 1 + up_ * (z + 1)));
  }
  HOSTLESS_HOST_DEVICE double layer_factor(std::int64_t y) const {
    std::int64_t const cells = up_ - 1;  // -1 .. nodes - 1; there are few layers and 2^40 cells at most
    return layers_ * (y + 1) / cells % 2 == 1 ? stiff_ : 1.0;
  }

  Triple lowest_, end_;
  std::int64_t across_, up_;
  LogNormal random_;
  std::int64_t layers_ = 1;
  double stiff_ = 1.0;
};

}  // namespace hostless::problems
