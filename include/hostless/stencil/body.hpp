#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "hostless/base/host_device.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/stencil/kernel.hpp"
#include "hostless/stencil/pack.hpp"

/// One's own stencil in C++: a functor that says what a cell becomes. It is compiled for the instruction sets
/// of the processor, and for GPUs from the same text.
///
///     struct Heat {                                    // du/dt = k laplacian(u), explicit
///       static constexpr int axes = 2, radius = 1;     // of the arrays, of the neighbours that it reads
///       double k;                                      // parameters: numbers that may be copied as bytes
///       template <class Cell>
///       HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
///         using T = typename Cell::value_type;         // float or double
///         return u(0, 0) + T(k) * (((u(0, -1) + u(0, 1)) + (u(-1, 0) + u(1, 0))) - T(4) * u(0, 0));
///       }
///     };
///     StencilKernel const kernel = kernel_of<double>(Heat{0.1}, "heat");
///
/// u(dy, dx) (three axes: u(dz, dy, dx)) is the old value of the first field there, u.of(f, dy, dx) that of
/// field f; fields come first, then coefficients. With several fields (`static constexpr int fields`) the
/// functor returns a std::array<T, fields>. `static constexpr int coefficients` arrays are read and never
/// written; `static constexpr bool star = false` where it looks at neighbours off the axes. It must look no
/// farther than its radius. `static constexpr bool packs = true` where it does nothing with values but add,
/// subtract, multiply and divide them: then T may be a Pack, and whole cache lines are computed at once.
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
/// Of the axes of Grid.
template <class Body>
constexpr std::array<int, 3> radius_of_body() {
  return {Body::axes > 1 ? Body::radius : 0, Body::axes > 2 ? Body::radius : 0, Body::radius};
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

 private:
  HOSTLESS_HOST_DEVICE V at(int field, int a, int b, int c) const {
    T const* const row = in_[HostCell::row(field, a, b)];
    if constexpr (std::is_same_v<V, T>)
      return row[cell_ + c];
    else
      return V::load(row + cell_ + c);
  }
  T const* const (&in_)[rows];
  std::int64_t cell_;
};

/// Cells from `first` on of one row.
template <class T, class Body>
HOSTLESS_HOST_DEVICE void update_row(Body const& body, T const* const (&in)[HostCell<T, Body>::rows],
                                     T* const (&out)[fields_of_body<Body>()], std::int64_t first,
                                     std::int64_t cells) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep
#endif
  for (std::int64_t cell = first; cell < first + cells; ++cell) {
    HostCell<T, Body> const here(in, cell);
    if constexpr (fields_of_body<Body>() == 1) {
      out[0][cell] = body(here);
    } else {
      auto const values = body(here);
      for (int f = 0; f < fields_of_body<Body>(); ++f) out[f][cell] = values[static_cast<std::size_t>(f)];
    }
  }
}

/// A row of cells, and where the neighbours before and after it are read (CellBlock::before, after).
struct RowEnds {
  std::int64_t cells, before = -1, after = 1;
  std::int64_t place(std::int64_t cell) const {
    return cell < 0 ? cell + before + 1 : cell >= cells ? cell + after - 1 : cell;
  }
};

/// As HostCell of a Pack V, or of a T, of any cells of a row with its ends.
template <class T, class Body, class V>
class EndCell {
  using Cell = HostCell<T, Body, V>;

 public:
  using value_type = V;
  EndCell(T const* const (&in)[Cell::rows], std::int64_t first, RowEnds const& row)
      : in_(in), first_(first), row_(row) {}
  V of(int field, int y, int x) const requires(Body::axes == 2) { return at(field, y, 0, x); }
  V of(int field, int z, int y, int x) const requires(Body::axes == 3) { return at(field, z, y, x); }
  template <class... Offsets>
  V operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }

 private:
  V at(int field, int a, int b, int c) const {
    T const* const row = in_[Cell::row(field, a, b)];
    if constexpr (std::is_same_v<V, T>) {
      return row[row_.place(first_ + c)];
    } else {
      if (c == -1 && first_ == 0 && row_.before >= 0) return before(row);
      if (c == 1 && first_ + V::width == row_.cells && row_.after <= 0) return after(row);
      return V::load(row + first_ + c);
    }
  }
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

/// Cells of a row, a pack at a time. Those in the middle begin where a pack of `out` does, for others touch two
/// cache lines each; what lies before and behind is computed as a whole pack too, some cells of it again: one by
/// one they would take as long as many packs.
///
/// ends  whether neighbours of its ends are read elsewhere than beside them
template <class T, class Body, class V, bool ends>
void update_row_by_packs(Body const& body, T const* const (&in)[HostCell<T, Body>::rows],
                         T* const (&out)[fields_of_body<Body>()], RowEnds const& row) {
  constexpr int fields = fields_of_body<Body>();
  auto const cells = row.cells;
  if (cells < V::width) {
    if constexpr (V::bytes > 16)
      return update_row_by_packs<T, Body, Pack<T, V::bytes / 2>, ends>(body, in, out, row);
    if constexpr (!ends) return update_row<T, Body>(body, in, out, 0, cells);
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      auto const values = body(EndCell<T, Body, T>(in, cell, row));
      if constexpr (fields == 1) {
        out[0][cell] = values;
      } else {
        for (int f = 0; f < fields; ++f) out[f][cell] = values[static_cast<std::size_t>(f)];
      }
    }
    return;
  }
  auto const keep = [&](auto const& here, std::int64_t first) {
    if constexpr (fields == 1) {
      body(here).store(out[0] + first);
    } else {
      auto const values = body(here);
      for (int f = 0; f < fields; ++f) values[static_cast<std::size_t>(f)].store(out[f] + first);
    }
  };
  auto const update = [&](std::int64_t first) {
    if constexpr (ends)
      keep(EndCell<T, Body, V>(in, first, row), first);
    else
      keep(HostCell<T, Body, V>(in, first), first);
  };
  auto const values_before = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out[0]) / sizeof(T));
  std::int64_t first = -values_before & (V::width - 1);
  if (first > 0) update(0);
  if (first + 3 * V::width <= cells) {
    update(first);
    PassingCell<T, Body, V> cell(in, first + V::width);
    for (; cell.first() + 2 * V::width <= cells; cell.pass()) {
      cell.fetch();
      keep(cell, cell.first());
    }
    first = cell.first();
  }
  for (; first + V::width <= cells; first += V::width) update(first);
  if (first < cells) update(cells - V::width);
}

/// The same, as a compiler makes vectors of it; but its last cells are computed as a whole vector too.
template <class T, class Body>
HOSTLESS_HOST_DEVICE void update_row_by_cells(Body const& body, T const* const (&in)[HostCell<T, Body>::rows],
                                              T* const (&out)[fields_of_body<Body>()], std::int64_t cells) {
  constexpr std::int64_t vector = 64 / static_cast<std::int64_t>(sizeof(T));
  std::int64_t const whole = cells & -vector;
  update_row<T, Body>(body, in, out, 0, whole);
  if (whole == cells) return;
  if (cells > vector) {
    update_row<T, Body>(body, in, out, cells - vector, vector);
  } else {
    update_row<T, Body>(body, in, out, 0, cells);
  }
}

/// bytes  of a pack; 0: none
/// ends   as StencilKernel::update_ends; a function of its own, for both in one have too few registers
template <class T, class Body, int bytes, bool ends>
HOSTLESS_HOST_DEVICE void update_cells(CellBlock const& block) {
  Body body;
  if constexpr (!std::is_empty_v<Body>)
    std::memcpy(static_cast<void*>(&body), block.parameters, sizeof(Body));
  constexpr int rows = HostCell<T, Body>::rows, fields = fields_of_body<Body>();
  CellBlock const fixed = block;  // of which no store can be taken to change a member
  T const* in[rows];
  T* out[fields];
  std::int64_t strides[rows];
  for (int k = 0; k < rows; ++k) in[k] = static_cast<T const*>(fixed.in[k]), strides[k] = fixed.in_stride[k];
  for (int f = 0; f < fields; ++f) out[f] = static_cast<T*>(fixed.out[f]);
  for (std::int64_t row = 0; row < fixed.rows; ++row) {
    if constexpr (bytes > 0)
      update_row_by_packs<T, Body, Pack<T, bytes>, ends>(body, in, out,
                                                         {fixed.cells, fixed.before, fixed.after});
    else
      update_row_by_cells<T, Body>(body, in, out, fixed.cells);
    for (int k = 0; k < rows; ++k) in[k] += strides[k];
    for (int f = 0; f < fields; ++f) out[f] += fixed.out_stride;
  }
}

template <class T, class Body, bool packs = packs_of_body<Body>(), bool ends = false>
HOSTLESS_TARGET_BASELINE void update_cells_baseline(CellBlock const& block) {
  update_cells<T, Body, packs ? 16 : 0, ends>(block);
}
template <class T, class Body, bool packs = packs_of_body<Body>(), bool ends = false>
HOSTLESS_TARGET_V3 void update_cells_v3(CellBlock const& block) {
  update_cells<T, Body, packs ? 32 : 0, ends>(block);
}
template <class T, class Body, bool packs = packs_of_body<Body>(), bool ends = false>
HOSTLESS_TARGET_V4 void update_cells_v4(CellBlock const& block) {
  update_cells<T, Body, packs ? 64 : 0, ends>(block);
}

/// The kernel of a functor for values of type T, by the best instruction set of this processor.
template <class T, class Body>
StencilKernel kernel_of(Body const& body, std::string name) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "cells are float or double");
  static_assert(std::is_trivially_copyable_v<Body>, "a functor's parameters are copied as bytes");
  static_assert(Body::axes >= 1 && Body::axes <= 3 && Body::radius >= 1, "axes 1 to 3, radius at least 1");
  StencilKernel kernel;
  kernel.name = std::move(name);
  kernel.axes = Body::axes;
  kernel.radius = radius_of_body<Body>();
  kernel.star = star_of_body<Body>();
  kernel.fields = fields_of_body<Body>();
  kernel.coefficients = coefficients_of_body<Body>();
  kernel.value_bytes = sizeof(T);
  constexpr bool has_ends = packs_of_body<Body>() && Body::radius == 1;
  if constexpr (!std::is_empty_v<Body>) {
    kernel.parameters.resize(sizeof(Body));
    std::memcpy(kernel.parameters.data(), &body, sizeof(Body));
  }
  switch (active_isa()) {
    case Isa::v4:
      kernel.update = update_cells_v4<T, Body>;
      if constexpr (has_ends) kernel.update_ends = update_cells_v4<T, Body, true, true>;
      break;
    case Isa::v3:
      kernel.update = update_cells_v3<T, Body>;
      if constexpr (has_ends) kernel.update_ends = update_cells_v3<T, Body, true, true>;
      break;
    case Isa::baseline:
      kernel.update = update_cells_baseline<T, Body>;
      if constexpr (has_ends) kernel.update_ends = update_cells_baseline<T, Body, true, true>;
      break;
  }
  return kernel;
}

}  // namespace hostless
