#pragma once
// Which points of a product of axes are visited: all of them, or so few that every pair of values of two axes
// still lies in one.

#include <cstddef>
#include <vector>

namespace hostless::contract {

/// A value of each axis; axis k has the values 0 to sizes[k] - 1.
using Point = std::vector<int>;

/// Every pair of values of two axes lies in some point; deterministic.
std::vector<Point> cover_pairs(Point const& sizes);
/// All points; `order` names the axes, the one that runs fastest last.
std::vector<Point> all_points(Point const& sizes, std::vector<std::size_t> const& order);

}  // namespace hostless::contract
