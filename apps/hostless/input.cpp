#include "input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "hostless/files/matrix_file.hpp"

namespace hostless {

void InputOptions::add_problem(CLI::App& command) {
  auto* kind = command.add_option("--generate", generate,
                                  fmt::format("Generate a problem: {}", fmt::join(problem_names(), ", ")));
  command
      .add_option("--preset", preset_name,
                  fmt::format("Generate a matrix of the papers' sizes: {}", fmt::join(preset_names(), ", ")))
      ->excludes(kind);
  command.add_option("--size", size, "Nodes in x, y, z; one number is used for all")
      ->delimiter(',')
      ->expected(1, 3);
  command.add_option("--scale", scale, "Shrinks a preset to about this share of its rows")
      ->capture_default_str();
  command.add_option("--contrast", contrast, "Spread of the coefficients; 1 makes them constant");
  command.add_option("--boundary", boundary, "standard, dirichlet or neumann");
  command.add_option("--seed", seed, "Of the coefficients, the manufactured solution and METIS")
      ->capture_default_str();
}

ProblemOptions InputOptions::problem() const {
  ProblemOptions p;
  if (!preset_name.empty()) {
    if (!size.empty())
      throw Error(ErrorCode::usage, "--size with --preset (a preset has its size). Use --scale.");
    p = preset(preset_name, scale);
  } else {
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
  if (contrast != 0) p.contrast = contrast;
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

void LayoutOptions::add(CLI::App& command) {
  command
      .add_option("--partition", partition, "auto, contiguous, metis, or file:PATH (one part number a row)")
      ->capture_default_str();
  command.add_option("--format", format, "auto, csr, bsr, bsr2, bsr3, bsr4, bsr6 or sell")
      ->capture_default_str();
  command.add_option("--columns", columns, "Column offsets: auto, 16 or 32 bits")->capture_default_str();
  command.add_option("--block-size", block, "1, 2, 3, 4 or 6; 0 finds it in the matrix")
      ->capture_default_str();
  command
      .add_option("--slices", slices,
                  "Slices a rank; part of the plan, so another number gives other bits; 0: automatic")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--route", route, "direct, two_step, three_step, or auto (three_step between nodes)")
      ->capture_default_str();
  command.add_option("--ranks-per-node", ranks_per_node, "Declares the nodes; 0 finds them by host name")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

MatrixOptions LayoutOptions::parse() const {
  MatrixOptions o;
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
  o.ranks_per_node = ranks_per_node;
  return o;
}

}  // namespace hostless
