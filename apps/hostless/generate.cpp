#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/bytes_text.hpp"
#include "commands.hpp"
#include "hostless/files/matrix_market.hpp"
#include "hostless/files/petsc_binary.hpp"
#include "hostless/problems/graphs.hpp"
#include "input.hpp"
#include "numbers.hpp"
#include "setup_shown.hpp"
#include "signals.hpp"
#include "solve/matrix/memory_need.hpp"
#include "standard_output.hpp"

namespace hostless {
namespace {

bool ends_with(std::string const& text, std::string const& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Digits of row and column, two blanks, a value and the end of the line; of one triangle.
double least_market_bytes(double rows, double entries) {
  double const digits = std::max(1.0, std::floor(std::log10(rows)) - 1);
  return 0.5 * (entries + rows) * (2 * digits + 4);
}

// Hours of writing end when the disk is full: that can be known before.
void require_disk(std::string const& path, ProblemOptions const& problem, bool petsc) {
  if (!sizes_are_checked()) return;
  auto const rows = static_cast<double>(problem_rows(problem)),
             entries = static_cast<double>(least_entries(problem));
  double const need = petsc ? 4 * rows + 12 * entries : least_market_bytes(rows, entries);
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return;  // the writer says what is wrong with it
  double const room = static_cast<double>(disk.f_bfree) * static_cast<double>(disk.f_frsize);
  if (need <= room) return;
  throw Error(
      ErrorCode::environment,
      fmt::format("{}: at least {} are needed on its disk ({} are free). Use another disk or a smaller "
                  "problem; HOSTLESS_SIZE_CHECK=0 tries it all the same.",
                  path, bytes_text(need), bytes_text(room)));
}

bool is_one_of(std::vector<std::string> const& names, std::string const& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A graph is all that its name says.
void refuse_shapes(CLI::App const& command, std::string const& graph) {
  for (char const* const option :
       {"--size", "--scale", "--contrast", "--boundary", "--long-edges", "--time-step", "--seed"})
    if (command.count(option) > 0)
      throw Error(
          ErrorCode::usage,
          fmt::format("{} with the graph {} is refused (it is always the same). Drop it.", option, graph));
}

}  // namespace

void add_generate(CLI::App& app, std::function<int()>& work) {
  struct Options {
    InputOptions input;
    std::string what, output;
    int ranks = 1;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      app.add_subcommand("generate", "Write a generated matrix: Matrix Market, or PETSc binary for .petsc");
  c->add_option("what", o->what,
                fmt::format("A kind ({}), a preset ({}) or a graph ({})", fmt::join(problem_names(), ", "),
                            fmt::join(preset_names(), ", "), fmt::join(graph_names(), ", ")));
  c->add_option("-o,--output", o->output, "File to write: .mtx or .petsc");
  o->input.add_problem(*c);
  c->remove_option(c->get_option("--generate"));
  c->remove_option(c->get_option("--preset"));
  for (char const* const option : {"--generate", "--preset"})  // as all other commands spell it: not listed
    c->add_option_function<std::string>(
         option,
         [option](std::string const& name) {
           throw CLI::ValidationError(
               option,
               fmt::format("{} (this command generates and nothing else). Write hostless generate {}",
                           name.empty() ? "no name" : "'" + name + "'", name.empty() ? "NAME" : name));
         })
        ->expected(0, 1)
        ->group("");
  c->add_option("--ranks", o->ranks, "Threads that write")
      ->capture_default_str()
      ->check(whole_number(1, most_workers));
  c->callback([o, c, &work] {
    work = [o, c] {
      if (o->what.empty())
        throw Error(ErrorCode::usage,
                    fmt::format("no matrix to generate. Name a kind ({}), a preset ({}) or a graph ({}).",
                                fmt::join(problem_names(), ", "), fmt::join(preset_names(), ", "),
                                fmt::join(graph_names(), ", ")));
      if (o->output.empty())
        throw Error(ErrorCode::usage,
                    "no file to write. Name one that ends in .mtx or .petsc with --output.");
      bool const graph = is_one_of(graph_names(), o->what);
      if (graph) {
        refuse_shapes(*c, o->what);
      } else {
        (is_one_of(preset_names(), o->what) ? o->input.preset_name : o->input.generate) = o->what;
        o->input.check();
      }
      bool const petsc = ends_with(o->output, ".petsc");
      if (!petsc && !ends_with(o->output, ".mtx")) {
        throw Error(
            ErrorCode::usage,
            fmt::format("output '{}' (its ending decides the format). Use .mtx or .petsc.", o->output));
      }
      if (!graph) require_disk(o->output, o->input.problem(), petsc);
      let_setup_tidy();
      run_on_threads(o->ranks, [&](Group& group) {
        SetupShown const shown(group.rank() == 0);
        auto const source = graph ? make_graph(o->what, group.size(), group.rank())
                                  : o->input.open(group, nullptr, 0, Symmetry::required);
        petsc ? write_petsc_matrix(group, o->output, *source)
              : write_matrix_market(group, o->output, *source);
      });
      print("{}\n  written to {}\n", graph ? describe_graph(o->what) : o->input.describe(), o->output);
      return 0;
    };
  });
}

}  // namespace hostless
