#pragma once
// The list of preconditioners, and what a text says of one. A preconditioner is a small type that is part of
// a method's data and has a sub-text, in the verbs of all texts, behind these names:
//
// rows                             what bodies apply by themselves, block row by block row: M where it can
//                                  be, else what finds the z that a sub-text left
// begin(run), end(run)             its fields: `begin` returns what the text goes on with, `end` saves
// direction(run, p, r, work)       p = M r + beta p, as what a sweep multiplies (conjugate gradients); beta
//                                  is known, or comes from here; work: [owned], of no use before
// square(run, y, into, decision)   (y, M y), where no body has added it up; M y can be found from here on
//                                  (MINRES)
// publish(run, g, from, before, views...)   `before` over the rows of the views, then g = M from (BiCGStab)
//
// and a line below: which variant of a text it makes (`is_of`), which methods it serves (`serves`), and how
// it is made of a method's input (`of`). Nothing else of a method's text depends on what M is.

#include "solve/methods/apart.impl.hpp"
#include "solve/methods/by_rows.impl.hpp"
#include "solve/methods/chebyshev.impl.hpp"

namespace hostless {

template <class... All>
struct PreconditionerList {};

using Preconditioners =
    PreconditionerList<ByRowsPreconditioner, ChebyshevPreconditioner, OfUserPreconditioner>;

/// use.template operator()<One>() for the preconditioner of a variant, where it serves the method.
template <class Method, class Use, class... All>
void with_preconditioner(Variant variant, PreconditionerList<All...>, Use const& use) {
  auto const one = [&]<class One>() {
    if constexpr (One::template serves<Method>) {
      if (One::is_of(variant)) use.template operator()<One>();
    }
  };
  (one.template operator()<All>(), ...);
}

/// The same where the variant is known when a kernel is compiled.
template <Variant variant, class First, class... Rest>
constexpr auto find_preconditioner(PreconditionerList<First, Rest...>) {
  if constexpr (First::is_of(variant)) {
    return First{};
  } else {
    return find_preconditioner<variant>(PreconditionerList<Rest...>{});
  }
}
template <Variant variant>
using PreconditionerOf = decltype(find_preconditioner<variant>(Preconditioners{}));

}  // namespace hostless
