// The page of all options: written by what takes them.
#include <CLI/CLI.hpp>
#include <cstdint>

#include "base/file.hpp"
#include "commands.hpp"
#include "hostless/solve/option_table.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

int check_page(std::string const& path) {
  constexpr std::int64_t most = 1 << 24;  // many times the page
  if (read_whole_file(path, most) == options_page()) return 0;
  tell(
      "hostless: {} is not what the table of options says (one of them was changed). Use hostless options "
      "--output {}.\n",
      path, path);
  return 1;
}

}  // namespace

void add_options(CLI::App& app, std::function<int()>& work) {
  struct Pages {
    std::string output = "-", check;
  };
  auto o = std::make_shared<Pages>();
  CLI::App* c =
      app.add_subcommand("options", "Every option of a solve, as the command, Python and C spell it");
  auto* const output =
      c->add_option("--output", o->output, "Write the page, as Markdown; - for standard output")
          ->capture_default_str();
  c->add_option("--check", o->check, "Exit with 1 unless this page is the same")->excludes(output);
  c->callback([o, &work] {
    work = [o] {
      if (!o->check.empty()) return check_page(o->check);
      write_text(o->output, options_page());
      return 0;
    };
  });
}

}  // namespace hostless
