#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hostless/base/host_device.hpp"

/// What a functor of hostless/stencil/body.hpp is, and through what it sees a cell's neighbourhood in rows of host memory.
namespace hostless {

template <class Body>
constexpr int fields_of_body() {
  if constexpr (requires { Body::fields; })
    return Body::fields;
  else
    return 1;
}
template <class Body>
constexpr int coefficients_of_body() {
  if constexpr (requires { Body::coefficients; })
    return Body::coefficients;
  else
    return 0;
}
template <class Body>
constexpr bool star_of_body() {
  if constexpr (requires { Body::star; })
    return Body::star;
  else
    return true;
}
template <class Body>
constexpr bool packs_of_body() {
  if constexpr (requires { Body::packs; })
    return Body::packs;
  else
    return false;
}
template <class Body>
constexpr bool takes_sixths_of_body() {
  if constexpr (requires { Body::takes_sixths; })
    return Body::takes_sixths && packs_of_body<Body>();
  else
    return false;
}
/// Of the axes of Grid.
template <class Body>
constexpr std::array<int, 3> radius_of_body() {
  return {Body::axes > 1 ? Body::radius : 0, Body::axes > 2 ? Body::radius : 0, Body::radius};
}

/// Planes of a block that are stepped together, so that what two of them read is read once (100^3 cells in fp32, one
/// thread of Zen 4: 391 us before, 278).
template <class Body>
constexpr int planes_together() {
  return Body::axes == 3 && Body::radius == 1 ? 2 : 1;
}

/// The neighbourhood of one cell, as a functor sees it: rows of host memory and the cell's number in them. Of a
/// Pack V that of as many cells, from that number on.
template <class T, class Body, class V = T>
class HostCell {
 public:
  using value_type = V;
  static constexpr std::array<int, 3> radius = radius_of_body<Body>();
  static constexpr int rows =
      (fields_of_body<Body>() + coefficients_of_body<Body>()) * (2 * radius[0] + 1) * (2 * radius[1] + 1);

  /// As StencilKernel::row.
  static constexpr int row(int field, int a, int b) {
    return (field * (2 * radius[0] + 1) + a + radius[0]) * (2 * radius[1] + 1) + b + radius[1];
  }
  HOSTLESS_HOST_DEVICE HostCell(T const* const (&in)[rows], std::int64_t cell) : in_(in), cell_(cell) {}
  HOSTLESS_HOST_DEVICE V of(int field, int x) const requires(Body::axes == 1) { return at(field, 0, 0, x); }
  HOSTLESS_HOST_DEVICE V of(int field, int y, int x) const requires(Body::axes == 2) {
    return at(field, y, 0, x);
  }
  HOSTLESS_HOST_DEVICE V of(int field, int z, int y, int x) const requires(Body::axes == 3) {
    return at(field, z, y, x);
  }
  template <class... Offsets>
  HOSTLESS_HOST_DEVICE V operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }
  /// By the axes of Grid.
  HOSTLESS_HOST_DEVICE V at(int field, int a, int b, int c) const {
    return read(in_[HostCell::row(field, a, b)] + cell_ + c);
  }
  HOSTLESS_HOST_DEVICE static V read(T const* first) {
    if constexpr (std::is_same_v<V, T>)
      return *first;
    else
      return V::load(first);
  }

 private:
  T const* const (&in_)[rows];
  std::int64_t cell_;
};

/// As HostCell where every cell is 1, of a functor of which nobody knows yet whether it keeps to what it says of itself.
template <class T, class Body>
class ReachCell {
 public:
  using value_type = T;
  explicit ReachCell(bool& keeps) : keeps_(keeps) {}
  T of(int field, int x) const requires(Body::axes == 1) { return at(field, 0, 0, x); }
  T of(int field, int y, int x) const requires(Body::axes == 2) { return at(field, y, 0, x); }
  T of(int field, int z, int y, int x) const requires(Body::axes == 3) { return at(field, z, y, x); }
  template <class... Offsets>
  T operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }
  T at(int field, int a, int b, int c) const {
    auto const within = [](int offset) { return -Body::radius <= offset && offset <= Body::radius; };
    bool const on_axes = (a != 0) + (b != 0) + (c != 0) <= 1;
    if (field < 0 || field >= fields_of_body<Body>() + coefficients_of_body<Body>() || !within(a) ||
        !within(b) || !within(c) || (star_of_body<Body>() && !on_axes))
      keeps_ = false;
    return T(1);
  }

 private:
  bool& keeps_;
};

/// A row of cells, and where the neighbours before and after it are read (CellBlock::before, after).
struct RowEnds {
  std::int64_t cells, before = -1, after = 1;
  std::int64_t value_index(std::int64_t cell) const {
    return cell < 0 ? cell + before + 1 : cell >= cells ? cell + after - 1 : cell;
  }
};

/// As HostCell of a Pack V, or of a T, of any cells of a row with its ends, which begins `offset` values from `in`.
template <class T, class Body, class V>
class EndCell {
  using Cell = HostCell<T, Body, V>;

 public:
  using value_type = V;
  EndCell(T const* const (&in)[Cell::rows], std::int64_t first, RowEnds const& row, std::int64_t offset = 0)
      : in_(in), first_(first), row_(row), offset_(offset) {}
  V of(int field, int y, int x) const requires(Body::axes == 2) { return at(field, y, 0, x); }
  V of(int field, int z, int y, int x) const requires(Body::axes == 3) { return at(field, z, y, x); }
  template <class... Offsets>
  V operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }
  V at(int field, int a, int b, int c) const {
    T const* const row = in_[Cell::row(field, a, b)] + offset_;
    if constexpr (std::is_same_v<V, T>) {
      return row[row_.value_index(first_ + c)];
    } else {
      if (c == -1 && first_ == 0 && row_.before >= 0) return before(row);
      if (c == 1 && first_ + V::width == row_.cells && row_.after <= 0) return after(row);
      return V::load(row + first_ + c);
    }
  }

 private:
  /// Of the first pack of a row, which may be the last one of a row that wraps.
  V before(T const* row) const {
    if (row_.before == 0) return V::first_twice(V::load(row));
    return V::last_and(V::load(row + row_.before + 1 - V::width), V::load(row));
  }
  V after(T const* row) const {
    if (row_.after == 0) return V::last_twice(V::load(row + first_));
    return V::and_first(V::load(row + first_), V::load(row + row_.cells - 1 + row_.after));
  }
  T const* const (&in_)[Cell::rows];
  std::int64_t first_;
  RowEnds const& row_;
  std::int64_t offset_;
};

/// As HostCell of a Pack V, of rows that are read a pack after the other: neighbours along a row are put together
/// from two of them, where a load of their own would touch two cache lines.
template <class T, class Body, class V>
class PassingCell {
  using Cell = HostCell<T, Body, V>;

 public:
  using value_type = V;
  /// The packs at [first - width, first) and [first, first + width) of each row.
  PassingCell(T const* const (&in)[Cell::rows], std::int64_t first) : in_(in), first_(first) {
    each(
        [&](auto k) { before_[k] = V::load(in_[k] + first - V::width), here_[k] = V::load(in_[k] + first); });
  }
  void fetch() {
    each([&](auto k) { after_[k] = V::load(in_[k] + first_ + V::width); });
  }
  void pass() {
    each([&](auto k) { before_[k] = here_[k], here_[k] = after_[k]; });
    first_ += V::width;
  }
  std::int64_t first() const { return first_; }
  V of(int field, int y, int x) const requires(Body::axes == 2) { return at(field, y, 0, x); }
  V of(int field, int z, int y, int x) const requires(Body::axes == 3) { return at(field, z, y, x); }
  template <class... Offsets>
  V operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }

 private:
  template <class Use>
  static void each(Use const& use) {
    [&]<std::size_t... k>(std::index_sequence<k...>) { (use(std::integral_constant<std::size_t, k>{}), ...); }
    (std::make_index_sequence<Cell::rows>{});
  }
  V at(int field, int a, int b, int c) const {
    int const k = Cell::row(field, a, b);
    if (c == 0) return here_[k];
    if (c == -1) return V::last_and(before_[k], here_[k]);
    if (c == 1) return V::and_first(here_[k], after_[k]);
    return V::load(in_[k] + first_ + c);
  }
  T const* const (&in_)[Cell::rows];
  std::int64_t first_;
  V before_[Cell::rows], here_[Cell::rows], after_[Cell::rows];
};

/// As HostCell, or EndCell, of packs that stand above each other in as many planes of a block and in one column of its
/// rows (CellBlock::along): each row that several of them read is read once; what was the row after is kept as the cell's
/// own, and then as the row before.
template <class T, class Body, class V, bool ends, int planes>
class SinkingCells {
  using Cell = HostCell<T, Body, V>;
  static constexpr int deep = 2 * Cell::radius[0] + planes, wide = 2 * Cell::radius[1] + 1;
  static constexpr int kept = Cell::rows / (2 * Cell::radius[0] + 1) * deep;

 public:
  /// That the rows must follow.
  static constexpr int axis = Body::axes > 2 ? 1 : 0;
  /// offset    in values, of the row of the block
  /// stride    in values, to the next row
  /// to_plane  in values, to the plane whose row at -1 along the first axis is this one's at 0
  SinkingCells(T const* const (&in)[Cell::rows], std::int64_t first, RowEnds const& row, std::int64_t offset,
               std::int64_t stride, std::int64_t to_plane)
      : in_(in), first_(first), row_(row), offset_(offset), stride_(stride), to_plane_(to_plane) {
    each([&](auto k) { kept_[k] = read<k>(); });
  }
  void sink() {
    offset_ += stride_;
    constexpr int last =
        2 * Cell::radius[axis];  // of rows along that axis, which are numbered one after the other
    each([&](auto k) {
      if constexpr (k % (last + 1) < last)
        kept_[k] = kept_[k + 1];
      else
        kept_[k] = read<k>();
    });
  }
  /// Of the cell of a plane in `out`.
  std::int64_t value_index(int plane) const { return offset_ + first_ + plane * to_plane_; }

  /// The neighbourhood of the cell of one plane.
  template <int plane>
  class InPlane {
   public:
    using value_type = V;
    explicit InPlane(SinkingCells const& cells) : cells_(cells) {}
    V of(int field, int x) const requires(Body::axes == 1) {
      return cells_.template at<plane>(field, 0, 0, x);
    }
    V of(int field, int y, int x) const requires(Body::axes == 2) {
      return cells_.template at<plane>(field, y, 0, x);
    }
    V of(int field, int z, int y, int x) const requires(Body::axes == 3) {
      return cells_.template at<plane>(field, z, y, x);
    }
    template <class... Offsets>
    V operator()(Offsets... offsets) const {
      return of(0, offsets...);
    }

   private:
    SinkingCells const& cells_;
  };

 private:
  /// One after the other by name: a loop over so many rows would keep them in memory.
  template <class Use>
  static void each(Use const& use) {
    [&]<std::size_t... k>(std::index_sequence<k...>) { (use(std::integral_constant<std::size_t, k>{}), ...); }
    (std::make_index_sequence<kept>{});
  }
  /// Rows are numbered as HostCell::row does, in all planes that are looked at.
  template <std::size_t k>
  V read() const {
    constexpr int number = static_cast<int>(k), field = number / (deep * wide);
    constexpr int a = number / wide % deep - Cell::radius[0], b = number % wide - Cell::radius[1];
    if constexpr (planes == 1)
      return Cell::read(in_[Cell::row(field, a, b)] + offset_ + first_);
    else  // from one place, for so many would not stay in registers
      return Cell::read(in_[Cell::row(field, 0, 0)] + offset_ + first_ + a * to_plane_ + b * stride_);
  }
  template <int plane>
  V at(int field, int a, int b, int c) const {
    if (c == 0) return kept_[(field * deep + plane + a + Cell::radius[0]) * wide + b + Cell::radius[1]];
    std::int64_t const offset = offset_ + plane * to_plane_;
    if constexpr (ends)
      return EndCell<T, Body, V>(in_, first_, row_, offset).at(field, a, b, c);
    else
      return Cell(in_, offset + first_).at(field, a, b, c);
  }
  T const* const (&in_)[Cell::rows];
  std::int64_t first_;
  RowEnds const& row_;
  std::int64_t offset_, stride_, to_plane_;
  V kept_[kept];
};

}  // namespace hostless
