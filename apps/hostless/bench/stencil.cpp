// `hostless bench stencil`: steps of a stencil on ranks that are threads, beside the plain loop over two
// arrays on as many threads, whose cells must be the same. Or ways of a paper beside ours, on ranks or GPUs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <future>
#include <limits>
#include <memory>

#include "base/counted.hpp"
#include "base/processors.hpp"
#include "file_names.hpp"
#include "hostless/base/error.hpp"
#include "hostless/machine/bandwidth.hpp"
#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "messages.hpp"
#include "numbers.hpp"
#include "options_of.hpp"
#include "plain_loop.hpp"
#include "rivals/rivals.hpp"
#include "standard_output.hpp"
#include "stencil/array_axes.hpp"
#include "stencil/grid_options.hpp"
#include "stencil/initial_fields.hpp"
#include "stencil/worth_ranks.hpp"
#include "stencil_gpus.hpp"
#include "stencil_variants.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

struct StencilBench {
  GridWords grid;
  DealtOptions dealt;
  RankOptions ranks;
  GpuWords gpus;
  MeasureOptions measure;
  bool no_bandwidth = false, no_compute = false, overlap = false;
  std::string variants;
  RivalWords rivals;
  double latency_us = 0;
  Provenance provenance;

  std::size_t value_bytes() const { return grid.type == "fp32" ? 4 : 8; }
  int axes() const { return static_cast<int>(grid.size.size()); }
  double cells() const {
    double all = 1;
    for (std::int64_t const extent : grid.size) all *= static_cast<double>(extent);
    return all;
  }
};

using PlainLoops = std::vector<std::unique_ptr<PlainLoop>>;

struct Times {
  bench::Timing stencil;
  std::vector<bench::Timing> plain;  ///< of each loop
  std::vector<double> paired;        ///< rising; of each repeat the fastest loop's time by the stencil's

  std::size_t best() const {
    auto const faster = [](bench::Timing const& a, bench::Timing const& b) {
      return a.median() < b.median();
    };
    return static_cast<std::size_t>(std::min_element(plain.begin(), plain.end(), faster) - plain.begin());
  }
};

// The same fields for all: the plain loops', of which each rank's box is filled here.
void give(StencilBench const& o, StencilRun& run, PlainLoops const& plain, int fields) {
  ArrayPart const part = array_part_of(run.box(), o.axes());
  std::vector<std::byte> values(static_cast<std::size_t>(run.box().cells()) * o.value_bytes());
  CellArray const mine = cells_of_box(values.data(), run.box(), o.value_bytes());
  for (int f = 0; f < fields; ++f) {
    fill_initial(o.grid.problem, f, o.grid.size, part.low, part.high, values, o.value_bytes());
    run.give(f, mine);
    for (auto const& one : plain) run.take(f, one->cells(f));
  }
}

bool are_equal(StencilBench const& o, StencilRun const& run, PlainLoop& plain, int fields) {
  Box const& box = run.box();
  std::vector<std::byte> values(static_cast<std::size_t>(box.cells()) * o.value_bytes());
  auto const row = static_cast<std::size_t>(box.extent(2)) * o.value_bytes();
  bool equal = true;
  for (int f = 0; f < fields; ++f) {
    run.take(f, cells_of_box(values.data(), box, o.value_bytes()));
    CellArray const theirs = plain.cells(f);
    auto const* mine = values.data();
    for (std::int64_t a = box.low[0]; a < box.high[0]; ++a)
      for (std::int64_t b = box.low[1]; b < box.high[1]; ++b, mine += row)
        equal = equal && std::memcmp(mine,
                                     static_cast<std::byte const*>(theirs.data) + a * theirs.stride[0] +
                                         b * theirs.stride[1] + box.low[2] * theirs.stride[2],
                                     row) == 0;
  }
  return equal;
}

// The threads of a plain loop that are no ranks, for one repeat; those that are ranks call steps.
class PlainThreads {
 public:
  PlainThreads(PlainLoop& loop, Group& group, std::int64_t steps)
      : loop_(loop), rank_(group.rank()), steps_(steps) {
    if (rank_ == 0)
      for (int thread = group.size(); thread < loop.threads(); ++thread)
        // bounded: the barriers of the loop have deadlines
        others_.push_back(std::async(std::launch::async, [this, thread] {
          loop_.steps(thread, 0);
          loop_.steps(thread, steps_);
        }));
    if (rank_ < loop_.threads()) loop_.steps(rank_, 0);  // all have started
  }
  void steps() {
    if (rank_ < loop_.threads()) loop_.steps(rank_, steps_);
  }

 private:
  PlainLoop& loop_;
  int rank_;
  std::int64_t steps_;
  // bounded: the barriers of the loop have deadlines
  std::vector<std::future<void>> others_;
};

// In turns, so that what else happens on the machine meets all.
Times time_all(StencilBench const& o, Transport& transport, StencilRun& run, PlainLoops const& plain) {
  Group& group = transport.group();
  bench::Protocol const& protocol = o.measure.protocol;
  auto const timed = [&](std::int64_t steps, auto const& work) {
    group.barrier();
    auto const begin = Clock::now();
    work();
    return group.max(std::chrono::duration<double>(Clock::now() - begin).count()) /
           static_cast<double>(steps);
  };
  auto const step = [&](std::int64_t steps) {
    return timed(steps, [&] {
      StencilResult const result = run.run(steps);
      if (result.status != StencilStatus::steps_done)
        throw Error(ErrorCode::environment,
                    fmt::format("{}: {} (nothing can be timed). Use other parameters.", name(result.status),
                                result.message));
    });
  };
  auto const step_plain = [&](PlainLoop& loop, std::int64_t steps) {
    PlainThreads threads(loop, group, steps);
    return timed(steps, [&] { threads.steps(); });
  };
  Times times;
  times.plain.resize(plain.size());
  if (std::int64_t const warm = protocol.warm_up; warm > 0) {
    step(warm);
    for (auto const& one : plain) step_plain(*one, warm);
  }
  for (int k = 0; k < protocol.repeat; ++k) {
    times.stencil.step_s.push_back(step(protocol.steps));
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < plain.size(); ++p) {
      times.plain[p].step_s.push_back(step_plain(*plain[p], protocol.steps));
      least = std::min(least, times.plain[p].step_s.back());
    }
    times.paired.push_back(least / times.stencil.step_s.back());
  }
  for (bench::Timing& one : times.plain) std::sort(one.step_s.begin(), one.step_s.end());
  std::sort(times.stencil.step_s.begin(), times.stencil.step_s.end());
  std::sort(times.paired.begin(), times.paired.end());
  return times;
}

// bandwidth  bytes a second, 0: not measured
Json row_of(StencilBench const& o, bench::Timing const& timing, int fields, double bandwidth) {
  Json row;
  add_times(row, timing);
  row["all_us"] = Json::array();
  for (double const s : timing.step_s) row["all_us"].push_back(us * s);
  row["cells_per_second"] = o.cells() / timing.median();
  // every field is read once and written once a step, were there no cache
  double const bytes = 2.0 * fields * static_cast<double>(o.value_bytes()) * o.cells();
  row["bytes_per_second"] = bytes / timing.median();
  if (bandwidth > 0) row["share_of_bandwidth"] = bytes / timing.median() / bandwidth;
  return row;
}

std::string line_of(char const* what, bench::Timing const& timing, Json const& row) {
  std::string const share = row.contains("share_of_bandwidth")
                                ? fmt::format("{:10.2f}", row["share_of_bandwidth"].get<double>())
                                : std::string();
  return fmt::format("{:10} {} {:16.1f} {}\n", what, times_of(timing),
                     1e-6 * row["cells_per_second"].get<double>(), share);
}

void tell_rivals(StencilBench const& o, Rivals const& rivals, Json& report) {
  if (rivals.empty()) return;
  report["rivals"] = rivals.rows(report["stencil"]["median_us"].get<double>() / us);
  if (!o.measure.prints_table()) return;
  for (Json const& row : report["rivals"]) {
    std::string const name = row["name"];
    if (row.contains("problem")) {
      print("{:10} not timed: {}\n", name, row["problem"].get<std::string>());
    } else {
      print("{:10} {:10.3f} {:10.3f} {:10.3f}  {:.2f} times as long as ours: {}\n", name,
            row["best_us"].get<double>(), row["median_us"].get<double>(), row["worst_us"].get<double>(),
            row["speedup"].get<double>(), row["label"].get<std::string>());
    }
  }
  std::fflush(stdout);
}

// report  filled by the first rank
int time_stencil(StencilBench const& o, Transport& transport, PlainLoops const& plain, Json& report) {
  Group& group = transport.group();
  bool const first = group.rank() == 0;
  StencilKernel const kernel = o.grid.kernel(o.axes(), o.value_bytes());
  StencilRun run(transport, o.grid.grid(o.grid.size), kernel, o.dealt.options(group, o.axes()));
  give(o, run, plain, kernel.fields);
  Times const times = time_all(o, transport, run, plain);
  bool const equal = !group.any(std::any_of(
      plain.begin(), plain.end(), [&](auto const& one) { return !are_equal(o, run, *one, kernel.fields); }));
  std::size_t const best = times.best();
  double bandwidth = 0;
  group.together([&] {
    if (first && !o.no_bandwidth) bandwidth = measure_triad_bandwidth(group.size(), 0.1);
  });
  if (!first) return equal ? 0 : 1;
  report = bench_report("stencil", o.provenance, transport);
  report["problem"] = o.grid.problem;
  report["size"] = o.grid.size;
  report["type"] = o.value_bytes() == 4 ? "fp32" : "fp64";
  report["boundary"] = o.grid.boundary_text();
  report["ranks_along"] = Json::array();
  for (std::size_t const a : grid_axes(o.axes()))
    report["ranks_along"].push_back(run.partition().ranks_along[a]);
  report["route"] = o.dealt.route;
  report["depth"] = run.depth();
  report["block_steps"] = run.block_steps();
  report["shares_cells"] = run.shares_cells();
  report["steps"] = o.measure.protocol.steps;
  if (bandwidth > 0) report["bandwidth"] = bandwidth;
  report["stencil"] = row_of(o, times.stencil, kernel.fields, bandwidth);
  report["plain_loop"] = row_of(o, times.plain[best], kernel.fields, bandwidth);
  report["plain_loop"]["threads"] = plain[best]->threads();
  report["speedup"] = times.plain[best].median() / times.stencil.median();
  report["paired_speedup"] = times.paired;
  report["bits"] = equal ? "equal" : "different";
  if (o.measure.prints_table()) {
    hostless::print("{}, {} cells, {}: {} ({}), {}, {} in a pass; plain loop: {}\n", o.grid.problem,
                    shape_text(o.grid.size), report["type"].get<std::string>(), counted(group.size(), "rank"),
                    fmt::join(report["ranks_along"].get<std::vector<int>>(), " x "),
                    run.shares_cells() ? "arrays that all share"
                                       : fmt::format("{} between exchanges", counted(run.depth(), "step")),
                    run.block_steps(), counted(plain[best]->threads(), "thread"));
    print("{:10} {:>10} {:>10} {:>10} {:>16} {:>10}\n", "", "best us", "median us", "worst us",
          "million cells/s", bandwidth > 0 ? "of memory" : "");
    print("{}{}", line_of("stencil", times.stencil, report["stencil"]),
          line_of("plain loop", times.plain[best], report["plain_loop"]));
    print("{:.2f} times as fast, bits {}\n", report["speedup"].get<double>(),
          report["bits"].get<std::string>());
    std::fflush(stdout);
  }
  return equal ? 0 : 1;
}

void add_variants(CLI::App& c, StencilBench& o) {
  auto* const variants = c.add_option("--variants", o.variants,
                                      fmt::format("In place of the plain loop, ways of Ismayilov et al. and "
                                                  "ours by turns, between commas: {}; or all",
                                                  fmt::join(
                                                      [] {
                                                        std::vector<std::string> names;
                                                        for (StencilVariant const& one : stencil_variants())
                                                          names.emplace_back(one.name);
                                                        return names;
                                                      }(),
                                                      ", ")));
  auto* const no_compute =
      c.add_flag("--no-compute", o.no_compute, "Time their exchanges, with no cell computed")
          ->needs(variants);
  c.add_flag("--overlap", o.overlap,
             "Which share of the communication lay beside computing: by communication and computing alone")
      ->needs(variants)
      ->excludes(no_compute);
  o.rivals.add(c);
  c.get_option("--rival")->excludes(no_compute);
  c.add_option("--latency-us", o.latency_us,
               "Emulates a network between threads: what is sent arrives so many microseconds later")
      ->needs(variants)
      ->check(real_number(false));
  c.add_option("--transport", o.ranks.transport,
               "Of --variants: threads (default), processes, mpi or composite")
      ->check(one_of({"threads", "processes", "mpi", "composite"}));
}

Rivals rivals_of(StencilBench const& o, int ranks) {
  return {o.rivals, {o.grid.problem, o.grid.type, o.grid.size, o.measure.protocol.steps, ranks}};
}
// On processors that no rank of ours waits on.
void run_rivals(StencilBench const& o, Rivals& rivals) {
  for (int k = 0; k < o.measure.protocol.repeat; ++k) rivals.run();
}

int run_variants(StencilBench& o, Arguments const& arguments) {
  auto const refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  if (!o.grid.boundary.empty())
    refuse(
        "--boundary with --variants or --gpus is refused (the ends of those grids stay as given). Drop it.");
  if (o.no_bandwidth) refuse("--no-bandwidth with --variants is refused (none is measured). Drop it.");
  bool const on_gpus = !o.gpus.devices().empty();
  if (on_gpus && o.overlap) refuse("--overlap on GPUs (it is of ranks of the processor). Drop it.");
  if (on_gpus && o.latency_us > 0)
    refuse("--latency-us on GPUs (it delays messages between threads). Drop it.");
  if (on_gpus && !o.ranks.transport.empty())
    refuse(
        fmt::format("--transport {} on GPUs (they reach each other's memory). Drop it.", o.ranks.transport));
  if (o.latency_us > 0 && !o.ranks.transport.empty() && o.ranks.transport != "threads")
    refuse(fmt::format("--latency-us with --transport {} is refused (ranks need one clock). Use threads.",
                       o.ranks.transport));
  VariantsWish wish;
  wish.grid = &o.grid;
  wish.dealt = &o.dealt;
  wish.measure = &o.measure;
  wish.variants = stencil_variants_of(o.variants.empty() ? "all" : o.variants);
  wish.no_compute = o.no_compute;
  wish.overlap = o.overlap;
  wish.latency_us = o.latency_us;
  wish.provenance = o.provenance;
  Rivals rivals =
      rivals_of(o, on_gpus ? static_cast<int>(o.gpus.devices().size()) : std::max(o.ranks.ranks, 1));
  wish.rivals = &rivals;
  if (on_gpus) {
    rivals.try_out();
    return time_stencil_on_gpus(wish, o.gpus);
  }
  Json report;
  if (!rivals.empty()) {
    bool const are_threads =
        o.ranks.transport == "threads" || (o.ranks.transport.empty() && !started_by_mpi());
    if (!are_threads)
      refuse(
          fmt::format("--rival with ranks of {} is refused (they wait beside it, on its processors). Use "
                      "threads or GPUs.",
                      o.ranks.transport.empty() ? "mpirun" : "--transport " + o.ranks.transport));
    wish.report = &report;
    rivals.try_out();
  }
  int const code = run_ranks(o.ranks, arguments,
                             [&](Transport& transport) { return time_stencil_variants(wish, transport); });
  if (report.is_null()) return code;
  run_rivals(o, rivals);
  double const ours_s = blocked_s(report["variants"]);
  for (Json const& row : rivals.rows(ours_s)) report["variants"].push_back(row);
  if (o.measure.prints_table()) tell_variants(wish, report);
  if (!o.measure.json.empty()) write_text(o.measure.json, json_text(report));
  return code;
}

// On as many threads as there are ranks; where nobody has said how many, the ranks are as many as pay for a long
// run, and loops run on one thread and on all processors.
PlainLoops plain_loops(StencilBench& o) {
  std::vector<int> threads{std::max(o.ranks.ranks, 1)};
  if (o.ranks.ranks == 0) {
    constexpr std::int64_t many = 1 << 20;
    settle_ranks(o.ranks, o.grid, o.dealt, o.grid.size, o.value_bytes(), many);
    if (int const all = processors_of_rank(1, true); all > 1) threads.push_back(all);
  }
  PlainLoops loops;
  for (int const some : threads)
    loops.push_back(std::make_unique<PlainLoop>(
        o.grid.grid(o.grid.size), o.grid.kernel(o.axes(), o.value_bytes()), some, o.measure.protocol.limits));
  return loops;
}

}  // namespace

void add_bench_stencil(CLI::App& bench, Arguments const& arguments, std::function<int()>& work) {
  auto o = std::make_shared<StencilBench>();
  o->measure.protocol.steps = 100;
  CLI::App* c = bench.add_subcommand("stencil",
                                     "Steps of a stencil on threads, beside the plain loop over two arrays "
                                     "on as many threads; where neither is "
                                     "said, on as many as pay beside the faster of one thread and all");
  o->grid.add(*c);
  o->grid.add_boundary(*c);
  c->get_option("--size")->required();
  c->add_option(
       "--ranks", o->ranks.ranks,
       "Ranks, each a thread, and threads of the plain loop (default: as many as pay; the plain loop on "
       "one and on all)")
      ->check(whole_number(1, most_workers));
  o->dealt.add(*c);
  o->gpus.add(*c);
  o->measure.add(*c);
  add_variants(*c, *o);
  c->add_flag("--no-bandwidth", o->no_bandwidth, "Skip the measurement of memory bandwidth");
  c->callback([o, c, &arguments, &work] {
    work = [o, c, &arguments] {
      o->grid.check();
      if (!o->measure.json.empty() && o->measure.json != "-") check_whole_file(o->measure.json);
      o->provenance = provenance_of(*c);
      o->gpus.check(*c, o->ranks);
      if (!o->variants.empty() || !o->gpus.devices().empty()) return run_variants(*o, arguments);
      if (!o->ranks.transport.empty() && o->ranks.transport != "threads")
        throw Error(ErrorCode::usage,
                    fmt::format("--transport {} beside the plain loop (whose threads share its arrays). Give "
                                "--variants, or drop it.",
                                o->ranks.transport));
      o->ranks.transport = "threads";
      PlainLoops const plain = plain_loops(*o);
      Rivals rivals = rivals_of(*o, std::max(o->ranks.ranks, 1));
      rivals.try_out();
      Json report;
      int const code = run_ranks(o->ranks, arguments, [&](Transport& transport) {
        return time_stencil(*o, transport, plain, report);
      });
      if (report.is_null()) return code;
      run_rivals(*o, rivals);
      tell_rivals(*o, rivals, report);
      if (!o->measure.json.empty()) write_text(o->measure.json, json_text(report));
      return code;
    };
  });
}

}  // namespace hostless
