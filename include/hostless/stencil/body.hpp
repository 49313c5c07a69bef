#pragma once

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "hostless/base/host_device.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/stencil/kernel.hpp"

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
/// farther than its radius.
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
/// Of the axes of Grid.
template <class Body>
constexpr std::array<int, 3> radius_of_body() {
  return {Body::axes > 1 ? Body::radius : 0, Body::axes > 2 ? Body::radius : 0, Body::radius};
}

/// The neighbourhood of one cell, as a functor sees it: rows of host memory and the cell's number in them.
template <class T, class Body>
class HostCell {
 public:
  using value_type = T;
  static constexpr std::array<int, 3> radius = radius_of_body<Body>();
  static constexpr int rows =
      (fields_of_body<Body>() + coefficients_of_body<Body>()) * (2 * radius[0] + 1) * (2 * radius[1] + 1);

  HOSTLESS_HOST_DEVICE HostCell(T const* const (&in)[rows], std::int64_t cell) : in_(in), cell_(cell) {}
  HOSTLESS_HOST_DEVICE T of(int field, int x) const requires(Body::axes == 1) { return at(field, 0, 0, x); }
  HOSTLESS_HOST_DEVICE T of(int field, int y, int x) const requires(Body::axes == 2) {
    return at(field, y, 0, x);
  }
  HOSTLESS_HOST_DEVICE T of(int field, int z, int y, int x) const requires(Body::axes == 3) {
    return at(field, z, y, x);
  }
  template <class... Offsets>
  HOSTLESS_HOST_DEVICE T operator()(Offsets... offsets) const {
    return of(0, offsets...);
  }

 private:
  HOSTLESS_HOST_DEVICE T at(int field, int a, int b, int c) const {
    return in_[(field * (2 * radius[0] + 1) + a + radius[0]) * (2 * radius[1] + 1) + b + radius[1]]
              [cell_ + c];
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

template <class T, class Body>
HOSTLESS_HOST_DEVICE void update_cells(CellBlock const& block) {
  Body body;
  if constexpr (!std::is_empty_v<Body>)
    std::memcpy(static_cast<void*>(&body), block.parameters, sizeof(Body));
  constexpr int rows = HostCell<T, Body>::rows, fields = fields_of_body<Body>();
  for (std::int64_t row = 0; row < block.rows; ++row) {
    T const* in[rows];
    for (int k = 0; k < rows; ++k) in[k] = static_cast<T const*>(block.in[k]) + row * block.in_stride[k];
    T* out[fields];
    for (int f = 0; f < fields; ++f) out[f] = static_cast<T*>(block.out[f]) + row * block.out_stride;
    // The last cells of a row are computed as a whole vector too, some of them again: one by one they would
    // take as long as many vectors.
    constexpr std::int64_t vector = 64 / static_cast<std::int64_t>(sizeof(T));
    std::int64_t const whole = block.cells & -vector;
    update_row<T, Body>(body, in, out, 0, whole);
    if (whole == block.cells) continue;
    if (block.cells > vector) {
      update_row<T, Body>(body, in, out, block.cells - vector, vector);
    } else {
      update_row<T, Body>(body, in, out, 0, block.cells);
    }
  }
}

template <class T, class Body>
HOSTLESS_TARGET_BASELINE void update_cells_baseline(CellBlock const& block) {
  update_cells<T, Body>(block);
}
template <class T, class Body>
HOSTLESS_TARGET_V3 void update_cells_v3(CellBlock const& block) {
  update_cells<T, Body>(block);
}
template <class T, class Body>
HOSTLESS_TARGET_V4 void update_cells_v4(CellBlock const& block) {
  update_cells<T, Body>(block);
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
  if constexpr (!std::is_empty_v<Body>) {
    kernel.parameters.resize(sizeof(Body));
    std::memcpy(kernel.parameters.data(), &body, sizeof(Body));
  }
  switch (active_isa()) {
    case Isa::v4:
      kernel.update = update_cells_v4<T, Body>;
      break;
    case Isa::v3:
      kernel.update = update_cells_v3<T, Body>;
      break;
    case Isa::baseline:
      kernel.update = update_cells_baseline<T, Body>;
      break;
  }
  return kernel;
}

}  // namespace hostless
