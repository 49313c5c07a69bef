#include "hostless/stencil/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "hostless/stencil/body.hpp"
#include "stencil/plain_update.hpp"

namespace hostless {

namespace {

/// Calls use(functor) with the one of a known name; values: of its parameters, all of them.
template <class Use>
auto with_named_body(std::string const& name, int axes, std::vector<double> const& values, Use const& use) {
  using namespace stencils;
  if (name == "jacobi2d") return use(Jacobi2d{});
  if (name == "jacobi3d") return use(Jacobi3d{});
  if (name == "heat") return axes == 2 ? use(Heat2d{values[0]}) : use(Heat3d{values[0]});
  if (name == "wave") return axes == 2 ? use(Wave2d{values[0]}) : use(Wave3d{values[0]});
  if (name == "life") return use(Life{});
  return use(GrayScott{values[0], values[1], values[2], values[3]});
}

template <class T, class Body>
CellFunction plain_of() {
  switch (active_isa()) {
    case Isa::v4:
      return update_cells_v4<T, Body, false>;
    case Isa::v3:
      return update_cells_v3<T, Body, false>;
    case Isa::baseline:
      break;
  }
  return update_cells_baseline<T, Body, false>;
}

template <class Body>
StencilKernel of_type(Body const& body, char const* name, std::size_t value_bytes) {
  if (value_bytes == 4) return kernel_of<float>(body, name);
  if (value_bytes == 8) return kernel_of<double>(body, name);
  throw Error(ErrorCode::usage,
              fmt::format("values of {} bytes (a cell is fp32 or fp64). Use 4 or 8.", value_bytes));
}

}  // namespace

std::vector<NamedStencil> const& named_stencils() {
  static std::vector<NamedStencil> const all{
      {"jacobi2d",
       {2},
       {"u"},
       {},
       {},
       {},
       "Jacobi's method for Laplace's equation, 5 points: 0.25 ((west + east) + (north + south))"},
      {"jacobi3d",
       {3},
       {"u"},
       {},
       {},
       {},
       "the same with 7 points: ((west + east) + (north + south) + (down + up)) / 6"},
      {"heat",
       {2, 3},
       {"u"},
       {"k"},
       {0.2},
       {0.5},
       "the heat equation by explicit steps: u + k laplacian(u), k = dt / dx^2"},
      {"wave",
       {2, 3},
       {"u", "before"},
       {"k"},
       {0.25},
       {1},
       "the wave equation by leapfrog: 2 u - before + k laplacian(u), k = (dt / dx)^2"},
      {"life", {2}, {"u"}, {}, {}, {}, "Conway's game of life: 1 is alive, 0 dead"},
      {"gray_scott",
       {2},
       {"u", "v"},
       {"diffusion_u", "diffusion_v", "feed", "kill"},
       {0.16, 0.08, 0.035, 0.065},
       {0.5, 0.5},
       "Gray and Scott's reaction of two substances that diffuse"},
  };
  return all;
}

NamedStencil const& named_stencil(std::string const& name) {
  std::string names;
  for (NamedStencil const& one : named_stencils()) {
    if (name == one.name) return one;
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  throw Error(ErrorCode::usage,
              fmt::format("stencil '{}' (there is none of that name). Use one of {}.", name, names));
}

std::vector<double> defaults_of(NamedStencil const& stencil, int axes) {
  // three axes have a lower limit of stability for heat
  if (std::string(stencil.name) == "heat" && axes == 3) return {0.15};
  return stencil.defaults;
}

std::vector<StableRange> stable_ranges(NamedStencil const& stencil, int axes) {
  std::vector<StableRange> all;
  for (std::size_t k = 0; k < stencil.stable.size(); ++k) all.push_back({k, stencil.stable[k] / axes});
  return all;
}

StencilKernel make_stencil(std::string const& name, int axes, std::size_t value_bytes,
                           std::vector<double> const& given) {
  NamedStencil const& known = named_stencil(name);
  if (std::find(known.axes.begin(), known.axes.end(), axes) == known.axes.end())
    throw Error(ErrorCode::usage,
                fmt::format("{} on {} (it is a stencil of {}{}). Give arrays of that many axes.", name,
                            counted(axes, "axis", "axes"), known.axes.front(),
                            known.axes.size() > 1 ? fmt::format(" or {}", known.axes.back()) : ""));
  std::vector<double> const values = given.empty() ? defaults_of(known, axes) : given;
  if (values.size() != known.parameters.size())
    throw Error(ErrorCode::usage, fmt::format("{} parameters for {} (it has {}). Give all of them, or none.",
                                              values.size(), name, known.parameters.size()));
  return with_named_body(name, axes, values,
                         [&](auto const& body) { return of_type(body, known.name, value_bytes); });
}

CellFunction plain_update(std::string const& name, int axes, std::size_t value_bytes) {
  return with_named_body(name, axes, defaults_of(named_stencil(name), axes), [&](auto const& body) {
    using Body = std::decay_t<decltype(body)>;
    return value_bytes == 4 ? plain_of<float, Body>() : plain_of<double, Body>();
  });
}

}  // namespace hostless
