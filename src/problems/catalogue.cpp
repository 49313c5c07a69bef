#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/counted.hpp"
#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "hostless/problems/problems.hpp"
#include "problems/sources.hpp"

namespace hostless {
namespace {

using problems::Choices;

[[noreturn]] void refuse(std::string const& text) { throw Error(ErrorCode::usage, text + "."); }

/// What the kind needs to hold at least one of its cells or elements.
enum class Rim { every_node_a_cell, elements_all_around, elements_below };

struct Kind {
  char const* name;
  int dimensions, unknowns, most_per_row;
  Rim rim;
  bool held_by_default;
  char const* summary;
  std::unique_ptr<RowSource> (*make)(Choices const&);
};

constexpr std::array<Kind, 12> kinds{{
    {"poisson1d", 1, 1, 3, Rim::every_node_a_cell, true, "1-D finite volumes", problems::make_poisson1d},
    {"poisson2d", 2, 1, 5, Rim::every_node_a_cell, true, "2-D 5-point finite volumes",
     problems::make_poisson2d},
    {"poisson7", 3, 1, 7, Rim::every_node_a_cell, true, "3-D 7-point finite volumes",
     problems::make_poisson7},
    {"poisson27", 3, 1, 27, Rim::every_node_a_cell, true, "3-D 27-point finite volumes",
     problems::make_poisson27},
    {"poisson2d-tri", 2, 1, 7, Rim::elements_all_around, true, "P1 triangles",
     problems::make_poisson2d_triangles},
    {"elasticity-hex8", 3, 3, 81, Rim::elements_below, true, "linear elasticity on trilinear hexahedra",
     problems::make_elasticity_hexahedra},
    {"elasticity-tet4", 3, 3, 45, Rim::elements_below, true, "linear elasticity on Kuhn's P1 tetrahedra",
     problems::make_elasticity_tetrahedra},
    {"monodomain", 3, 1, 15, Rim::elements_all_around, false,
     "monodomain step M + dt K on Kuhn's P1 tetrahedra", problems::make_monodomain},
    {"circuit", 2, 1, 6, Rim::every_node_a_cell, true, "resistor grid with long edges",
     problems::make_circuit},
    {"springs2d-tri", 2, 7, 49, Rim::every_node_a_cell, true, "7 unknowns a node on triangles' edges",
     problems::make_springs_triangles},
    {"springs3d-tet4", 3, 4, 60, Rim::every_node_a_cell, true, "4 unknowns a node on tetrahedra's edges",
     problems::make_springs_tetrahedra},
    {"springs3d-hubs", 3, 3, 243, Rim::every_node_a_cell, true, "3 unknowns a node, long rows, hubs",
     problems::make_springs_hubs},
}};

struct Preset {
  char const* name;
  char const* kind;
  std::array<std::int64_t, 3> nodes;
  double contrast;
  double time_step = 0;  ///< monodomain; 0: the usual one
};

constexpr std::array<Preset, 24> presets{{
    {"flan", "elasticity-hex8", {10, 108, 483}, 100.0},
    {"queen", "elasticity-hex8", {71, 110, 177}, 100.0},
    {"bump", "elasticity-tet4", {99, 99, 99}, 100.0},
    {"serena", "elasticity-tet4", {77, 77, 77}, 1e4},
    {"audikw", "elasticity-hex8", {68, 68, 68}, 100.0},
    {"g3_circuit", "circuit", {1258, 1260, 1}, 100.0},
    {"ecology2", "poisson2d", {999, 1001, 1}, 100.0},
    {"thermomech", "poisson2d-tri", {452, 452, 1}, 100.0},
    {"heart", "monodomain", {216, 216, 216}, 10.0},
    {"heart15", "monodomain", {956, 956, 956}, 10.0},
    {"cube_coup", "springs3d-tet4", {81, 81, 82}, 100.0},
    {"geo", "elasticity-tet4", {78, 78, 79}, 100.0},
    {"hook", "elasticity-tet4", {20, 60, 416}, 100.0},
    {"bone010", "elasticity-tet4", {69, 69, 69}, 100.0},
    {"bmwcra", "elasticity-hex8", {18, 19, 145}, 100.0},
    {"consph", "elasticity-hex8", {19, 34, 43}, 100.0},
    {"ldoor", "springs2d-tri", {357, 381, 1}, 100.0},
    {"hood", "springs2d-tri", {177, 178, 1}, 100.0},
    {"stocf", "monodomain", {112, 114, 115}, 1e6, 1e6},
    {"crankseg_1", "springs3d-hubs", {26, 26, 26}, 100.0},
    {"crankseg_2", "springs3d-hubs", {27, 27, 29}, 100.0},
    {"tmt_sym", "poisson2d-tri", {852, 853, 1}, 100.0},
    {"thermal2", "poisson2d-tri", {1108, 1108, 1}, 100.0},
    {"poisson1d_large", "poisson1d", {std::int64_t{1} << 30, 1, 1}, 1.0},
}};

template <class Table>
std::vector<std::string> names_of(Table const& table) {
  std::vector<std::string> names;
  for (auto const& entry : table) names.emplace_back(entry.name);
  return names;
}

template <class Table>
auto const& find(Table const& table, std::string const& wanted, char const* what) {
  auto const found = std::find_if(table.begin(), table.end(),
                                  [&](auto const& e) { return std::string_view(e.name) == wanted; });
  if (found == table.end())
    refuse(fmt::format("There is no {} '{}' (nothing to generate).{} Use one of: {}", what, wanted,
                       did_you_mean(wanted, names_of(table)), fmt::join(names_of(table), ", ")));
  return *found;
}

Kind const& kind_of(ProblemOptions const& options) { return find(kinds, options.kind, "problem"); }

void check_sides(Kind const& kind, ProblemOptions const& options) {
  std::array<std::int64_t, 3> const sides{options.nx, options.ny, options.nz};
  constexpr std::int64_t longest = std::int64_t{1} << 40;  // so that the product of three fits 128 bits
  __int128 entries = static_cast<__int128>(kind.unknowns) * kind.most_per_row;
  for (int d = 0; d < 3; ++d) {
    char const axis = "xyz"[d];
    if (sides[d] <= 0)
      refuse(
          fmt::format("n{} = {} (a side needs at least one node). Give a positive number", axis, sides[d]));
    if (d >= kind.dimensions && sides[d] != 1)
      refuse(fmt::format("n{} = {} for {} (it has {}). Leave n{} at 1", axis, sides[d], kind.name,
                         counted(kind.dimensions, "dimension"), axis));
    if (sides[d] > longest)
      refuse(fmt::format("n{} = {} (sides end at 2^40). Choose a smaller one", axis, sides[d]));
    entries *= sides[d] + 2;
  }
  if (entries > std::numeric_limits<std::int64_t>::max())
    refuse(fmt::format("{} with {} x {} x {} nodes (its entries overflow 64 bits). Choose smaller sides",
                       kind.name, sides[0], sides[1], sides[2]));
}

void check_elements(Kind const& kind, ProblemOptions const& options, bool held) {
  std::array<std::int64_t, 3> const sides{options.nx, options.ny, options.nz};
  if (kind.rim == Rim::every_node_a_cell || (held && kind.rim == Rim::elements_all_around)) return;
  for (int d = 0; d < kind.dimensions; ++d)
    if (sides[d] < 2 && !(held && d == 1))
      refuse(fmt::format("n{} = {} for {} (no element fits between fewer than 2 nodes). Give at least 2",
                         "xyz"[d], sides[d], kind.name));
}

void check_numbers(Kind const& kind, ProblemOptions const& options) {
  std::string_view const name = kind.name;
  if (!(options.contrast >= 1.0 && options.contrast <= 1e12))
    refuse(fmt::format("contrast = {} (it is a ratio of large to small). Give 1 to 1e12", options.contrast));
  if (options.long_edges && name != "circuit")
    refuse(fmt::format("long_edges for {} (only circuit has such edges). Leave it out", name));
  if (options.long_edges && !(*options.long_edges >= 0.0 && *options.long_edges <= 0.5))
    refuse(fmt::format("long_edges = {} (a node ends at most one long edge). Give 0 to 0.5",
                       *options.long_edges));
  if (options.time_step && name != "monodomain")
    refuse(fmt::format("time_step for {} (only monodomain takes a step). Leave it out", name));
  if (options.time_step && !(*options.time_step > 0.0 && *options.time_step <= 1e12))
    refuse(fmt::format("time_step = {} (M + dt K needs dt > 0). Give a positive number up to 1e12",
                       *options.time_step));
}

Choices checked(ProblemOptions const& options) {
  Kind const& kind = kind_of(options);
  bool const held =
      options.boundary == Boundary::standard ? kind.held_by_default : options.boundary == Boundary::dirichlet;
  check_sides(kind, options);
  check_elements(kind, options, held);
  check_numbers(kind, options);
  return {{{options.nx, options.ny, options.nz}},
          options.contrast,
          options.seed,
          held,
          options.long_edges.value_or(0.02),
          options.time_step.value_or(0.125),
          1,
          0};
}

/// `side` shrunk, 2 at least unless it was smaller.
std::int64_t shrink(std::int64_t side, double factor) {
  return std::max<std::int64_t>(std::min<std::int64_t>(side, 2),
                                std::llround(static_cast<double>(side) * factor));
}

std::string boundary_words(Kind const& kind, bool held) {
  if (std::string_view(kind.name) == "circuit")
    return held ? "1 % of the nodes grounded" : "not grounded: singular";
  if (kind.rim == Rim::elements_below) return held ? "clamped below y = 0" : "free: singular";
  if (held) return "Dirichlet";
  return kind.held_by_default ? "Neumann: singular" : "no flux";
}

}  // namespace

Boundary boundary_from_name(std::string const& wanted) {
  for (Boundary boundary : {Boundary::standard, Boundary::dirichlet, Boundary::neumann})
    if (wanted == name(boundary)) return boundary;
  refuse(fmt::format(
      "There is no boundary '{}' (nothing says what holds at the rim).{} Use standard, dirichlet or neumann",
      wanted, did_you_mean(wanted, {"standard", "dirichlet", "neumann"})));
}

char const* name(Boundary boundary) {
  switch (boundary) {
    case Boundary::standard:
      return "standard";
    case Boundary::dirichlet:
      return "dirichlet";
    case Boundary::neumann:
      return "neumann";
  }
  return "unknown";
}

std::vector<std::string> problem_names() { return names_of(kinds); }
std::vector<std::string> preset_names() { return names_of(presets); }

ProblemOptions problem_of(std::string const& kind, std::vector<std::int64_t> const& sides) {
  ProblemOptions p;
  p.kind = kind;
  auto const dimensions = static_cast<std::size_t>(kind_of(p).dimensions);
  if (sides.size() > dimensions || (sides.size() > 1 && sides.size() < dimensions))
    refuse(fmt::format("{} for the size of {} (it has {}). Give {}", counted(sides.size(), "number"), kind,
                       counted(dimensions, "dimension"),
                       dimensions == 1 ? "one" : fmt::format("one for all sides, or {}", dimensions)));
  std::int64_t const usual = dimensions == 1 ? 100000 : dimensions == 2 ? 300 : 32;
  auto side = [&](std::size_t k) {
    if (k >= dimensions) return std::int64_t{1};
    if (sides.empty()) return usual;
    return sides[sides.size() == 1 ? 0 : k];
  };
  p.nx = side(0);
  p.ny = side(1);
  p.nz = side(2);
  return p;
}

ProblemOptions preset(std::string const& name, double scale) {
  Preset const& found = find(presets, name, "preset");
  if (!(scale > 0.0 && scale <= 1.0))
    refuse(fmt::format("scale = {} (presets only shrink). Give a number in (0, 1]", scale));
  ProblemOptions options;
  options.kind = found.kind;
  double const factor = std::pow(scale, 1.0 / kind_of(options).dimensions);
  options.nx = shrink(found.nodes[0], factor);
  options.ny = shrink(found.nodes[1], factor);
  options.nz = shrink(found.nodes[2], factor);
  options.contrast = found.contrast;
  if (found.time_step > 0) options.time_step = found.time_step;
  return options;
}

std::int64_t problem_rows(ProblemOptions const& options) {
  return checked(options).lattice.count() * kind_of(options).unknowns;
}

// Nodes that are not at the rim have all their neighbours, but for missing resistors.
std::int64_t least_entries(ProblemOptions const& options) {
  static_cast<void>(checked(options));
  Kind const& kind = kind_of(options);
  std::int64_t const sides[] = {options.nx, options.ny, options.nz};
  std::int64_t inside = 1;
  for (int d = 0; d < kind.dimensions; ++d) inside *= std::max<std::int64_t>(0, sides[d] - 2);
  std::int64_t const a_row = std::string_view(kind.name) == "circuit" ? 4 : kind.most_per_row;
  return std::max(problem_rows(options), inside * kind.unknowns * a_row);
}

bool is_singular(ProblemOptions const& options) {
  return !checked(options).held && kind_of(options).held_by_default;
}

std::string describe(ProblemOptions const& options) {
  Kind const& kind = kind_of(options);
  Choices const choices = checked(options);
  std::string sides = fmt::format("{}", options.nx);
  if (kind.dimensions > 1) sides += fmt::format(" x {}", options.ny);
  if (kind.dimensions > 2) sides += fmt::format(" x {}", options.nz);
  std::string extra;
  if (std::string_view(kind.name) == "circuit") extra = fmt::format(", long edges {:g}", choices.long_edges);
  if (std::string_view(kind.name) == "monodomain") extra = fmt::format(", time step {:g}", choices.time_step);
  return fmt::format("{} {} nodes: {}, contrast {:g}{}, {}, seed {}, {}", kind.name, sides, kind.summary,
                     options.contrast, extra, boundary_words(kind, choices.held), options.seed,
                     counted(problem_rows(options), "row"));
}

std::unique_ptr<RowSource> make_problem(ProblemOptions const& options, int size, int rank) {
  Choices choices = checked(options);
  if (size < 1 || rank < 0 || rank >= size)
    refuse(
        fmt::format("rank {} of {} (there is no such share of the rows). Give 0 <= rank < size", rank, size));
  choices.size = size;
  choices.rank = rank;
  return kind_of(options).make(choices);
}

namespace problems {

void SharedRows::panel(std::int64_t first, std::int64_t count, RowPanel& out) const {
  if (first < first_ || count < 0 || count > last_ - first)
    refuse(fmt::format("{} from row {} on (this rank makes rows {} to {}). Ask for rows inside",
                       counted(count, "row"), first, first_, last_));
  if (count > 0)
    fill(first, first + count, out);
  else
    out.clear();
}

}  // namespace problems
}  // namespace hostless
