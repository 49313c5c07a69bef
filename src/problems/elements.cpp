// Finite elements on a lattice of cubes: the matrix of a cube is its coefficient times one reference matrix
// (plus, for a time step, its mass matrix), so a row is a short weighted sum over the eight cubes around its
// node.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "problems/recipe.hpp"
#include "problems/reference_cube.hpp"
#include "problems/sources.hpp"

namespace hostless::problems {
namespace {

/// What cube (x, y, z) adds: field * stiffness(y), and its mass matrix if asked.
template <int D>
struct CubeModel {
  ReferenceCube cube;
  bool with_mass;
  std::function<CubeMatrix<D>(std::int64_t y)> stiffness;
  bool uniform;  ///< it is the same for all y
};

template <int D>
class ElementRows final : public SharedRows {
 public:
  ElementRows(Choices const& choices, CubeModel<D> model, CellField field)
      : SharedRows(choices.lattice.count() * D, choices.size, choices.rank),
        lattice_(choices.lattice),
        model_(std::move(model)),
        field_(field) {
    find_neighbours();
    if constexpr (D == 3)
      if (model_.uniform) write_recipe();
  }
  Recipe const* recipe() const override { return recipe_.get(); }

 private:
  /// What the cubes around the nodes of one run are made of.
  struct Surroundings {
    std::array<std::vector<double>, 4> line;  ///< by (y side) + 2 (z side), from cube x0 - 1 on
    std::array<CubeMatrix<D>, 2> stiffness;   ///< by y side
    std::vector<Neighbour const*> inside;     ///< neighbours inside the lattice in y and z
  };

  void write_recipe() {
    recipe_ = std::make_unique<Recipe>(lattice_, field_);
    recipe_->block = D;
    for (Neighbour const& neighbour : neighbours_) recipe_->neighbour[recipe_->neighbours++] = neighbour;
    CubeMatrix<D> const stiffness = model_.stiffness(0);
    for (int a = 0; a < 8; ++a)
      for (int b = 0; b < 8; ++b)
        std::copy(stiffness[a][b].begin(), stiffness[a][b].end(), recipe_->stiffness[a][b]);
  }

  void find_neighbours() {
    for (int slot = 0; slot < 27; ++slot) {
      int const step[3] = {slot % 3 - 1, slot / 3 % 3 - 1, slot / 9 - 1};
      Neighbour neighbour{step[0], step[1], step[2], lattice_.stride(step[0], step[1], step[2]), 0, {}};
      for (int cube = 0; cube < 8; ++cube) {
        int const a = 7 - cube;
        int b = 0;
        bool in_cube = true;
        for (int d = 0; d < 3; ++d) {
          int const corner = (a >> d & 1) + step[d];
          in_cube = in_cube && (corner == 0 || corner == 1);
          b |= (corner & 1) << d;
        }
        if (in_cube && model_.cube.couples[a][b])
          neighbour.term[neighbour.terms++] = {static_cast<std::uint8_t>(cube), static_cast<std::uint8_t>(a),
                                               static_cast<std::uint8_t>(b)};
      }
      if (neighbour.terms > 0) neighbours_.push_back(neighbour);
    }
  }

  void fill(std::int64_t first, std::int64_t last, RowPanel& out) const override {
    std::int64_t const first_node = first / D, last_node = (last + D - 1) / D;
    std::int64_t const most = (last - first) * static_cast<std::int64_t>(neighbours_.size()) * D;
    out.offset.assign(1, 0);
    out.offset.resize(static_cast<std::size_t>(last - first + 1));
    out.column.resize(static_cast<std::size_t>(most));
    out.value.resize(static_cast<std::size_t>(most));
    Surroundings around;
    std::vector<Neighbour const*> present;
    std::int64_t node = first_node;
    for_each_run(lattice_, first_node, last_node, [&](Run const& run) {
      look_at(run, around);
      for (std::int64_t x = run.x0; x < run.x1; ++x, ++node) {
        present.clear();
        for (Neighbour const* neighbour : around.inside)
          if (lattice_.holds(0, x + neighbour->dx)) present.push_back(neighbour);
        write_node(node, x - run.x0, around, present, first, last, out);
      }
    });
    out.column.resize(static_cast<std::size_t>(out.offset.back()));
    out.value.resize(static_cast<std::size_t>(out.offset.back()));
  }

  void look_at(Run const& run, Surroundings& around) const {
    std::int64_t const length = run.x1 - run.x0 + 1;
    for (int side = 0; side < 4; ++side) {
      around.line[side].resize(static_cast<std::size_t>(length));
      field_.line(run.x0 - 1, run.y - 1 + (side & 1), run.z - 1 + (side >> 1), length,
                  around.line[side].data());
    }
    for (int side = 0; side < 2; ++side) around.stiffness[side] = model_.stiffness(run.y - 1 + side);
    around.inside.clear();
    for (Neighbour const& neighbour : neighbours_)
      if (lattice_.holds(1, run.y + neighbour.dy) && lattice_.holds(2, run.z + neighbour.dz))
        around.inside.push_back(&neighbour);
  }

  /// Writes those of the node's D rows that lie in [first, last).
  void write_node(std::int64_t node, std::int64_t i, Surroundings const& around,
                  std::vector<Neighbour const*> const& present, std::int64_t first, std::int64_t last,
                  RowPanel& out) const {
    std::int64_t const width = static_cast<std::int64_t>(present.size()) * D;
    std::int64_t const from = std::max(first, node * D), to = std::min(last, (node + 1) * D);
    for (std::int64_t row = from; row < to; ++row)
      out.offset[row - first + 1] = out.offset[row - first] + width;
    std::array<double, 8> strength;
    for (int cube = 0; cube < 8; ++cube) strength[cube] = around.line[cube >> 1][i + (cube & 1)];
    for (std::size_t k = 0; k < present.size(); ++k) {
      double block[D * D] = {};
      sum_block(*present[k], strength, around, block);
      for (std::int64_t row = from; row < to; ++row) {
        std::int64_t const entry = out.offset[row - first] + static_cast<std::int64_t>(k) * D;
        for (int c = 0; c < D; ++c) {
          out.column[entry + c] = (node + present[k]->shift) * D + c;
          out.value[entry + c] = block[(row - node * D) * D + c];
        }
      }
    }
  }

  void sum_block(Neighbour const& neighbour, std::array<double, 8> const& strength,
                 Surroundings const& around, double (&sum)[D * D]) const {
    add_cubes<D>(
        neighbour, strength.data(),
        [&](Term term) { return around.stiffness[term.cube >> 1 & 1][term.a][term.b].data(); },
        [&](Term term, double factor, double(&to)[D * D]) {
          if constexpr (D == 1)
            if (model_.with_mass && factor > 0.0) to[0] += model_.cube.mass[term.a][term.b];
        },
        sum);
  }

  Lattice lattice_;
  CubeModel<D> model_;
  CellField field_;
  std::vector<Neighbour> neighbours_;  ///< in rising column, the node itself among them
  std::unique_ptr<Recipe> recipe_;     ///< where the stiffness is uniform
};

std::unique_ptr<RowSource> make_elasticity(Choices const& choices, ReferenceCube const& cube) {
  constexpr double poisson_ratio = 0.3;
  constexpr std::int64_t layers = 8;
  double const scatter = choices.contrast == 1.0 ? 1.0 : 4.0;
  // Cubes from y = -1 on stand between the clamped nodes and the first free ones.
  std::int64_t const ground = choices.held ? -1 : 0;
  Triple const nodes = choices.lattice.nodes;
  CellField field(choices.lattice, {0, ground, 0}, {nodes[0] - 1, nodes[1] - 1, nodes[2] - 1},
                  LogNormal(Counter(choices.seed, Stream::cells), scatter));
  field.stack_layers(layers, choices.contrast);
  auto const matrix = elasticity_matrix(cube, poisson_ratio);
  CubeModel<3> model{cube, false, [matrix](std::int64_t) { return matrix; }, true};
  return std::make_unique<ElementRows<3>>(choices, std::move(model), field);
}

/// The fibre in the layer of cubes y: it turns from +60 to -60 degrees about y on the way through the wall
/// (Streeter's rule) and dips by 14 degrees into it. Half-angle tangents instead of sines: the same bits on
/// every processor.
std::array<double, 3> fibre(std::int64_t y, std::int64_t nodes_y) {
  constexpr double tangent_of_half = 0.57735026918962576, along_wall = 0.97, into_wall = 0.24310491562286435;
  // From 0 to 1 over cubes -1 .. nodes_y - 1.
  double const depth = static_cast<double>(y + 1) / static_cast<double>(nodes_y);
  double const t = tangent_of_half * (1.0 - 2.0 * depth);
  return {along_wall * ((1.0 - t * t) / (1.0 + t * t)), into_wall, along_wall * (2.0 * t / (1.0 + t * t))};
}

}  // namespace

std::unique_ptr<RowSource> make_elasticity_hexahedra(Choices const& choices) {
  return make_elasticity(choices, trilinear_cube());
}

std::unique_ptr<RowSource> make_elasticity_tetrahedra(Choices const& choices) {
  return make_elasticity(choices, kuhn_cube());
}

std::unique_ptr<RowSource> make_monodomain(Choices const& choices) {
  // Conductivity across the fibre against along it: 0.018 and 0.13 S/m in ventricles.
  constexpr double transverse = 1.0 / 7.5;
  auto const cube = kuhn_cube();
  auto const nodes = choices.lattice.nodes;
  CubeModel<1> model{cube, true,
                     [cube, nodes, dt = choices.time_step](std::int64_t y) {
                       return fibre_diffusion_matrix(cube, fibre(y, nodes[1]), dt, dt * transverse);
                     },
                     false};
  std::int64_t const rim = choices.held ? 1 : 0;
  LogNormal const random(Counter(choices.seed, Stream::cells), choices.contrast);
  CellField const field(choices.lattice, {-rim, -rim, -rim},
                        {nodes[0] - 1 + rim, nodes[1] - 1 + rim, nodes[2] - 1 + rim}, random);
  return std::make_unique<ElementRows<1>>(choices, std::move(model), field);
}

}  // namespace hostless::problems
