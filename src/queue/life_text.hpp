#pragma once
// Conway's Life as benchmarks of messages play it (Bridges et al., section VI-A3): the cells that they begin
// with, and how a rank's box of the torus lies in memory where a GPU steps it.

#include <cstddef>
#include <cstdint>

#include "hostless/base/host_device.hpp"

namespace hostless::queue {

/// In every block of 8 x 8 cells lies a glider; they all go down and to the right, a cell in four steps.
constexpr std::int64_t glider_block = 8;

/// Of a torus whose extents are multiples of glider_block, `shift` cells on.
HOSTLESS_HOST_DEVICE std::uint8_t glider_cell(std::int64_t row, std::int64_t column, std::int64_t shift) {
  // Rows of the glider from above, a bit a cell, the left one first: .#. ..# ###
  constexpr unsigned glider = 0b010'001'111;
  constexpr std::int64_t first = 2, extent = 3;
  auto const in_glider = [shift](std::int64_t at) {
    std::int64_t const rest = (at - shift) % glider_block;
    return (rest < 0 ? rest + glider_block : rest) - first;
  };
  std::int64_t const i = in_glider(row), j = in_glider(column);
  if (i < 0 || i >= extent || j < 0 || j >= extent) return 0;
  return static_cast<std::uint8_t>(glider >> (extent * extent - 1 - (extent * i + j)) & 1u);
}

/// alive: of the nine cells around and including `cell`.
HOSTLESS_HOST_DEVICE std::uint8_t next_cell(int alive, std::uint8_t cell) {
  return static_cast<std::uint8_t>(alive == 3 || (alive == 4 && cell != 0));
}

/// A box with a halo of one cell, a byte a cell. Lines are padded so that the first cell behind the halo, and
/// each sixteenth from there on, lies at a multiple of 16 bytes; what pads may be overwritten with anything.
struct LifeGrid {
  std::int64_t rows = 0, columns = 0;            ///< without the halo
  std::int64_t first_row = 0, first_column = 0;  ///< in the torus
  static constexpr std::int64_t item = 16;
  HOSTLESS_HOST_DEVICE std::int64_t groups() const { return (columns + item - 1) / item; }
  HOSTLESS_HOST_DEVICE std::int64_t line() const { return (groups() + 2) * item; }
  /// Row and column from 0, which is the halo's, to rows + 1 and columns + 1.
  HOSTLESS_HOST_DEVICE std::int64_t at(std::int64_t row, std::int64_t column) const {
    return row * line() + item - 1 + column;
  }
  HOSTLESS_HOST_DEVICE std::size_t bytes() const { return static_cast<std::size_t>((rows + 2) * line()); }
};

}  // namespace hostless::queue
