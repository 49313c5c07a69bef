#pragma once
// What several advices have in common.

#include <string>

#include "hostless/solve/solver.hpp"
#include "solve/methods/method_facts.hpp"

namespace hostless {

/// Of |b - A x| / |b|: |A| |x| >= |b|, whatever A is; above it nobody here knows the end.
constexpr double end_of_digits = 4e-15;

/// " (condition at least 1.0e+04)", or nothing where none is known.
std::string condition_of(Result const& result);
/// What loses fewer digits, or loses them elsewhere: "method cr, ".
std::string other_methods(MethodFacts const& mine);

}  // namespace hostless
