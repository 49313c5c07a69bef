#include "pictures/python_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/whole_file.hpp"
#include "child_command.hpp"
#include "hostless/base/error.hpp"

namespace hostless {
namespace {

namespace fs = std::filesystem;

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

/// A file that is gone when this is.
struct PassedFile {
  explicit PassedFile(std::string const& beside) : path(fmt::format("{}.{}.json", beside, getpid())) {}
  PassedFile(PassedFile const&) = delete;
  PassedFile& operator=(PassedFile const&) = delete;
  ~PassedFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  std::string path;
};

// What is none may end without a word. One that cannot be run at all says so when this command becomes it.
void check_python(std::string const& name, std::string const& makes) {
  constexpr double longest_s = 60;
  constexpr int not_run = 127;
  ChildEnd const end = run_quietly({{name, "-c", "print(6 * 7)"}, {}, true, longest_s});
  bool const runs = !end.problem.empty() || end.code != not_run;
  if (!runs || end.output == "42\n") return;
  std::string const how = !end.problem.empty() ? end.problem
                          : end.code != 0      ? fmt::format("it ended with exit code {}", end.code)
                                               : "it printed something else than 42 for print(6 * 7)";
  throw Error(ErrorCode::environment,
              fmt::format("{}: is no Python that runs: {} (Python makes {}). Install python3, or name a "
                          "Python in HOSTLESS_PYTHON.",
                          name, how, makes));
}

// Whatever is wrong with Python, its package or its libraries is said as this command says it.
void draw_by(std::vector<std::string> const& arguments, std::string const& picture) {
  std::vector<std::string> words{python(), "-c", python_program("hostless.plots_of_machines", "pictures")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ChildEnd const end = run_quietly({words, {}, true, 120});
  std::string const first = end.errors.substr(0, end.errors.find('\n'));
  if (!end.problem.empty() || end.code != 0)
    throw Error(ErrorCode::environment,
                first.starts_with("hostless: ")
                    ? first.substr(10)
                    : fmt::format("{}: {} (Python draws the picture {}). Install python3 and matplotlib, "
                                  "or name a Python in HOSTLESS_PYTHON.",
                                  python(), end.problem.empty() ? first : end.problem, picture));
}

}  // namespace

std::string python() {
  char const* const named = std::getenv("HOSTLESS_PYTHON");
  if (named != nullptr && *named != '\0') return named;
  fs::path const beside = python_beside();
  return beside.empty() ? "python3" : beside.string();
}

std::string python_program(std::string const& module, std::string const& makes) {
  return fmt::format(R"(
import sys
sys.path[:] = [folder for folder in sys.path if folder]
try:
    from {0} import main
except ImportError as error:
    print(f"hostless: {{sys.executable}} cannot import {1}: {{error}} (the Python package makes {2}). "
          "Install it with `pip install .` in a checkout, or name a Python that has it in HOSTLESS_PYTHON.",
          file=sys.stderr)
    sys.exit(4)
sys.exit(main())
)",
                     module, module.substr(0, module.find(".__main__")), makes);
}

void become_python(std::string const& program, std::vector<std::string> const& arguments,
                   std::string const& makes) {
  std::string const name = python();
  check_python(name, makes);
  std::vector<std::string> words = {name, "-c", program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  throw Error(
      ErrorCode::environment,
      fmt::format(
          "{}: cannot be run: {} (Python makes {}). Install python3, or name a Python in HOSTLESS_PYTHON.",
          words[0], std::strerror(errno), makes));
}

void check_pictures(std::string const& picture) {
  if (picture.empty()) return;
  check_whole_file(picture);
  draw_by({}, picture);
}

void draw_picture(std::string const& json, std::string const& picture) {
  check_whole_file(picture);
  PassedFile const passed(picture);
  write_whole_file(passed.path, json);
  draw_by({passed.path, picture}, picture);
}

}  // namespace hostless
