// What ranks pay for messages, exchanges and sums by themselves: `hostless bench pingpong`, `halo`,
// `allreduce`.
#include "messages.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/counted.hpp"
#include "bench/communication.hpp"
#include "bench/queued.hpp"
#include "exchange/gpu/exchange_library.hpp"
#include "file_names.hpp"
#include "hostless/solve/solver.hpp"
#include "lists.hpp"
#include "options_of.hpp"
#include "rows.hpp"
#include "work.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

/// A message this long or longer would be a slip of the finger: there are two buffers a message and way.
constexpr std::size_t longest_message = std::size_t{1} << 28;

// Before anything is measured. Collective.
void check_target(MessageOptions const& o, Group& group) {
  group.together([&] {
    if (group.rank() == 0 && !o.measure.json.empty() && o.measure.json != "-")
      check_whole_file(o.measure.json);
  });
}

}  // namespace

void add_times(Json& row, bench::Timing const& timing) {
  row["best_us"] = us * timing.best();
  row["median_us"] = us * timing.median();
  row["worst_us"] = us * timing.worst();
}

std::string times_of(bench::Timing const& timing) {
  return fmt::format("{:10.3f} {:10.3f} {:10.3f}", us * timing.best(), us * timing.median(),
                     us * timing.worst());
}

void write_report(MessageOptions const& o, Transport& transport, Json const& report) {
  write_together(transport.group(), o.measure.json, [&] {
    if (transport.group().rank() == 0 && !o.measure.json.empty())
      write_text(o.measure.json, json_text(report));
  });
}

std::vector<std::size_t> MessageOptions::sizes_or_default() const {
  if (!sizes.empty()) return sizes;
  std::vector<std::size_t> all;
  for (std::size_t bytes = 8; bytes <= std::size_t{4} << 20; bytes *= 4) all.push_back(bytes);
  return all;
}

std::vector<std::pair<int, int>> MessageOptions::pairs_of(int ranks_) const {
  if (ranks_ < 2)
    throw Error(ErrorCode::usage, "a ping-pong of one rank (two answer each other). Use --ranks 2.");
  if (!pair.empty() && pair.size() != 2)
    throw Error(ErrorCode::usage,
                fmt::format("{} in --pair (a pair has two). Use --pair 0,1.", counted(pair.size(), "rank")));
  if (!pair.empty()) {
    bench::check_ping_pong({pair[0], pair[1], {}}, ranks_);
    return {{pair[0], pair[1]}};
  }
  std::vector<std::pair<int, int>> pairs;
  for (int first = 0; first < ranks_; ++first)
    for (int second = first + 1; second < ranks_; ++second) pairs.emplace_back(first, second);
  return pairs;
}

namespace {

int time_ping_pong(MessageOptions const& o, Transport& transport) {
  Group& group = transport.group();
  std::vector<std::pair<int, int>> pairs;
  group.together([&] { pairs = o.pairs_of(group.size()); });
  std::unique_ptr<gpu::Workbench> memory;
  if (o.memory == "gpu") {
    group.together([&] {
      check_gpu_transport(GpuTransport::mpi, transport.capabilities(), group.size(), group.size());
      static_cast<void>(takes_device_memory(GpuTransport::mpi, gpu::exchange_library().vendor()));
    });
    int const device = bench::device_of_rank(group, {GpuTransport::host, o.gpus, o.oversubscribe});
    group.together([&] { memory = gpu::exchange_library().workbench(device); });
  }
  Table const table(o, transport);
  Json report = bench_report("pingpong", o.provenance, transport);
  report["memory"] = o.memory;
  report["pingpong"] = Json::array();
  table.line(fmt::format("{}, {}, memory of the {}: one way, half of there and back",
                         counted(group.size(), "rank"), transport.capabilities().transport, o.memory));
  table.line(head_of(Timed::pingpong));
  for (auto const& [first, second] : pairs) {
    bench::PingPong const what{first, second, o.sizes_or_default(), memory.get()};
    for (bench::PingPongTiming const& timing : bench::ping_pong(transport, what, o.measure.protocol)) {
      Json row = {{"first", first}, {"second", second}, {"bytes", timing.bytes}, {"steps", timing.steps}};
      add_times(row, timing.one_way);
      row["bytes_per_second"] = timing.bytes_per_s();
      table.line(line_of(Timed::pingpong, row));
      report["pingpong"].push_back(row);
    }
  }
  write_report(o, transport, report);
  return 0;
}

/// A way to add over all ranks.
struct Sums {
  char const* name;
  std::function<bench::Timing(Transport&, int, bench::Protocol const&)> time;
};

int time_sums(MessageOptions const& o, Transport& transport) {
  auto const as_solves = [](Reduction reduction) {
    return [reduction](Transport& ranks, int values, bench::Protocol const& protocol) {
      return bench::sum(ranks, values, reduction, protocol);
    };
  };
  Sums const all[] = {{name(Reduction::ordered), as_solves(Reduction::ordered)},
                      {name(Reduction::fast), as_solves(Reduction::fast)},
                      {"library", bench::library_sum}};
  Table const table(o, transport);
  Json report = bench_report("allreduce", o.provenance, transport);
  report["allreduce"] = Json::array();
  table.line(fmt::format("{}, {}: sums of doubles over all of them",
                         counted(transport.group().size(), "rank"), transport.capabilities().transport));
  table.line(head_of(Timed::allreduce));
  for (Sums const& sums : all) {
    for (int const values : o.values) {
      Json row = {{"doubles", values}, {"reduction", sums.name}};
      try {
        add_times(row, sums.time(transport, values, o.measure.protocol));
      } catch (Error const& e) {
        if (e.code() != ErrorCode::usage) throw;
        row["error"] = e.what();
      }
      table.line(line_of(Timed::allreduce, row));
      report["allreduce"].push_back(row);
    }
  }
  write_report(o, transport, report);
  return 0;
}

using Body = int (*)(MessageOptions const&, Transport&);

// Of ranks of the processor, of ranks on GPUs by persistent kernels, and on streams.
struct Bodies {
  Body host, device, stream, queue;
  Body of(MessageOptions const& o) const {
    if (!o.queue.empty()) return queue;
    return !o.gpu_transport.empty() ? stream : o.gpus > 0 && o.memory == "host" ? device : host;
  }
};

int run(Timed what, MessageOptions& o, CLI::App& command, Arguments const& arguments, Bodies bodies) {
  if (what == Timed::halo && o.load.empty()) o.input.check_given(", --load");
  auto read = files_read(o.input, o.layout);
  read.push_back({"--load", o.load});
  check_names({{"--json", o.measure.json}}, read);
  o.provenance = provenance_of(command);
  if (!o.transports.empty()) {
    check_rows(o);
    return time_rows(what, o, command);
  }
  bool const on_streams = !o.gpu_transport.empty(), in_gpus = o.memory != "host", queued = !o.queue.empty();
  check_queue_options(o, name(what));
  if (on_streams || in_gpus) {
    take_ranks_of_plans(o);
    check_stream_options(o);
  } else if (!queued) {
    check_device_options(o, what == Timed::pingpong);
  }
  take_ranks_of_plans(o);
  Body const body = bodies.of(o);
  // One thread has both ends of a GPU's ping-pong inside kernels.
  bool const is_one_thread = o.gpus > 0 && what == Timed::pingpong && !on_streams && !in_gpus && !queued;
  RankOptions const ranks = is_one_thread ? RankOptions{1, "threads"} : o.ranks;
  return run_ranks(ranks, arguments, [&](Transport& transport) {
    check_target(o, transport.group());
    if (on_streams || in_gpus) take_gpus_of_ranks(o, transport.group());
    return body(o, transport);
  });
}

// What the three have in common.
CLI::App* add(CLI::App& bench, Timed what, char const* help, std::shared_ptr<MessageOptions> const& o,
              Arguments const& arguments, std::function<int()>& work, Bodies bodies) {
  CLI::App* c = bench.add_subcommand(name(what), help);
  o->ranks.add(*c);
  add_gpus(*c, o->gpus, o->oversubscribe);
  c->add_option(
      "--gpu-transport", o->gpu_transport,
      "With it exchanges between GPUs on a stream and in a graph, carried by peer, nccl, nvshmem, mpi, "
      "host, peer+nccl, peer+mpi or peer+host; without it what persistent kernels do");
  add_rows(*c, *o);
  o->measure.add(*c);
  if (what == Timed::halo) {
    add_halo_options(*c, *o);
    c->add_option(
         "--sums", o->sums,
         "With --gpus, what an iteration says: 2 sums as that of cg, or 1 as that of pipelined-cg [2]")
        ->check(whole_number(1, 2));
  }
  c->callback(
      [=, &arguments, &work] { work = [=, &arguments] { return run(what, *o, *c, arguments, bodies); }; });
  return c;
}

// The list that follows an option, checked when it is read.
template <class T>
void add_list(CLI::App& command, char const* option, std::vector<T>& to, T least, T most, char const* help) {
  command.add_option_function<std::string>(
      option, [=, &to](std::string const& text) { to = numbers_in(option, text, least, most); }, help);
}

}  // namespace

void add_bench_messages(CLI::App& bench, Arguments const& arguments, std::function<int()>& work) {
  auto pingpong = std::make_shared<MessageOptions>();
  CLI::App* c = add(bench, Timed::pingpong, "Latency and bandwidth of messages between each two ranks",
                    pingpong, arguments, work,
                    {time_ping_pong, time_device_ping_pong, time_stream_ping_pong, time_queue_ping_pong});
  add_list(*c, "--sizes", pingpong->sizes, std::size_t{1}, longest_message,
           "Bytes of the messages, as 8,1024 (default 8 to 2 MiB, each four times the one before)");
  c->add_option("--memory", pingpong->memory,
                "Where messages lie: host, or gpu, which an MPI must take that is asked so")
      ->capture_default_str()
      ->check(one_of({"host", "gpu"}))
      ->excludes(c->get_option("--gpu-transport"))
      ->excludes(c->get_option("--transports"));
  add_queue(*c, pingpong->queue);
  c->add_flag("--processor-time", pingpong->processor_time,
              "Of --queue peer: also what processors do while work goes on that was queued beforehand");
  c->add_option("--run", pingpong->queue_run,
                "Of --queue peer: how streams get their work, stream or graph (default: both)")
      ->check(one_of({"stream", "graph"}));
  add_list(*c, "--pair", pingpong->pair, 0, most_workers, "Two ranks, as 0,1, instead of each two");

  auto halo = std::make_shared<MessageOptions>();
  c = add(bench, Timed::halo,
          "The exchange of a matrix's plan, or of saved plans, with nothing computed, and a sum", halo,
          arguments, work, {time_halo, time_device_halo, time_stream_halo, time_queue_halo});
  add_queue(*c, halo->queue);

  auto sums = std::make_shared<MessageOptions>();
  c = add(bench, Timed::allreduce,
          "Sums over all ranks: in the order of the plan, and by the transport's library", sums, arguments,
          work, {time_sums, time_device_sums, time_stream_sums, nullptr});
  add_list(*c, "--values", sums->values, 1, bench::widest_sum,
           "Doubles of a sum, as 1,4 (default 1,2,3,4); of kernels at most 4");
}

}  // namespace hostless
