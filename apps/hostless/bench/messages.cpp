// What ranks pay for messages, exchanges and sums by themselves: `hostless bench pingpong`, `halo`,
// `allreduce`.
#include "messages.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "bench/communication.hpp"
#include "hostless/plan/summary.hpp"
#include "hostless/solve/solver.hpp"
#include "lists.hpp"
#include "options_of.hpp"
#include "setup_shown.hpp"
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
                fmt::format("{} ranks in --pair (a pair has two). Use --pair 0,1.", pair.size()));
  if (!pair.empty()) return {{pair[0], pair[1]}};
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
  Table const table(o, transport);
  Json report = bench_report("pingpong", o.provenance, transport);
  report["pingpong"] = Json::array();
  table.line(fmt::format("{} ranks, {}: one way, half of there and back", group.size(),
                         transport.capabilities().transport));
  table.line(fmt::format("{:>9} {:>9} {:>10} {:>10} {:>10} {:>10}", "ranks", "bytes", "best us", "median us",
                         "worst us", "MB/s"));
  for (auto const& [first, second] : pairs) {
    bench::PingPong const what{first, second, o.sizes_or_default()};
    for (bench::PingPongTiming const& timing : bench::ping_pong(transport, what, o.measure.protocol)) {
      table.line(fmt::format("{:>9} {:9} {} {:10.1f}", fmt::format("{}, {}", first, second), timing.bytes,
                             times_of(timing.one_way), timing.bytes_per_s() / 1e6));
      Json row = {{"first", first}, {"second", second}, {"bytes", timing.bytes}, {"steps", timing.steps}};
      add_times(row, timing.one_way);
      row["bytes_per_second"] = timing.bytes_per_s();
      report["pingpong"].push_back(row);
    }
  }
  write_report(o, transport, report);
  return 0;
}

int time_halo(MessageOptions const& o, Transport& transport) {
  Group& group = transport.group();
  PlannedMatrix planned;
  {
    SetupShown const shown(group.rank() == 0);
    auto const source = o.input.open(group, nullptr, 0);
    planned = plan_matrix(group, *source, o.layout.parse(o.input.seed), true);
  }
  ExchangePlan const& plan = planned.mine;
  auto const timing = bench::halo(transport, plan, o.measure.protocol);
  std::int64_t const most_bytes = group.max(8 * plan.items_sent());
  Table const table(o, transport);
  table.line(fmt::format("{}: {} ranks, {}, route {}, at most {} bytes sent by a rank", o.input.describe(),
                         group.size(), transport.capabilities().transport, name(plan.route), most_bytes));
  table.line(fmt::format("{:20} {:>10} {:>10} {:>10}", "", "best us", "median us", "worst us"));
  table.line(fmt::format("{:20} {}", "exchange and sum", times_of(timing.step)));
  table.line(fmt::format("{:20} {}", "sum alone", times_of(timing.sum_alone)));
  Json report = bench_report("halo", o.provenance, transport);
  report["input"] = o.input.describe();
  report["route"] = name(plan.route);
  report["most_bytes_sent"] = most_bytes;
  if (group.rank() == 0) report["plan"] = Json::parse(to_json(summarise(planned.plans)))["total"];
  add_times(report["exchange_and_sum"], timing.step);
  add_times(report["sum_alone"], timing.sum_alone);
  write_report(o, transport, report);
  return 0;
}

int time_sums(MessageOptions const& o, Transport& transport) {
  Table const table(o, transport);
  Json report = bench_report("allreduce", o.provenance, transport);
  report["allreduce"] = Json::array();
  table.line(fmt::format("{} ranks, {}: sums of doubles over all of them", transport.group().size(),
                         transport.capabilities().transport));
  table.line(
      fmt::format("{:>7} {:8} {:>10} {:>10} {:>10}", "doubles", "", "best us", "median us", "worst us"));
  for (Reduction const reduction : {Reduction::ordered, Reduction::fast}) {
    for (int const values : o.values) {
      Json row = {{"doubles", values}, {"reduction", name(reduction)}};
      try {
        auto const timing = bench::sum(transport, values, reduction, o.measure.protocol);
        table.line(fmt::format("{:7} {:8} {}", values, name(reduction), times_of(timing)));
        add_times(row, timing);
      } catch (Error const& e) {
        if (e.code() != ErrorCode::usage) throw;
        table.line(fmt::format("{:7} {:8} {}", values, name(reduction), e.what()));
        row["error"] = e.what();
      }
      report["allreduce"].push_back(row);
    }
  }
  write_report(o, transport, report);
  return 0;
}

using Body = int (*)(MessageOptions const&, Transport&);

// Of ranks of the processor, and of ranks on GPUs.
struct Bodies {
  Body host, device;
};

// What the three have in common.
CLI::App* add(CLI::App& bench, char const* command, char const* help,
              std::shared_ptr<MessageOptions> const& o, Arguments const& arguments,
              std::function<int()>& work, Bodies bodies) {
  CLI::App* c = bench.add_subcommand(command, help);
  o->ranks.add(*c);
  add_gpus(*c, o->gpus, o->oversubscribe);
  o->measure.add(*c);
  bool const of_matrix = bodies.host == time_halo;
  if (of_matrix) {
    c->add_option("file", o->input.file, "Matrix Market (plain or gz) or PETSc binary");
    o->input.add_problem(*c);
    o->layout.add_block(*c);
    o->layout.add_shares(*c);
    c->add_option(
         "--sums", o->sums,
         "With --gpus, what an iteration says: 2 sums as that of cg, or 1 as that of pipelined-cg [2]")
        ->check(whole_number(1, 2));
  }
  c->callback([o, c, bodies, of_matrix, &arguments, &work] {
    work = [o, c, bodies, of_matrix, &arguments] {
      if (of_matrix) o->input.check_given();
      check_names({{"--json", o->measure.json}}, files_read(o->input, o->layout));
      bool const is_ping_pong = bodies.host == time_ping_pong;
      check_device_options(*o, is_ping_pong);
      o->provenance = provenance_of(*c);
      Body const body = o->gpus > 0 ? bodies.device : bodies.host;
      // One thread has both ends of a GPU's ping-pong.
      RankOptions const ranks = o->gpus > 0 && is_ping_pong ? RankOptions{1, "threads"} : o->ranks;
      return run_ranks(ranks, arguments, [&](Transport& transport) {
        check_target(*o, transport.group());
        return body(*o, transport);
      });
    };
  });
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
  CLI::App* c = add(bench, "pingpong", "Latency and bandwidth of messages between each two ranks", pingpong,
                    arguments, work, {time_ping_pong, time_device_ping_pong});
  add_list(*c, "--sizes", pingpong->sizes, std::size_t{1}, longest_message,
           "Bytes of the messages, as 8,1024 (default 8 to 2 MiB, each four times the one before)");
  add_list(*c, "--pair", pingpong->pair, 0, most_workers, "Two ranks, as 0,1, instead of each two");

  auto halo = std::make_shared<MessageOptions>();
  add(bench, "halo", "The exchange of a matrix's plan, with nothing computed, and a sum", halo, arguments,
      work, {time_halo, time_device_halo});

  auto sums = std::make_shared<MessageOptions>();
  c = add(bench, "allreduce", "Sums over all ranks: in the order of the plan, and by the transport's library",
          sums, arguments, work, {time_sums, time_device_sums});
  add_list(*c, "--values", sums->values, 1, Exchange::widest_sum,
           "Doubles of a sum, as 1,4 (default 1,2,3,4)");
}

}  // namespace hostless
