#include "solve/methods/conjugate_gradient.impl.hpp"
#include "solve/methods/run_on_host.impl.hpp"

namespace hostless {

template void run_on_host<ConjugateGradientMethod>(host::Engine&, RunKind, Variant,
                                                   MethodInput<AnyPreconditioner> const&);

}  // namespace hostless
