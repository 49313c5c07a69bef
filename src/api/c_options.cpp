#include "api/c_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <variant>

#include "api/guarded.hpp"

namespace hostless::c_interface {
namespace {

using O = hostless_options;
using Member = std::variant<char const * O::*, int O::*, std::int64_t O::*, double O::*>;

// By the names that the table has for C.
struct Named {
  char const* name;
  Member member;
};
Named const members[] = {{"method", &O::method},
                         {"run", &O::run},
                         {"preconditioner", &O::preconditioner},
                         {"reduction", &O::reduction},
                         {"partition", &O::partition},
                         {"format", &O::format},
                         {"route", &O::route},
                         {"block_size", &O::block_size},
                         {"ranks_per_node", &O::ranks_per_node},
                         {"lanes", &O::lanes},
                         {"rtol", &O::rtol},
                         {"atol", &O::atol},
                         {"max_iterations", &O::max_iterations},
                         {"time_limit_s", &O::time_limit_s},
                         {"null_space_constant", &O::null_space_constant},
                         {"gpus", &O::gpus},
                         {"gpu_transport", &O::gpu_transport},
                         {"divergence_limit", &O::divergence_limit},
                         {"matrix_precision", &O::matrix_precision},
                         {"chebyshev_degree", &O::chebyshev_degree},
                         {"chebyshev_ratio", &O::chebyshev_ratio},
                         {"chebyshev_upper", &O::chebyshev_upper},
                         {"chebyshev_inner", &O::chebyshev_inner},
                         {"check_interval", &O::check_interval},
                         {"checkpoint_file", &O::checkpoint_file},
                         {"checkpoint_every", &O::checkpoint_every},
                         {"resume_file", &O::resume_file},
                         {"check_symmetry", &O::check_symmetry},
                         {"symmetry_tolerance", &O::symmetry_tolerance},
                         {"columns", &O::columns},
                         {"setup_threads", &O::setup_threads},
                         {"slices", &O::slices},
                         {"row_lanes", &O::row_lanes},
                         {"seed", &O::seed},
                         {"oversubscribe", &O::oversubscribe},
                         {"tune", &O::tune},
                         {"profile_file", &O::profile_file},
                         {"longest_launch_s", &O::longest_launch_s},
                         {"host_waits", &O::host_waits},
                         {"rhs_columns", &O::rhs_columns}};

bool is_settable(Option const& option) { return option.write != nullptr && !option.at(Face::c).name.empty(); }

Member const* member_of(Option const& option) {
  for (Named const& one : members)
    if (option.at(Face::c).name == one.name) return &one.member;
  return nullptr;
}

// Nothing where the default is meant: NULL, the number that it is written as, and 0 where no option has that.
std::optional<OptionValue> value_of(Option const& option, O const& options, Member const& member) {
  return std::visit(
      [&](auto at) -> std::optional<OptionValue> {
        auto const now = options.*at;
        if constexpr (std::is_same_v<decltype(now), char const* const>) {
          if (now == nullptr) return {};
          return std::string(now);
        } else {
          if (option.type == OptionType::flag) return now != 0;
          if (option.type == OptionType::word) return option.words[now != 0 ? 1 : 0];  // one of two
          OptionValue value;
          if constexpr (std::is_same_v<decltype(now), double const>) {
            value = now;
            if (now == 0 && option.above_low) return {};
          } else {
            value = std::int64_t{now};
            if (now == 0 && option.least > 0) return {};
          }
          if (value == option.standard_value()) return {};
          return value;
        }
      },
      member);
}

void write_default(Option const& option, O& options, Member const& member) {
  OptionValue const value = option.standard_value();
  std::visit(
      [&](auto at) {
        using Number = std::remove_reference_t<decltype(options.*at)>;
        if constexpr (std::is_arithmetic_v<Number>) {
          if (auto const* const flag = std::get_if<bool>(&value)) options.*at = *flag ? 1 : 0;
          if (auto const* const whole = std::get_if<std::int64_t>(&value))
            options.*at = static_cast<Number>(*whole);
          if (auto const* const real = std::get_if<double>(&value)) options.*at = static_cast<Number>(*real);
        }
      },
      member);
}

// What a rank may have of its own: how it works, how long, and what it writes for itself.
bool is_of_each_rank(Option const& option) {
  static constexpr std::string_view names[] = {
      "lanes",        "setup_threads", "time_limit_s",     "check_interval",
      "profile_file", "host_waits",    "longest_launch_s", "oversubscribe"};
  return std::find(std::begin(names), std::end(names), option.at(Face::c).name) != std::end(names);
}

// Which symmetry a file must have follows from them.
bool is_read_by(Option const& option) {
  std::string const& name = option.at(Face::c).name;
  return name == "method" || name == "check_symmetry" || name == "symmetry_tolerance";
}

}  // namespace

std::string words_of(Made what, hostless_options const& options) {
  std::string text = what == Made::solver ? "a solver" : "a matrix";
  Choices const choices = choices_of(options);
  for (Option const& one : all_options()) {
    if (!is_settable(one) || is_of_each_rank(one)) continue;
    bool const is_of_it =
        what == Made::solver ? one.of_solve : one.of_layout || (what == Made::matrix_read && is_read_by(one));
    if (!is_of_it) continue;
    OptionValue const value = one.read(choices);
    bool const has_words = !one.standard.empty() || !one.at(Face::c).standard.empty();
    text += ", " + (has_words && value == one.standard_value()
                        ? "options." + one.at(Face::c).name + ": " + one.standard_at(Face::c)
                        : spelled(Face::c, one, value));
  }
  return text;
}

hostless_options options_or_default(hostless_options const* given) {
  hostless_options options;
  hostless_default_options(&options);
  if (given == nullptr) return options;
  if (given->struct_size < offsetof(hostless_options, matrix_precision) ||
      given->struct_size > sizeof options || given->struct_size % alignof(hostless_options) != 0) {
    misused(
        fmt::format("options.struct_size: {}, which is not that of this version, {} (call "
                    "hostless_default_options first).",
                    given->struct_size, sizeof options));
  }
  std::memcpy(&options, given, given->struct_size);
  return options;
}

Choices choices_of(hostless_options const& options) {
  Choices choices;
  for (Option const& one : all_options()) {
    if (!is_settable(one)) continue;
    if (auto const value = value_of(one, options, *member_of(one))) set_option(choices, one, *value, Face::c);
  }
  return choices;
}

}  // namespace hostless::c_interface

extern "C" {

void hostless_set_defaults(hostless_options* options, size_t struct_size) {
  using namespace hostless::c_interface;
  hostless_options all = {};
  for (hostless::Option const& one : hostless::all_options())
    if (is_settable(one)) write_default(one, all, *member_of(one));
  all.struct_size = std::min(struct_size, sizeof all);
  std::memcpy(options, &all, all.struct_size);
}

// In parentheses: the macro of that name is for programs that know the whole struct.
void(hostless_default_options)(hostless_options* options) {
  hostless_set_defaults(options, offsetof(hostless_options, matrix_precision));
}

}  // extern "C"
