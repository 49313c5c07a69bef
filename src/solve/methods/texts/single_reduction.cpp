#include "solve/methods/run_on_host.impl.hpp"
#include "solve/methods/single_reduction.impl.hpp"

namespace hostless {

template void run_on_host<SingleReductionMethod>(host::Engine&, RunKind, Variant,
                                                 MethodInput<AnyPreconditioner> const&);

}  // namespace hostless
