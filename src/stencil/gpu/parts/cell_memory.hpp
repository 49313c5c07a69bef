#pragma once
// Where one GPU has the cells of its part.

#include <vector>

#include "stencil/gpu/cells.hpp"
#include "stencil/gpu/instance.hpp"
#include "stencil/gpu/parts/part_rows.hpp"

namespace hostless::gpu {

/// Two arrays of each field, one of each coefficient.
class CellMemory {
 public:
  /// grid: with the rows of this part
  CellMemory(Grid const& grid, StencilInstance const& instance)
      : grid_(grid), fields_(instance.fields), value_bytes_(static_cast<int>(instance.text.value_bytes)) {
    constexpr std::int64_t whole = 32;  // cells: rows begin where no transfer is cut
    stride_[1] = (grid_.extent[2] + whole - 1) / whole * whole;
    stride_[0] = stride_[1] * grid_.extent[1];
    std::size_t const bytes =
        static_cast<std::size_t>(stride_[0] * grid_.extent[0]) * static_cast<std::size_t>(value_bytes_);
    for (int k = 0; k < instance.arrays + instance.fields; ++k) {
      memory_.emplace_back(bytes);
      memory_.back().clear();  // what lies beyond a row is copied, and never means anything
    }
  }
  OwnCells now(int array) const {
    return cells(array < fields_ ? array + (swapped_ ? fields_ : 0) : array + fields_);
  }
  OwnCells other(int field) const { return cells(field + (swapped_ ? 0 : fields_)); }
  void swap() { swapped_ = !swapped_; }
  bool swapped() const { return swapped_; }
  StencilArrays arrays(int count) const {
    StencilArrays all;
    for (int k = 0; k < count; ++k) all.in[k] = now(k).data;
    for (int f = 0; f < fields_; ++f) all.out[f] = other(f).data;
    all.stride[0] = stride_[0];
    all.stride[1] = stride_[1];
    return all;
  }
  /// Room for what keep() keeps. Errors  environment  not enough memory
  void make_room_to_keep() {
    for (int f = 0; f < fields_; ++f) kept_.emplace_back(memory_.front().bytes());
  }
  /// A kernel that writes both arrays of a field by turns and may end early: the cells that it began with.
  void keep(Stream const& stream) { copy(now_to_kept, stream); }
  void restore(Stream const& stream) { copy(kept_to_now, stream); }
  /// Values of a row of the first axis.
  std::int64_t row_values() const { return stride_[0]; }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((memory_.size() + kept_.size()) * memory_.front().bytes());
  }

 private:
  enum Direction { now_to_kept, kept_to_now };
  void copy(Direction direction, Stream const& stream) {
    for (std::size_t f = 0; f < kept_.size(); ++f) {
      void* const own = now(static_cast<int>(f)).data;
      void* const kept = kept_[f].data();
      check(HOSTLESS_GPU(MemcpyAsync)(direction == now_to_kept ? kept : own,
                                      direction == now_to_kept ? own : kept, kept_[f].bytes(),
                                      HOSTLESS_GPU(MemcpyDeviceToDevice), stream.get()),
            "keeping cells");
    }
  }
  OwnCells cells(int k) const {
    OwnCells found;
    found.data = memory_[static_cast<std::size_t>(k)].data();
    for (std::size_t axis = 0; axis < 3; ++axis) found.extent[axis] = grid_.extent[axis];
    found.stride[0] = stride_[0];
    found.stride[1] = stride_[1];
    found.value_bytes = value_bytes_;
    return found;
  }

  Grid grid_;
  int fields_, value_bytes_;
  std::int64_t stride_[2] = {};
  bool swapped_ = false;
  std::vector<Array<std::byte>> memory_;  ///< fields, their second arrays, coefficients
  std::vector<Array<std::byte>> kept_;    ///< of each field, or none
};

/// `count` rows from one of them on.
inline OwnCells rows_of(OwnCells cells, std::int64_t first, std::int64_t count) {
  cells.data = static_cast<std::byte*>(cells.data) + first * cells.stride[0] * cells.value_bytes;
  cells.extent[0] = count;
  return cells;
}

}  // namespace hostless::gpu
