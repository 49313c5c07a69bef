// Nodes on a lattice joined by springs that couple all their unknowns: the shapes of matrices that no other
// kind has (4 or 7 unknowns a node, long rows of very uneven length). A spring between two nodes adds its
// block to both diagonal blocks and subtracts it between them; one that leads out of the lattice to held
// nodes adds to the diagonal alone.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "problems/recipe.hpp"
#include "problems/sources.hpp"

namespace hostless::problems {
namespace {

struct Step {
  std::int64_t dx, dy, dz;
};

/// Planes of which one node, the hub, is joined to every node of its plane: z = first, first + every, ...
struct Hubs {
  static constexpr std::int64_t first = 4, every = 8;
  static bool in(std::int64_t z) { return z % every == first; }
};

template <int D>
class SpringRows final : public SharedRows {
 public:
  SpringRows(Choices const& choices, std::vector<Step> steps, bool with_hubs, CellField field)
      : SharedRows(choices.lattice.count() * D, choices.size, choices.rank),
        lattice_(choices.lattice),
        hub_{lattice_.nodes[0] / 2, lattice_.nodes[1] / 2, 0},
        held_(choices.held),
        with_hubs_(with_hubs),
        steps_(std::move(steps)),
        field_(field) {}

 private:
  struct Spring {
    std::int64_t node;  ///< at the other end; -1: held, outside the lattice
    double block[D * D];
  };

  void fill(std::int64_t first, std::int64_t last, RowPanel& out) const override {
    out.clear();
    std::vector<Spring> springs;
    for (std::int64_t node = first / D; node * D < last; ++node) {
      find(node, springs);
      std::int64_t const from = std::max(first, node * D), to = std::min(last, (node + 1) * D);
      for (std::int64_t row = from; row < to; ++row)
        write_row(node, static_cast<int>(row - node * D), springs, out);
    }
  }

  // In rising node; what is held comes first.
  void find(std::int64_t node, std::vector<Spring>& springs) const {
    springs.clear();
    Node const at = node_of(lattice_, node);
    for (Step const& step : steps_) add(node, at, step, springs);
    if (!with_hubs_ || !Hubs::in(at.z)) return;
    if (at.x != hub_.x || at.y != hub_.y) {
      add_far(node, at, {hub_.x - at.x, hub_.y - at.y, 0}, springs);
    } else {
      for (std::int64_t y = 0; y < lattice_.nodes[1]; ++y)
        for (std::int64_t x = 0; x < lattice_.nodes[0]; ++x)
          add_far(node, at, {x - at.x, y - at.y, 0}, springs);
    }
    std::stable_sort(springs.begin(), springs.end(),
                     [](auto const& a, auto const& b) { return a.node < b.node; });
  }

  void add_far(std::int64_t node, Node const& at, Step const& step, std::vector<Spring>& springs) const {
    bool const near = std::any_of(steps_.begin(), steps_.end(), [&](Step const& s) {
      return s.dx == step.dx && s.dy == step.dy && s.dz == step.dz;
    });
    if (!near && (step.dx != 0 || step.dy != 0)) add(node, at, step, springs);
  }

  void add(std::int64_t node, Node const& at, Step const& step, std::vector<Spring>& springs) const {
    Node const to{at.x + step.dx, at.y + step.dy, at.z + step.dz};
    bool const inside = lattice_.holds(0, to.x) && lattice_.holds(1, to.y) && lattice_.holds(2, to.z);
    if (!inside && !held_) return;
    double const own = field_.at(at.x, at.y, at.z);
    double const strength = inside ? in_series(own, field_.at(to.x, to.y, to.z)) : own;
    std::int64_t const shift = step.dx + lattice_.nodes[0] * (step.dy + lattice_.nodes[1] * step.dz);
    springs.push_back({inside ? node + shift : -1, {}});
    stiffness(strength, step, springs.back().block);
  }

  /// strength / length^2 (0.3 I + v v'), v an odd function of the step: the same bits from either end.
  static void stiffness(double strength, Step const& step, double (&block)[D * D]) {
    constexpr double along[7][3] = {{1, 0, 0},         {0, 1, 0},          {0, 0, 1},       {0.5, 0.25, -0.5},
                                    {0.25, -0.5, 0.5}, {-0.5, 0.25, 0.25}, {0.5, 0.5, 0.25}};
    double const x = static_cast<double>(step.dx), y = static_cast<double>(step.dy),
                 z = static_cast<double>(step.dz);
    double const scale = strength / (x * x + y * y + z * z);
    double v[D];
    for (int c = 0; c < D; ++c) v[c] = along[c][0] * x + along[c][1] * y + along[c][2] * z;
    for (int c = 0; c < D; ++c)
      for (int d = 0; d < D; ++d) block[c * D + d] = scale * ((c == d ? 0.3 : 0.0) + v[c] * v[d]);
  }

  static void write_row(std::int64_t node, int component, std::vector<Spring> const& springs, RowPanel& out) {
    double diagonal[D] = {};
    for (Spring const& spring : springs)
      for (int d = 0; d < D; ++d) diagonal[d] += spring.block[component * D + d];
    bool diagonal_written = false;
    auto const write = [&](std::int64_t to, double sign, double const* values) {
      for (int d = 0; d < D; ++d) {
        out.column.push_back(to * D + d);
        out.value.push_back(sign * values[d] + 0.0);  // no negative zero
      }
    };
    for (Spring const& spring : springs) {
      if (spring.node < 0) continue;
      if (!diagonal_written && spring.node > node) {
        write(node, 1.0, diagonal);
        diagonal_written = true;
      }
      write(spring.node, -1.0, spring.block + component * D);
    }
    if (!diagonal_written) write(node, 1.0, diagonal);
    out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
  }

  Lattice lattice_;
  Node hub_;  ///< of every plane that has one
  bool held_, with_hubs_;
  std::vector<Step> steps_;  ///< in rising column
  CellField field_;
};

template <int D>
std::unique_ptr<RowSource> make_springs(Choices const& choices, std::vector<Step> steps,
                                        bool with_hubs = false) {
  CellField const field(choices.lattice, {0, 0, 0}, choices.lattice.nodes,
                        LogNormal(Counter(choices.seed, Stream::cells), choices.contrast));
  return std::make_unique<SpringRows<D>>(choices, std::move(steps), with_hubs, field);
}

/// All steps of the box around a node that `take` takes, in rising column.
template <class Take>
std::vector<Step> steps_in_box(int reach, int reach_z, Take const& take) {
  std::vector<Step> steps;
  for (int dz = -reach_z; dz <= reach_z; ++dz)
    for (int dy = -reach; dy <= reach; ++dy)
      for (int dx = -reach; dx <= reach; ++dx)
        if ((dx != 0 || dy != 0 || dz != 0) && take(dx, dy, dz)) steps.push_back({dx, dy, dz});
  return steps;
}

/// An edge of Kuhn's subdivision leads along corners of a cube: no coordinate rises while another falls.
bool is_kuhn_edge(int dx, int dy, int dz) {
  return std::min({dx, dy, dz}) >= 0 || std::max({dx, dy, dz}) <= 0;
}

}  // namespace

std::unique_ptr<RowSource> make_springs_triangles(Choices const& choices) {
  return make_springs<7>(choices, steps_in_box(1, 0, is_kuhn_edge));
}

std::unique_ptr<RowSource> make_springs_tetrahedra(Choices const& choices) {
  return make_springs<4>(choices, steps_in_box(1, 1, is_kuhn_edge));
}

std::unique_ptr<RowSource> make_springs_hubs(Choices const& choices) {
  return make_springs<3>(
      choices, steps_in_box(2, 2, [](int dx, int dy, int dz) { return dx * dx + dy * dy + dz * dz <= 6; }),
      true);
}

}  // namespace hostless::problems
