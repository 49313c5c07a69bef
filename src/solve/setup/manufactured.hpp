#pragma once
// Manufactured solutions: entries by global row and seed, so that every partition makes the same vector.

#include <cstdint>

#include "hostless/solve/matrix.hpp"

namespace hostless {

/// Uniform in [-1, 1), by a counter-based generator (splitmix64) on (seed, row).
double random_entry(std::uint64_t seed, std::int64_t row);
/// |v| of v[i] = random_entry(seed, i) over all rows. Collective.
double manufactured_norm(Matrix const& matrix, std::uint64_t seed);
/// The mean of v. Collective.
double manufactured_mean(Matrix const& matrix, std::uint64_t seed);

}  // namespace hostless
