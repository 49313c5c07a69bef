#include "neighbor_gpus.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <utility>

#include "base/counted.hpp"
#include "hostless/solve/solver.hpp"
#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "standard_output.hpp"
#include "work.hpp"

namespace hostless {
namespace {

using bench::Collective;
using bench::GpuNeighborCell;
using bench::GpuNeighborWay;
using bench::Trigger;

constexpr Collective all_collectives[] = {Collective::allgather, Collective::alltoallv};
constexpr Trigger all_triggers[] = {Trigger::host, Trigger::stream, Trigger::graph, Trigger::kernel};

std::vector<GpuNeighborWay> all_gpu_ways() {
  std::vector<GpuNeighborWay> ways;
  for (GpuTransportFacts const& facts : gpu_transports()) {
    ways.push_back({facts.transport, false});
    if (facts.transport == GpuTransport::peer) ways.push_back({facts.transport, true});
  }
  return ways;
}
std::string word_of(GpuNeighborWay const& way) { return way.name(); }
std::string word_of(Collective collective) { return bench::name(collective); }
std::string word_of(Trigger trigger) { return bench::name(trigger); }

/// A list of some of `known`, by their words, or of all; each once, however often it is named.
template <class Known, class T>
void add_choice(CLI::App& command, char const* option, Known const& known, std::vector<T>& chosen,
                std::string const& meaning) {
  std::vector<std::string> words{"all"};
  for (T const& one : known) words.push_back(word_of(one));
  command.add_option_function<std::string>(
      option,
      [option, words, all = std::vector<T>(std::begin(known), std::end(known)),
       &chosen](std::string const& text) {
        auto const is_known = one_of(words);
        for (std::string word : words_in(text)) {
          if (std::string const problem = is_known(word); !problem.empty())
            throw CLI::ValidationError(option, problem);
          for (T const& one : all) {
            auto const is_one = [&](T const& known_one) { return word_of(known_one) == word_of(one); };
            bool const is_new = std::none_of(chosen.begin(), chosen.end(), is_one);
            if (is_new && (word == "all" || word == word_of(one))) chosen.push_back(one);
          }
        }
      },
      fmt::format("With --gpus: {}, of {} (default: all)", meaning,
                  fmt::join(words.begin() + 1, words.end(), ", ")));
}

template <class Known, class T>
std::vector<T> or_all(std::vector<T> const& chosen, Known const& known) {
  return chosen.empty() ? std::vector<T>(std::begin(known), std::end(known)) : chosen;
}

Json json_of(std::optional<double> const& value) { return value ? Json(*value) : Json(); }

Json row_of(GpuNeighborCell const& cell) {
  Json row = {{"collective", cell.what},
              {"bytes", cell.bytes},
              {"way", cell.way},
              {"trigger", name(cell.trigger)},
              {"status", name(cell.status)}};
  if (cell.status != GpuNeighborCell::Status::measured) {
    row["error"] = cell.why;
    return row;
  }
  row["carried_by"] = cell.described;
  add_times(row, cell.timing);
  row["steps"] = cell.steps;
  row["set_up_us"] = us * cell.set_up_s;
  row["nccl_over_it"] = json_of(cell.nccl_over);
  row["library_over_it"] = json_of(cell.library_over);
  row["nccl_over_it_with_set_up"] = json_of(cell.nccl_over_with_set_up);
  row["library_over_it_with_set_up"] = json_of(cell.library_over_with_set_up);
  return row;
}

std::string head_of_cells() {
  return fmt::format("{:9} {:>9} {:12} {:7} {:>10} {:>10} {:>10} {:>7} {:>9} {:>9} {:>9} {:>10}", "", "bytes",
                     "way", "trigger", "best us", "median us", "worst us", "nccl/", "w. set-up", "library/",
                     "w. set-up", "set-up us");
}

std::string line_of(GpuNeighborCell const& cell) {
  std::string const head =
      fmt::format("{:9} {:>9} {:12} {:7}", cell.what, cell.bytes, cell.way, name(cell.trigger));
  if (cell.status == GpuNeighborCell::Status::wrong) return fmt::format("{} wrong: {}", head, cell.why);
  auto const ratio = [](std::optional<double> const& value) {
    return value ? fmt::format("{:.2f}", *value) : std::string();
  };
  return fmt::format("{} {} {:>7} {:>9} {:>9} {:>9} {:10.1f}", head, times_of(cell.timing),
                     ratio(cell.nccl_over), ratio(cell.nccl_over_with_set_up), ratio(cell.library_over),
                     ratio(cell.library_over_with_set_up), us * cell.set_up_s);
}

/// What is absent for one reason has one line, for all triggers, sizes and collectives.
class Lines {
 public:
  explicit Lines(Table const& table) : table_(table) {}
  void tell(GpuNeighborCell const& cell) {
    bool const is_absent = cell.status == GpuNeighborCell::Status::absent;
    if (!is_absent || cell.way != absent_.way || cell.why != absent_.why) flush();
    if (!is_absent) return table_.line(line_of(cell));
    absent_.way = cell.way;
    absent_.why = cell.why;
    absent_.triggers.push_back(name(cell.trigger));
  }
  void flush() {
    Absent const absent = std::exchange(absent_, {});
    if (absent.triggers.empty()) return;
    std::string const text = fmt::format("{:20}{:12} absent by {}: {}", "", absent.way,
                                         fmt::join(absent.triggers, ", "), absent.why);
    if (told_.insert(text).second) table_.line(text);
  }

 private:
  struct Absent {
    std::string way, why;
    std::vector<std::string> triggers;
  };
  Table const& table_;
  Absent absent_;
  std::set<std::string> told_;
};

}  // namespace

void add_neighbor_gpu_options(CLI::App& command, MessageOptions& common, NeighborGpuOptions& o) {
  add_gpus(command, common.gpus, common.oversubscribe);
  add_choice(command, "--gpu-transport", all_gpu_ways(), o.ways,
             "what carries between them (copies: peer memory, by the GPU's copy engine)");
  add_choice(command, "--collective", all_collectives, o.collectives, "collectives");
  add_choice(command, "--triggers", all_triggers, o.triggers,
             "who starts one: the host, which waits for each; a stream; a graph; a kernel inside itself");
}

void check_neighbor_gpu_options(MessageOptions const& common, CLI::App const& command) {
  for (char const* const option : {"--gpu-transport", "--collective", "--triggers", "--oversubscribe"})
    if (common.gpus == 0 && command.count(option) > 0)
      throw Error(
          ErrorCode::usage,
          fmt::format("{} without --gpus is refused (it is of GPUs). Use --gpus 2, or drop it.", option));
  for (char const* const option : {"--ways", "--ranks-per-node"})
    if (common.gpus > 0 && command.count(option) > 0)
      throw Error(ErrorCode::usage,
                  fmt::format("{} with --gpus is refused (between GPUs the route is direct). "
                              "Drop one of them.",
                              option));
}

void take_neighbor_gpu_defaults(MessageOptions& common, CLI::App const& command) {
  RunOptions run;
  run.kind = RunKind::persistent;
  run.gpus = common.gpus;
  run.oversubscribe = common.oversubscribe;
  share_gpus(common.ranks, run);
  constexpr int usual_steps = 100;
  if (command.count("--steps") == 0) common.measure.protocol.steps = usual_steps;
}

namespace {

bench::GpuNeighborWays ways_of(MessageOptions const& common, NeighborGpuOptions const& o,
                               Transport& transport) {
  bench::GpuNeighborWays with;
  with.triggers = or_all(o.triggers, all_triggers);
  with.ways = or_all(o.ways, all_gpu_ways());
  with.gpus = common.gpus;
  with.may_share_gpus = common.oversubscribe;
  if (transport.capabilities().transport == "mpi") with.vendor = mpi_vendor_of_this_process();
  return with;
}

using Tell = std::function<void(GpuNeighborCell const&)>;

/// Table, JSON and exit code of what `time` tells.
int report_cells(MessageOptions const& common, std::string const& what, Transport& transport, Json& report,
                 std::function<std::vector<GpuNeighborCell>(Tell const&)> const& time) {
  Group& group = transport.group();
  report["gpus"] = common.gpus;
  report["steps"] = common.measure.protocol.steps;
  report["neighbor"] = Json::array();
  Table const table(common, transport);
  table.line(fmt::format("{} on {}, {}, pattern {} with {}: {}", counted(group.size(), "rank"),
                         counted(common.gpus, "GPU"), report["transport"].get<std::string>(),
                         report["pattern"].get<std::string>(),
                         counted(report["edges"].get<std::int64_t>(), "edge"), what));
  table.line(head_of_cells());
  Lines lines(table);
  auto const cells = time([&](GpuNeighborCell const& cell) {
    report["neighbor"].push_back(row_of(cell));
    lines.tell(cell);
  });
  lines.flush();
  write_report(common, transport, report);
  auto const has = [&](GpuNeighborCell::Status status) {
    return std::any_of(cells.begin(), cells.end(), [&](auto const& cell) { return cell.status == status; });
  };
  if (has(GpuNeighborCell::Status::wrong)) {
    if (group.rank() == 0)
      tell(
          "hostless: received data differ from what was sent (do not rely on that transport here). The rows "
          "that are wrong say by what, and where.\n");
    return 1;
  }
  if (has(GpuNeighborCell::Status::measured)) return 0;
  throw Error(
      ErrorCode::environment,
      "nothing of what was asked for can be measured here (each row says why). Use --gpu-transport all.");
}

}  // namespace

int time_neighbors_on_gpus(MessageOptions const& common, NeighborGpuOptions const& o,
                           NeighborGraph const& graph, Transport& transport, Json& report) {
  bench::GpuNeighbors what{ways_of(common, o, transport), graph.mine, common.sizes,
                           or_all(o.collectives, all_collectives), graph.seed};
  report["seed"] = graph.seed;
  return report_cells(common, "collectives on the GPUs' buffers", transport, report,
                      [&](Tell const& tell_cell) {
                        return bench::gpu_neighbors(transport, what, common.measure.protocol, tell_cell);
                      });
}

int time_product_on_gpus(MessageOptions const& common, NeighborGpuOptions const& o, bench::RowProduct product,
                         std::string const& gather, Transport& transport, Json& report) {
  bench::GpuRowProduct const what{ways_of(common, o, transport), std::move(product), gather != "rows",
                                  gather != "blocks"};
  return report_cells(common, "products whose rows are gathered, and multiplied by a kernel", transport,
                      report, [&](Tell const& tell_cell) {
                        return bench::gpu_row_product(transport, what, common.measure.protocol, tell_cell);
                      });
}

}  // namespace hostless
