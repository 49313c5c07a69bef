#include "neighbor_lines.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

namespace hostless {
namespace {

/// Few repeats have no bound.
Json json_of(bench::MedianBound const& bound) {
  bool const is_bound = std::isfinite(bound.high);
  return {{"median", bound.median},
          {"low", is_bound ? Json(bound.low) : Json()},
          {"high", is_bound ? Json(bound.high) : Json()}};
}

template <class T>
Json json_of(std::optional<T> const& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

Json row_of_way(bench::NeighborWay const& way, bench::NeighborTiming const& one, bool multiplies) {
  Json row = {{"bytes", multiplies ? one.gathered : static_cast<std::int64_t>(one.bytes)}};
  if (multiplies) row["gather"] = way.needed_rows ? "rows" : "blocks";
  row["way"] = way.name;
  row["route"] = way.by_library ? Json() : Json(name(one.route));
  add_times(row, one.call);
  row["set_up_us"] = us * one.set_up_s;
  row["repaid_after"] = json_of(one.repaid_after);
  if (one.library_over) {
    row["library_over_it"] = json_of(*one.library_over);
    row["library_over_it_with_set_up"] = *one.library_over_with_set_up;
  }
  row["calls"] = one.calls;
  row["bytes_between"] = std::accumulate(one.bytes_out.begin(), one.bytes_out.end(), std::int64_t{0});
  row["messages_between"] = one.messages;
  row["bytes_out"] = one.bytes_out;
  row["bytes_in"] = one.bytes_in;
  return row;
}

std::string line_of_way(Json const& row, bench::Timing const& call) {
  auto const ratio = [](Json const& value) {
    return value.is_null() ? std::string() : fmt::format("{:.2f}", value.get<double>());
  };
  Json const over = row.value("library_over_it", Json::object());
  Json const& repaid = row["repaid_after"];
  std::string const way = row["way"].get<std::string>();
  return fmt::format(
      "{:>10} {:17} {:10} {} {:>9} {:>9} {:10.1f} {:>7} {:>14}", row["bytes"].get<std::int64_t>(),
      row.contains("gather") ? row["gather"].get<std::string>() + " " + way : way,
      row["route"].is_null() ? "" : row["route"].get<std::string>(), times_of(call),
      ratio(over.value("median", Json())), ratio(row.value("library_over_it_with_set_up", Json())),
      row["set_up_us"].get<double>(), repaid.is_null() ? "" : fmt::format("{:.0f}", repaid.get<double>()),
      row["bytes_between"].get<std::int64_t>());
}

std::string head_of_ways() {
  return fmt::format("{:>10} {:17} {:10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>10} {:>7} {:>14}", "bytes",
                     "way", "route", "best us", "median us", "worst us", "library/", "w. set-up", "set-up us",
                     "repaid", "between nodes");
}

}  // namespace hostless
