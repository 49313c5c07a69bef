// `hostless report`: the Python package makes the page. This command finds a Python and becomes it.
#include <CLI/CLI.hpp>
#include <vector>

#include "commands.hpp"
#include "numbers.hpp"
#include "pictures/python_command.hpp"

namespace hostless {
namespace {

struct PageOptions {
  std::vector<std::string> files;
  std::string output = "report.html", title, bandwidth;
};

[[noreturn]] void make_page(PageOptions const& o) {
  std::vector<std::string> words = {"--output", o.output};
  if (!o.title.empty()) words.insert(words.end(), {"--title", o.title});
  if (!o.bandwidth.empty()) words.insert(words.end(), {"--bandwidth", o.bandwidth});
  words.push_back("--");
  words.insert(words.end(), o.files.begin(), o.files.end());
  become_python(python_program("hostless.report.__main__", "the page"), words, "the page");
}

}  // namespace

void add_report(CLI::App& app, std::function<int()>& work) {
  auto o = std::make_shared<PageOptions>();
  CLI::App* c = app.add_subcommand("report", "One HTML page of JSON results: tables and pictures");
  c->footer("Needs the Python package of hostless with matplotlib and jinja2.");
  c->add_option(
       "files", o->files,
       "JSON files of `solve`, `stencil`, `plan` and `bench solve`; several results stand side by side")
      ->required();
  c->add_option("-o,--output", o->output, "The page; - for standard output")->capture_default_str();
  c->add_option("--title", o->title, "Of the page [made from the results]");
  c->add_option("--bandwidth", o->bandwidth,
                "Bytes a second that the memory of a solve can be read at, for results without a measurement "
                "(those of GPUs: 4.5e12 on an H200)")
      ->check(real_number(false));
  c->callback([o, &work] { work = [o]() -> int { make_page(*o); }; });
}

}  // namespace hostless
