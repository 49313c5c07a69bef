#include "rival_time.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <vector>

#include "hostless/base/error.hpp"
#include "lists.hpp"

namespace hostless {
namespace {

[[noreturn]] void refuse_time(std::string const& text) { throw Error(ErrorCode::usage, text); }

struct Unit {
  double seconds;
  bool is_of_a_step;
};
std::map<std::string, Unit> const& units() {
  static std::map<std::string, Unit> const all{{"s", {1, false}},
                                               {"ms", {1e-3, false}},
                                               {"us", {1e-6, false}},
                                               {"ns", {1e-9, false}},
                                               {"s_per_step", {1, true}},
                                               {"ms_per_step", {1e-3, true}},
                                               {"us_per_step", {1e-6, true}},
                                               {"ns_per_step", {1e-9, true}}};
  return all;
}

// A number above zero and nothing else; 0: it is none.
double number_of(std::string const& text) {
  char* end = nullptr;
  double const value = std::strtod(text.c_str(), &end);
  bool const is_one = !text.empty() && end != text.c_str() &&
                      std::string(end).find_first_not_of(" \t\r") == std::string::npos;
  return is_one && std::isfinite(value) && value > 0 ? value : 0;
}

// Of a line "name, nx, ny, steps, steps between norms, seconds" of the program for one GPU, or "..., GPUs, 1, seconds,
// seconds on one GPU" of those for several; 0: it is none.
double step_s_of_csv(std::string const& line) {
  auto const words = words_in(line);
  if (words.size() < 6) return 0;
  double const steps = number_of(words[3]);
  double const seconds = number_of(words.size() == 6 ? words[5] : words[words.size() - 2]);
  return steps >= 1 && seconds > 0 ? seconds / steps : 0;
}

}  // namespace

RivalTime::RivalTime(std::string const& option, std::string const& pattern) : shown_(pattern) {
  if (pattern == "wall") {
    kind_ = Kind::wall;
    return;
  }
  kind_ = Kind::pattern;
  std::size_t groups = 0;
  bool is_in_class = false;
  std::vector<std::string> known;
  for (auto const& one : units()) known.push_back(one.first);
  // std::regex has no names of groups: they are taken out, and numbered
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    expression_ += pattern[at];
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      expression_ += pattern[++at];
      continue;
    }
    if (pattern[at] == '[') is_in_class = true;
    if (pattern[at] == ']') is_in_class = false;
    if (pattern[at] != '(' || is_in_class) continue;
    bool const is_named = pattern.compare(at, 4, "(?P<") == 0 ||
                          (pattern.compare(at, 3, "(?<") == 0 && pattern.compare(at, 4, "(?<=") != 0 &&
                           pattern.compare(at, 4, "(?<!") != 0);
    if (!is_named && pattern.compare(at, 2, "(?") == 0) continue;
    ++groups;
    if (!is_named) continue;
    std::size_t const begin = pattern.find('<', at) + 1, end = pattern.find('>', begin);
    std::string const name = pattern.substr(begin, end == std::string::npos ? end : end - begin);
    auto const unit = units().find(name);
    if (name == "steps") {
      steps_group_ = groups;
    } else if (unit == units().end() || time_group_ != 0) {
      refuse_time(fmt::format(
          "{} {}: the group '{}' is {} (its name is the unit of the time). Use one of {}, and maybe steps.",
          option, pattern, name, unit == units().end() ? "no unit" : "a second time",
          fmt::join(known, ", ")));
    } else {
      time_group_ = groups;
      unit_s_ = unit->second.seconds, is_of_a_step_ = unit->second.is_of_a_step;
    }
    at = end;
  }
  if (time_group_ == 0)
    refuse_time(fmt::format(
        "{} {}: no group (?P<unit>...) (nothing says where the time stands and what it is in). Write "
        "one, unit one of {}, or wall.",
        option, pattern, fmt::join(known, ", ")));
  try {
    regex_ = std::regex(expression_);
  } catch (std::regex_error const& e) {
    refuse_time(fmt::format("{} {}: no regular expression ({}). Correct it.", option, pattern, e.what()));
  }
}

char const* RivalTime::name() const {
  return kind_ == Kind::csv ? "csv" : kind_ == Kind::wall ? "wall" : "pattern";
}

double RivalTime::step_s(std::string const& printed, std::int64_t steps) const {
  double found = 0;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    if (kind_ == Kind::csv) {
      if (double const one = step_s_of_csv(line); one > 0) found = one;
      continue;
    }
    // a longer line is no message to people, and std::regex goes as deep as a line is long
    constexpr std::size_t longest = 4096;
    std::smatch match;
    if (line.size() > longest || !std::regex_search(line, match, regex_)) continue;
    double const time = number_of(match[time_group_].str());
    double const taken =
        steps_group_ != 0 ? number_of(match[steps_group_].str()) : static_cast<double>(steps);
    if (time == 0 || taken < 1)
      throw Error(ErrorCode::bad_input,
                  fmt::format("its time was read as '{}' (a number above 0 is needed)", match.str()));
    found = unit_s_ * time / (is_of_a_step_ ? 1 : taken);
  }
  if (found > 0) return found;
  if (kind_ == Kind::csv)
    throw Error(ErrorCode::bad_input,
                "it printed no line of NAME, nx, ny, steps, ..., seconds, seconds on one GPU (as NVIDIA's "
                "multi-gpu-programming-models do with -csv). Name such a program, or give --rival-time");
  throw Error(ErrorCode::bad_input,
              fmt::format("it printed no line that '{}' matches. Correct --rival-time", shown_));
}

}  // namespace hostless
