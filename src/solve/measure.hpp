#pragma once
// Texts that only measure a vector.

#include "run/engine.hpp"
#include "solve/methods/preconditioner.impl.hpp"

namespace hostless {

/// |b|^2 into state.rr and the sum of b's entries into State::at(ScalarIndex::measured), in the order of the
/// plan.
void measure(host::Engine& engine, double* b);

/// |r|^2 into state.rr and r'M r into State::at(ScalarIndex::measured), as a true residual sums them.
void measure_residual(host::Engine& engine, AnyPreconditioner const& m, double* r);

}  // namespace hostless
