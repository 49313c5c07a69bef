#pragma once
// A method's text on the processor. An object file a method: `template void run_on_host<Descriptor>(...)`.

#include "solve/methods/method_facts.hpp"
#include "solve/methods/preconditioners.hpp"
#include "solve/methods/run_text.impl.hpp"

namespace hostless {

template <class Descriptor>
void run_on_host(host::Engine& engine, RunKind kind, Variant variant,
                 MethodInput<AnyPreconditioner> const& input) {
  with_preconditioner<Descriptor>(variant, Preconditioners{}, [&]<class One>() {
    auto const data = Descriptor::bind(input, One::of(input));  // the engine has the rounded matrix
    run_text(engine, kind, [&](auto& run) { Descriptor::text(run, data); });
  });
}

}  // namespace hostless
