#include "solve/gpu_solver/gpu_tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "hostless/base/error.hpp"
#include "solve/setup/manufactured.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
namespace {

// Multiples of what a round of a graph's loop holds, so that none goes round in vain.
constexpr std::int64_t short_solve = 4, most_extra = 32;

// Of the shape, not of all columns: what a sweep takes depends on little more. Other versions have other
// kernels.
std::uint64_t fingerprint(DeviceRows const& rows) {
  Hash hash;
  hash.add(interface_version);
  for (int k = 0; k < rows.diagonals.count; ++k) hash.add(rows.diagonals.offset[k]);
  hash.add(rows.diagonals.mirrored);
  hash.add(rows.farthest);
  hash.add(rows.tiling.threads_per_row);
  for (DeviceGroup const& group : rows.group) {
    hash.add(group.width);
    hash.add(group.head);
    hash.add(group.base);
  }
  std::size_t const step = rows.start.size() / 4096 + 1;
  for (std::size_t k = 0; k < rows.start.size(); k += step) hash.add(rows.start[k]);
  return hash.value();
}

// Solves from x = 0 without a tolerance. Seconds of the device; nothing: it ended before, or was stopped.
class Trial {
 public:
  Trial(BoundSolve& solve, TuningRequest const& request)
      : solve_(solve), request_(request), zero_(static_cast<std::size_t>(request.owned)) {
    std::vector<double> b(zero_.size());
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_entry(16, static_cast<std::int64_t>(i));
    solve_.put_rhs(b.data());
    for (int k = 1; k < request.fields; ++k) solve_.put_field(k, zero_.data());
  }
  // Microseconds an iteration of the run that is bound: what a longer solve takes more than a short one.
  std::optional<double> measure() {
    double const began = solve_.cost().device_s;
    auto const spent = [&] { return solve_.cost().device_s - began; };
    if (!iterate(short_solve)) return {};  // clocks rise, kernels are loaded
    auto shorter = iterate(short_solve);
    if (!shorter) return {};
    double const at_most = *shorter / short_solve;
    double const fitting = at_most > 0 ? request_.most_device_s / 3 / at_most : most_extra;
    auto const rounds = static_cast<std::int64_t>(std::min<double>(fitting, most_extra)) / short_solve;
    std::int64_t const extra = std::max<std::int64_t>(1, rounds) * short_solve;
    auto longer = iterate(short_solve + extra);
    if (!longer) return {};
    for (int again = 0; again < 2 && 2 * spent() < request_.most_device_s; ++again) {
      auto const s = iterate(short_solve), l = iterate(short_solve + extra);
      if (!s || !l) return {};
      shorter = std::min(*shorter, *s);
      longer = std::min(*longer, *l);
    }
    double const difference = *longer - *shorter;
    return 1e6 * (difference > 0 ? difference / static_cast<double>(extra)
                                 : *longer / static_cast<double>(short_solve + extra));
  }

 private:
  std::optional<double> iterate(std::int64_t iterations) {
    State state = request_.start;
    state.target = state.propose_at = 0;
    state.limit = iterations;
    state.pause_at = -1;
    state.history = nullptr;
    state.history_size = 0;
    solve_.put_field(0, zero_.data());
    double const before = solve_.cost().device_s;
    solve_.run(state, request_.stop ? request_.stop : [] { return false; }, {});
    if (state.status != Status::iteration_limit || state.iteration != iterations) return {};
    double const took = solve_.cost().device_s - before;
    return took > 0 ? std::optional(took) : std::nullopt;
  }

  BoundSolve& solve_;
  TuningRequest const& request_;
  std::vector<double> zero_;
};

std::string listed(std::vector<Timing> timings) {
  std::stable_sort(timings.begin(), timings.end(), [](auto const& a, auto const& b) { return a.us < b.us; });
  std::string text;
  for (Timing const& one : timings)
    text += fmt::format("{}{} {:.1f} us", text.empty() ? "" : ", ", one.run, one.us);
  return text + " an iteration";
}

Timing const& fastest(std::vector<Timing> const& timings) {
  return *std::min_element(timings.begin(), timings.end(),
                           [](auto const& a, auto const& b) { return a.us < b.us; });
}

// Empty: it is bound now. Else why it cannot be.
std::string bind_run(BoundSolve& solve, RunKind kind, std::string const& why) {
  try {
    solve.use_run(kind, why);
    return {};
  } catch (Error const& error) {
    return error.what();
  }
}

// False: what was measured names a run that is not there any more.
bool use_cached(BoundSolve& solve, std::vector<Timing> const& timings) {
  for (RunKind kind : {RunKind::persistent, RunKind::graph, RunKind::stream}) {
    if (fastest(timings).run == name(kind))
      return bind_run(solve, kind, "measured before (cache): " + listed(timings)).empty();
  }
  return false;
}

struct Measured {
  std::vector<Timing> timings;
  std::vector<RunKind> kinds;  // of the timings
  std::string left_out;
  bool ended = false;  // the method, by itself, or somebody stopped it
};

void measure_one(BoundSolve& solve, Trial& trial, RunKind kind, Measured& measured) {
  std::string const problem = bind_run(solve, kind, solve.why_run());
  if (!problem.empty()) {
    measured.left_out += fmt::format("; not {}: {}", name(kind), problem);
    return;
  }
  auto const us = trial.measure();
  measured.ended = measured.ended || !us;
  if (!us) return;
  measured.timings.push_back({name(kind), *us});
  measured.kinds.push_back(kind);
}

}  // namespace

std::string tuning_key(Problem const& problem, DeviceFacts const& facts, std::string const& library) {
  DeviceRows const& rows = *problem.rows;
  Tiling const& t = rows.tiling;
  char const* const loops = std::getenv("HOSTLESS_GPU_WHILE");
  return fmt::format(
      "{}/{} multiprocessors/{}/interface {}/while {}/text {} inverse {} degree {} {}/{} {} rows, block {}, "
      "{} "
      "slices, {} bytes of {}/{:016x}",
      facts.name, facts.multiprocessors, library, interface_version, loops == nullptr ? "" : loops,
      fmt::format("{}.{}", static_cast<int>(problem.text.method), static_cast<int>(problem.text.variant)),
      static_cast<int>(problem.preconditioner_data), problem.polynomial.degree,
      problem.free_order ? "fast" : "ordered", name(rows.format), problem.owned, t.block, t.slices,
      rows.bytes_per_sweep(), problem.matrix_bytes, fingerprint(rows));
}

std::string choose_by_measuring(BoundSolve& solve, TuningRequest const& request, TuningCache const& cache) {
  if (auto const known = cache.find(request.key); known && use_cached(solve, *known)) return solve.why_run();
  RunKind const model = solve.run_kind();
  std::string const why_model = solve.why_run();
  Measured measured;
  Trial trial(solve, request);
  for (RunKind kind : {RunKind::persistent, RunKind::graph}) measure_one(solve, trial, kind, measured);
  if (measured.timings.empty() && !measured.ended) measure_one(solve, trial, RunKind::stream, measured);
  std::string why = "measured: ";
  RunKind best = model;
  if (measured.ended || measured.timings.empty()) {  // half a comparison is none
    why = why_model + " (not measured: the method ended before)" + measured.left_out;
  } else {
    auto const at = &fastest(measured.timings) - measured.timings.data();
    best = measured.kinds[static_cast<std::size_t>(at)];
    why += listed(measured.timings) + measured.left_out;
    std::string const unkept = cache.keep(request.key, measured.timings);
    if (!unkept.empty()) why += " (not kept: " + unkept + ")";
  }
  solve.use_run(best, why);
  return why;
}

}  // namespace hostless::gpu
