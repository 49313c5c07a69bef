#include "input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/counted.hpp"
#include "hostless/files/matrix_file.hpp"
#include "lists.hpp"
#include "numbers.hpp"
#include "solve/matrix/memory_need.hpp"
#include "standard_output.hpp"

namespace hostless {

void InputOptions::add_problem(CLI::App& command) {
  auto const has_name = [](std::string const& text) {
    return text.empty()
               ? std::string("a problem without a name (an empty word). Name one, or drop the option")
               : std::string();
  };
  auto* kind = command
                   .add_option("--generate", generate,
                               fmt::format("Generate a problem: {}", fmt::join(problem_names(), ", ")))
                   ->check(has_name);
  command
      .add_option("--preset", preset_name,
                  fmt::format("Generate a matrix of the size and class of a known one: {}",
                              fmt::join(preset_names(), ", ")))
      ->check(has_name)
      ->excludes(kind);
  command.add_option_function<std::string>(
      "--size", [this](std::string const& text) { size = extents_in("--size", text); },
      "Nodes in each direction: N, or NX,NY,NZ or NXxNYxNZ (default: 100000 in one dimension, 300 each in "
      "two, 32 in three)");
  command.add_option("--scale", scale, "Shrinks a preset to about this share of its rows (default 1)");
  command.add_option(
      "--contrast", contrast,
      fmt::format("Spread of the coefficients, large over small, 1 to 1e12; 1 makes them constant "
                  "(default {:g}; a preset has its own)",
                  ProblemOptions().contrast));
  command.add_option(
      "--boundary", boundary,
      fmt::format("dirichlet (what makes the matrix regular is held), neumann (nothing is), or "
                  "standard: neumann of monodomain, else dirichlet (default {})",
                  name(ProblemOptions().boundary)));
  command.add_option("--long-edges", long_edges,
                     "circuit: long edges as a share of the nodes, 0 to 0.5 (default 0.02)");
  command.add_option(
      "--time-step", time_step,
      "monodomain: dt in units of h^2 / conductivity along the fibre (default 0.125; the preset stocf "
      "has its own)");
  command.add_option("--seed", seed, "Of the coefficients, the manufactured solution and METIS")
      ->capture_default_str()
      ->check(whole_number(std::uint64_t{0}, most_seed));
}

void InputOptions::check_given(char const* or_else) const {
  if (file.empty() == !generated())
    throw Error(ErrorCode::usage,
                fmt::format("give one of: a matrix file, --generate, --preset{}.", or_else));
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
                fmt::format("{} with the matrix {} is refused (it shapes generated problems). Drop it, "
                            "or use --generate or --preset.",
                            one.option, file));
  }
}

ProblemOptions InputOptions::problem() const {
  ProblemOptions p;
  if (!preset_name.empty()) {
    if (!size.empty())
      throw Error(ErrorCode::usage, "--size with --preset is refused (a preset has its size). Use --scale.");
    p = preset(preset_name, scale.value_or(1.0));
  } else {
    if (scale)
      throw Error(ErrorCode::usage,
                  fmt::format("--scale with {} is refused (it shrinks presets). Use --size.", generate));
    p = problem_of(generate, size);
  }
  if (contrast) p.contrast = *contrast;
  p.long_edges = long_edges;
  if (time_step) p.time_step = time_step;  // a preset may have one
  if (!boundary.empty()) p.boundary = boundary_from_name(boundary);
  p.seed = seed;
  return p;
}

std::unique_ptr<RowSource> InputOptions::open(Group& group, MatrixOptions const* layout, int vectors,
                                              Symmetry symmetry, double symmetry_tolerance) const {
  double const share = 1.0 / group.size();
  auto const need_of = [&](std::int64_t rows, std::int64_t entries) {
    if (layout == nullptr) return MemoryNeed();
    return least_need(share * static_cast<double>(rows), share * static_cast<double>(entries), *layout,
                      group.size(), vectors);
  };
  std::unique_ptr<RowSource> source;
  if (generated()) {
    MemoryNeed need;
    group.together([&] {
      source = make_problem(problem(), group.size(), group.rank());
      need = need_of(source->global_rows(), least_entries(problem()));
    });
    require_memory(group, need, describe());
    return source;
  }
  auto const check_room = [&](MatrixSizes const& sizes) {
    MemoryNeed need = need_of(sizes.rows, sizes.entries);
    need.setup += share * (8.0 * static_cast<double>(sizes.rows) +
                           static_cast<double>(sizes.entry_bytes) * static_cast<double>(sizes.entries));
    require_memory(group, need,
                   fmt::format("{}: {} and {}", file, counted(sizes.rows, "row"),
                               counted(sizes.entries, "entry", "entries")));
  };
  auto rows = read_matrix(group, file, check_room, symmetry, symmetry_tolerance);
  if (group.rank() == 0 && rows->only_rounded())
    tell("hostless: {} is symmetric only up to rounding: {}\n", file, asymmetry_text(*rows->only_rounded()));
  return rows;
}

std::string InputOptions::describe() const { return generated() ? hostless::describe(problem()) : file; }

MatrixOptions LayoutOptions::parse(std::uint64_t seed, int gpus) const {
  Choices choices;
  taken.put_into(choices);
  return choices.layout.parse(seed, gpus);
}

void add_symmetry_tolerance(CLI::App& command, TakenOptions& taken) {
  taken.add(command, *find_option("symmetry_tolerance"));
}

void check_symmetry_tolerance(TakenOptions const& taken, bool generated, std::string const& methods) {
  if (!taken.is_given("symmetry_tolerance")) return;
  if (generated)
    throw Error(
        ErrorCode::usage,
        "--symmetry-tolerance with a generated matrix is refused (it is symmetric bit for bit). Drop it.");
  if (!methods.empty())
    throw Error(ErrorCode::usage,
                fmt::format("--symmetry-tolerance with {} is refused (no symmetry is needed: nobody compares "
                            "anything). Drop one of them.",
                            methods));
}

std::vector<NamedFile> files_read(InputOptions const& input, LayoutOptions const& layout) {
  constexpr std::string_view mark = "file:";
  std::string const partition = layout.taken.word("partition");
  return {{"the matrix", input.file},
          {"--partition", partition.starts_with(mark) ? partition.substr(mark.size()) : ""}};
}

}  // namespace hostless
