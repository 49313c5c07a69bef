#include "stencil_variants.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/counted.hpp"
#include "bench/delayed_transport.hpp"
#include "hostless/base/error.hpp"
#include "hostless/solve/iteration_times.hpp"
#include "lists.hpp"
#include "messages.hpp"
#include "standard_output.hpp"
#include "stencil/array_axes.hpp"
#include "stencil/initial_fields.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

constexpr char const* of_gpus = "its halos are stored or put by kernels between GPUs. Give --gpus";

void nothing(CellBlock const&) {}

void give_initial(VariantsWish const& o, StencilRun& run, int fields) {
  ArrayPart const part = array_part_of(run.box(), o.axes());
  std::vector<std::byte> values(static_cast<std::size_t>(run.box().cells()) * o.value_bytes());
  CellArray const mine = cells_of_box(values.data(), run.box(), o.value_bytes());
  for (int f = 0; f < fields; ++f) {
    fill_initial(o.grid->problem, f, o.grid->size, part.low, part.high, values, o.value_bytes());
    run.give(f, mine);
  }
}

std::vector<std::byte> cells_of(VariantsWish const& o, StencilRun const& run, int fields) {
  std::size_t const bytes = static_cast<std::size_t>(run.box().cells()) * o.value_bytes();
  std::vector<std::byte> values(bytes * static_cast<std::size_t>(fields));
  for (int f = 0; f < fields; ++f)
    run.take(f,
             cells_of_box(values.data() + bytes * static_cast<std::size_t>(f), run.box(), o.value_bytes()));
  return values;
}

void step(StencilRun& run, std::int64_t steps) {
  StencilResult const result = run.run(steps);
  if (result.status == StencilStatus::steps_done) return;
  throw Error(result.status == StencilStatus::peer_lost ? ErrorCode::peer_lost : ErrorCode::environment,
              fmt::format("{}: {} (nothing can be timed). Use other parameters.", name(result.status),
                          result.message));
}

// As many cells as this rank steps, on a grid of its own without neighbours.
class SteppedAlone {
 public:
  SteppedAlone(VariantsWish const& o, StencilRun const& run, StencilKernel const& kernel,
               StencilOptions options)
      : kernel_(kernel), options_(options) {
    for (std::size_t a = 0; a < 3; ++a) {
      std::int64_t const fixed = kernel.radius[a];
      std::int64_t const low = std::max(run.box().low[a], fixed);
      std::int64_t const high = std::min(run.box().high[a], run.grid().extent[a] - fixed);
      grid_.extent[a] = std::max(high - low, std::int64_t{1}) + 2 * fixed;
    }
    options_.ranks_along = {0, 0, 0};
    options_.nodes = {};
    options_.route = Route::direct;
    std::size_t bytes = o.value_bytes();
    for (std::int64_t const extent : grid_.extent) bytes *= static_cast<std::size_t>(extent);
    cells_.assign(bytes, std::byte{0});
  }
  /// Calls use(run) with a run that has cells; its transport lives as long.
  template <class Use>
  void with_run(Use&& use) {
    run_with_threads_transport(1, [&](Transport& transport) {
      StencilRun run(transport, grid_, kernel_, options_);
      CellArray const cells = cells_of_box(cells_.data(), {{0, 0, 0}, grid_.extent}, kernel_.value_bytes);
      for (int f = 0; f < kernel_.fields; ++f) run.give(f, cells);
      use(run);
    });
  }

 private:
  StencilKernel kernel_;
  StencilOptions options_;
  Grid grid_;
  std::vector<std::byte> cells_;
};

struct TimedVariant {
  StencilVariant variant;
  std::unique_ptr<StencilRun> run;            ///< cells are computed
  std::unique_ptr<StencilRun> communication;  ///< none is
  std::unique_ptr<SteppedAlone> computing;    ///< nothing is exchanged
  bench::Timing whole_s, communication_s, computing_s;
};

class Bench {
 public:
  Bench(VariantsWish const& o, Transport& transport)
      : o_(o),
        transport_(transport),
        group_(transport.group()),
        kernel_(o.grid->kernel(o.axes(), o.value_bytes())),
        dealt_(o.dealt->options(group_, o.axes())) {
    StencilKernel idle = kernel_;
    idle.update = nothing, idle.update_ends = nullptr;
    for (StencilVariant const& variant : o.variants) {
      if (variant.obstacle[0] != '\0') continue;
      StencilOptions const options = options_of(variant);
      TimedVariant one;
      one.variant = variant;
      one.run = made(kernel_, options);
      if (o.no_compute || o.overlap) {
        StencilOptions exchanged = options;
        exchanged.depth = one.run->depth();
        exchanged.block_steps = 1;  // what planes under way would copy is no communication
        one.communication = made(idle, exchanged);
      }
      if (o.overlap) one.computing = std::make_unique<SteppedAlone>(o, *one.run, kernel_, options);
      timed_.push_back(std::move(one));
    }
  }

  void time() {
    bench::Protocol const& protocol = o_.measure->protocol;
    auto const once = [&](StencilRun& run, bench::Timing* timing, std::int64_t steps) {
      if (steps == 0) return;
      group_.barrier();
      auto const begin = Clock::now();
      step(run, steps);
      double const seconds = group_.max(std::chrono::duration<double>(Clock::now() - begin).count());
      if (timing != nullptr) timing->step_s.push_back(seconds / static_cast<double>(steps));
    };
    for (int k = -1; k < protocol.repeat; ++k) {  // first what is not timed
      std::int64_t const steps = k < 0 ? protocol.warm_up : protocol.steps;
      auto const all = [&](TimedVariant& one) {
        if (!o_.no_compute) once(*one.run, k < 0 ? nullptr : &one.whole_s, steps);
        if (one.communication) once(*one.communication, k < 0 ? nullptr : &one.communication_s, steps);
      };
      // by turns, so that what else happens on the machine meets all of them
      if (k % 2 == 0) std::for_each(timed_.begin(), timed_.end(), all);
      if (k % 2 != 0) std::for_each(timed_.rbegin(), timed_.rend(), all);
    }
    for (TimedVariant& one : timed_) {
      if (one.computing)
        one.computing->with_run([&](StencilRun& run) {
          once(run, nullptr, protocol.warm_up);
          for (int k = 0; k < protocol.repeat; ++k) once(run, &one.computing_s, protocol.steps);
        });
      for (bench::Timing* timing : {&one.whole_s, &one.communication_s, &one.computing_s})
        std::sort(timing->step_s.begin(), timing->step_s.end());
    }
  }

  bool are_equal() const {
    if (o_.no_compute) return true;
    bool equal = true;
    std::vector<std::byte> first;
    for (TimedVariant const& one : timed_) {
      std::vector<std::byte> const mine = cells_of(o_, *one.run, kernel_.fields);
      if (first.empty()) first = mine;
      equal = equal && mine == first;
    }
    return !group_.any(!equal);
  }

  Json rows() const {
    Json all = Json::array();
    for (StencilVariant const& variant : o_.variants) {
      Json row = {{"name", variant.name}, {"label", variant.label}};
      auto const found = std::find_if(timed_.begin(), timed_.end(), [&](TimedVariant const& one) {
        return std::strcmp(one.variant.name, variant.name) == 0;
      });
      if (found == timed_.end()) {
        row["problem"] = variant.obstacle;
      } else {
        fill(row, *found);
      }
      all.push_back(row);
    }
    return all;
  }
  std::vector<int> ranks_along() const {
    std::vector<int> along;
    if (timed_.empty()) return along;
    for (std::size_t const a : grid_axes(o_.axes()))
      along.push_back(timed_.front().run->partition().ranks_along[a]);
    return along;
  }

 private:
  StencilOptions options_of(StencilVariant const& variant) const {
    StencilOptions options = dealt_;
    if (variant.depth != 0) options.depth = variant.depth;
    if (variant.block_steps != 0) options.block_steps = variant.block_steps;
    options.overlap = variant.overlap;
    options.share = ShareCells::never;  // each has cells of its own, as those of a network have
    options.limits = o_.measure->protocol.limits;
    return options;
  }
  std::unique_ptr<StencilRun> made(StencilKernel const& kernel, StencilOptions const& options) {
    auto run = std::make_unique<StencilRun>(transport_, o_.grid->grid(o_.grid->size), kernel, options);
    give_initial(o_, *run, kernel.fields);
    return run;
  }
  void fill(Json& row, TimedVariant const& one) const {
    row["depth"] = one.run->depth();
    row["block_steps"] = one.run->block_steps();
    bench::Timing const& told = o_.no_compute ? one.communication_s : one.whole_s;
    add_times(row, told);
    row["all_us"] = Json::array();
    for (double const s : told.step_s) row["all_us"].push_back(us * s);
    if (!o_.overlap) return;
    row["communication_us"] = us * one.communication_s.median();
    row["computing_us"] = us * one.computing_s.median();
    if (group_.size() == 1) return;
    row["overlapped"] =
        overlapped_by_runs(one.computing_s.median(), one.communication_s.median(), one.whole_s.median());
  }

  VariantsWish const& o_;
  Transport& transport_;
  Group& group_;
  StencilKernel kernel_;
  StencilOptions dealt_;
  std::vector<TimedVariant> timed_;
};

std::string line_of(Json const& row) {
  std::string const name = row["name"];
  if (row.contains("problem"))
    return fmt::format("{:21} not run: {}\n", name, row["problem"].get<std::string>());
  auto const number = [&](char const* key) { return row[key].get<double>(); };
  std::string text = fmt::format("{:21} {:10.3f} {:10.3f} {:10.3f}", name, number("best_us"),
                                 number("median_us"), number("worst_us"));
  if (row.contains("depth"))
    text += fmt::format(" {:6} {:6}", row["depth"].get<int>(), row["block_steps"].get<int>());
  if (row.contains("command")) text += fmt::format(" {}", row["label"].get<std::string>());
  if (row.contains("communication_us"))
    text += fmt::format(" {:13.3f} {:13.3f}", number("communication_us"), number("computing_us"));
  if (row.contains("overlapped")) text += fmt::format(" {:9.0f} %", 100 * number("overlapped"));
  return text + "\n";
}

}  // namespace

void tell_variants(VariantsWish const& o, Json const& report) {
  std::string const latency =
      o.latency_us > 0 ? fmt::format(" and {:g} us of latency", o.latency_us) : std::string();
  hostless::print("{}, {} cells, {}: {} ({}), {}{}{}\n", o.grid->problem, shape_text(o.grid->size),
                  report["type"].get<std::string>(), counted(report["ranks"].get<int>(), "rank"),
                  fmt::join(report["ranks_along"].get<std::vector<int>>(), " x "),
                  report["transport"].get<std::string>(), latency, o.no_compute ? ", nothing computed" : "");
  hostless::print(
      "{:21} {:>10} {:>10} {:>10} {:>6} {:>6}{}\n", "", "best us", "median us", "worst us", "depth", "block",
      o.overlap ? fmt::format(" {:>13} {:>13} {:>11}", "exchange us", "computing us", "overlapped") : "");
  for (Json const& row : report["variants"]) hostless::print("{}", line_of(row));
  if (report.contains("bits")) hostless::print("bits {}\n", report["bits"].get<std::string>());
  std::fflush(stdout);
}

double blocked_s(Json const& rows) {
  for (Json const& row : rows)
    if (row["name"] == "blocked" && !row.contains("problem")) return row["median_us"].get<double>() / us;
  return 0;
}

std::vector<StencilVariant> const& stencil_variants() {
  static std::vector<StencilVariant> const all{
      {"copy", "Baseline Copy", ""},
      {"overlap", "Baseline Overlap", "", 1, 1, true},
      {"p2p", "Baseline P2P", of_gpus},
      {"nvshmem", "Baseline NVSHMEM", of_gpus},
      {"cpu-free", "CPU-Free", of_gpus},
      {"cpu-free-two-kernels", "CPU-Free, two co-resident kernels", of_gpus},
      {"cpu-free-perks", "CPU-Free PERKS", of_gpus},
      {"blocked", "ours: halos of several steps, blocked in time", "", 0, 0},
      {"blocked-overlap", "ours, its first pass beside the exchange", "", 0, 0, true}};
  return all;
}

std::vector<StencilVariant> stencil_variants_of(std::string const& names) {
  if (names == "all") return stencil_variants();
  std::vector<std::string> known;
  for (StencilVariant const& one : stencil_variants()) known.emplace_back(one.name);
  auto const wanted = words_in(names);
  for (std::string const& word : wanted)
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw Error(ErrorCode::usage,
                  fmt::format("--variants {}: '{}' is none ({}, or all).{} Correct it.", names, word,
                              fmt::join(known, ", "), did_you_mean(word, known)));
  std::vector<StencilVariant> found;
  for (StencilVariant const& one : stencil_variants())
    if (std::find(wanted.begin(), wanted.end(), one.name) != wanted.end()) found.push_back(one);
  return found;
}

int time_stencil_variants(VariantsWish const& o, Transport& carrying) {
  std::optional<bench::DelayedTransport> delayed;
  if (o.latency_us > 0) delayed.emplace(carrying, 1e-6 * o.latency_us);
  Transport& transport = delayed ? *delayed : carrying;
  Bench bench(o, transport);
  bench.time();
  bool const equal = bench.are_equal();
  Group& group = transport.group();
  Json report = bench_report("stencil", o.provenance, transport);
  report["problem"] = o.grid->problem;
  report["size"] = o.grid->size;
  report["type"] = o.value_bytes() == 4 ? "fp32" : "fp64";
  report["boundary"] = "dirichlet";
  report["ranks_along"] = bench.ranks_along();
  report["route"] = o.dealt->route;
  report["steps"] = o.measure->protocol.steps;
  report["latency_us"] = o.latency_us;
  report["computes"] = !o.no_compute;
  report["variants"] = bench.rows();
  if (!o.no_compute) report["bits"] = equal ? "equal" : "different";
  bool const first = group.rank() == 0;
  if (o.report != nullptr) {
    if (first) *o.report = report;
    return equal ? 0 : 1;
  }
  if (first && o.measure->prints_table()) tell_variants(o, report);
  write_together(group, o.measure->json, [&] {
    if (first && !o.measure->json.empty()) write_text(o.measure->json, json_text(report));
  });
  return equal ? 0 : 1;
}

}  // namespace hostless
