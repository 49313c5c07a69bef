#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "hostless/files/matrix_market.hpp"
#include "hostless/files/petsc_binary.hpp"
#include "input.hpp"
#include "numbers.hpp"

namespace hostless {
namespace {

bool ends_with(std::string const& text, std::string const& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
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
  c->add_option("what", o->what, "A kind (see --generate) or a preset (see --preset)")->required();
  c->add_option("-o,--output", o->output, "File to write: .mtx or .petsc")->required();
  o->input.add_problem(*c);
  c->remove_option(c->get_option("--generate"));
  c->remove_option(c->get_option("--preset"));
  c->add_option("--ranks", o->ranks, "Threads that write")
      ->capture_default_str()
      ->check(whole_number(1, most_workers));
  c->callback([o, &work] {
    work = [o] {
      auto const presets = preset_names();
      bool const preset = std::find(presets.begin(), presets.end(), o->what) != presets.end();
      (preset ? o->input.preset_name : o->input.generate) = o->what;
      o->input.check();
      bool const petsc = ends_with(o->output, ".petsc");
      if (!petsc && !ends_with(o->output, ".mtx")) {
        throw Error(
            ErrorCode::usage,
            fmt::format("output '{}' (its ending decides the format). Use .mtx or .petsc.", o->output));
      }
      run_on_threads(o->ranks, [&](Group& group) {
        auto const source = o->input.open(group);
        petsc ? write_petsc_matrix(group, o->output, *source)
              : write_matrix_market(group, o->output, *source);
      });
      fmt::print("{}\n  written to {}\n", o->input.describe(), o->output);
      return 0;
    };
  });
}

}  // namespace hostless
