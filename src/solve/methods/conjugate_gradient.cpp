#include "solve/methods/methods.hpp"
#include "solve/methods/run_text.impl.hpp"

namespace hostless {

void run_method(host::Engine& engine, RunKind kind, ConjugateGradient<> const& data) {
  run_text(engine, kind, [&](auto& run) { conjugate_gradient(run, data); });
}

void run_method(host::Engine& engine, RunKind kind,
                ConjugateGradient<AnyPreconditioner, Chebyshev<>> const& data) {
  run_text(engine, kind, [&](auto& run) { conjugate_gradient(run, data); });
}

}  // namespace hostless
