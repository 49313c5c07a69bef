#include "rivals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "../messages.hpp"
#include "hostless/base/error.hpp"
#include "lists.hpp"
#include "numbers.hpp"

namespace hostless {
namespace {

[[noreturn]] void refuse(std::string const& text) { throw Error(ErrorCode::usage, text); }

// NAME=REST. Without a name the rest is all of it.
struct Named {
  std::string name, rest;
};
Named named(std::string const& text) {
  std::size_t const equals = text.find('=');
  auto const is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  if (equals == std::string::npos || equals == 0 ||
      !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals), is_of_name))
    return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Words as a shell parts them: quotes of both kinds hold together what is between them.
std::vector<std::string> words_of(std::string const& command) {
  std::vector<std::string> words;
  char quote = '\0';
  bool is_inside = false;
  for (char const c : command) {
    if (quote != '\0') {
      if (c == quote)
        quote = '\0';
      else
        words.back() += c;
      continue;
    }
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      is_inside = false;
      continue;
    }
    if (!is_inside) words.emplace_back(), is_inside = true;
    if (c == '"' || c == '\'')
      quote = c;
    else
      words.back() += c;
  }
  if (quote != '\0') refuse(fmt::format("--rival {}: a quote is open ({}). Close it.", command, quote));
  if (words.empty())
    refuse(fmt::format("--rival '{}': no command (nothing can be started). Name a program.", command));
  return words;
}

using Placeholders = std::map<std::string, std::string>;

Placeholders placeholders_of(RivalTask const& task) {
  Placeholders placeholders{{"problem", task.problem},
                            {"type", task.type},
                            {"steps", std::to_string(task.steps)},
                            {"ranks", std::to_string(task.ranks)}};
  constexpr char const* axes[]{"nx", "ny", "nz"};
  for (std::size_t k = 0; k < task.size.size(); ++k)
    placeholders[axes[k]] = std::to_string(task.size[task.size.size() - 1 - k]);
  return placeholders;
}

// A word with its placeholders filled in; "{{" and "}}" are braces.
std::string filled(std::string const& word, Placeholders const& placeholders, std::string const& option,
                   bool& has_placeholders) {
  std::string text;
  for (std::size_t at = 0; at < word.size(); ++at) {
    char const c = word[at];
    if ((c == '{' || c == '}') && at + 1 < word.size() && word[at + 1] == c) {
      text += c, ++at;
      continue;
    }
    if (c != '{') {
      text += c;
      continue;
    }
    std::size_t const end = word.find('}', at);
    std::string const key = word.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    auto const found = placeholders.find(key);
    if (end == std::string::npos || found == placeholders.end()) {
      std::vector<std::string> known;
      for (auto const& one : placeholders) known.push_back("{" + one.first + "}");
      refuse(fmt::format("{}: '{{{}}}' is no placeholder (this bench knows {}). Correct it; {{{{ is a brace.",
                         option, key, fmt::join(known, ", ")));
    }
    text += found->second;
    has_placeholders = true;
    at = end;
  }
  return text;
}

// Why a program cannot be started; empty: it can.
std::string obstacle_of(std::string const& program) {
  auto const is_file = [](std::string const& path) {
    std::error_code none;
    return std::filesystem::is_regular_file(path, none);
  };
  if (program.find('/') != std::string::npos) {
    if (!is_file(program)) return "there is no such file";
    return access(program.c_str(), X_OK) == 0 ? "" : "the file is not executable";
  }
  char const* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string const file = (folder.empty() ? "." : folder) + "/" + program;
    if (is_file(file) && access(file.c_str(), X_OK) == 0) return "";
  }
  return "no folder of PATH has such a program";
}

}  // namespace

void RivalWords::add(CLI::App& command) {
  command
      .add_option("--rival", commands,
                  "A program that is timed beside them, as COMMAND or NAME=COMMAND, as often as it is said; "
                  "in its words "
                  "{nx}, {ny}, {nz} (cells of the last axis, of the one before), {steps}, {type}, {ranks} "
                  "and {problem} are "
                  "filled in. Without any of these and without --rival-time it is one of NVIDIA's "
                  "multi-gpu-programming-models and gets -nx, -ny, -niter, -nccheck and -csv (jacobi2d)")
      ->expected(1)
      ->take_all();
  command
      .add_option(
          "--rival-time", times,
          "How a rival's time is found, as PATTERN or NAME=PATTERN: a regular expression for a line that it "
          "prints, with a group (?P<s>...), or ms, us, ns, of all steps, or s_per_step and so on, and maybe "
          "(?P<steps>...); or wall, from its start to its end. Default: the lines of NVIDIA's with -csv")
      ->expected(1)
      ->take_all()
      ->needs("--rival");
  command.add_option("--rival-limit", longest_s, "Seconds after which one start of a rival is ended")
      ->capture_default_str()
      ->check(real_number(false))
      ->needs("--rival");
}

Rivals::Rivals(RivalWords const& words, RivalTask const& task) : task_(task), longest_s_(words.longest_s) {
  Placeholders const placeholders = placeholders_of(task);
  std::vector<bool> has_placeholders;
  for (std::string const& text : words.commands) {
    Rival one;
    auto const [name, command] = named(text);
    one.name = !name.empty() ? name : all_.empty() ? "rival" : fmt::format("rival-{}", all_.size() + 1);
    for (Rival const& other : all_)
      if (other.name == one.name)
        refuse(fmt::format("--rival {}: there are two of that name (a table needs one each). Rename one.",
                           one.name));
    bool some = false;
    for (std::string const& word : words_of(command))
      one.words.push_back(filled(word, placeholders, fmt::format("--rival {}", text), some));
    has_placeholders.push_back(some);
    if (std::string const why = obstacle_of(one.words[0]); !why.empty())
      refuse(fmt::format("--rival {}: '{}' cannot be started ({}). Correct it.", text, one.words[0], why));
    all_.push_back(std::move(one));
  }
  std::vector<bool> is_said(all_.size(), false);
  for (std::string const& text : words.times) {
    auto const [name, pattern] = named(text);
    bool const is_of_one =
        std::any_of(all_.begin(), all_.end(), [&of = name](Rival const& one) { return one.name == of; });
    for (std::size_t k = 0; k < all_.size(); ++k)
      if (!is_of_one || all_[k].name == name)
        all_[k].time = RivalTime("--rival-time", is_of_one ? pattern : text), is_said[k] = true;
  }
  std::string const steps = std::to_string(task.steps);
  for (std::size_t k = 0; k < all_.size(); ++k) {
    if (has_placeholders[k] || is_said[k]) continue;
    if (task.problem != "jacobi2d")
      refuse(fmt::format(
          "--rival {} with {}: nothing of the grid stands in its command (NVIDIA's programs, which get it by "
          "options, step jacobi2d). Write {{nx}}, {{ny}} and {{steps}} where it wants them, or give "
          "--rival-time.",
          all_[k].name, task.problem));
    for (std::string const& word :
         {std::string("-nx"), placeholders.at("nx"), std::string("-ny"), placeholders.at("ny"),
          std::string("-niter"), steps, std::string("-nccheck"), steps, std::string("-csv")})
      all_[k].words.push_back(word);
  }
}

// Seconds a step of one start; what goes wrong is kept.
double Rivals::started(Rival& one) const {
  ChildCommand command;
  command.words = one.words;
  command.environment = {{"LC_ALL", "C"}};
  command.is_heard = true;
  command.longest_s = longest_s_;
  command.nap_s = 1e-3;
  auto const begin = Clock::now();
  ChildEnd const end = run_quietly(command);
  double const wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!end.problem.empty() || end.code != 0) {
    std::string const said = end.errors.empty() ? end.output : end.errors;
    one.problem = !end.problem.empty()
                      ? end.problem
                      : fmt::format("it ended with code {}: {}", end.code, said.substr(0, said.find('\n')));
    return 0;
  }
  try {
    return one.time.is_wall() ? wall_s / static_cast<double>(task_.steps)
                              : one.time.step_s(end.output + "\n" + end.errors, task_.steps);
  } catch (Error const& e) {
    one.problem = e.what();
    return 0;
  }
}

void Rivals::try_out() {
  for (Rival& one : all_) static_cast<void>(started(one));
}

void Rivals::run() {
  for (Rival& one : all_)
    if (one.problem.empty())
      if (double const step_s = started(one); step_s > 0) one.timing.step_s.push_back(step_s);
}

Json Rivals::rows(double ours_s) const {
  Json rows = Json::array();
  for (Rival const& one : all_) {
    Json row = {
        {"name", one.name}, {"label", fmt::format("{}", fmt::join(one.words, " "))}, {"command", one.words}};
    if (!one.problem.empty() || one.timing.step_s.empty()) {
      row["problem"] = one.problem;
    } else {
      bench::Timing rising = one.timing;
      std::sort(rising.step_s.begin(), rising.step_s.end());
      row["time_by"] = one.time.name();
      add_times(row, rising);
      row["all_us"] = Json::array();
      for (double const s : one.timing.step_s) row["all_us"].push_back(us * s);
      if (ours_s > 0) row["speedup"] = rising.median() / ours_s;
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace hostless
