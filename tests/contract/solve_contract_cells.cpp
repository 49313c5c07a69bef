#include "solve_contract_cells.hpp"

#include <array>

namespace hostless::contract {
namespace {

// problem, partition, slices, method, preconditioner, run, route, format
Point const sizes = {4, 2, 4, static_cast<int>(methods().size()), 3, 5, static_cast<int>(all_routes.size()),
                     6};
// How a plan orders its sums.
struct Cut {
  int slices;  // 0: as the library chooses
  int threads_per_row;
};
constexpr std::array<Cut, 4> cuts = {{{0, 1}, {3, 1}, {40, 1}, {3, 4}}};
Cut cut_of(Plan const& plan) { return cuts[static_cast<std::size_t>(plan.slices)]; }
// CSR alone has several accumulators a row.
int format_index(Cell const& cell) {
  return cut_of(cell.plan).threads_per_row > 1 ? cell.way.format % 2 : cell.way.format;
}

std::vector<Cell> cells_of(std::vector<Point> const& points) {
  std::vector<Cell> cells;
  for (Point const& p : points) cells.push_back({plan_at(p), {p[5], p[6], p[7]}});
  return cells;
}

FormatRequest format_of(int index, int block) {
  static constexpr std::array<char const*, 3> formats = {"csr", "bsr", "sell"};
  std::string const format = formats[static_cast<std::size_t>(index / 2)];
  // Rows without blocks have no block format: whole diagonals take that place.
  if (format == "bsr" && block == 1) return FormatRequest::from("sell", "auto");
  return FormatRequest::from(format, index % 2 == 0 ? "16" : "32");
}

}  // namespace

Plan plan_at(Point const& p) { return {p[0], p[1], p[2], p[3], p[4]}; }
Point plan_sizes() { return {sizes.begin(), sizes.begin() + 5}; }

ProblemChoice problem_of(int index) {
  ProblemOptions o;
  o.contrast = 100;
  switch (index) {
    case 0:
      o.kind = "elasticity-hex8";
      o.nx = 3, o.ny = 3, o.nz = 4;
      return {o, 0};
    case 1:
      o.kind = "poisson7";
      o.nx = o.ny = o.nz = 8;
      return {o, 1};
    case 2:
      o.kind = "circuit";
      o.nx = 20, o.ny = 18;
      return {o, 1};
    default:
      o.kind = "poisson7";
      o.nx = 6, o.ny = 8, o.nz = 8;
      return {o, 2};
  }
}

MatrixOptions matrix_options(Cell const& cell) {
  MatrixOptions m;
  int const block = problem_of(cell.plan.problem).block;
  m.block = block == 0 ? 3 : block;
  m.partition =
      cell.plan.partition == 0 ? MatrixOptions::Partition::contiguous : MatrixOptions::Partition::metis;
  m.slices = cut_of(cell.plan).slices;
  m.threads_per_row = cut_of(cell.plan).threads_per_row;
  m.route = all_routes[static_cast<std::size_t>(cell.way.route)];
  m.ranks_per_node = 2;
  m.format = format_of(format_index(cell), m.block);
  return m;
}

SolveOptions solve_options(Cell const& cell, std::function<void(int)> disturb) {
  SolveOptions s;
  s.method = static_cast<Method>(cell.plan.method);
  s.preconditioner = static_cast<PreconditionerKind>(cell.plan.preconditioner);
  s.check_symmetry = false;  // costs as much as some iterations
  s.rtol = 0.05;
  s.max_iterations = 12;  // some plans converge before, others end here: both endings are compared
  switch (cell.way.run) {
    case 0:
      break;
    case 1:
    case 2:
      s.run.kind = RunKind::persistent;
      s.run.threads = cell.way.run + 1;
      break;
    default:
      s.run.kind = RunKind::graph;
      s.run.check_interval = cell.way.run == 3 ? 1 : 3;
  }
  s.run.disturb = std::move(disturb);
  s.limits = {120, 120};
  return s;
}

std::string name(Plan const& plan) {
  static constexpr std::array<char const*, 4> problems = {"elasticity", "poisson7", "circuit",
                                                          "poisson7-by-2"};
  return std::string(problems[static_cast<std::size_t>(plan.problem)]) +
         (plan.partition == 0 ? " contiguous" : " metis") + " slices " + std::to_string(cut_of(plan).slices) +
         " row lanes " + std::to_string(cut_of(plan).threads_per_row) + " " +
         hostless::name(static_cast<Method>(plan.method)) + " " +
         hostless::name(static_cast<PreconditionerKind>(plan.preconditioner));
}

std::string name(Cell const& c) {
  static constexpr std::array<char const*, 5> runs = {"host", "persistent-2", "persistent-3", "graph-1",
                                                      "graph-3"};
  static constexpr std::array<char const*, 6> formats = {"csr16", "csr32",  "bsr16",
                                                         "bsr32", "sell16", "sell32"};
  auto const at = [](auto const& names, int i) { return std::string(names[static_cast<std::size_t>(i)]); };
  return name(c.plan) + " | " + at(runs, c.way.run) + " " +
         hostless::name(all_routes[static_cast<std::size_t>(c.way.route)]) + " " +
         at(formats, format_index(c));
}

std::vector<Cell> pairwise_cover() { return cells_of(cover_pairs(sizes)); }

std::vector<Cell> full_product() {
  // Cells of one matrix follow each other, and matrices of one problem.
  return cells_of(all_points(sizes, {0, 1, 2, 6, 7, 3, 4, 5}));
}

}  // namespace hostless::contract
