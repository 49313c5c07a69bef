#pragma once
// How the time of a program of others is found in what it prints.

#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>

namespace hostless {

/// How the seconds of a step are taken from what a program prints, line by line, the last match of them.
class RivalTime {
 public:
  /// The lines of NVIDIA's multi-gpu-programming-models with -csv.
  RivalTime() = default;
  /// pattern  `wall`, or a regular expression (ECMAScript) with one group (?P<unit>...): s, ms, us or ns for all
  ///          steps, s_per_step and so on for one; (?P<steps>...) is how many the program says to have taken
  /// Errors   usage  no such expression, no unit or two, none known
  RivalTime(std::string const& option, std::string const& pattern);

  bool is_wall() const { return kind_ == Kind::wall; }
  char const* name() const;  ///< csv, pattern, wall
  /// Seconds a step. Errors  bad_input  no line says them
  double step_s(std::string const& printed, std::int64_t steps) const;

 private:
  enum class Kind { csv, pattern, wall };

  Kind kind_ = Kind::csv;
  std::string shown_, expression_;
  double unit_s_ = 1;
  bool is_of_a_step_ = false;
  std::size_t time_group_ = 0, steps_group_ = 0;  ///< 0: none
  std::regex regex_;
};

}  // namespace hostless
