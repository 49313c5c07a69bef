#include "overlap.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "hostless/solve/report.hpp"

namespace hostless {
namespace {

// Each of the two measures may fail by itself; a lost rank ends both.
template <class Use>
void try_to(std::string& problem, Use const& use) {
  try {
    use();
  } catch (Error const& e) {
    if (e.code() == ErrorCode::peer_lost) throw;
    problem = e.what();
  }
}

double median(std::vector<double> const& rising) { return rising[rising.size() / 2]; }

}  // namespace

IterationTimes OverlapBench::traced(SolveOptions how, std::vector<double> const& b) const {
  constexpr std::int64_t most_iterations = 300;
  how.run.trace = true;
  how.max_iterations =
      how.max_iterations < 0 ? most_iterations : std::min(most_iterations, how.max_iterations);
  Solver solver(at_.matrix, how);
  Result result;
  for (int k = 0; k < 2; ++k) {  // the first one loads what is seldom used
    std::copy(b.begin(), b.end(), solver.b().begin());
    std::fill(solver.x().begin(), solver.x().end(), 0.0);
    at_.transport.group().barrier();
    result = solver.solve();
    if (result.status == Status::peer_lost) throw Error(ErrorCode::peer_lost, result.message);
  }
  if (result.iteration_times.clock == IterationTimes::Clock::none)
    throw Error(ErrorCode::environment,
                fmt::format("a trace of {} ({}) without a whole one after the first. Use more.",
                            counted(result.iterations, "iteration"), name(result.status)));
  return result.iteration_times;
}

Overlap OverlapBench::measure(SolveOptions const& how, Result const& result, double whole_s,
                              std::vector<double> const& b) {
  Overlap overlap;
  overlap.whole_s = whole_s;
  overlap.by_clock = result.iteration_times;
  if (how.run.gpus > 0) try_to(overlap.clock_problem, [&] { overlap.by_clock = traced(how, b); });
  try_to(overlap.runs_problem, [&] {
    overlap.communication_s = communication_.of(how);
    overlap.computing_s = computing_.of(how);
  });
  return overlap;
}

void add_overlap(Overlap const& overlap, nlohmann::ordered_json& row) {
  if (double const all = overlap.communication(); all > 0) {
    row["communication_us"] = 1e6 * all;
    row["exposed_us"] = 1e6 * overlap.by_clock.exposed_s;
    row["overlapped"] = overlapped(overlap.by_clock.exposed_s, all);
  }
  nlohmann::ordered_json& j = row["overlap"];
  j["by_clock"] = nlohmann::ordered_json::parse(to_json(overlap.by_clock));
  if (!overlap.clock_problem.empty()) j["by_clock_problem"] = overlap.clock_problem;
  if (overlap.computing_s.empty() || overlap.communication_s.empty()) {
    j["by_runs"] = nullptr;
    j["by_runs_problem"] = overlap.runs_problem;
    return;
  }
  double const computing = median(overlap.computing_s), communication = median(overlap.communication_s);
  j["by_runs"] = {{"computing_us", 1e6 * computing},
                  {"communication_us", 1e6 * communication},
                  {"whole_us", 1e6 * overlap.whole_s},
                  {"overlapped", overlapped_by_runs(computing, communication, overlap.whole_s)}};
}

std::string words_of(Overlap const& overlap) {
  std::string text;
  if (double const all = overlap.communication(); all > 0)
    text += fmt::format("overlapped {:.0f} % of {:.2f} us by its clock",
                        100 * overlapped(overlap.by_clock.exposed_s, all), 1e6 * all);
  if (!overlap.computing_s.empty() && !overlap.communication_s.empty())
    text += fmt::format("{}{:.0f} % of {:.2f} us by three runs", text.empty() ? "overlapped " : ", ",
                        100 * overlapped_by_runs(median(overlap.computing_s), median(overlap.communication_s),
                                                 overlap.whole_s),
                        1e6 * median(overlap.communication_s));
  return text;
}

}  // namespace hostless
