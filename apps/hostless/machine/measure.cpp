// `hostless machine measure`: times messages between the ranks of this job, and fits a machine file to them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/counted.hpp"
#include "base/file.hpp"
#include "base/whole_file.hpp"
#include "bench/bursts.hpp"
#include "bench/communication.hpp"
#include "file_names.hpp"
#include "hostless/base/error.hpp"
#include "hostless/machine/bandwidth.hpp"
#include "hostless/machine/nodes.hpp"
#include "hostless/machine/processor_sets.hpp"
#include "hostless/machine/topology.hpp"
#include "hostless/model/solve_price.hpp"
#include "machine/fit_shown.hpp"
#include "machine/machine_commands.hpp"
#include "numbers.hpp"
#include "ranks.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

struct MeasureRequest {
  RankOptions ranks;
  std::string output, samples, json, name;
  double seconds = 20;
  bool resume = false, quiet = false;
};

using Pairs = std::vector<std::pair<int, int>>;

/// What is to be timed: a burst, and what it is in the words of a machine file.
struct Job {
  MessagePattern pattern;
  Pairs pairs;
};

// Of one span: pairs of ranks, each rank in one, so that the first n of them are n active ranks of a node.
Pairs pairs_of(NodeMap const& nodes, MessageSpan span) {
  Pairs pairs;
  std::set<int> taken;
  auto const span_of = [&](int a, int b) {
    if (!nodes.same_node(a, b)) return MessageSpan::off_node;
    auto const x = static_cast<std::size_t>(a), y = static_cast<std::size_t>(b);
    return nodes.socket[x] >= 0 && nodes.socket[x] == nodes.socket[y] ? MessageSpan::on_socket
                                                                      : MessageSpan::on_node;
  };
  for (int a = 0; a < nodes.ranks(); ++a)
    for (int b = a + 1; b < nodes.ranks() && !taken.contains(a); ++b)
      if (!taken.contains(b) && span_of(a, b) == span &&
          (span != MessageSpan::off_node || nodes.same_node(a, 0)) &&
          (pairs.empty() || nodes.same_node(b, pairs[0].second))) {
        pairs.emplace_back(a, b);
        taken.insert({a, b});
      }
  return pairs;
}

// Ping-pongs of all sizes, bursts of some, and, between nodes, more and more ranks at once.
std::vector<Job> jobs_of(NodeMap const& nodes) {
  std::vector<Job> jobs;
  constexpr double largest = 1 << 20;
  for (MessageSpan span : all_spans) {
    Pairs const pairs = pairs_of(nodes, span);
    if (pairs.empty()) continue;
    auto const add = [&](double bytes, int messages, std::size_t ranks) {
      jobs.push_back({{span, MemoryKind::host, bytes, messages, static_cast<int>(ranks)},
                      {pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(ranks)}});
    };
    for (double bytes = 1; bytes <= largest; bytes *= 2) add(bytes, 1, 1);
    for (double bytes = 8; bytes <= largest / 8; bytes *= 4)
      for (int messages : {2, 4, 8, 16, 32}) add(bytes, messages, 1);
    if (span == MessageSpan::off_node)
      for (std::size_t ranks = 2; ranks <= pairs.size();
           ranks = ranks < pairs.size() && 2 * ranks > pairs.size() ? pairs.size() : 2 * ranks)
        for (double bytes = 8; bytes <= largest; bytes *= 4) add(bytes, 1, ranks);
  }
  return jobs;
}

using Key = std::tuple<MessageSpan, double, int, int>;
Key key_of(MessagePattern const& p) { return {p.span, p.bytes, p.messages, p.active_ranks}; }

/// Times by pattern, and the file that they are kept in.
class Samples {
 public:
  /// where  of which job the times are, in words without commas: the file's series say it
  Samples(MeasureRequest const& o, bool writes, std::string const& where) : file_(writes ? o.samples : "") {
    for (char const* kind : {"ping_pong", "bursts", "node_pong"}) series_.push_back(kind + (" of " + where));
    if (!std::filesystem::exists(o.samples)) return;
    if (!o.resume)
      throw Error(ErrorCode::usage,
                  fmt::format("--samples {} is there (it would be replaced, and its times lost). "
                              "Give --resume to go on, or name another file.",
                              o.samples));
    constexpr std::int64_t most = std::int64_t{1} << 26;
    std::string const text = read_whole_file(o.samples, most);
    Measurements kept;
    read_measurements(text, o.samples, kept);
    require_of_this_job(text, o.samples, where);
    for (MessageSample const& sample : kept.messages) times_[key_of(sample.pattern)] = sample;
  }
  bool has(MessagePattern const& pattern) const { return times_.contains(key_of(pattern)); }
  std::size_t count() const { return times_.size(); }
  void add(MessagePattern const& pattern, double seconds) {
    times_[key_of(pattern)] = {pattern, seconds, pattern.messages > 1 ? 1 : pattern.active_ranks > 1 ? 2 : 0};
  }
  void keep() const {
    if (!file_.empty()) write_whole_file(file_, messages_csv(all(), series_));
  }
  std::vector<MessageSample> all() const {
    std::vector<MessageSample> samples;
    for (auto const& [key, sample] : times_) samples.push_back(sample);
    return samples;
  }

 private:
  // Prices of one job's messages are no others': with other ranks, another transport, on another machine.
  void require_of_this_job(std::string const& text, std::string const& file, std::string const& where) const {
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      std::string const series = line.substr(0, line.find(','));
      if (number == 1 || series.find_first_not_of(" \r") == std::string::npos) continue;
      if (std::find(series_.begin(), series_.end(), series) == series_.end())
        throw Error(
            ErrorCode::usage,
            fmt::format("{}:{}: '{}' is of another job (this one is of {}). Start it as it was, or name "
                        "another file.",
                        file, number, series.substr(0, 120), where));
    }
  }

  std::string file_;
  std::vector<std::string> series_;
  std::map<Key, MessageSample> times_;
};

NodeMap nodes_of(Group& group) {
  NodeMap nodes = find_machines(group);
  nodes.socket = group.all_gather(socket_of_thread());
  return nodes;
}

MachineModel machine_of_here(MeasureRequest const& o, NodeMap const& nodes, std::string const& transport) {
  Topology const found = find_topology();
  MachineModel machine;
  machine.name = o.name.empty() ? found.host : o.name;
  if (machine.name.empty()) machine.name = "here";
  machine.description = fmt::format("{}, measured over the {} transport",
                                    found.processor.empty() ? "a machine" : found.processor, transport);
  machine.sources["here"] =
      fmt::format("measured and fitted by 'hostless machine measure', {} on {}, {} transport",
                  counted(nodes.ranks(), "rank"), counted(nodes.nodes(), "node"), transport);
  machine.node = {found.sockets, std::max(1, found.cores / std::max(1, found.sockets)), 0, 1, 0, "here"};
  return machine;
}

// Times what is not there yet; every rank makes the same. Kept after every tenth of the whole.
void time_all(MeasureRequest const& o, Transport& transport, std::vector<Job> const& jobs, Samples& samples) {
  Group& group = transport.group();
  bool const first = group.rank() == 0;
  double const each = o.seconds / static_cast<double>(std::max<std::size_t>(1, jobs.size()));
  std::size_t number = 0;
  bool is_timed = false;
  for (Job const& job : jobs) {
    ++number;
    MessagePattern const& p = job.pattern;
    if (group.any(first && samples.has(p))) continue;
    bench::Burst const burst{job.pairs, static_cast<std::size_t>(p.bytes), p.messages};
    double const seconds = bench::time_burst(transport, burst, each, WaitLimits::from_environment()).best();
    samples.add(p, seconds);
    is_timed = true;
    if (first && !o.quiet)
      tell("{:>4} of {}: {:<9} {:>2} x {:>7.0f} bytes, {}: {:.3f} us\n", number, jobs.size(), name(p.span),
           p.messages, p.bytes, counted(p.active_ranks, "rank"), 1e6 * seconds);
    if (number % (jobs.size() / 10 + 1) == 0) group.together([&] { samples.keep(); });
  }
  if (is_timed) group.together([&] { samples.keep(); });
}

// A sum of all ranks, as solves form it.
void add_sums(double seconds, NodeMap const& nodes, MachineModel& machine) {
  int const on_node = static_cast<int>(nodes.ranks_of(nodes.node[0]).size());
  auto const sums = sums_of_measured(seconds, nodes.nodes(), on_node, machine);
  std::string const measured =
      fmt::format("measured by 'hostless machine measure': a sum of {} on {} took {:.3g} us",
                  counted(nodes.ranks(), "rank"), counted(nodes.nodes(), "node"), 1e6 * seconds);
  machine.sources["sums"] = measured;
  if (sums) {
    machine.sums = {*sums};
    return;
  }
  machine.sources["sums"] += ", no more than its messages on a node: no data of sums between nodes";
  tell(
      "hostless: {}, no more than messages on a node (nothing is left for those between nodes: no data). "
      "Measure on idle "
      "machines, with a core for each rank.\n",
      measured);
}

// Of this rank, so that those of a node keep all of its processors busy: where a launcher has bound each to cores
// of its own, all of these; where they share them, a part.
int reading_threads(Group& group, NodeMap const& nodes) {
  std::vector<ProcessorSet> const sets = group.all_gather(processors_of_thread());
  std::vector<ProcessorSet> here;
  std::size_t mine = 0;
  for (int rank : nodes.ranks_of(nodes.node[static_cast<std::size_t>(group.rank())])) {
    if (rank == group.rank()) mine = here.size();
    here.push_back(sets[static_cast<std::size_t>(rank)]);
  }
  return threads_on_all_processors(here)[mine];
}

/// How fast memory is read, and by how many threads that was found out.
struct ReadRates {
  std::vector<MemoryRate> rates;
  int threads = 0;
};

// What all cores of a node read together: each rank with its threads, at the same time, thrice. Of several nodes the
// slowest.
ReadRates read_rates(Group& group, NodeMap const& nodes) {
  int const here =
      static_cast<int>(nodes.ranks_of(nodes.node[static_cast<std::size_t>(group.rank())]).size());
  int const threads = reading_threads(group, nodes);
  constexpr double seconds = 0.2;
  constexpr int times = 3;
  std::vector<double> slowest;
  for (int time = 0; time < times; ++time) {
    group.barrier();
    double mine = 0;
    group.together([&] { mine = measure_read_bandwidth(threads, seconds, here); });
    std::vector<double> of_node(static_cast<std::size_t>(nodes.nodes()));
    std::vector<double> const all = group.all_gather(mine);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      of_node[static_cast<std::size_t>(nodes.node[rank])] += all[rank];
    slowest.push_back(*std::min_element(of_node.begin(), of_node.end()));
  }
  std::sort(slowest.begin(), slowest.end());
  MemoryRate rate;
  rate.memory = MemoryKind::host;
  rate.vectors = {slowest[times / 2], slowest.front(), slowest.back()};
  rate.source = "memory";
  std::int64_t const bytes = group.min(find_topology().memory_bytes);
  if (bytes > 0) rate.bytes = static_cast<double>(bytes);
  return {{rate}, group.sum(threads)};
}

// A fit that says little is told, one that says nothing is not written. Times that are kept would be fitted
// again by --resume.
void require_idle(MeasureRequest const& o, Fit const& fit, NodeShape const& node,
                  std::vector<MessageSample> const& samples, Unfit const& busy) {
  constexpr double most = 10;
  if (double const off = worst_of_small_prices(fit, node, samples); off > most && !o.output.empty())
    throw Error(busy.code,
                fmt::format("the fit prices the smallest messages {:.0f} times off what they took, "
                            "and nothing was written to {} ({}). {}",
                            off, o.output, busy.why, busy.what_to_do));
  if (PieceFit const* const piece = scattered_piece(fit))
    tell("hostless: times of '{}' are {:.0f} % off their fit in the median ({}). {}\n", piece->what,
         100 * piece->median_residual, busy.why, busy.what_to_do);
}

int measure(MeasureRequest const& o, Transport& transport) {
  Group& group = transport.group();
  bool const first = group.rank() == 0;
  group.together([&] {
    if (group.size() < 2)
      throw Error(ErrorCode::usage, "one rank (messages go between two). Use --ranks 2, or mpirun.");
    if (!first) return;
    for (std::string const& file : {o.output, o.samples, o.json})
      if (!file.empty() && file != "-") check_whole_file(file);
  });
  NodeMap const nodes = nodes_of(group);
  std::vector<Job> const jobs = jobs_of(nodes);
  std::optional<Samples> samples;
  // Samples know their job by it, those in files of earlier versions too.
  std::string where = fmt::format("{} ranks on {} nodes by {} from {}", nodes.ranks(), nodes.nodes(),
                                  transport.capabilities().transport, find_topology().host);
  std::replace(where.begin(), where.end(), ',', ' ');
  group.together([&] { samples.emplace(first ? o : MeasureRequest{}, first, where); });
  time_all(o, transport, jobs, *samples);
  double const sum =
      bench::sum(transport, 1, Reduction::ordered, {10, 50, 5, WaitLimits::from_environment()}).median();
  ReadRates memory;
  if (!o.output.empty()) memory = read_rates(group, nodes);
  group.together([&] {
    if (!first) return;
    MachineModel machine = machine_of_here(o, nodes, transport.capabilities().transport);
    FitOptions options;
    options.node = machine.node;
    options.source = "here";
    Measurements const measured{samples->all(), {}};
    Fit const fit = fit_machine(measured, options);
    ModelErrors const errors = errors_of(fit.tables, machine.node, measured.messages);
    machine.costs = fit.tables;
    add_sums(sum, nodes, machine);
    machine.memory = memory.rates;
    if (!memory.rates.empty())
      machine.sources["memory"] = fmt::format(
          "measured by 'hostless machine measure': arrays read by {} of all {} at once, three "
          "times",
          counted(memory.threads, "thread"), counted(nodes.ranks(), "rank"));
    Unfit const busy{ErrorCode::environment, "the machine was busy while it was timed",
                     fmt::format("{}easure again when it is idle, with a core for each rank.",
                                 o.samples.empty() ? "M" : fmt::format("Delete {} and m", o.samples))};
    require_idle(o, fit, machine.node, measured.messages, busy);
    if (!o.output.empty()) write_fitted(o.output, machine, busy);
    if (!o.json.empty()) write_text(o.json, json_text(json_of(fit, errors)));
    if (o.json != "-" && o.output != "-") print_fit(fit, errors);
  });
  return 0;
}

}  // namespace

void add_machine_measure(CLI::App& machine, Arguments const& arguments, std::function<int()>& work) {
  auto o = std::make_shared<MeasureRequest>();
  CLI::App* c = machine.add_subcommand(
      "measure", "Time messages between the ranks of this job and fit a machine file to them");
  o->ranks.add(*c, "the messages");
  CLI::Option* const output =
      c->add_option("--output", o->output, "Write the machine's file; - for standard output");
  c->add_option("--name", o->name, "Of the machine in that file (this host's)")->needs(output);
  c->add_option("--samples", o->samples, "Keep the times in this file, every tenth of the whole");
  c->add_flag("--resume", o->resume, "Time only what the file of --samples has not");
  c->add_option("--seconds", o->seconds, "About how long all of it takes")
      ->capture_default_str()
      ->check(real_number(false));
  c->add_flag("--quiet", o->quiet, "Nothing on the way");
  c->add_option("--json", o->json,
                "Write the fit with residuals and intervals as JSON; - for standard output");
  c->callback([=, &arguments, &work] {
    work = [=, &arguments] {
      check_text("--name", o->name);
      if (o->resume && o->samples.empty())
        throw Error(
            ErrorCode::usage,
            "--resume without --samples is refused (nothing says where the times are). Give --samples FILE.");
      check_names({{"--output", o->output}, {"--samples", o->samples}, {"--json", o->json}}, {});
      return run_ranks(o->ranks, arguments, [&](Transport& transport) { return measure(*o, transport); });
    };
  });
}

}  // namespace hostless
