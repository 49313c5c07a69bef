#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <mutex>

#include "base/counted.hpp"
#include "commands.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/store.hpp"
#include "hostless/plan/summary.hpp"
#include "input.hpp"
#include "machine/memory_option.hpp"
#include "model/route_prices.hpp"
#include "numbers.hpp"
#include "setup_shown.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

struct PlanRequest {
  InputOptions input;
  LayoutOptions layout;
  std::string file, json, save, load, machine;
  int ranks = 1;
  MemoryKind memory = MemoryKind::host;
};

constexpr int item_bytes = 8;  // one value in fp64

/// What the exchange costs by every route, where a machine was named.
struct Prices {
  MachineModel machine;
  std::vector<PricedWay> ways;
};

PlanSet made(PlanRequest const& o) {
  PlanSet set;
  run_on_threads(o.ranks, [&](Group& group) {
    SetupShown shown(group.rank() == 0);
    auto const source = o.input.open(group, nullptr, 0, Symmetry::any);
    PlannedMatrix planned = plan_matrix(group, *source, o.layout.parse(o.input.seed));
    shown.end();
    if (group.rank() != 0) return;
    if (o.json != "-")
      print(
          "{}\n  partition  {}\n  block      {}\n  sweep      {}, {} a row, blocks of "
          "{}\n",
          o.input.describe(), planned.why_partition, planned.why_block,
          counted(planned.tiling.slices, "slice"), counted(planned.tiling.threads_per_row, "accumulator"),
          planned.tiling.block);
    set.patterns = std::move(planned.patterns);
    set.plans = std::move(planned.plans);
  });
  return set;
}

std::vector<std::string> proven(PlanSet const& set) {
  SetupStage const stage("proving the plans");
  return check(set.plans, set.patterns);
}

std::string json_of(PlanSummary const& summary, std::optional<Prices> const& prices) {
  std::string const text = to_json(summary);
  return prices ? with_prices(text, prices->machine, prices->ways, item_bytes) : text;
}

int print_plan(PlanRequest const& o) {
  std::optional<Prices> prices;
  if (!o.machine.empty()) prices = Prices{machine_with_costs(o.machine), {}};
  PlanSet set = o.load.empty() ? made(o) : load_plans(o.load);
  SetupShown shown(true);
  auto complaints = proven(set);
  if (!complaints.empty()) prices.reset();  // who counts them takes plans for sound
  if (prices) {
    prices->ways = price_routes(prices->machine, set, o.memory, item_bytes);
    if (o.load.empty() && o.layout.parse(o.input.seed).automatic_route) {
      take_cheapest(prices->ways, set);
      complaints = proven(set);
    }
  }
  PlanSummary const summary = summarise(set.plans);
  shown.end();
  if (o.json != "-") print("{}", table(summary));
  if (o.json != "-" && prices) print("{}", table(prices->machine, prices->ways, item_bytes));
  if (!o.json.empty()) write_text(o.json, json_of(summary, prices));
  if (!o.save.empty()) save_plans(o.save, set);
  if (complaints.empty()) {
    if (o.json != "-")
      print("proven: every ghost is filled once, from its owner, on all {}\n",
            counted(summary.ranks, "rank"));
    return 0;
  }
  for (std::string const& c : complaints) tell("hostless: {}\n", c);
  return 3;
}

}  // namespace

void add_plan(CLI::App& app, std::function<int()>& work) {
  auto o = std::make_shared<PlanRequest>();
  CLI::App* c = app.add_subcommand("plan", "Print, save or load the exchange plan of a matrix; needs no MPI");
  auto* load = c->add_option("--load", o->load, "Print plans saved before");
  c->add_option("file", o->file, "Matrix Market (plain or gz), PETSc binary or scipy's .npz");
  o->input.add_problem(*c);
  c->add_option("--ranks", o->ranks, "Ranks to plan for")
      ->capture_default_str()
      ->check(whole_number(1, most_workers));
  o->layout.add_block(*c);
  o->layout.add_shares(*c);                       // a plan is the same for every storage
  for (CLI::Option* making : c->get_options()) {  // a saved plan is made: nothing may be ignored
    if (making != load && making != c->get_help_ptr()) load->excludes(making);
  }
  auto* machine =
      c->add_option("--machine", o->machine,
                    "Price the exchange by every route on this machine: a name of `machine list`, "
                    "or a file; --route auto takes the cheapest");
  add_memory(*c, o->memory)->needs(machine);
  c->add_option("--json", o->json, "Write the table as JSON; - for standard output");
  c->add_option("--save", o->save, "Write the plans of all ranks");
  c->callback([o, &work] {
    work = [o] {
      o->input.file = o->file;
      if (o->load.empty()) o->input.check_given(", --load");
      auto read = files_read(o->input, o->layout);
      read.push_back({"--load", o->load});
      read.push_back({"--machine", o->machine});
      check_names({{"--json", o->json}, {"--save", o->save}}, read);
      return print_plan(*o);
    };
  });
}

}  // namespace hostless
