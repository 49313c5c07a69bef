#pragma once
// A method's text on the processor. An object file a method: `template void run_on_host<Descriptor>(...)`.

#include "solve/methods/method_facts.hpp"
#include "solve/methods/run_text.impl.hpp"

namespace hostless {

template <class Descriptor>
void run_on_host(host::Engine& engine, RunKind kind, Variant variant,
                 MethodInput<AnyPreconditioner> const& input) {
  auto const execute = [&](auto const& data) {
    run_text(engine, kind, [&](auto& run) { Descriptor::text(run, data); });
  };
  if constexpr (Descriptor::offers.polynomial) {
    if (variant == Variant::polynomial) return execute(Descriptor::template bind<Variant::polynomial>(input));
  }
  execute(Descriptor::template bind<Variant::plain>(input));  // the engine has the rounded matrix
}

}  // namespace hostless
