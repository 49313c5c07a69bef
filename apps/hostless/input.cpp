#include "input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "hostless/files/matrix_file.hpp"
#include "lists.hpp"
#include "numbers.hpp"

namespace hostless {
namespace {

std::vector<std::int64_t> sides_in(std::string const& text) {
  auto sides = numbers_in("--size", text, std::int64_t{1});
  if (sides.size() > 3) throw CLI::ValidationError("--size", "'" + text + "' (there are three directions)");
  return sides;
}

}  // namespace

void InputOptions::add_problem(CLI::App& command) {
  auto* kind = command.add_option("--generate", generate,
                                  fmt::format("Generate a problem: {}", fmt::join(problem_names(), ", ")));
  command
      .add_option("--preset", preset_name,
                  fmt::format("Generate a matrix of the papers' sizes: {}", fmt::join(preset_names(), ", ")))
      ->excludes(kind);
  command.add_option_function<std::string>(
      "--size", [this](std::string const& text) { size = sides_in(text); },
      "Nodes in each direction: N, or NX,NY,NZ");
  command.add_option("--scale", scale, "Shrinks a preset to about this share of its rows (default 1)");
  command.add_option("--contrast", contrast, "Spread of the coefficients; 1 makes them constant");
  command.add_option("--boundary", boundary, "standard, dirichlet or neumann");
  command.add_option("--long-edges", long_edges,
                     "circuit: long edges as a share of the nodes, 0 to 0.5 (default 0.02)");
  command.add_option("--time-step", time_step,
                     "monodomain: dt in units of h^2 / conductivity along the fibre (default 0.125)");
  command.add_option("--seed", seed, "Of the coefficients, the manufactured solution and METIS")
      ->capture_default_str()
      ->check(whole_number(std::uint64_t{0}));
}

void InputOptions::check_given() const {
  if (file.empty() == !generated())
    throw Error(ErrorCode::usage, "give one of: a matrix file, --generate, --preset.");
  check();
}

void InputOptions::check() const {
  struct {
    char const* option;
    bool given;
  } const all[] = {{"--size", !size.empty()},
                   {"--scale", scale.has_value()},
                   {"--contrast", contrast.has_value()},
                   {"--boundary", !boundary.empty()},
                   {"--long-edges", long_edges.has_value()},
                   {"--time-step", time_step.has_value()}};
  if (generated()) {
    problem_rows(problem());
    return;
  }
  for (auto const& one : all) {
    if (!one.given) continue;
    throw Error(ErrorCode::usage,
                fmt::format("{} with the matrix {} (it shapes generated problems). Drop it, "
                            "or use --generate or --preset.",
                            one.option, file));
  }
}

ProblemOptions InputOptions::problem() const {
  ProblemOptions p;
  if (!preset_name.empty()) {
    if (!size.empty())
      throw Error(ErrorCode::usage, "--size with --preset (a preset has its size). Use --scale.");
    p = preset(preset_name, scale.value_or(1.0));
  } else {
    if (scale)
      throw Error(ErrorCode::usage,
                  fmt::format("--scale with {} (it shrinks presets). Use --size.", generate));
    p.kind = generate;
    bool const one = generate == "poisson1d";
    bool const two = generate == "poisson2d" || generate == "poisson2d-tri" || generate == "circuit";
    auto side = [&](std::size_t k) {
      if (size.empty()) return std::int64_t{one ? 100000 : two ? 300 : 32};
      return k < size.size() ? size[k] : size.back();
    };
    p.nx = side(0);
    if (!one) p.ny = side(1);
    if (!one && !two) p.nz = side(2);
    std::size_t const most = one ? 1 : two ? 2 : 3;
    if (size.size() > most) {
      throw Error(ErrorCode::usage,
                  fmt::format("{} numbers for --size ({} has {} dimensions).", size.size(), generate, most));
    }
  }
  if (contrast) p.contrast = *contrast;
  p.long_edges = long_edges;
  p.time_step = time_step;
  if (!boundary.empty()) p.boundary = boundary_from_name(boundary);
  p.seed = seed;
  return p;
}

std::unique_ptr<RowSource> InputOptions::open(Group& group) const {
  std::unique_ptr<RowSource> source;
  if (generated()) {
    group.together([&] { source = make_problem(problem(), group.size(), group.rank()); });
  } else {
    source = read_matrix(group, file);
  }
  return source;
}

std::string InputOptions::describe() const { return generated() ? hostless::describe(problem()) : file; }

void LayoutOptions::add_block(CLI::App& command) {
  command.add_option("--block-size", block, "1, 2, 3, 4 or 6; 0 finds it in the matrix")
      ->capture_default_str();
}

void LayoutOptions::add_storage(CLI::App& command) {
  command
      .add_option("--format", format,
                  "auto, csr, bsr, bsr2, bsr3, bsr4, bsr6 or sell; with --gpus: auto, diagonals, "
                  "diagonals-full, sell or csr; with --reduction fast also merge or vendor")
      ->capture_default_str();
  command.add_option("--columns", columns, "Column offsets: auto, 16 or 32 bits")->capture_default_str();
}

void LayoutOptions::add_shares(CLI::App& command) {
  command
      .add_option("--partition", partition, "auto, contiguous, metis, or file:PATH (one part number a row)")
      ->capture_default_str();
  command
      .add_option("--slices", slices,
                  "Slices a rank; part of the plan, so another number gives other bits; 0: automatic")
      ->capture_default_str()
      ->check(whole_number(0));
  command
      .add_option(
          "--row-lanes", row_lanes,
          "Accumulators of a row, 1 to 32, a power of two: long rows are then shared by as many threads "
          "of a GPU; part of the plan too")
      ->capture_default_str()
      ->check(whole_number(1, Tiling::most_row_lanes));
  command.add_option("--route", route, "direct, two_step, three_step, or auto (three_step between nodes)")
      ->capture_default_str();
  command.add_option("--ranks-per-node", ranks_per_node, "Declares the nodes; 0 finds them by host name")
      ->capture_default_str()
      ->check(whole_number(0));
}

MatrixOptions LayoutOptions::parse(std::uint64_t seed) const {
  MatrixOptions o;
  o.seed = static_cast<int>(seed & 0x7fffffff);  // METIS counts seeds in 31 bits
  using Partition = MatrixOptions::Partition;
  if (partition == "auto") {
    o.partition = Partition::automatic;
  } else if (partition == "contiguous") {
    o.partition = Partition::contiguous;
  } else if (partition == "metis") {
    o.partition = Partition::metis;
  } else if (partition.rfind("file:", 0) == 0 && partition.size() > 5) {
    o.partition = Partition::file;
    o.partition_file = partition.substr(5);
  } else {
    throw Error(ErrorCode::usage,
                fmt::format("unknown partition '{}'. Use auto, contiguous, metis or file:PATH.", partition));
  }
  std::string kind = format;
  o.block = block;
  if (kind.size() == 4 && kind.rfind("bsr", 0) == 0) {  // bsr3 is bsr with blocks of 3
    int const wanted = kind[3] - '0';
    if (block != 0 && block != wanted) {
      throw Error(
          ErrorCode::usage,
          fmt::format("--format {} with --block-size {} (they contradict each other).", format, block));
    }
    o.block = wanted;
    kind = "bsr";
  }
  o.format = FormatRequest::from(kind, columns);
  o.automatic_route = route == "auto";
  if (!o.automatic_route) o.route = route_from(route.c_str());
  o.slices = slices;
  if (!Tiling::has_row_lanes(row_lanes))
    throw Error(
        ErrorCode::usage,
        fmt::format("--row-lanes {} (a row's accumulators are halved until one is left). Use 1, 2, 4, 8, "
                    "16 or 32.",
                    row_lanes));
  o.row_lanes = row_lanes;
  o.ranks_per_node = ranks_per_node;
  return o;
}

}  // namespace hostless
