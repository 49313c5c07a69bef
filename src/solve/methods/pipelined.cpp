#include "solve/methods/methods.hpp"
#include "solve/methods/run_text.impl.hpp"

namespace hostless {

void run_method(host::Engine& engine, RunKind kind, Pipelined<> const& data) {
  run_text(engine, kind, [&](auto& run) { pipelined_cg(run, data); });
}

}  // namespace hostless
