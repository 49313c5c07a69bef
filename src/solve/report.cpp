#include "hostless/solve/report.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "base/bytes_text.hpp"
#include "base/counted.hpp"

namespace hostless {
namespace {

constexpr int json_version = 1;
constexpr int most_ranks_told = 64;  // by pairs: at most 64 x 63 of them stand in a result
constexpr int item_bytes = 8;        // solves exchange one fp64 field

// JSON has no NaN: what was never computed is null.
nlohmann::json number(double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr); }

// A resumed solve has not made those of its checkpoint, nor taken their time.
double iterations_here(Result const& s) { return static_cast<double>(s.iterations - s.resumed_at); }

double moved_per_second(SolveReport const& r) {
  Result const& s = r.result;
  if (s.time_solve_s <= 0) return 0;
  return static_cast<double>(s.bytes_per_iteration) * iterations_here(s) / s.time_solve_s;
}

bool is_preconditioned(Result const& s) {
  return std::any_of(s.choices.begin(), s.choices.end(), [](auto const& choice) {
    return choice.first == "preconditioner" && choice.second != name(PreconditionerKind::none);
  });
}

nlohmann::json history_of(Result const& s) {
  nlohmann::json history = nlohmann::json::array();
  for (double v : s.residual_history) history.push_back(number(v));
  return history;
}

// How the solve of one right-hand side ended; what all have together stands beside.
nlohmann::ordered_json json_of_column(Result const& s) {
  return {{"status", name(s.status)},
          {"message", s.message},
          {"iterations", s.iterations},
          {"restarts", s.restarts},
          {"replacements", s.replacements},
          {"rhs_norm", number(s.rhs_norm)},
          {"true_residual", number(s.true_residual)},
          {"true_relative_residual", number(s.true_relative_residual)},
          {"recurrence_relative_residual", number(s.recurrence_relative_residual)},
          {"residual_gap", number(s.residual_gap)},
          {"condition_estimate", number(s.condition_estimate)},
          {"smallest_eigenvalue", number(s.smallest_eigenvalue)},
          {"largest_eigenvalue", number(s.largest_eigenvalue)},
          {"residual_history", history_of(s)}};
}

// "converged after 1 iteration".
std::string ending_of(Result const& s) {
  return fmt::format("{} after {}", name(s.status), counted(s.iterations, "iteration"));
}

std::string line_of_column(Result const& s) {
  std::string text = ending_of(s);
  if (std::isfinite(s.true_relative_residual))
    text += fmt::format(", |b - A x| / |b| = {:.3e}", s.true_relative_residual);
  if (!s.message.empty()) text += ": " + s.message;
  return text;
}

nlohmann::ordered_json json_of(Communication const& communication, std::int64_t bytes_an_iteration) {
  std::int64_t bytes = 0;
  for (PairTraffic const& pair : communication.pairs) bytes += pair.items * item_bytes;
  return {{"exchanges_per_iteration", bytes > 0 ? bytes_an_iteration / bytes : 0},
          {"node", communication.node},
          {"pairs", nlohmann::ordered_json::parse(to_json(communication.pairs, item_bytes))}};
}

}  // namespace

std::string to_json(IterationTimes const& times) {
  if (times.clock == IterationTimes::Clock::none) return "null";
  bool const communicates = times.communication_s > 0;
  nlohmann::ordered_json const j = {
      {"clock", name(times.clock)},
      {"iterations", times.iterations},
      {"iteration_us", 1e6 * times.iteration_s},
      {"computing_us", 1e6 * times.computing_s},
      {"exposed_us", 1e6 * times.exposed_s},
      {"idle_us", 1e6 * times.idle_s},
      {"communication_us", communicates ? number(1e6 * times.communication_s) : nullptr},
      {"overlapped", communicates ? number(overlapped(times.exposed_s, times.communication_s)) : nullptr}};
  return j.dump();
}

std::optional<Communication> gather_communication(Matrix const& matrix) {
  Group& group = matrix.transport().group();
  ExchangePlan const& plan = matrix.plan();
  if (group.size() > most_ranks_told) return {};
  auto const ranks = static_cast<std::size_t>(group.size());
  std::vector<PairTraffic> mine(ranks), all(ranks * ranks);
  for (PairTraffic const& pair : pairs_sent(plan)) mine[static_cast<std::size_t>(pair.target)] = pair;
  group.all_gather_blocks(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::erase_if(all, [](PairTraffic const& pair) { return pair.messages == 0; });
  return Communication{plan.nodes.node, std::move(all)};
}

SolveReport report_of_column(SolveReport const& report, std::size_t column) {
  SolveReport one = report;
  Result const &whole = report.result, &own = whole.columns[column];
  Result& r = one.result;
  r.columns.clear();
  r.status = own.status;
  r.message = own.message;
  r.iterations = own.iterations;
  r.restarts = own.restarts;
  r.replacements = own.replacements;
  r.rhs_norm = own.rhs_norm;
  r.true_residual = own.true_residual;
  r.true_relative_residual = own.true_relative_residual;
  r.recurrence_relative_residual = own.recurrence_relative_residual;
  r.residual_gap = own.residual_gap;
  r.lost_by_rounding = own.lost_by_rounding;
  r.smallest_eigenvalue = own.smallest_eigenvalue;
  r.largest_eigenvalue = own.largest_eigenvalue;
  r.condition_estimate = own.condition_estimate;
  r.residual_history = own.residual_history;
  return one;
}

std::string summary(SolveReport const& r) {
  Result const& s = r.result;
  std::string out;
  auto line = [&](char const* label, std::string const& text) {
    out += fmt::format("  {:<15} {}\n", label, text);
  };
  out += ending_of(s) + (s.message.empty() ? "" : ": " + s.message) + "\n";
  line("matrix",
       fmt::format("{}: {}, {}", r.input, counted(r.rows, "row"), counted(r.entries, "entry", "entries")));
  line("right-hand side", r.right_hand_side);
  if (std::isfinite(s.true_relative_residual)) {
    line("residual", fmt::format("|b - A x| / |b| = {:.3e} (true), {:.3e} (recurrence){}",
                                 s.true_relative_residual, s.recurrence_relative_residual,
                                 s.restarts > 0 ? fmt::format(", {} from the true residual",
                                                              counted(s.restarts, "restart"))
                                                : ""));
  }
  if (std::isfinite(s.condition_estimate))
    line("condition", fmt::format("at least {:.3g}: eigenvalues{} from {:.3g} to {:.3g}, by the steps made",
                                  s.condition_estimate, is_preconditioned(s) ? " of M A" : "",
                                  s.smallest_eigenvalue, s.largest_eigenvalue));
  for (std::size_t c = 0; c < s.columns.size(); ++c)
    line(fmt::format("column {}", c + 1).c_str(), line_of_column(s.columns[c]));
  if (r.relative_error) line("error", fmt::format("|x - x*| / |x*| = {:.3e}", *r.relative_error));
  if (s.null_space_removed > 0)
    line("null space", fmt::format("{:.3e} of b was constant and removed", s.null_space_removed));
  line("time", fmt::format("{:.3f} s solve (publish {:.3f}, sweep {:.3f}, rows {:.3f}; of these waiting "
                           "{:.3f}), {:.3f} s set-up",
                           s.time_solve_s, s.times.publish_s, s.times.sweep_s, s.times.rows_s, s.waited_s,
                           r.time_input_s + s.time_setup_s));
  if (s.iterations > s.resumed_at) {
    std::string text =
        fmt::format("{:.1f} us an iteration, {} each", 1e6 * s.time_solve_s / iterations_here(s),
                    bytes_text(static_cast<double>(s.bytes_per_iteration)));
    if (double const moved = moved_per_second(r); moved > 0) {
      text += fmt::format(", {}/s", bytes_text(moved));
      if (r.read_bandwidth && moved <= *r.read_bandwidth)
        text += fmt::format(" = {:.0f} % of the {}/s measured here", 100 * moved / *r.read_bandwidth,
                            bytes_text(*r.read_bandwidth));
      else if (r.read_bandwidth)
        text += fmt::format(", a part from caches: memory gave {}/s here", bytes_text(*r.read_bandwidth));
    }
    line("speed", text);
  }
  if (s.device_bytes > 0) {
    line("on the GPU",
         fmt::format("{:.3f} s in {}, {:.2f} us an iteration, {} held there (matrix and vectors {}, "
                     "most taken {})",
                     s.time_device_s, counted(s.launches, "launch", "launches"),
                     1e6 * s.time_device_s / std::max(1.0, iterations_here(s)),
                     bytes_text(static_cast<double>(s.device_bytes)),
                     bytes_text(static_cast<double>(s.device_model_bytes)),
                     bytes_text(static_cast<double>(s.device_peak_bytes))));
  }
  if (IterationTimes const& t = s.iteration_times; t.communication_s > 0)
    line("overlapped",
         fmt::format("{:.0f} % of {:.2f} us of communication an iteration, by its trace",
                     100 * overlapped(t.exposed_s, t.communication_s), 1e6 * t.communication_s));
  for (auto const& [key, value] : s.choices) line(key.c_str(), value);
  if (s.checkpoints > 0) line("checkpoints", std::to_string(s.checkpoints));
  if (r.peak_rank_bytes > 0)  // after a loss nobody asks the others
    line("memory",
         fmt::format("{} in the largest process", bytes_text(static_cast<double>(r.peak_rank_bytes))));
  if (!r.output.empty()) line("solution", r.output);
  return out;
}

std::string to_json(SolveReport const& r) {
  Result const& s = r.result;
  nlohmann::ordered_json j;
  j["version"] = json_version;
  j["program"] = "hostless " HOSTLESS_VERSION;
  j["status"] = name(s.status);
  j["message"] = s.message;
  j["input"] = r.input;
  j["right_hand_side"] = r.right_hand_side;
  j["rows"] = r.rows;
  j["entries"] = r.entries;
  j["iterations"] = s.iterations;
  j["resumed_at"] = s.resumed_at;
  j["restarts"] = s.restarts;
  j["replacements"] = s.replacements;
  j["rhs_norm"] = number(s.rhs_norm);
  j["true_residual"] = number(s.true_residual);
  j["true_relative_residual"] = number(s.true_relative_residual);
  j["recurrence_relative_residual"] = number(s.recurrence_relative_residual);
  j["residual_gap"] = number(s.residual_gap);
  j["relative_error"] = r.relative_error ? number(*r.relative_error) : nlohmann::json(nullptr);
  j["condition_estimate"] = number(s.condition_estimate);
  j["smallest_eigenvalue"] = number(s.smallest_eigenvalue);
  j["largest_eigenvalue"] = number(s.largest_eigenvalue);
  j["null_space_removed"] = s.null_space_removed;
  j["time_input_s"] = r.time_input_s;
  j["time_setup_s"] = s.time_setup_s;
  j["time_solve_s"] = s.time_solve_s;
  j["time_by_phase_s"] = {{"publish", s.times.publish_s}, {"sweep", s.times.sweep_s},
                          {"rows", s.times.rows_s},       {"sums", s.times.sums_s},
                          {"ghosts", s.times.ghosts_s},   {"waiting", s.waited_s}};
  j["iteration_times"] = nlohmann::ordered_json::parse(to_json(s.iteration_times));
  if (s.device_bytes > 0) {
    j["device"] = {
        {"time_s", s.time_device_s},
        {"us_per_iteration", s.iterations > s.resumed_at ? 1e6 * s.time_device_s / iterations_here(s) : 0.0},
        {"launches", s.launches},
        {"bytes", s.device_bytes},
        {"model_bytes", s.device_model_bytes},
        {"peak_bytes", s.device_peak_bytes}};
  }
  j["bytes_per_iteration"] = s.bytes_per_iteration;
  j["halo_bytes_per_iteration"] = s.halo_bytes_per_iteration;
  j["communication"] = r.communication ? json_of(*r.communication, s.halo_bytes_per_iteration)
                                       : nlohmann::ordered_json(nullptr);
  j["bytes_per_second"] = moved_per_second(r);
  j["measured_bandwidth"] = r.read_bandwidth ? nlohmann::json(*r.read_bandwidth) : nlohmann::json(nullptr);
  j["share_of_bandwidth"] =
      r.read_bandwidth ? nlohmann::json(moved_per_second(r) / *r.read_bandwidth) : nlohmann::json(nullptr);
  j["peak_process_bytes"] = r.peak_rank_bytes;
  j["checkpoints"] = s.checkpoints;
  nlohmann::ordered_json choices = nlohmann::ordered_json::object();
  for (auto const& [key, value] : s.choices) choices[key] = value;
  j["choices"] = choices;
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (auto const& [key, value] : s.settings) settings[key] = value;
  for (auto const& [key, value] : r.layout) settings[key] = value;
  j["settings"] = settings;
  j["provenance"] = nlohmann::ordered_json::parse(to_json(r.provenance));
  j["residual_history"] = history_of(s);
  for (Result const& one : s.columns) j["columns"].push_back(json_of_column(one));
  return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::int64_t peak_process_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace hostless
