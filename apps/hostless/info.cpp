#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "commands.hpp"
#include "input.hpp"
#include "setup_shown.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

/// What one pass over the rows tells.
struct RowFacts {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max(), longest = 0, bandwidth = 0;
  std::int64_t missing_diagonal = 0, not_positive = 0, not_dominant = 0;
  double smallest_diagonal = std::numeric_limits<double>::infinity(),
         largest_diagonal = -std::numeric_limits<double>::infinity();
};

RowFacts facts_of(RowSource const& source) {
  RowFacts f;
  RowPanel panel;
  constexpr std::int64_t rows = 1536;
  SetupStage const stage("looking at the rows", source.last_row() - source.first_row());
  for (std::int64_t first = source.first_row(); first < source.last_row(); first += rows) {
    std::int64_t const count = std::min(rows, source.last_row() - first);
    source.panel(first, count, panel);
    setup_step(count);
    for (std::int64_t i = 0; i < count; ++i) {
      auto const begin = panel.offset[static_cast<std::size_t>(i)],
                 end = panel.offset[static_cast<std::size_t>(i) + 1];
      f.shortest = std::min(f.shortest, end - begin);
      f.longest = std::max(f.longest, end - begin);
      double diagonal = 0, others = 0;
      bool found = false;
      for (auto k = begin; k < end; ++k) {
        std::int64_t const column = panel.column[static_cast<std::size_t>(k)];
        double const value = panel.value[static_cast<std::size_t>(k)];
        f.bandwidth = std::max(f.bandwidth, std::abs(column - first - i));
        if (column == first + i) {
          found = true;
          diagonal = value;
        } else {
          others += std::abs(value);
        }
      }
      f.missing_diagonal += found ? 0 : 1;
      f.not_positive += diagonal > 0 ? 0 : 1;
      f.not_dominant += diagonal >= others ? 0 : 1;
      f.smallest_diagonal = std::min(f.smallest_diagonal, diagonal);
      f.largest_diagonal = std::max(f.largest_diagonal, diagonal);
    }
  }
  return f;
}

std::string symmetry_of(Group& group, RowSource const& source, double tolerance) {
  auto const* const read = dynamic_cast<StoredRows const*>(&source);
  if (read == nullptr) return "by construction";
  auto const found = check_symmetry(group, *read, tolerance);
  if (found.refused) return "none: " + asymmetry_text(*found.refused);
  if (found.furthest) return "up to rounding: " + asymmetry_text(*found.furthest);
  return "every entry compared with its mirror: equal";
}

int print_info(InputOptions const& input, LayoutOptions const& layout, std::string const& json) {
  run_with_threads_transport(1, [&](Transport& transport) {
    SetupShown shown(true);
    MatrixOptions const options = layout.parse(input.seed);
    auto const source = input.open(transport.group(), &options, 0, Symmetry::any);
    std::string const symmetry = symmetry_of(transport.group(), *source, symmetry_tolerance(layout.taken));
    RowFacts const f = facts_of(*source);
    Matrix const matrix = Matrix::from_source(transport, *source, options);
    shown.end();
    LocalMatrix const& local = *matrix.local();
    double const mean =
        static_cast<double>(matrix.global_entries()) / static_cast<double>(matrix.global_rows());
    if (json != "-") {
      print("{}\n", input.describe());
      print("  rows        {}\n  entries     {}\n", matrix.global_rows(), matrix.global_entries());
      print("  symmetry    {}\n", symmetry);
      print("  row length  {} to {}, mean {:.2f}\n  bandwidth   {}\n", f.shortest, f.longest, mean,
            f.bandwidth);
      print("  diagonal    {:.3e} to {:.3e}; {} missing, {} not positive; {} not diagonally dominant\n",
            f.smallest_diagonal, f.largest_diagonal, f.missing_diagonal, f.not_positive,
            counted(f.not_dominant, "row"));
      print("  block       {}\n  format      {}\n  why         {}\n", matrix.why_block(), local.describe(),
            local.why());
    }
    if (!json.empty()) {
      nlohmann::ordered_json j = {{"version", 1},
                                  {"input", input.describe()},
                                  {"rows", matrix.global_rows()},
                                  {"entries", matrix.global_entries()},
                                  {"symmetry", symmetry},
                                  {"row_length_min", f.shortest},
                                  {"row_length_max", f.longest},
                                  {"row_length_mean", mean},
                                  {"bandwidth", f.bandwidth},
                                  {"diagonal_min", f.smallest_diagonal},
                                  {"diagonal_max", f.largest_diagonal},
                                  {"diagonal_missing", f.missing_diagonal},
                                  {"diagonal_not_positive", f.not_positive},
                                  {"rows_not_dominant", f.not_dominant},
                                  {"block", local.tiling().block},
                                  {"format", name(local.format())},
                                  {"bytes", local.bytes()},
                                  {"why_block", matrix.why_block()},
                                  {"why_format", local.why()}};
      write_text(json, json_text(j));
    }
  });
  return 0;
}

}  // namespace

void add_info(CLI::App& app, std::function<int()>& work) {
  struct Options {
    InputOptions input;
    LayoutOptions layout;
    std::string json;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      app.add_subcommand("info", "Describe a matrix: size, rows, blocks, the format chosen and why");
  c->add_option("file", o->input.file, "Matrix Market (plain or gz), PETSc binary or scipy's .npz");
  o->input.add_problem(*c);
  o->layout.add_block(*c);
  o->layout.add_storage(*c);  // one rank: nothing is shared out
  add_symmetry_tolerance(*c, o->layout.taken);
  c->add_option("--json", o->json, "Write it as JSON; - for standard output");
  c->callback([o, &work] {
    work = [o] {
      o->input.check_given();
      check_symmetry_tolerance(o->layout.taken, o->input.generated());
      check_names({{"--json", o->json}}, files_read(o->input, o->layout));
      return print_info(o->input, o->layout, o->json);
    };
  });
}

}  // namespace hostless
