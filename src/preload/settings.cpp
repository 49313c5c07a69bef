#include "preload/settings.hpp"

#include <climits>
#include <cstdlib>

#include "base/hash.hpp"
#include "base/variable.hpp"
#include "hostless/base/environment.hpp"
#include "hostless/base/error.hpp"

namespace hostless::preload {
namespace {

char const* text_of_setting(char const* name) {
  char const* const text = std::getenv(name);
  return text != nullptr ? text : "";
}

[[noreturn]] void refuse_setting(char const* name, std::string const& why) {
  throw Error(ErrorCode::usage, std::string(name) + " is '" + text_of_setting(name) + "' (" + why);
}

std::int64_t number_of_setting(char const* name, std::int64_t otherwise) {
  if (*text_of_setting(name) == '\0') return otherwise;
  std::int64_t const number = count_of(name, -1);
  if (number < 0 || number > INT_MAX) refuse_setting(name, "it is a number from 0 on). Give one.");
  return number;
}

void read_route(Settings& made) {
  constexpr char const* variable = "HOSTLESS_PRELOAD_ROUTE";
  std::string const word = text_of_setting(variable);
  made.automatic = word.empty() || word == "auto";
  made.on = word != "off";
  if (made.automatic || !made.on) return;
  try {
    made.route = route_from(word.c_str());
  } catch (Error const&) {
    std::string use = "it names a route). Use auto, off";
    for (Route const route : all_routes) use += std::string(", ") + name(route);
    refuse_setting(variable, use + ".");
  }
}

void read_counts(Settings& made) {
  constexpr char const* name = "HOSTLESS_PRELOAD_COUNTS";
  std::string const word = text_of_setting(name);
  if (word == "checked")
    made.counts = Counts::checked;
  else if (word == "fixed")
    made.counts = Counts::fixed;
  else if (!word.empty() && word != "unknown")
    refuse_setting(name, "it says what is known of counts). Use unknown, checked or fixed.");
}

}  // namespace

std::uint64_t Settings::fingerprint() const {
  Hash hash;
  constexpr std::int64_t version = 1;  // of what ranks say to each other
  hash.add(version);
  for (std::int64_t const one : {std::int64_t{on}, std::int64_t{automatic},
                                 route ? static_cast<std::int64_t>(*route) : std::int64_t{-1},
                                 std::int64_t{ranks_per_node}, after, static_cast<std::int64_t>(counts)})
    hash.add(one);
  return hash.value();
}

Settings read_settings() {
  Settings made;
  made.report = text_of_setting("HOSTLESS_PRELOAD_REPORT");
  for (std::string& complaint : unknown_variables())
    if (complaint.starts_with("HOSTLESS_PRELOAD_")) made.unknown.push_back(std::move(complaint));
  try {
    read_route(made);
    made.ranks_per_node = static_cast<int>(number_of_setting("HOSTLESS_PRELOAD_RANKS_PER_NODE", 0));
    made.after = number_of_setting("HOSTLESS_PRELOAD_AFTER", made.after);
    read_counts(made);
  } catch (Error const& error) {
    made.problem = error.what();
    made.on = false;
  }
  return made;
}

Settings const& settings() {
  static Settings const* const all = new Settings(read_settings());  // asked when the process ends, too
  return *all;
}

}  // namespace hostless::preload
