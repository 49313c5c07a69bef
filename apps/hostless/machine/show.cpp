#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "machine/figure_fields.hpp"
#include "machine/machine_commands.hpp"
#include "pictures/python_command.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

std::string up_to_words(double up_to) {
  return std::isinf(up_to) ? "above" : fmt::format("to {:.0f} bytes", up_to);
}

std::string rate(double s_per_byte) {
  return s_per_byte > 0 ? fmt::format("{:.3g} s/byte ({:.3g} GB/s)", s_per_byte, 1e-9 / s_per_byte)
                        : "0 s/byte";
}

void print_messages(CostTables const& tables) {
  for (MessageCosts const& costs : tables.messages) {
    print("{:<10} {:<5}", name(costs.span), name(costs.memory));
    if (costs.pieces.empty()) print(" no data");
    print("  [{}]\n", costs.source);
    for (MessagePiece const& piece : costs.pieces)
      print("  {:<10} {:<8} {:<18} {:.3g} us + {}\n", name(piece.protocol), name(piece.transfer),
            up_to_words(piece.up_to), 1e6 * piece.line.alpha, rate(piece.line.beta));
    for (FollowingPiece const& piece : costs.following)
      print("  {:<19} {:<18} {:.3g} us + {}\n", "each that follows", up_to_words(piece.up_to),
            1e6 * piece.line.alpha, rate(piece.line.beta));
    if (costs.queue_search > 0)
      print("  queue search        {:.3g} ns a message that is in front\n", 1e9 * costs.queue_search);
  }
  if (tables.messages.empty()) print("messages   no data\n");
}

void print_tables(CostTables const& tables) {
  print_messages(tables);
  for (InjectionCosts const& costs : tables.injection)
    for (InjectionLimit const& limit : costs.limits)
      print("injection  {:<5} {:<18} {} of a {}  [{}]\n", name(costs.memory), up_to_words(limit.up_to),
            rate(limit.seconds_per_byte), limit.per_socket ? "socket" : "node", costs.source);
  if (tables.injection.empty()) print("injection  no data\n");
  for (CopyCosts const& costs : tables.copies)
    print("copy       {:<15} {}  {:.3g} us + {}  [{}]\n", name(costs.direction),
          counted(costs.processes, "process", "processes"), 1e6 * costs.line.alpha, rate(costs.line.beta),
          costs.source);
  if (tables.copies.empty()) print("copies     no data\n");
}

void print_triggers(std::optional<TriggerCosts> const& triggers) {
  if (!triggers) {
    print("triggers   no data\n");
    return;
  }
  auto const line = [&](char const* what, std::optional<double> const& seconds) {
    print("trigger    {:<15} {}\n", what,
          seconds ? fmt::format("{:.3g} us  [{}]", 1e6 * *seconds, triggers->source) : "no data");
  };
  line("kernel launch", triggers->kernel_launch);
  line("graph node", triggers->graph_node);
  line("grid barrier", triggers->grid_barrier);
  line("flagged word", triggers->flagged_word);
  line("stream flag", triggers->stream_flag);
  line("all-reduce", triggers->all_reduce);
}

// Time by locality, by ranks that share a volume, copies by number of processes.
void plot(MachineModel const& machine, std::string const& picture) {
  Figure all{"show", machine.name, {}};
  for (Figure const& figure :
       {figure_of_localities(machine), figure_of_shared_volumes(machine), figure_of_copies(machine)})
    all.fields.insert(all.fields.end(), figure.fields.begin(), figure.fields.end());
  if (all.fields.empty())
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: nothing to draw (no data of messages or copies). Name another machine.",
                            machine.name));
  draw_picture(json_text(json_of(all)), picture);
}

int show(std::string const& file, std::string const& json, std::string const& picture) {
  MachineModel const machine = load_machine(file);
  if (!picture.empty()) plot(machine, picture);
  if (!json.empty()) write_text(json, to_json(machine));
  if (json == "-") return 0;
  NodeShape const& node = machine.node;
  print("{}: {}\n", machine.name, machine.description);
  print("node       {} of {} and {} ({} each), {}; {} nodes  [{}]\n", counted(node.sockets, "socket"),
        counted(node.cores_per_socket, "core"), counted(node.gpus_per_socket, "GPU"),
        counted(node.dies_per_gpu, "die"), counted(node.network_cards, "network card"),
        machine.nodes ? fmt::to_string(*machine.nodes) : "no data of", node.source);
  for (NodeLink const& link : machine.links)
    print("link       {} - {}: {} x {}, {}, {}  [{}]\n", link.from, link.to,
          link.links ? fmt::to_string(*link.links) : "no data of", link.kind, counted(link.hops, "hop"),
          link.bytes_per_s ? fmt::format("{:.3g} GB/s each way", 1e-9 * *link.bytes_per_s)
                           : "no data of the rate",
          link.source);
  if (machine.links.empty()) print("links      no data\n");
  print_tables(machine.costs);
  print_triggers(machine.triggers);
  for (MemoryRate const& rate : machine.memory)
    for (auto const& [what, sweep] :
         {std::pair{"vectors", &rate.vectors}, {"products", rate.products ? &*rate.products : nullptr}})
      if (sweep != nullptr)
        print("memory     {:<15} {:<9} {:.4g} GB/s, between {:.4g} and {:.4g}  [{}]\n", name(rate.memory),
              what, 1e-9 * sweep->bytes_per_s, 1e-9 * sweep->least, 1e-9 * sweep->most, rate.source);
  for (MemoryRate const& rate : machine.memory)
    if (rate.bytes) print("memory     {:<15} {:.1f} GiB\n", name(rate.memory), *rate.bytes / 0x1p30);
  auto const doubling = [](std::optional<double> const& seconds) {
    return seconds ? fmt::format("{:.3g} us", 1e6 * *seconds) : std::string("no data");
  };
  for (SumCosts const& sums : machine.sums)
    print("sums       {:<15} {} a doubling of ranks on a node, {} of nodes  [{}]\n", name(sums.memory),
          doubling(sums.on_node), doubling(sums.between_nodes), sums.source);
  if (machine.published) {
    print("as published, for closed forms\n");
    print_tables(*machine.published);
  }
  for (auto const& [key, words] : machine.sources) print("[{}] {}\n", key, words);
  return 0;
}

int list(std::string const& json) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (std::string const& name : shipped_machines()) {
    MachineModel const machine = load_machine(name);
    bool const priced = !machine.costs.messages.empty();
    char const* const lacks = priced                   ? ""
                              : machine.memory.empty() ? " (structure; costs: no data)"
                                                       : " (costs: of memory; no data of messages)";
    all.push_back({{"name", name}, {"description", machine.description}, {"has_costs", priced}});
    if (json != "-") print("{:<14} {}{}\n", name, machine.description, lacks);
  }
  if (!json.empty()) write_text(json, json_text({{"version", 1}, {"machines", all}}));
  return 0;
}

}  // namespace

void add_machine_list(CLI::App& machine, std::function<int()>& work) {
  auto json = std::make_shared<std::string>();
  CLI::App* c = machine.add_subcommand("list", "The machines that come with hostless");
  c->add_option("--json", *json, "Write them as JSON; - for standard output");
  c->callback([=, &work] { work = [=] { return list(*json); }; });
}

void add_machine_show(CLI::App& machine, std::function<int()>& work) {
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<std::string>();
  CLI::App* c =
      machine.add_subcommand("show", "Print a machine's file, after every value of it was looked at");
  c->add_option("machine", *file, "A name of `machine list`, or a file")->required();
  c->add_option("--json", *json, "Write the file itself; - for standard output");
  auto picture = std::make_shared<std::string>();
  c->add_option("--plot", *picture, "Draw what it says, .svg; needs the Python package with matplotlib");
  c->callback([=, &work] { work = [=] { return show(*file, *json, *picture); }; });
}

}  // namespace hostless
