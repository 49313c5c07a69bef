#pragma once
// The texts, instantiated for the host runs: one entry a method, so that a new run or method is one line
// here.

#include <functional>

#include "hostless/solve/solver.hpp"
#include "run/engine.hpp"
#include "solve/methods/conjugate_gradient.impl.hpp"
#include "solve/methods/one_reduction.impl.hpp"

namespace hostless {

/// Executes the text on `kind`; returns when it has ended or paused (state.status).
void run_method(host::Engine& engine, RunKind kind, ConjugateGradient<> const& data);
void run_method(host::Engine& engine, RunKind kind,
                ConjugateGradient<AnyPreconditioner, Chebyshev<>> const& data);
void run_method(host::Engine& engine, RunKind kind, SingleReduction<> const& data);
void run_method(host::Engine& engine, RunKind kind, Pipelined<> const& data);

/// |b|^2 into state.rr and the sum of b's entries into State::at(ValueIndex::measured), in the order of the
/// plan.
void measure(host::Engine& engine, double* b);

/// |r|^2 into state.rr and r'M r into State::at(ValueIndex::measured), as a true residual sums them.
void measure_residual(host::Engine& engine, AnyPreconditioner const& m, double* r);

}  // namespace hostless
