#pragma once

#include <span>
#include <vector>

#include "hostless/stencil/stencil.hpp"
#include "stencil/grid_array.hpp"

namespace hostless {

/// What a step changed, added up so that neither the order of cells nor the ranks' boxes can change a bit:
/// the largest change is found first; then each is divided by a power of two above it, squared and truncated
/// to an integer of 60 bits, and integers are added. Every rank contributes numbers of at most 32 bits, which
/// doubles add exactly.
namespace change {

/// max |new - old| over the cells of a box; NaN where a cell is not finite.
double largest(GridArray const& before, GridArray const& after, Box const& box);
/// Numbers a field that a rank contributes to the sum.
inline constexpr std::size_t digits = 4;
/// The sum of (new - old)^2 over a box, scaled for `top`, the largest over all ranks; 0 where that is 0 or
/// not finite.
void squares(GridArray const& before, GridArray const& after, Box const& box, double top,
             std::span<double, digits> sum);
/// sqrt of the sum over all ranks: sum[k] are digits added over ranks.
double norm(double top, std::span<double const, digits> sum);
/// Whether every cell of a box is finite.
bool is_finite(GridArray const& array, Box const& box);

}  // namespace change

}  // namespace hostless
