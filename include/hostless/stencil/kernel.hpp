#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hostless {

/// A block of cells that a stencil is to update: `rows` rows of `cells` cells, contiguous inside a row.
/// Strides are in values.
struct CellBlock {
  void* const* out = nullptr;       ///< [fields] the first cell of each updated field
  void const* const* in = nullptr;  ///< the first cell's neighbours, a row each: see StencilKernel::rows_read
  std::int64_t const* in_stride = nullptr;  ///< [as `in`] from one row of the block to the next
  std::int64_t out_stride = 0;
  std::int64_t rows = 0, cells = 0;
  void const* parameters = nullptr;  ///< StencilKernel::parameters
  /// Of StencilKernel::update_ends: where the neighbour before the first cell of each row is read, counted from that
  /// cell, and the one after the last cell, from that: 0 where a row's end is mirrored.
  std::int64_t before = -1, after = 1;
  /// The axis of Grid along which rows of the block follow each other, where all strides are equal and what a row reads
  /// at offset 1 along that axis is what the next one reads at 0. -1: that is not said.
  int along = -1;
  /// Of StencilKernel::steps_planes: so many blocks, `to_plane` values from one to the next in all arrays.
  /// Of three axes and with `along`: what a plane reads at offset 1 along the first axis is what the next one reads at 0,
  /// or the one before where to_plane is negative.
  std::int64_t planes = 1, to_plane = 0;
};

/// Updates a block; called by several threads at once, on blocks that do not overlap.
using CellFunction = void (*)(CellBlock const&);

/// What a run must know of a stencil, whoever wrote and compiled it. `kernel_of` (hostless/stencil/body.hpp)
/// makes one from a functor.
struct StencilKernel {
  std::string name;
  int axes = 2;                        ///< 1 to 3, as its arrays have
  std::array<int, 3> radius{0, 0, 0};  ///< cells that it looks at to each side of an axis of Grid
  bool star = true;             ///< looks along the axes only, so that halos of one step have no corners
  int fields = 1;               ///< arrays that a step updates, all at once from their old values
  int coefficients = 0;         ///< further arrays, which it only reads
  std::size_t value_bytes = 8;  ///< 4: fp32, 8: fp64
  CellFunction update = nullptr;
  /// May be there: the same, which heeds CellBlock::before and after, so that nothing need lie beyond a row.
  CellFunction update_ends = nullptr;
  bool steps_planes = false;          ///< both heed CellBlock::planes
  std::vector<std::byte> parameters;  ///< numbers that it was made with

  int arrays() const { return fields + coefficients; }
  int rows_of_array() const { return (2 * radius[0] + 1) * (2 * radius[1] + 1); }
  /// Length of CellBlock::in. The row of array f (fields, then coefficients) at offsets (a, b) along the
  /// first two axes is in[row(f, a, b)]; its value at the cell's own place along the last axis is at the
  /// cell's number in the row.
  int rows_read() const { return arrays() * rows_of_array(); }
  int row(int array, int a, int b) const {
    return (array * (2 * radius[0] + 1) + a + radius[0]) * (2 * radius[1] + 1) + b + radius[1];
  }
};

/// Whether a function steps cells that lie in the nearest cache faster than that of a kernel; timed in some ten
/// microseconds. Which one is taken cannot change a bit where both compute the same.
bool is_faster(CellFunction update, StencilKernel const& kernel);

/// Errors  usage  a kernel that says nothing sensible of itself; what is wrong is named
void check_kernel(StencilKernel const& kernel);

}  // namespace hostless
