// What ranks on GPUs pay for the same inside their kernels: `--gpus` of bench pingpong, halo and allreduce.
#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "bench/device_communication.hpp"
#include "hostless/plan/summary.hpp"
#include "hostless/solve/solver.hpp"
#include "hostless/transport/mpi.hpp"
#include "messages.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "work.hpp"

namespace hostless {
namespace {

RunOptions run_of(MessageOptions const& o) {
  RunOptions run;
  run.kind = RunKind::persistent;
  run.gpus = o.gpus;
  run.oversubscribe = o.oversubscribe;
  return run;
}

Json device_report(char const* what, MessageOptions const& o, Transport& transport) {
  Json report = bench_report(what, o.provenance, transport);
  report["gpus"] = o.gpus;
  return report;
}

char const* name(gpu::Phase phase) {
  char const* const names[] = {"publish", "begin", "sweep", "sum"};
  return names[static_cast<int>(phase)];
}

void add_device_times(Json& row, bench::DeviceTiming const& timing) {
  add_times(row, timing.by_clock);
  add_times(row["by_events"], timing.by_events);
  row["phases"] = Json::array();
  for (bench::PhaseTiming const& phase : timing.phases)
    row["phases"].push_back({{"phase", name(phase.phase)},
                             {"meetings", phase.barriers},
                             {"work_us", us * phase.work_s},
                             {"together_us", us * phase.together_s},
                             {"words_us", us * phase.flagged_words_s},
                             {"decision_us", us * phase.decision_s},
                             {"meeting_us", us * phase.barrier_s()}});
}

std::string columns_of(bench::Timing const& by_clock, bench::Timing const& by_events) {
  return fmt::format("{} {:10.3f}", times_of(by_clock), us * by_events.best());
}

std::string timed_head(char const* first) {
  return fmt::format("{} {:>10} {:>10} {:>10} {:>10}", first, "best us", "median us", "worst us",
                     "by events");
}

}  // namespace

void check_device_options(MessageOptions& o, bool is_ping_pong) {
  if (o.sums > 0 && o.gpus == 0)
    throw Error(ErrorCode::usage,
                "--sums without a GPU is refused (ranks of the processor are timed with one). Use --gpus, or "
                "drop it.");
  if (o.gpus > 0 && (!o.load.empty() || o.fields != 1 || o.item_bytes != sizeof(double)))
    throw Error(ErrorCode::usage,
                "--load, --fields or --item-bytes with --gpus are refused (a kernel's halo is a solve's: of "
                "a matrix, one "
                "fp64 vector). Drop them, or --gpus.");
  for (int const values : o.values)
    if (o.gpus > 0 && values > Exchange::widest_sum)
      throw Error(
          ErrorCode::usage,
          fmt::format("--values {} with --gpus is refused (a sum of kernels carries 1 to {}). Use fewer.",
                      values, Exchange::widest_sum));
  if (o.gpus > 0 && is_ping_pong &&
      (started_by_mpi() || (!o.ranks.transport.empty() && o.ranks.transport != "threads")))
    throw Error(ErrorCode::usage,
                "a ping-pong of GPUs between processes (one must see both GPUs of a pair). Drop mpirun or "
                "--transport.");
  if (o.gpus > 0) {
    share_gpus(o.ranks, run_of(o));
  } else if (o.oversubscribe) {
    check_gpus(run_of(o), 1);
  }
}

int time_device_ping_pong(MessageOptions const& o, Transport& transport) {
  int const ranks = std::max(1, o.ranks.ranks), used = std::min(o.gpus, ranks);
  auto const pairs = o.pairs_of(ranks);
  Table const table(o, transport);
  Json report = device_report("pingpong", o, transport);
  report["ranks"] = ranks;
  report["gpu"] = gpu::library().facts(0).name;
  report["pingpong"] = Json::array();
  table.line(fmt::format("{} on {}: one way, half of there and back, by the kernel's clock",
                         counted(ranks, "rank"), counted(used, "GPU")));
  table.line(fmt::format("{:>9} {:>9} {:7}{}  {:>10}", "ranks", "bytes", "by", timed_head(""), "MB/s"));
  for (auto const& [first, second] : pairs) {
    auto const timings =
        bench::device_ping_pong(first % used, second % used, o.sizes_or_default(), o.measure.protocol);
    for (bench::DevicePingPong const& timing : timings) {
      char const* const by = timing.by_flagged_words ? "words" : "fences";
      table.line(fmt::format("{:>9} {:9} {:7} {} {:10.1f}", fmt::format("{}, {}", first, second),
                             timing.bytes, by, columns_of(timing.by_clock, timing.by_events),
                             timing.bytes_per_s() / 1e6));
      Json row = {
          {"first", first}, {"second", second}, {"bytes", timing.bytes}, {"by", by}, {"steps", timing.steps}};
      add_times(row, timing.by_clock);
      add_times(row["by_events"], timing.by_events);
      row["bytes_per_second"] = timing.bytes_per_s();
      report["pingpong"].push_back(row);
    }
  }
  write_report(o, transport, report);
  return 0;
}

int time_device_halo(MessageOptions const& o, Transport& transport) {
  Group& group = transport.group();
  WorkOptions work;
  work.taken.say("gpus", std::int64_t{o.gpus});
  MatrixOptions const layout = work.matrix_options(o.input, o.layout);
  PlanSummary summary;
  {
    auto const source = o.input.open(group, nullptr, 0, Symmetry::any);
    PlannedMatrix const planned = plan_matrix(group, *source, layout);
    if (group.rank() == 0) summary = summarise(planned.plans);
  }
  auto const source = o.input.open(group, &layout, 0, Symmetry::any);
  Matrix const matrix = Matrix::from_source(transport, *source, layout);
  auto const most_bytes =
      static_cast<std::int64_t>(group.max(8.0 * static_cast<double>(matrix.plan().items_sent())));
  int const sums = o.sums > 0 ? o.sums : 2;
  gpu::Communication what;
  what.sums = sums;
  what.values = sums == 2 ? 2 : 3;  // as the widest of the method's
  auto const with_halo = bench::device_steps(matrix, run_of(o), what, o.measure.protocol);
  what.exchanges = false;
  auto const alone = bench::device_steps(matrix, run_of(o), what, o.measure.protocol);
  Table const table(o, transport);
  table.line(fmt::format("{}: {} on {} ({}), route {}, at most {} sent by a rank", o.input.describe(),
                         counted(group.size(), "rank"), counted(o.gpus, "GPU"), with_halo.device,
                         name(matrix.plan().route), counted(most_bytes, "byte")));
  table.line(with_halo.kernel);
  table.line(timed_head(fmt::format("{:20}", "").c_str()));
  table.line(fmt::format("{:20} {}", fmt::format("exchange and sum{}", sums > 1 ? "s" : ""),
                         columns_of(with_halo.by_clock, with_halo.by_events)));
  table.line(fmt::format("{:20} {}", fmt::format("sum{} alone", sums > 1 ? "s" : ""),
                         columns_of(alone.by_clock, alone.by_events)));
  Json report = device_report("halo", o, transport);
  report["gpu"] = with_halo.device;
  report["input"] = o.input.describe();
  report["route"] = name(matrix.plan().route);
  report["most_bytes_sent"] = most_bytes;
  if (group.rank() == 0) report["plan"] = Json::parse(to_json(summary))["total"];
  report["sums"] = sums;
  report["kernel"] = with_halo.kernel;
  add_device_times(report["exchange_and_sum"], with_halo);
  add_device_times(report["sum_alone"], alone);
  write_report(o, transport, report);
  return 0;
}

int time_device_sums(MessageOptions const& o, Transport& transport) {
  Matrix const matrix = bench::uncoupled_matrix(transport, o.gpus);
  Table const table(o, transport);
  Json report = device_report("allreduce", o, transport);
  report["allreduce"] = Json::array();
  table.line(
      fmt::format("{} on {}: sums of doubles over all blocks of all of them, by the kernel's clock; barrier: "
                  "the median from a block's arrival until all have decided",
                  counted(transport.group().size(), "rank"), counted(o.gpus, "GPU")));
  table.line(
      fmt::format("{} {:>10}", timed_head(fmt::format("{:>7} {:8}", "doubles", "").c_str()), "barrier"));
  for (int const values : o.values) {
    gpu::Communication what;
    what.values = values;
    what.exchanges = false;
    auto const timing = bench::device_steps(matrix, run_of(o), what, o.measure.protocol);
    std::string const barrier =
        timing.phases.empty() ? "-" : fmt::format("{:.3f}", us * timing.phases.front().barrier_s());
    table.line(fmt::format("{:7} {:8} {} {:>10}", values, name(Reduction::ordered),
                           columns_of(timing.by_clock, timing.by_events), barrier));
    report["gpu"] = timing.device;
    report["kernel"] = timing.kernel;
    Json row = {{"doubles", values}, {"reduction", name(Reduction::ordered)}};
    add_device_times(row, timing);
    report["allreduce"].push_back(row);
  }
  write_report(o, transport, report);
  return 0;
}

}  // namespace hostless
