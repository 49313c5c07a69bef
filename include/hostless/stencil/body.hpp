#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "hostless/base/error.hpp"
#include "hostless/base/host_device.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/stencil/cells.hpp"
#include "hostless/stencil/kernel.hpp"
#include "hostless/stencil/packed_rows.hpp"

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

/// Rows as a compiler makes vectors of them; but the last cells of each are computed as a whole vector too.
template <class T, class Body>
HOSTLESS_HOST_DEVICE void update_rows_by_cells(Body const& body,
                                               T const* const (&first)[HostCell<T, Body>::rows],
                                               T* const (&first_out)[fields_of_body<Body>()],
                                               std::int64_t const (&strides)[HostCell<T, Body>::rows],
                                               CellBlock const& block) {
  constexpr int rows = HostCell<T, Body>::rows, fields = fields_of_body<Body>();
  constexpr std::int64_t vector = 64 / static_cast<std::int64_t>(sizeof(T));
  std::int64_t const cells = block.cells, whole = cells & -vector;
  T const* in[rows];
  T* out[fields];
  for (int k = 0; k < rows; ++k) in[k] = first[k];
  for (int f = 0; f < fields; ++f) out[f] = first_out[f];
  for (std::int64_t row = 0; row < block.rows; ++row) {
    update_row<T, Body>(body, in, out, 0, cells > vector ? whole : cells);
    if (whole < cells && cells > vector) update_row<T, Body>(body, in, out, cells - vector, vector);
    for (int k = 0; k < rows; ++k) in[k] += strides[k];
    for (int f = 0; f < fields; ++f) out[f] += block.out_stride;
  }
}

/// bytes    of a pack; 0: none
/// ends     as StencilKernel::update_ends; a function of its own, for both in one have too few registers
/// divides  as Pack's
template <class T, class Body, int bytes, bool ends, bool divides>
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
  auto const move = [&](std::int64_t planes) __attribute__((always_inline)) {
    for (int k = 0; k < rows; ++k) in[k] += planes * fixed.to_plane;
    for (int f = 0; f < fields; ++f) out[f] += planes * fixed.to_plane;
  };
  std::int64_t left = fixed.planes;
  if constexpr (bytes > 0) {
    using V = Pack<T, bytes, divides>;
    PackedRows<T, Body, ends> const packed{body, {fixed.cells, fixed.before, fixed.after}};
    constexpr int together = planes_together<Body>();
    if constexpr (together > 1)
      if (fixed.along == 1) {
        std::int64_t const to_lowest = fixed.to_plane < 0 ? together - 1 : 0;
        for (move(to_lowest); left >= together; left -= together, move(together))
          packed.template update<V, together>(in, out, strides, fixed, std::abs(fixed.to_plane));
        move(-to_lowest);
      }
    for (; left > 0; --left, move(1)) packed.template update<V, 1>(in, out, strides, fixed, 0);
  } else {
    for (; left > 0; --left, move(1)) update_rows_by_cells<T, Body>(body, in, out, strides, fixed);
  }
}

template <class T, class Body, bool packs = packs_of_body<Body>(), bool ends = false, bool divides = false>
HOSTLESS_TARGET_BASELINE void update_cells_baseline(CellBlock const& block) {
  update_cells<T, Body, packs ? 16 : 0, ends, divides>(block);
}
template <class T, class Body, bool packs = packs_of_body<Body>(), bool ends = false, bool divides = false>
HOSTLESS_TARGET_V3 void update_cells_v3(CellBlock const& block) {
  update_cells<T, Body, packs ? 32 : 0, ends, divides>(block);
}
template <class T, class Body, bool packs = packs_of_body<Body>(), bool ends = false, bool divides = false>
HOSTLESS_TARGET_V4 void update_cells_v4(CellBlock const& block) {
  update_cells<T, Body, packs ? 64 : 0, ends, divides>(block);
}

/// Whether it reads only fields that it has, and cells that it says it looks at, where every cell is 1.
template <class T, class Body>
bool keeps_to_its_reach(Body const& body) {
  bool keeps = true;
  ReachCell<T, Body> const here(keeps);  // as every other cell: a functor may take any reference to it
  static_cast<void>(body(here));
  return keeps;
}

/// The kernel of a functor for values of type T, by the best instruction set of this processor.
/// Errors  usage  it reads farther than its radius, off the axes without `star = false`, or a field that it has not:
///         as far as a look at cells that are all 1 can tell
template <class T, class Body>
StencilKernel kernel_of(Body const& body, std::string name) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "cells are float or double");
  static_assert(std::is_trivially_copyable_v<Body>, "a functor's parameters are copied as bytes");
  static_assert(Body::axes >= 1 && Body::axes <= 3 && Body::radius >= 1, "axes 1 to 3, radius at least 1");
  if (!keeps_to_its_reach<T>(body))
    throw Error(ErrorCode::usage,
                "stencil '" + name +
                    "' reads beyond its radius, off the axes, or a field that it has not (that "
                    "is not there when it is stepped). Correct radius, star, fields or "
                    "coefficients of its functor.");
  StencilKernel kernel;
  kernel.name = std::move(name);
  kernel.axes = Body::axes;
  kernel.radius = radius_of_body<Body>();
  kernel.star = star_of_body<Body>();
  kernel.fields = fields_of_body<Body>();
  kernel.coefficients = coefficients_of_body<Body>();
  kernel.value_bytes = sizeof(T);
  kernel.steps_planes = true;
  constexpr bool has_ends = packs_of_body<Body>() && Body::radius == 1;
  if constexpr (!std::is_empty_v<Body>) {
    kernel.parameters.resize(sizeof(Body));
    std::memcpy(kernel.parameters.data(), &body, sizeof(Body));
  }
  auto const set = [&](CellFunction update, CellFunction update_ends) {
    kernel.update = update;
    if constexpr (has_ends) kernel.update_ends = update_ends;
  };
  switch (active_isa()) {
    case Isa::v4:
      set(update_cells_v4<T, Body>, update_cells_v4<T, Body, has_ends, has_ends>);
      if constexpr (takes_sixths_of_body<Body>()) {
        static bool const divides = is_faster(update_cells_v4<T, Body, true, false, true>, kernel);
        if (divides)
          set(update_cells_v4<T, Body, true, false, true>, update_cells_v4<T, Body, true, true, true>);
      }
      break;
    case Isa::v3:
      set(update_cells_v3<T, Body>, update_cells_v3<T, Body, has_ends, has_ends>);
      if constexpr (takes_sixths_of_body<Body>()) {
        static bool const divides = is_faster(update_cells_v3<T, Body, true, false, true>, kernel);
        if (divides)
          set(update_cells_v3<T, Body, true, false, true>, update_cells_v3<T, Body, true, true, true>);
      }
      break;
    case Isa::baseline:
      set(update_cells_baseline<T, Body>, update_cells_baseline<T, Body, has_ends, has_ends>);
      break;
  }
  return kernel;
}

}  // namespace hostless
