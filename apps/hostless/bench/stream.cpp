// What ranks on GPUs pay for the same on streams, by what carries between them: `--gpu-transport` of bench
// pingpong, halo and allreduce.
#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "bench/queued.hpp"
#include "bench/stream_communication.hpp"
#include "hostless/transport/mpi.hpp"
#include "messages.hpp"

namespace hostless {
namespace {

bench::StreamWay way_of(MessageOptions const& o) {
  return {gpu_transport_from(o.gpu_transport.c_str()), o.gpus, o.oversubscribe};
}

Json stream_report(char const* what, MessageOptions const& o, Transport& transport) {
  Json report = bench_report(what, o.provenance, transport);
  report["gpus"] = o.gpus;
  report["gpu_transport"] = name(way_of(o).transport);
  return report;
}

// The members of a row that say how it was queued, and its times or why there are none.
void add_queued(Json& row, bench::QueuedTiming const& timing) {
  row["by"] = timing.by;
  row["carried_by"] = timing.described;
  if (timing.is_fastest) row["fastest"] = true;
  if (timing.problem.empty()) {
    add_times(row, timing.timing);
  } else {
    row["error"] = timing.problem;
  }
}

char const* name_of(bench::QueuedTiming const& timing) {
  if (timing.by == "stream") return "queued";
  return timing.by == "graph" ? "replayed" : "copied";
}

}  // namespace

void check_stream_options(MessageOptions& o) {
  if (o.memory == "host") static_cast<void>(gpu_transport_from(o.gpu_transport.c_str()));
  if (o.sums > 0)
    throw Error(ErrorCode::usage,
                "--sums with --gpu-transport is refused (they are of persistent kernels). Drop one of them.");
  if (started_by_mpi()) return;
  if (o.gpus == 0) o.gpus = std::max(1, o.ranks.ranks);
  if (o.ranks.ranks == 0) o.ranks.ranks = o.gpus;
}

void take_gpus_of_ranks(MessageOptions& o, Group& group) {
  if (o.gpus == 0) o.gpus = bench::gpus_for_ranks(group);
}

int time_stream_ping_pong(MessageOptions const& o, Transport& transport) {
  Group& group = transport.group();
  std::vector<std::pair<int, int>> pairs;
  group.together([&] { pairs = o.pairs_of(group.size()); });
  Table const table(o, transport);
  Json report = stream_report("pingpong", o, transport);
  report["pingpong"] = Json::array();
  table.line(fmt::format("{} on {}, {}: one way, half of there and back", counted(group.size(), "rank"),
                         counted(o.gpus, "GPU"), o.gpu_transport));
  table.line(fmt::format("{:7}{}", "by", head_of(Timed::pingpong)));
  for (auto const& [first, second] : pairs) {
    bench::PingPong const what{first, second, o.sizes_or_default()};
    for (bench::StreamPingPong const& timing :
         bench::stream_ping_pong(transport, what, way_of(o), o.measure.protocol)) {
      Json row = {{"first", first}, {"second", second}, {"bytes", timing.bytes}, {"steps", timing.steps}};
      add_queued(row, timing.one_way);
      if (!row.contains("error"))
        row["bytes_per_second"] = static_cast<double>(timing.bytes) / timing.one_way.timing.best();
      table.line(fmt::format("{:7}{}", timing.one_way.by, line_of(Timed::pingpong, row)));
      report["pingpong"].push_back(row);
    }
  }
  write_report(o, transport, report);
  return 0;
}

int time_stream_halo(MessageOptions const& o, Transport& transport) {
  Group& group = transport.group();
  bench::Halo what;
  auto const plans = halo_plans(o, group, what);
  auto const timings = bench::stream_halo(transport, what, way_of(o), o.measure.protocol);
  Json report = stream_report("halo", o, transport);
  Table const table(o, transport);
  table.line(describe_halo(o, group, what, plans, report));
  for (bench::QueuedTiming const& timing : timings) add_queued(report[name_of(timing)], timing);
  table.line(head_of(Timed::halo));
  for (Json const& row : rows_of(Timed::halo, report)) table.line(line_of(Timed::halo, row));
  write_report(o, transport, report);
  return 0;
}

int time_stream_sums(MessageOptions const& o, Transport& transport) {
  Table const table(o, transport);
  Json report = stream_report("allreduce", o, transport);
  report["allreduce"] = Json::array();
  table.line(fmt::format("{} on {}, {}: doubles of every rank, brought to all of them",
                         counted(transport.group().size(), "rank"), counted(o.gpus, "GPU"), o.gpu_transport));
  table.line(fmt::format("{:7}{}", "by", head_of(Timed::allreduce)));
  for (int const values : o.values)
    for (bench::QueuedTiming const& timing :
         bench::stream_parts_of_sums(transport, values, way_of(o), o.measure.protocol)) {
      Json row = {{"doubles", values}, {"reduction", "gathered"}};
      add_queued(row, timing);
      table.line(fmt::format("{:7}{}", timing.by, line_of(Timed::allreduce, row)));
      report["allreduce"].push_back(row);
    }
  write_report(o, transport, report);
  return 0;
}

}  // namespace hostless
