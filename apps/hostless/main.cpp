// The command line: one file a subcommand. What exit codes mean stands in docs/howto/solve-a-matrix.md.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>

#include "base/counted.hpp"
#include "base/nearest.hpp"
#include "base/variable.hpp"
#include "commands.hpp"
#include "hostless/base/environment.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/stuck.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "ranks.hpp"
#include "signals.hpp"
#include "standard_output.hpp"

namespace hostless {
namespace {

// The subcommand that the words have led to.
CLI::App const& chosen(CLI::App const& app) {
  CLI::App const* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands()[0];
  return *at;
}

// What there is to call that begins as `written` does: options, or subcommands.
std::vector<std::string> words_of(CLI::App const& command, bool options) {
  std::vector<std::string> words;
  if (options) {
    for (CLI::Option const* option : command.get_options())
      for (std::string const& name : option->get_lnames()) words.push_back("--" + name);
  } else {
    for (CLI::App const* sub : command.get_subcommands(nullptr)) words.push_back(sub->get_name());
  }
  return words;
}

std::string path_of(CLI::App const& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : path_of(*command.get_parent()) + " " + command.get_name();
}

std::string whole_sentence(std::string text) {
  if (!text.ends_with('.') && !text.ends_with('?')) text += '.';
  return text;
}

// What is wrong with the words, and what may have been meant.
std::string problem_of(CLI::App const& command, CLI::ParseError const& error) {
  auto const left = command.remaining();
  std::string const word = left.empty() ? "" : left.front().substr(0, left.front().find('='));
  bool const option = word.starts_with("-");
  auto const words = words_of(command, option);
  if (word.empty() || words.empty() || (!option && command.get_subcommands(nullptr).empty()))
    return whole_sentence(error.what());
  if (option)
    return fmt::format("'{}' is no option of {}.{}", word, path_of(command), did_you_mean(word, words));
  return fmt::format("'{}' is no subcommand of {}.{} Use one of: {}.", word, path_of(command),
                     did_you_mean(word, words), fmt::join(words, ", "));
}

int not_understood(CLI::App const& app, CLI::ParseError const& error) {
  CLI::App const& command = chosen(app);
  // Whoever names no subcommand wants to know which there are.
  bool const nothing_said = error.get_name() == "RequiredError" && command.remaining().empty() &&
                            !command.get_subcommands(nullptr).empty();
  if (nothing_said) {
    print("{}", app.help());
    return 0;
  }
  tell("hostless: {} See {} --help.\n", problem_of(command, error), path_of(command));
  return static_cast<int>(ErrorCode::usage);
}

// Whether it was given a file to write, which must come into being although nobody reads what is printed.
bool writes_a_file(CLI::App const& command) {
  for (char const* const name : {"--output", "--json", "--checkpoint", "--profile", "--samples", "--save"}) {
    CLI::Option const* const option = command.get_option_no_throw(name);
    if (option == nullptr) continue;
    for (std::string const& path : option->results())
      if (path != "-") return true;
  }
  return false;
}

struct Ended {
  int code;
  bool in_order = true;  ///< false: other ranks may wait for this one in the middle of something
};

Ended done(std::function<int()> const& work) {
  try {
    if (!started_by_mpi()) check_environment();  // there it is told once, by rank 0
    if (!started_by_mpi() && !started_by_launcher()) {
      tell_unknown_variables();            // with --quiet too, as errors are
      setenv(variables_are_told, "1", 1);  // to ranks that this process may start
    }
    return {work()};
  } catch (Reported const& e) {
    return {e.exit_code, false};  // rank 0 has said it
  } catch (Error const& e) {
    tell("hostless: {}\n", e.what());
    return {e.exit_code(), false};
  } catch (std::bad_alloc const&) {
    tell("hostless: out of memory (the problem does not fit). Use more ranks or a smaller problem.\n");
  } catch (std::exception const& e) {
    tell("hostless: {}\n", e.what());
  }
  return {static_cast<int>(ErrorCode::environment), false};
}

// Who has no ranks does the work of one process, and under mpirun would do it as often as there are processes. The
// doctor looks at each machine that it is started on.
bool is_of_one_process(CLI::App const& command) {
  return command.get_option_no_throw("--transport") == nullptr && command.get_name() != "doctor";
}

void refuse_processes(CLI::App const& command) {
  if (!started_by_mpi() || !is_of_one_process(command)) return;
  for (char const* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    std::int64_t const size = count_of(variable, 1);
    if (size < 2) continue;
    if (!is_first_rank()) throw Reported{static_cast<int>(ErrorCode::usage)};
    throw Error(ErrorCode::usage,
                fmt::format("{} by {} of mpirun (one does it, and each would do and write all of it). Drop "
                            "mpirun.",
                            path_of(command), counted(size, "process", "processes")));
  }
}

// CLI11 2.2 leaves a subcommand at `--` where the words that may follow are none that must: so there is no `--` for it,
// and what lies behind is nothing that it takes for an option. Files are all that there can be: -A is ./-A. Last word
// first, as the parser has them.
std::vector<std::string> words_for_parser(Arguments const& words) {
  std::vector<std::string> all;
  bool behind = false;
  for (std::size_t k = 1; k < words.size(); ++k) {
    if (!behind && words[k] == "--")
      behind = true;
    else
      all.push_back(behind && words[k].starts_with('-') ? "./" + words[k] : words[k]);
  }
  std::reverse(all.begin(), all.end());
  return all;
}

Ended run(int argc, char** argv) {
  CLI::App app{"Sparse linear solvers and stencils for one core or a cluster", "hostless"};
  app.set_version_flag("--version", "hostless " HOSTLESS_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 converged or done, 1 not converged or not finite, 2 usage, 3 bad input, 4 environment, "
      "peer lost or "
      "aborted.");
  std::function<int()> work;
  Arguments const arguments(argv, argv + argc);
  add_solve(app, arguments, work);
  add_stencil(app, arguments, work);
  add_bench(app, arguments, work);
  add_generate(app, work);
  add_plan(app, work);
  add_predict(app, work);
  add_info(app, work);
  add_doctor(app, work);
  add_options(app, work);
  add_machine(app, arguments, work);
  add_report(app, work);
  for (std::string const& word : arguments) {
    if (word == "--") break;
    // The parser would take the next word for its value, even a file's name that is to be read.
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      tell("hostless: {} (nothing follows the =). Give a value, or drop it.\n", word);
      return {static_cast<int>(ErrorCode::usage)};
    }
  }
  try {
    app.parse(words_for_parser(arguments));
  } catch (CLI::ParseError const& e) {
    if (e.get_exit_code() != 0) return {not_understood(app, e)};
    std::ostringstream text;  // --help, --version
    app.exit(e, text, text);
    print("{}", text.str());
    return {0};
  }
  if (writes_a_file(chosen(app))) outlive_readers();
  return done([&] {
    refuse_processes(chosen(app));
    return work();
  });
}

}  // namespace
}  // namespace hostless

int main(int argc, char** argv) {
  hostless::keep_standard_streams();
  static hostless::SetupWatch watch;
  hostless::WatchedBy const watched(&watch);
  hostless::catch_signals(watch);
  hostless::when_stuck([](std::string const& what) {
    std::string const line = fmt::format("hostless: {}\n", what);
    // No stream and no destructor: a thread may hold the one and use the others for ever.
    static_cast<void>(write(STDERR_FILENO, line.data(), line.size()));
    _exit(4);
  });
  hostless::Ended const ended = hostless::run(argc, argv);
  int const code = hostless::finish_output(ended.code);
  if (!ended.in_order && (hostless::started_by_mpi() || hostless::started_by_launcher()))
    hostless::leave_process(code);  // see there
  return code;
}
