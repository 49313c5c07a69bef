#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hostless/base/host_device.hpp"
#include "hostless/stencil/kernel.hpp"

namespace hostless {

/// The stencils that have a name. West and east are neighbours along the last axis, north and south along the
/// one before, down and up along the first of three. The order of additions is part of each.
namespace stencils {

/// a / 6, by the way that the kernel has which steps the cell: all are equal in every bit.
template <class Cell, class T>
HOSTLESS_HOST_DEVICE T sixth_of(Cell const& u, T a) {
  if constexpr (requires { u.sixth_of(a); })
    return u.sixth_of(a);
  else if constexpr (requires { a.sixth(); })
    return a.sixth();
  else
    return a / T(6);
}

/// Jacobi's method for Laplace's equation, as in Ismayilov et al. 2023 (docs/references.md).
struct Jacobi2d {
  static constexpr int axes = 2, radius = 1;
  static constexpr bool packs = true;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    return T(0.25) * ((u(0, -1) + u(0, 1)) + (u(-1, 0) + u(1, 0)));
  }
};

struct Jacobi3d {
  static constexpr int axes = 3, radius = 1;
  static constexpr bool packs = true, takes_sixths = true;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    T const beside = (u(0, 0, -1) + u(0, 0, 1)) + (u(0, -1, 0) + u(0, 1, 0)) + (u(-1, 0, 0) + u(1, 0, 0));
    return sixth_of(u, beside);
  }
};

/// du/dt = laplacian(u) with explicit steps: k = dt / dx^2, stable up to 1/4 (two axes) and 1/6 (three).
struct Heat2d {
  static constexpr int axes = 2, radius = 1;
  static constexpr bool packs = true;
  double k = 0.2;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    return u(0, 0) + T(k) * (((u(0, -1) + u(0, 1)) + (u(-1, 0) + u(1, 0))) - T(4) * u(0, 0));
  }
};
struct Heat3d {
  static constexpr int axes = 3, radius = 1;
  static constexpr bool packs = true;
  double k = 0.15;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    return u(0, 0, 0) +
           T(k) * (((u(0, 0, -1) + u(0, 0, 1)) + (u(0, -1, 0) + u(0, 1, 0)) + (u(-1, 0, 0) + u(1, 0, 0))) -
                   T(6) * u(0, 0, 0));
  }
};

/// d2u/dt2 = laplacian(u) by leapfrog: fields u and the u of a step before; k = (dt / dx)^2, stable up to 1/2
/// and 1/3.
struct Wave2d {
  static constexpr int axes = 2, radius = 1, fields = 2;
  static constexpr bool packs = true;
  double k = 0.25;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    T const laplacian = ((u(0, -1) + u(0, 1)) + (u(-1, 0) + u(1, 0))) - T(4) * u(0, 0);
    return std::array<T, 2>{(T(2) * u(0, 0) - u.of(1, 0, 0)) + T(k) * laplacian, u(0, 0)};
  }
};
struct Wave3d {
  static constexpr int axes = 3, radius = 1, fields = 2;
  static constexpr bool packs = true;
  double k = 0.25;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    T const laplacian =
        ((u(0, 0, -1) + u(0, 0, 1)) + (u(0, -1, 0) + u(0, 1, 0)) + (u(-1, 0, 0) + u(1, 0, 0))) -
        T(6) * u(0, 0, 0);
    return std::array<T, 2>{(T(2) * u(0, 0, 0) - u.of(1, 0, 0, 0)) + T(k) * laplacian, u(0, 0, 0)};
  }
};

/// Conway's game: 1 is alive, anything else dead.
struct Life {
  static constexpr int axes = 2, radius = 1;
  static constexpr bool star = false;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    T const beside =
        ((u(-1, -1) + u(-1, 0)) + (u(-1, 1) + u(0, -1))) + ((u(0, 1) + u(1, -1)) + (u(1, 0) + u(1, 1)));
    bool const has_three = beside == T(3), has_two = beside == T(2), lives = u(0, 0) == T(1);
    return (has_three | (has_two & lives)) ? T(1) : T(0);  // no branches, which a GPU's threads pay dearly
  }
};

/// Gray and Scott's reaction of two substances that diffuse (Pearson 1993): fields u and v, a step of time 1.
struct GrayScott {
  static constexpr int axes = 2, radius = 1, fields = 2;
  static constexpr bool packs = true;
  double diffusion_u = 0.16, diffusion_v = 0.08, feed = 0.035, kill = 0.065;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& w) const {
    using T = typename Cell::value_type;
    T const u = w(0, 0), v = w.of(1, 0, 0);
    T const around_u = ((w(0, -1) + w(0, 1)) + (w(-1, 0) + w(1, 0))) - T(4) * u;
    T const around_v = ((w.of(1, 0, -1) + w.of(1, 0, 1)) + (w.of(1, -1, 0) + w.of(1, 1, 0))) - T(4) * v;
    T const reaction = u * v * v;
    return std::array<T, 2>{u + ((T(diffusion_u) * around_u - reaction) + T(feed) * (T(1) - u)),
                            v + ((T(diffusion_v) * around_v + reaction) - T(feed + kill) * v)};
  }
};

}  // namespace stencils

/// One of the named stencils.
struct NamedStencil {
  char const* name;
  std::vector<int> axes;  ///< numbers of axes that it comes in
  std::vector<char const*> fields;
  std::vector<char const*> parameters;  ///< their names, in the order of their values
  std::vector<double> defaults;         ///< for the fewest axes; `defaults_of` says them for all
  /// Of the first parameters: steps are stable up to this over the number of axes (`stable_ranges`).
  std::vector<double> stable;
  char const* meaning;
};
/// All of them.
std::vector<NamedStencil> const& named_stencils();
/// Errors  usage  unknown name; the text lists all
NamedStencil const& named_stencil(std::string const& name);
std::vector<double> defaults_of(NamedStencil const& stencil, int axes);
/// Steps are stable with values of this parameter from 0 to `most` (von Neumann's condition; of gray_scott that of
/// diffusion alone). Beyond, what rounding leaves grows in each step.
struct StableRange {
  std::size_t parameter;  ///< its number
  double most;
};
/// Those of a stencil's parameters that have one.
std::vector<StableRange> stable_ranges(NamedStencil const& stencil, int axes);
/// parameters  as many as the stencil has, in its order; empty: its defaults
/// Errors  usage  unknown name, a number of axes that it does not come in, or another number of parameters
StencilKernel make_stencil(std::string const& name, int axes, std::size_t value_bytes,
                           std::vector<double> const& parameters = {});

}  // namespace hostless
