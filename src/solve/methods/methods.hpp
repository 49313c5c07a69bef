#pragma once
// The list of all methods. What a method is to everybody else follows from its line here, and from its
// descriptor (descriptor.hpp; docs/howto/add-a-method.md).

#include <string_view>

#include "solve/methods/bicgstab.impl.hpp"
#include "solve/methods/conjugate_gradient.impl.hpp"
#include "solve/methods/conjugate_residual.impl.hpp"
#include "solve/methods/minres.impl.hpp"
#include "solve/methods/pipelined.impl.hpp"
#include "solve/methods/single_reduction.impl.hpp"

namespace hostless {

template <class... All>
struct MethodList {};

/// In the order of `enum class Method`.
using Methods = MethodList<  //
    ConjugateGradientMethod, SingleReductionMethod, PipelinedMethod, BicgstabMethod, MinresMethod,
    ConjugateResidualMethod>;

/// What the rest of the program takes for granted of a descriptor.
template <class One>
constexpr bool is_well_described() {
  constexpr int all = sizeof One::fields / sizeof One::fields[0];
  bool lists_well = all >= 3 && std::string_view(One::fields[0].name) == "x" &&
                    std::string_view(One::fields[1].name) == "r";  // which projections and neighbours work on
  for (int k = 0; k < all; ++k)
    lists_well = lists_well && (One::fields[k].use == FieldUse::gathered) == (k + 1 == all);
  constexpr int working = 5;  // x, what a Lanczos run for a polynomial's bound overwrites, the gathered one
  return lists_well && One::values <= chebyshev::upper && One::square_in_m < One::values &&
         One::curvature.value < One::values && One::divergence_limit >= 1 &&
         (!One::offers.polynomial || fields_in<One>(Variant::polynomial) >= working);
}
template <class... All>
constexpr bool is_well_listed(MethodList<All...>) {
  int next = 0;
  return ((static_cast<int>(All::method) == next++ && is_well_described<All>()) && ...);
}
static_assert(is_well_listed(Methods{}),
              "a method stands elsewhere in the list than in the enum, or its descriptor is wrong");

/// use.template operator()<Descriptor>() for the descriptor of a method.
template <class Use, class... All>
void with_descriptor(Method method, MethodList<All...>, Use const& use) {
  ((All::method == method ? use.template operator()<All>() : void()), ...);
}

}  // namespace hostless
