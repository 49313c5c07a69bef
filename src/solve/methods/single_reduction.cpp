#include "solve/methods/methods.hpp"
#include "solve/methods/run_text.impl.hpp"

namespace hostless {

void run_method(host::Engine& engine, RunKind kind, SingleReduction<> const& data) {
  run_text(engine, kind, [&](auto& run) { single_reduction_cg(run, data); });
}

}  // namespace hostless
