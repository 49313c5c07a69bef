#include "solve/methods/pipelined.impl.hpp"
#include "solve/methods/run_on_host.impl.hpp"

namespace hostless {

template void run_on_host<PipelinedMethod>(host::Engine&, RunKind, Variant,
                                           MethodInput<AnyPreconditioner> const&);

}  // namespace hostless
