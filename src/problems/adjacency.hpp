#pragma once
// Undirected graphs as lists of neighbours: what make_graph() has names for, of any size.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hostless::problems {

/// [nodes] the neighbours of each, rising; no node is its own.
using Adjacency = std::vector<std::vector<std::int32_t>>;

/// From edges in any order and direction. Loops are left out, and edges that are there again.
Adjacency adjacency_of(std::int32_t nodes, std::span<std::pair<std::int32_t, std::int32_t> const> edges);

/// Each corner of a cube is a cycle of as many nodes as the cube has dimensions: node (corner, d) is joined to the
/// two beside it in the cycle and to (corner with bit d flipped, d). It is number corner * dimensions + d.
/// dimensions  3 to 20; 3 dimensions 2^dimensions entries
Adjacency cube_connected_cycles(int dimensions);

/// Word w is joined to the words that follow when a bit comes in from the right and one leaves on the left.
/// bits  2 to 26; 4 2^bits - 6 entries: two loops fall out, and one edge is there both ways
Adjacency de_bruijn(int bits);

/// A lattice of width x height nodes, triangles with all diagonals one way, with a slit along the line in the
/// middle: its first `slit` nodes are doubled, one below the slit and one above. Line by line; doubled ones
/// follow their line.
/// width, height  at least 2 and 3; slit  0 to width - 1
Adjacency slit_plate(std::int32_t width, std::int32_t height, std::int32_t slit);

/// Coordinates below 2^24 in absolute value, so that 128 bits hold every determinant.
struct PlanePoint {
  std::int64_t x = 0, y = 0;
};

/// Points of the square [0, 2^20)^2, by seed, along a Z curve.
std::vector<PlanePoint> random_points(std::int32_t count, std::uint64_t seed);

/// The edges of the Delaunay triangulation. Of points on one circle any one of their triangulations, the same
/// everywhere: all is done in whole numbers.
/// points  at least three, the first three not on one line, no two equal
/// Cost    O(n) for each point
Adjacency delaunay(std::span<PlanePoint const> points);

}  // namespace hostless::problems
