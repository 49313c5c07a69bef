// Messages that a queue starts and waits for, beside a host that does: `hostless bench pingpong --queue`,
// `bench halo --queue` and `bench life`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/counted.hpp"
#include "bench/life.hpp"
#include "bench/queue_messages.hpp"
#include "bench/stream_life.hpp"
#include "bench/stream_messages.hpp"
#include "file_names.hpp"
#include "hostless/transport/gpu_transport.hpp"
#include "hostless/transport/mpi.hpp"
#include "hostless/transport/ofi.hpp"
#include "lists.hpp"
#include "messages.hpp"
#include "numbers.hpp"
#include "options_of.hpp"
#include "queue/gpu/message_library.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using bench::Driver;
auto queue_types() { return one_of({"auto", "threads", "mpi", "peer", "nccl", "ofi"}); }
constexpr std::array<Driver, 3> drivers = {Driver::standard, Driver::ready, Driver::host};

std::string head(char const* first) {
  return fmt::format("{:>12} {:9} {:>10} {:>10} {:>10} {:>12}", first, "by", "best us", "median us",
                     "worst us", "host / it");
}
// host  the host's median, which the others are held against
std::string line(std::string const& first, char const* by, bench::Timing const& timing,
                 bench::Timing const& host) {
  return fmt::format("{:>12} {:9} {} {:12.2f}", first, by, times_of(timing), host.median() / timing.median());
}

}  // namespace

void add_queue(CLI::App& command, std::string& queue) {
  auto* const option =
      command
          .add_option(
              "--queue", queue,
              "With it a queue of this type (auto, threads, mpi, ofi) starts and waits, with what packs and "
              "unpacks, all of it enqueued before; beside a host that does. peer: streams of --gpus do")
          ->check(queue_types());
  for (char const* other : {"--gpu-transport", "--transports"}) option->excludes(command.get_option(other));
}

namespace {

Error run_of_no_stream() {
  return Error(
      ErrorCode::usage,
      "--run without --queue peer is refused (nothing else is a stream's work here). Drop it, or name that "
      "queue.");
}
Error too_many_ranks(MessageOptions const& o) {
  return Error(ErrorCode::usage, fmt::format("{} on {} (their streams share one). Add "
                                             "--oversubscribe, or use as many GPUs.",
                                             counted(o.ranks.ranks, "rank"), counted(o.gpus, "GPU")));
}

}  // namespace

void check_queue_options(MessageOptions& o, std::string_view bench) {
  bool const is_peer = o.queue == "peer", is_stream = is_peer || o.queue == "nccl";
  if (!o.queue_run.empty() && !is_stream) throw run_of_no_stream();
  if (o.processor_time && !is_peer)
    throw Error(
        ErrorCode::usage,
        "--processor-time without --queue peer is refused (elsewhere processors send). Drop it, or name that "
        "queue.");
  if (o.queue.empty()) return;
  if (o.sums > 0)
    throw Error(
        ErrorCode::usage,
        fmt::format("--sums {} with --queue is refused (it adds nothing up). Drop one of them.", o.sums));
  if (o.memory == "gpu")
    throw Error(ErrorCode::usage,
                "--memory gpu with --queue is refused (peer's messages lie in GPUs, those of other queues in "
                "the host). "
                "Drop --memory.");
  if (!is_stream && (o.gpus > 0 || o.oversubscribe))
    throw Error(ErrorCode::usage,
                fmt::format("--gpus or --oversubscribe with --queue {} is refused (its work is the "
                            "host's). Drop them, or use --queue peer.",
                            o.queue));
  if (!is_stream) return;
  if (bench == "halo")
    throw Error(
        ErrorCode::usage,
        fmt::format("--queue {} of bench halo (streams are timed by bench pingpong and life). Use those, or "
                    "another queue.",
                    o.queue));
  if (!is_peer && bench == "pingpong")
    throw Error(
        ErrorCode::usage,
        "--queue nccl of bench pingpong (what two ranks have moves both ways at once: nothing goes to and "
        "fro). Use bench life, or another queue.");
  if (!is_peer && o.oversubscribe)
    throw Error(ErrorCode::usage,
                "--oversubscribe with --queue nccl is refused (it connects ranks with a GPU each). Drop it, "
                "or use peer.");
  if (o.gpus < 1)
    throw Error(ErrorCode::usage,
                fmt::format("--queue {} without GPUs is refused (their streams do the work). Use --gpus 2{}.",
                            o.queue, is_peer ? ", or --gpus 1 with --oversubscribe" : ""));
  if (started_by_mpi() || (!o.ranks.transport.empty() && o.ranks.transport != "threads"))
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "--queue {} between processes (streams start and wait between threads of one process). Drop "
            "mpirun or --transport.",
            o.queue));
  if (o.ranks.ranks == 0) o.ranks.ranks = std::max(2, o.gpus);
  if (o.ranks.ranks > o.gpus && !o.oversubscribe) throw too_many_ranks(o);
  o.ranks.transport = "threads";
}

namespace {

void check_gpus(MessageOptions const& o, Transport& transport) {
  transport.group().together([&] {
    int const seen = gpu::message_library().devices();
    if (seen < o.gpus)
      throw Error(ErrorCode::environment,
                  fmt::format("--gpus {} ({} are visible). Use as many, or fewer with --oversubscribe.",
                              o.gpus, seen));
  });
}

int time_stream_queue(MessageOptions const& o, Transport& transport,
                      std::vector<std::pair<int, int>> const& pairs) {
  check_gpus(o, transport);
  Table const table(o, transport);
  Json report = bench_report("pingpong", o.provenance, transport);
  report["queue"] = o.queue;
  report["gpus"] = o.gpus;
  report["pingpong"] = Json::array();
  table.line(fmt::format("{} on {}, queue {}: there and back; pack, send, wait, unpack on each side",
                         counted(transport.group().size(), "rank"), counted(o.gpus, "GPU"), o.queue));
  table.line(fmt::format("{:>12} {:9} {:6} {:>10} {:>10} {:>10} {:>12}", "bytes", "by", "run", "best us",
                         "median us", "worst us", "GB/s one way"));
  for (auto const& [first, second] : pairs) {
    bench::PeerPingPong what{
        o.gpus, first, second, o.sizes, o.queue_run != "graph", o.queue_run != "stream", o.processor_time};
    if (what.bytes.empty())
      what.bytes = {
          8, 4096, 65536, 262144, std::size_t{1} << 20, std::size_t{16} << 20, std::size_t{64} << 20};
    for (bench::PeerPingPongTiming const& timing :
         bench::peer_ping_pong(transport, what, o.measure.protocol)) {
      bench::Timing const& one = timing.round_trip;
      char const* const run = timing.by_graph ? "graph" : "stream";
      Json row = {{"first", first},
                  {"second", second},
                  {"bytes", timing.bytes},
                  {"steps", timing.steps},
                  {"by", bench::name(timing.driver)},
                  {"run", run},
                  {"of", "round trip"}};
      add_times(row, one);
      double const bytes_per_s = 2.0 * static_cast<double>(timing.bytes) / one.best();
      row["bytes_per_second"] = bytes_per_s;
      table.line(fmt::format("{:>12} {:9} {:6} {} {:12.2f}", timing.bytes, bench::name(timing.driver), run,
                             times_of(one), 1e-9 * bytes_per_s));
      if (timing.processor.trips > 0) {
        bench::ProcessorTime const& p = timing.processor;
        row["queued_beforehand"] = {
            {"round_trips", p.trips}, {"wall_s", p.wall_s}, {"processor_s", p.busy_s}};
        table.line(fmt::format("{:12} {} queued beforehand: {:.1f} ms, processors busy for {:.2f} % of it",
                               "", counted(p.trips, "round trip"), 1e3 * p.wall_s,
                               100 * p.busy_s / p.wall_s));
      }
      report["pingpong"].push_back(row);
    }
  }
  write_report(o, transport, report);
  return 0;
}

}  // namespace

namespace {

// Over libfabric between the same ranks, where the queue is such a one.
class OverFabric {
 public:
  OverFabric(MessageOptions const& o, Transport& transport)
      : fabric_(o.queue == "ofi" ? open_ofi_transport(transport) : nullptr),
        carries_(fabric_ ? *fabric_ : transport) {}
  Transport& transport() const { return carries_; }

 private:
  std::unique_ptr<Transport> fabric_;
  Transport& carries_;
};

}  // namespace

int time_queue_ping_pong(MessageOptions const& o, Transport& below) {
  OverFabric const over(o, below);
  Transport& transport = over.transport();
  Group& group = transport.group();
  std::vector<std::pair<int, int>> pairs;
  group.together([&] { pairs = o.pairs_of(group.size()); });
  if (o.queue == "peer") return time_stream_queue(o, transport, pairs);
  bench::check_queue(transport, queue_type_from(o.queue.c_str()));
  Table const table(o, transport);
  Json report = bench_report("pingpong", o.provenance, transport);
  report["queue"] = o.queue;
  report["pingpong"] = Json::array();
  table.line(fmt::format("{}, {}, queue {}: pack, message, unpack; one way, half of there and back",
                         counted(group.size(), "rank"), transport.capabilities().transport, o.queue));
  table.line(head("bytes"));
  for (auto const& [first, second] : pairs) {
    bench::QueuePingPong const what{queue_type_from(o.queue.c_str()), first, second, o.sizes_or_default()};
    for (bench::QueuePingPongTiming const& timing :
         bench::queue_ping_pong(transport, what, o.measure.protocol)) {
      for (Driver const driver : drivers) {
        bench::Timing const& one = timing.of(driver);
        Json row = {{"first", first},
                    {"second", second},
                    {"bytes", timing.bytes},
                    {"steps", timing.steps},
                    {"by", bench::name(driver)}};
        add_times(row, one);
        row["bytes_per_second"] = static_cast<double>(timing.bytes) / one.best();
        table.line(line(std::to_string(timing.bytes), bench::name(driver), one, timing.host));
        report["pingpong"].push_back(row);
      }
    }
  }
  write_report(o, transport, report);
  return 0;
}

int time_queue_halo(MessageOptions const& o, Transport& below) {
  OverFabric const over(o, below);
  Transport& transport = over.transport();
  Group& group = transport.group();
  bench::check_queue(transport, queue_type_from(o.queue.c_str()));
  bench::Halo what;
  auto const plans = halo_plans(o, group, what);
  auto const timing =
      bench::queue_halo(transport, what, queue_type_from(o.queue.c_str()), o.measure.protocol);
  Json report = bench_report("halo", o.provenance, transport);
  report["queue"] = o.queue;
  Table const table(o, transport);
  table.line(describe_halo(o, group, what, plans, report) + "; the queue's messages go directly");
  table.line(head("exchange"));
  add_times(report["standard"], timing.standard);
  add_times(report["host"], timing.host);
  table.line(line("", "standard", timing.standard, timing.host));
  table.line(line("", "host", timing.host, timing.host));
  write_report(o, transport, report);
  return 0;
}

namespace {

struct LifeOptions {
  MessageOptions common;
  std::vector<std::int64_t> size;
  std::vector<int> along;
};

bench::Life life_of(LifeOptions const& o, int ranks) {
  bench::Life what;
  what.type = queue_type_from(o.common.queue.c_str());
  what.rows = o.size.front();
  what.columns = o.size.back();
  bench::square_of(ranks, what.ranks_along);
  for (std::size_t a = 0; a < o.along.size() && a < 2; ++a) what.ranks_along[a] = o.along[a];
  return what;
}

void add_cells(Json& row, bench::Life const& what, bench::LifeTiming const& timing) {
  add_times(row, timing.step);
  row["cells_per_second"] = static_cast<double>(what.rows * what.columns) / timing.step.median();
  row["alive"] = timing.alive;
  row["gliders"] = timing.is_right ? "conserved" : "LOST";
}

Json life_report(LifeOptions const& o, Transport& transport, bench::Life const& what) {
  Json report = bench_report("life", o.common.provenance, transport);
  report["queue"] = o.common.queue;
  report["size"] = {what.rows, what.columns};
  report["ranks_along"] = {what.ranks_along[0], what.ranks_along[1]};
  report["steps"] = o.common.measure.protocol.steps;
  report["life"] = Json::array();
  return report;
}

int end_life(LifeOptions const& o, Transport& transport, Table const& table, bool right, Json const& report) {
  table.line(right ? "every glider is where it must be" : "GLIDERS ARE LOST");
  write_report(o.common, transport, report);
  return right ? 0 : 1;
}

int time_stream_life(LifeOptions const& o, Transport& transport) {
  check_gpus(o.common, transport);
  bench::Life const what = life_of(o, transport.group().size());
  Table const table(o.common, transport);
  Json report = life_report(o, transport, what);
  report["gpus"] = o.common.gpus;
  table.line(fmt::format("Life on {} x {} cells, {} x {} ranks on {}, queue {}: a step", what.rows,
                         what.columns, what.ranks_along[0], what.ranks_along[1],
                         counted(o.common.gpus, "GPU"), o.common.queue));
  table.line(head("run"));
  bool right = true;
  std::optional<bench::Timing> host;  // first, because the others are held against it
  for (bench::StreamLifeWay const& way : {bench::StreamLifeWay{Driver::host, false},
                                          {Driver::standard, false},
                                          {Driver::ready, false},
                                          {Driver::standard, true},
                                          {Driver::ready, true}}) {
    char const* const run = way.driver == Driver::host ? "host" : way.by_graph ? "graph" : "stream";
    if (way.driver != Driver::host && !o.common.queue_run.empty() && o.common.queue_run != run) continue;
    if (way.driver == Driver::ready && what.type == QueueType::nccl) continue;  // it has none
    bench::LifeTiming const timing =
        bench::stream_life(transport, what, o.common.gpus, way, o.common.measure.protocol);
    if (!host) host = timing.step;
    right = right && timing.is_right;
    Json row = {{"by", bench::name(way.driver)}, {"run", run}};
    add_cells(row, what, timing);
    report["life"].push_back(row);
    report["messages"] = timing.messages;
    report["bytes"] = timing.bytes;
    table.line(line(run, bench::name(way.driver), timing.step, *host));
  }
  return end_life(o, transport, table, right, report);
}

// Cells lie in GPUs, and processors exchange their halos by the ranks' own transport.
int time_processor_life(LifeOptions const& o, Transport& transport) {
  check_gpus(o.common, transport);
  bool const in_gpus = o.common.memory == "gpu";
  int const ranks = transport.group().size();
  if (in_gpus)
    transport.group().together([&] {
      check_gpu_transport(GpuTransport::mpi, transport.capabilities(), ranks, ranks);
      static_cast<void>(takes_device_memory(GpuTransport::mpi, gpu::message_library().vendor()));
    });
  bench::Life const what = life_of(o, ranks);
  Table const table(o.common, transport);
  Json report = life_report(o, transport, what);
  report["queue"] = nullptr;
  report["gpus"] = o.common.gpus;
  report["memory"] = o.common.memory;
  table.line(fmt::format(
      "Life on {} x {} cells, {} x {} ranks on {}, {}: a step; processors send from memory of the {}",
      what.rows, what.columns, what.ranks_along[0], what.ranks_along[1], counted(o.common.gpus, "GPU"),
      transport.capabilities().transport, o.common.memory));
  table.line(head("run"));
  bench::LifeTiming const timing = bench::stream_life(
      transport, what, o.common.gpus, {Driver::host, false, in_gpus}, o.common.measure.protocol);
  Json row = {{"by", bench::name(Driver::host)}, {"run", "host"}};
  add_cells(row, what, timing);
  report["life"].push_back(row);
  report["messages"] = timing.messages;
  report["bytes"] = timing.bytes;
  table.line(line("host", bench::name(Driver::host), timing.step, timing.step));
  return end_life(o, transport, table, timing.is_right, report);
}

int time_life(LifeOptions const& o, Transport& below) {
  if (o.common.queue == "peer" || o.common.queue == "nccl") return time_stream_life(o, below);
  if (o.common.gpus > 0) return time_processor_life(o, below);
  OverFabric const over(o.common, below);
  Transport& transport = over.transport();
  bench::Life const what = life_of(o, transport.group().size());
  bench::check_queue(transport, what.type);
  Table const table(o.common, transport);
  Json report = life_report(o, transport, what);
  std::array<bench::LifeTiming, 3> timings;
  bool right = true;
  for (std::size_t k = 0; k < drivers.size(); ++k) {
    timings[k] = bench::life(transport, what, drivers[k], o.common.measure.protocol);
    right = right && timings[k].is_right;
  }
  table.line(fmt::format(
      "Life on {} x {} cells, {} x {} ranks, {}, queue {}: a step, {} and {} sent by a rank", what.rows,
      what.columns, what.ranks_along[0], what.ranks_along[1], transport.capabilities().transport,
      o.common.queue, counted(timings[0].messages, "message"), counted(timings[0].bytes, "byte")));
  table.line(head("cells"));
  auto const cells = static_cast<double>(what.rows * what.columns);
  for (std::size_t k = 0; k < drivers.size(); ++k) {
    Json row = {{"by", bench::name(drivers[k])}};
    add_cells(row, what, timings[k]);
    report["life"].push_back(row);
    table.line(line(fmt::format("{:.0f}", cells), bench::name(drivers[k]), timings[k].step, timings[2].step));
  }
  report["messages"] = timings[0].messages;
  report["bytes"] = timings[0].bytes;
  return end_life(o, transport, table, right, report);
}

void check_life_options(LifeOptions& o, bool names_queue) {
  MessageOptions& common = o.common;
  if (o.size.size() > 2 || o.along.size() > 2)
    throw Error(ErrorCode::usage,
                "more than two axes in --size or --ranks-along (Life has two). Give one or two numbers.");
  bool const by_processors = common.gpus > 0 && !names_queue;
  if (common.memory == "gpu" && !by_processors)
    throw Error(ErrorCode::usage,
                "--memory gpu without --gpus, or with --queue is refused (it says where processors send "
                "halos from). Use "
                "--gpus alone.");
  if (!by_processors) return check_queue_options(common, "life");
  if (!common.queue_run.empty()) throw run_of_no_stream();
  if (common.ranks.ranks == 0 && !started_by_mpi()) common.ranks.ranks = common.gpus;
  if (common.ranks.ranks > common.gpus && !common.oversubscribe) throw too_many_ranks(common);
}

}  // namespace

void add_bench_life(CLI::App& bench, Arguments const& arguments, std::function<int()>& work) {
  auto o = std::make_shared<LifeOptions>();
  o->common.queue = "auto";
  o->common.measure.protocol.steps = 1000;
  CLI::App* c = bench.add_subcommand(
      "life",
      "Steps of Life with halos of edges and corners, by a queue's standard and ready sends and by the host");
  o->common.ranks.add(*c, "the torus");
  c->add_option_function<std::string>(
       "--size",
       [o](std::string const& text) {
         o->size = numbers_in("--size", text, std::int64_t{8}, std::int64_t{1} << 20);
       },
       "Cells along both axes, as 2048 or 1024,2048; multiples of 8")
      ->required();
  c->add_option_function<std::string>(
      "--ranks-along",
      [o](std::string const& text) { o->along = numbers_in("--ranks-along", text, 1, most_workers); },
      "Ranks along both axes, as 2,4 (default: as square as can be)");
  c->add_option("--queue", o->common.queue, "Type of the queue; peer, nccl: streams of --gpus do the work")
      ->capture_default_str()
      ->check(queue_types());
  c->add_option("--gpus", o->common.gpus,
                "GPUs, each with a rank: of --queue peer and nccl; without --queue processors exchange, by "
                "--transport")
      ->check(CLI::Range(1, 64));
  c->add_flag("--oversubscribe", o->common.oversubscribe, "With --gpus: ranks may share one");
  c->add_option(
       "--memory", o->common.memory,
       "Of --gpus without --queue: where processors send halos from: host, or gpu, which the MPI must take")
      ->capture_default_str()
      ->check(one_of({"host", "gpu"}));
  c->add_option("--run", o->common.queue_run,
                "Of --queue peer and nccl: how streams get their work, stream or graph (default: both)")
      ->check(one_of({"stream", "graph"}));
  o->common.measure.add(*c);
  c->callback([o, c, &arguments, &work] {
    work = [o, c, &arguments] {
      std::string const& json = o->common.measure.json;
      if (!json.empty() && json != "-") check_whole_file(json);
      o->common.provenance = provenance_of(*c);
      check_life_options(*o, c->count("--queue") > 0);
      return run_ranks(o->common.ranks, arguments,
                       [&](Transport& transport) { return time_life(*o, transport); });
    };
  });
}

}  // namespace hostless
