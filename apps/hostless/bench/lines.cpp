#include "lines.hpp"

#include <fmt/format.h>

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

// Best, median and worst; or why there are none.
std::string times_in(Json const& row) {
  if (row.contains("error")) return row["error"].get<std::string>();
  std::string const mark = row.contains("fastest") ? " faster" : "";  // of stores and copies
  return fmt::format("{:10.3f} {:10.3f} {:10.3f}{}", row["best_us"].get<double>(),
                     row["median_us"].get<double>(), row["worst_us"].get<double>(), mark);
}

std::string rate_in(Json const& row) {
  if (!row.contains("bytes_per_second")) return {};
  return fmt::format(" {:10.1f}", row["bytes_per_second"].get<double>() / 1e6);
}

std::string const heads_of_times = fmt::format("{:>10} {:>10} {:>10}", "best us", "median us", "worst us");

}  // namespace

char const* name(Timed what) {
  char const* const names[] = {"pingpong", "halo", "allreduce"};
  return names[static_cast<int>(what)];
}

std::string head_of(Timed what) {
  switch (what) {
    case Timed::pingpong:
      return fmt::format("{:>9} {:>9} {} {:>10}", "ranks", "bytes", heads_of_times, "MB/s");
    case Timed::halo:
      return fmt::format("{:20} {}", "", heads_of_times);
    case Timed::allreduce:
      break;
  }
  return fmt::format("{:>7} {:8} {}", "doubles", "", heads_of_times);
}

std::string line_of(Timed what, Json const& row) {
  switch (what) {
    case Timed::pingpong:
      return fmt::format("{:>9} {:9} {}{}",
                         fmt::format("{}, {}", row["first"].get<int>(), row["second"].get<int>()),
                         row["bytes"].get<std::size_t>(), times_in(row), rate_in(row));
    case Timed::halo:
      return fmt::format("{:20} {}", row["what"].get<std::string>(), times_in(row));
    case Timed::allreduce:
      break;
  }
  return fmt::format("{:7} {:8} {}", row["doubles"].get<int>(), row["reduction"].get<std::string>(),
                     times_in(row));
}

std::vector<Json> rows_of(Timed what, Json const& report) {
  std::vector<Json> rows;
  if (what != Timed::halo) {
    for (Json const& row : report[name(what)]) rows.push_back(row);
    return rows;
  }
  for (auto const& [key, text] : {std::pair{"exchange_and_sum", "exchange and sum"},
                                  {"sum_alone", "sum alone"},
                                  {"exchange_alone", "exchange alone"},
                                  {"queued", "exchange"},
                                  {"replayed", "exchange"},
                                  {"copied", "exchange"}})
    if (report.contains(key)) {
      rows.push_back(report[key]);
      rows.back()["what"] = text;
    }
  return rows;
}

}  // namespace hostless
