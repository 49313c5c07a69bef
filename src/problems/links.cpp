// Problems whose rows are sums over links: a link between two nodes conducts w, adds w to both diagonals and
// -w to the entries between them. A link to an eliminated node at zero adds to the diagonal alone.
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "problems/recipe.hpp"
#include "problems/sources.hpp"

namespace hostless::problems {
namespace {

/// One of the two cells that a link runs through or along: a line of cells and a shift along it.
struct Tap {
  int line, dx;
};
struct Link {
  int dx, dy, dz;
  Tap one, other;
};
struct CellLine {
  int dy, dz;
};

/// How the two cells of a link act together. Both are commutative to the last bit, hence the matrix
/// symmetric.
struct InSeries {  ///< cells crossed one after the other: the harmonic mean; 0 if one of them is missing
  static double conductance(double a, double b) { return in_series(a, b); }
};
struct InParallel {  ///< the link runs along the side of both: the mean
  static double conductance(double a, double b) { return 0.5 * (a + b); }
};

struct Stencil {
  std::vector<CellLine> lines;  ///< lines of cells that a line of nodes looks at
  std::vector<Link> links;      ///< in rising column: the first half before the diagonal, the others after it
};

template <class Combine>
class LinkRows final : public SharedRows {
 public:
  LinkRows(Choices const& choices, Stencil stencil, CellField field)
      : SharedRows(choices.lattice.count(), choices.size, choices.rank),
        lattice_(choices.lattice),
        stencil_(std::move(stencil)),
        field_(field),
        recipe_(choices.lattice, field) {
    if constexpr (has_recipe) {
      for (Link const& link : stencil_.links)
        recipe_.neighbour[recipe_.neighbours++] = {
            link.dx, link.dy, link.dz, lattice_.stride(link.dx, link.dy, link.dz), 0, {}};
    }
  }
  Recipe const* recipe() const override { return has_recipe ? &recipe_ : nullptr; }

 private:
  // Links in series lead to the cell of the other node; where they run along two cells, a recipe would have
  // to say which.
  static constexpr bool has_recipe = std::is_same_v<Combine, InSeries>;

  /// Links that stay inside the lattice in y and z are the same all along a line.
  struct LineLink {
    double const* one;
    double const* other;
    std::int64_t shift;
    int dx;
    bool inside;
  };

  void fill(std::int64_t first, std::int64_t last, RowPanel& out) const override {
    std::int64_t const most = (last - first) * static_cast<std::int64_t>(stencil_.links.size() + 1);
    out.offset.assign(1, 0);
    out.offset.resize(static_cast<std::size_t>(last - first + 1));
    out.column.resize(static_cast<std::size_t>(most));
    out.value.resize(static_cast<std::size_t>(most));
    std::vector<double> cells_of_lines;
    std::vector<LineLink> links(stencil_.links.size());
    std::int64_t entry = 0, row = first;
    for_each_run(lattice_, first, last, [&](Run const& run) {
      look_at(run, cells_of_lines, links);
      for (std::int64_t x = run.x0; x < run.x1; ++x, ++row) {
        entry = write_row(x, x - run.x0, row, links, entry, out);
        out.offset[row - first + 1] = entry;
      }
    });
    out.column.resize(static_cast<std::size_t>(entry));
    out.value.resize(static_cast<std::size_t>(entry));
  }

  void look_at(Run const& run, std::vector<double>& cells_of_lines, std::vector<LineLink>& links) const {
    std::int64_t const length = run.x1 - run.x0 + 2;  // one cell more on either side
    cells_of_lines.resize(stencil_.lines.size() * static_cast<std::size_t>(length));
    for (std::size_t l = 0; l < stencil_.lines.size(); ++l)
      field_.line(run.x0 - 1, run.y + stencil_.lines[l].dy, run.z + stencil_.lines[l].dz, length,
                  &cells_of_lines[l * static_cast<std::size_t>(length)]);
    for (std::size_t k = 0; k < links.size(); ++k) {
      Link const& link = stencil_.links[k];
      auto const tap = [&](Tap t) { return cells_of_lines.data() + t.line * length + 1 + t.dx; };
      links[k] = {tap(link.one), tap(link.other), lattice_.stride(link.dx, link.dy, link.dz), link.dx,
                  lattice_.holds(1, run.y + link.dy) && lattice_.holds(2, run.z + link.dz)};
    }
  }

  std::int64_t write_row(std::int64_t x, std::int64_t i, std::int64_t row, std::vector<LineLink> const& links,
                         std::int64_t entry, RowPanel& out) const {
    return entry + make_link_row(
                       static_cast<int>(links.size()),
                       [&](int k) { return Combine::conductance(links[k].one[i], links[k].other[i]); },
                       [&](int k) { return links[k].inside && lattice_.holds(0, x + links[k].dx); },
                       [&](int slot, int k, double value) {
                         out.column[entry + slot] = k < 0 ? row : row + links[k].shift;
                         out.value[entry + slot] = value;
                       });
  }

  Lattice lattice_;
  Stencil stencil_;
  CellField field_;
  Recipe recipe_;
};

/// Finite volumes: one cell a node, links to all neighbours at most `apart` steps away, counted over the
/// dimensions.
std::unique_ptr<RowSource> make_finite_volumes(Choices const& choices, int dimensions, int apart) {
  Stencil stencil;
  int const reach_y = dimensions > 1 ? 1 : 0, reach_z = dimensions > 2 ? 1 : 0;
  auto const steps = [](int dx, int dy, int dz) { return dx * dx + dy * dy + dz * dz; };
  int const lines_y = 2 * reach_y + 1, centre = reach_z * lines_y + reach_y;
  for (int dz = -reach_z; dz <= reach_z; ++dz)
    for (int dy = -reach_y; dy <= reach_y; ++dy) stencil.lines.push_back({dy, dz});
  for (int dz = -reach_z; dz <= reach_z; ++dz)
    for (int dy = -reach_y; dy <= reach_y; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        int const away = steps(dx, dy, dz);
        int const line = (dz + reach_z) * lines_y + dy + reach_y;
        if (away > 0 && away <= apart) stencil.links.push_back({dx, dy, dz, {centre, 0}, {line, dx}});
      }
  std::int64_t const rim = choices.held ? 1 : 0;
  Triple lowest{}, end = choices.lattice.nodes;
  for (int d = 0; d < dimensions; ++d) {
    lowest[d] -= rim;
    end[d] += rim;
  }
  LogNormal const random(Counter(choices.seed, Stream::cells), choices.contrast);
  return std::make_unique<LinkRows<InSeries>>(choices, std::move(stencil),
                                              CellField(choices.lattice, lowest, end, random));
}

}  // namespace

std::unique_ptr<RowSource> make_poisson1d(Choices const& choices) {
  return make_finite_volumes(choices, 1, 1);
}
std::unique_ptr<RowSource> make_poisson2d(Choices const& choices) {
  return make_finite_volumes(choices, 2, 1);
}
std::unique_ptr<RowSource> make_poisson7(Choices const& choices) {
  return make_finite_volumes(choices, 3, 1);
}
std::unique_ptr<RowSource> make_poisson27(Choices const& choices) {
  return make_finite_volumes(choices, 3, 3);
}

// P1 triangles, all equilateral: lattice vectors (1, 0) and (-1/2, sqrt(3)/2), each rhombus (x, y) .. (x + 1,
// y + 1) cut by its short diagonal. Every cotangent is 1/sqrt(3), so the entry of an edge is the mean
// conductivity of its two triangles (times that constant, left out), and all six neighbours count; right
// angles would lose two of them.
std::unique_ptr<RowSource> make_poisson2d_triangles(Choices const& choices) {
  Stencil stencil;
  int const below = 0, above = 1;
  stencil.lines = {{-1, 0}, {0, 0}};
  stencil.links = {{-1, -1, 0, {below, -1}, {below, -1}}, {0, -1, 0, {below, -1}, {below, 0}},
                   {-1, 0, 0, {below, -1}, {above, -1}},  {1, 0, 0, {below, 0}, {above, 0}},
                   {0, 1, 0, {above, -1}, {above, 0}},    {1, 1, 0, {above, 0}, {above, 0}}};
  std::int64_t const rim = choices.held ? 1 : 0;
  auto const& nodes = choices.lattice.nodes;
  LogNormal const random(Counter(choices.seed, Stream::cells), choices.contrast);
  CellField const field(choices.lattice, {-rim, -rim, 0}, {nodes[0] - 1 + rim, nodes[1] - 1 + rim, 1},
                        random);
  return std::make_unique<LinkRows<InParallel>>(choices, std::move(stencil), field);
}

}  // namespace hostless::problems
