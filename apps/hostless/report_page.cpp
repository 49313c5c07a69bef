// `hostless report`: the Python package makes the page. This command finds a Python and becomes it.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "commands.hpp"
#include "hostless/base/error.hpp"
#include "numbers.hpp"

namespace hostless {
namespace {

namespace fs = std::filesystem;

struct PageOptions {
  std::vector<std::string> files;
  std::string output = "report.html", title, bandwidth;
};

// `python3 -m hostless.report`, but for two things: files of the folder that one stands in are not run, and a
// Python without the package says what to do about it.
constexpr char const* first_words = R"(
import sys
sys.path[:] = [folder for folder in sys.path if folder]
try:
    from hostless.report.__main__ import main
except ImportError as error:
    print(f"hostless: {sys.executable} cannot import hostless.report: {error} (the Python package makes the page). "
          "Install it with `pip install .` in a checkout, or name a Python that has it in HOSTLESS_PYTHON.",
          file=sys.stderr)
    sys.exit(4)
sys.exit(main())
)";

bool can_run(fs::path const& program) {
  std::error_code ignored;
  return fs::is_regular_file(program, ignored) && access(program.c_str(), X_OK) == 0;
}

// The Python of the environment that this command was installed into, activated or not.
fs::path python_beside() {
  std::error_code problem;
  fs::path const folder = fs::read_symlink("/proc/self/exe", problem).parent_path();
  if (problem) return {};
  fs::path const prefix = folder.parent_path();
  bool const environment =
      fs::exists(prefix / "pyvenv.cfg", problem) || fs::exists(prefix / "conda-meta", problem);
  return environment && can_run(folder / "python3") ? folder / "python3" : fs::path();
}

/// HOSTLESS_PYTHON, the Python of this command's environment, or else the one that PATH finds.
std::string python() {
  char const* const named = std::getenv("HOSTLESS_PYTHON");
  if (named != nullptr && *named != '\0') return named;
  fs::path const beside = python_beside();
  return beside.empty() ? "python3" : beside.string();
}

[[noreturn]] void become_python(PageOptions const& o) {
  std::vector<std::string> words = {python(), "-c", first_words, "--output", o.output};
  if (!o.title.empty()) words.insert(words.end(), {"--title", o.title});
  if (!o.bandwidth.empty()) words.insert(words.end(), {"--bandwidth", o.bandwidth});
  words.push_back("--");
  words.insert(words.end(), o.files.begin(), o.files.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  throw Error(
      ErrorCode::environment,
      fmt::format("{}: cannot be run: {} (Python makes the page). Install python3, or name a Python in "
                  "HOSTLESS_PYTHON.",
                  words[0], std::strerror(errno)));
}

}  // namespace

void add_report(CLI::App& app, std::function<int()>& work) {
  auto o = std::make_shared<PageOptions>();
  CLI::App* c = app.add_subcommand("report", "One HTML page of JSON results: tables and pictures");
  c->footer("Needs the Python package of hostless with matplotlib and jinja2.");
  c->add_option("files", o->files,
                "JSON files of `solve`, `plan` and `bench solve`; several results stand side by side")
      ->required();
  c->add_option("-o,--output", o->output, "The page; - for standard output")->capture_default_str();
  c->add_option("--title", o->title, "Of the page [made from the results]");
  c->add_option("--bandwidth", o->bandwidth,
                "Bytes a second that the memory of a solve can be read at, for results without a measurement "
                "(those of GPUs: 4.5e12 on an H200)")
      ->check(real_number(false));
  c->callback([o, &work] { work = [o]() -> int { become_python(*o); }; });
}

}  // namespace hostless
