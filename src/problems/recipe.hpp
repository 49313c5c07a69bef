#pragma once
// How the rows of a generated matrix are made, as one text: the generators on the host use its parts line by
// line, kernels use Recipe, a generator as plain data, block row by block row. The entries are the same bits:
// additions, multiplications, divisions and integers only, in the same order.

#include <cstdint>

#include "hostless/base/host_device.hpp"
#include "problems/lattice.hpp"

namespace hostless::problems {

/// Cells crossed one after the other conduct by their harmonic mean; 0 if one of them is missing. Commutative
/// to the last bit, hence the matrix symmetric.
HOSTLESS_HOST_DEVICE double in_series(double a, double b) { return 2.0 * (a * b) / (a + b); }

/// A row that is a sum over links: `weight(k)` conducts, adds to the diagonal, and is the entry between the
/// nodes where `inside(k)`. Links come in rising column, the first half before the diagonal.
/// put(slot, k, value): the entries, by their place in the row; the diagonal, with k = -1, last.
/// Returns the number of entries.
template <class Weight, class Inside, class Put>
HOSTLESS_HOST_DEVICE int make_link_row(int links, Weight const& weight, Inside const& inside,
                                       Put const& put) {
  double sum = 0.0;
  int slot = 0, diagonal = 0;
  for (int k = 0; k < links; ++k) {
    if (k == links / 2) diagonal = slot++;
    double const conducts = weight(k);
    sum += conducts;
    if (inside(k)) put(slot++, k, -conducts);
  }
  put(diagonal, -1, sum);
  return slot;
}

/// Corner b of the cube number `cube` around a node that is its corner a = 7 - cube.
struct Term {
  std::uint8_t cube, a, b;
};
/// A node whose unknowns have entries in the rows of another one. With elements: the terms are in rising
/// global order of the cubes, so the sum for (i, j) has the operands and the order of the sum for (j, i).
struct Neighbour {
  static constexpr int most_terms = 8;
  int dx, dy, dz;
  std::int64_t shift;  ///< of the node's number
  int terms;
  Term term[most_terms];
};

/// sum += what the cubes shared with a neighbour add to the D x D block, row-major. stiffness(term): its
/// block in the matrix of that cube; more(term, factor, sum): what else the cube adds.
template <int D, class Stiffness, class More>
HOSTLESS_HOST_DEVICE void add_cubes(Neighbour const& neighbour, double const* strength,
                                    Stiffness const& stiffness, More const& more, double (&sum)[D * D]) {
  for (int t = 0; t < neighbour.terms; ++t) {
    Term const term = neighbour.term[t];
    double const factor = strength[term.cube];
    double const* const block = stiffness(term);
    for (int e = 0; e < D * D; ++e) sum[e] += factor * block[e];
    more(term, factor, sum);
  }
}

/// A generated matrix, completely: block row i is node i of the lattice. Plain data, to be copied to a GPU.
struct Recipe {
  static constexpr int most_neighbours = 27;
  Lattice lattice;
  CellField field;
  int block = 1;       ///< unknowns of a node. 1: links, in series; 3: elements
  int neighbours = 0;  ///< in rising column; of elements, the node itself among them
  Neighbour neighbour[most_neighbours];
  double stiffness[8][8][9];  ///< of elements: the matrix of a cube of strength 1, by corners

  explicit Recipe(Lattice const& of_nodes, CellField const& of_cells) : lattice(of_nodes), field(of_cells) {}
  /// Whether a pair of nodes that far apart exists at all.
  bool happens(Neighbour const& n) const {
    auto const fits = [](int step, std::int64_t nodes) { return (step < 0 ? -step : step) < nodes; };
    return fits(n.dx, lattice.nodes[0]) && fits(n.dy, lattice.nodes[1]) && fits(n.dz, lattice.nodes[2]);
  }
};

struct Node {
  std::int64_t x, y, z;
};
HOSTLESS_HOST_DEVICE Node node_of(Lattice const& lattice, std::int64_t block_row) {
  std::int64_t const line = block_row / lattice.nodes[0];
  return {block_row - line * lattice.nodes[0], line % lattice.nodes[1], line / lattice.nodes[1]};
}
HOSTLESS_HOST_DEVICE bool holds(Lattice const& lattice, Node const& node, Neighbour const& step) {
  return lattice.holds(0, node.x + step.dx) && lattice.holds(1, node.y + step.dy) &&
         lattice.holds(2, node.z + step.dz);
}

/// put(slot, shift, block) for the blocks of a block row: slot counts them in rising column, shift is column
/// block row minus block row, `block` is double const (&)[B * B], row-major. Not in order of the slots.
/// Returns their number.
template <int B, class Put>
HOSTLESS_HOST_DEVICE int make_block_row(Recipe const& recipe, std::int64_t block_row, Put const& put) {
  Node const at = node_of(recipe.lattice, block_row);
  if constexpr (B == 1) {
    double const own = recipe.field.at(at.x, at.y, at.z);
    return make_link_row(
        recipe.neighbours,
        [&](int k) {
          Neighbour const& to = recipe.neighbour[k];
          return in_series(own, recipe.field.at(at.x + to.dx, at.y + to.dy, at.z + to.dz));
        },
        [&](int k) { return holds(recipe.lattice, at, recipe.neighbour[k]); },
        [&](int slot, int k, double value) {
          double const block[1] = {value};
          put(slot, k < 0 ? std::int64_t{0} : recipe.neighbour[k].shift, block);
        });
  } else {
    double strength[8];
    for (int cube = 0; cube < 8; ++cube)
      strength[cube] =
          recipe.field.at(at.x - 1 + (cube & 1), at.y - 1 + (cube >> 1 & 1), at.z - 1 + (cube >> 2));
    int slot = 0;
    for (int k = 0; k < recipe.neighbours; ++k) {
      Neighbour const& to = recipe.neighbour[k];
      if (!holds(recipe.lattice, at, to)) continue;
      double block[B * B] = {};
      add_cubes<B>(
          to, strength, [&](Term term) { return recipe.stiffness[term.a][term.b]; },
          [](Term, double, double(&)[B * B]) {}, block);
      put(slot++, to.shift, block);
    }
    return slot;
  }
}

}  // namespace hostless::problems
