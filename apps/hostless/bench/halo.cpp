// `hostless bench halo` of ranks of the processor: the exchange of a matrix's plan, or of plans that were
// saved.
#include "bench/halo.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/counted.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/store.hpp"
#include "hostless/plan/summary.hpp"
#include "hostless/solve/matrix.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "messages.hpp"
#include "numbers.hpp"
#include "setup_shown.hpp"

namespace hostless {
namespace {

constexpr int most_fields = 1024;
constexpr std::size_t longest_item = std::size_t{1} << 20;

// Both are collective; the plans of all ranks are left on rank 0.
std::vector<ExchangePlan> planned_of_matrix(MessageOptions const& o, Group& group, bench::Halo& what) {
  SetupShown const shown(group.rank() == 0);
  auto const source = o.input.open(group, nullptr, 0, Symmetry::any);
  MatrixOptions options = o.layout.parse(o.input.seed);
  if (!o.queue.empty()) options.automatic_route = false;  // the other value is direct already
  PlannedMatrix planned = plan_matrix(group, *source, options, true);
  what.plan = std::move(planned.mine);
  what.patterns = std::move(planned.patterns);
  bench::share_patterns(group, what.patterns);
  return std::move(planned.plans);
}

std::vector<ExchangePlan> loaded_plans(MessageOptions const& o, Group& group, bench::Halo& what) {
  PlanSet set;
  group.together([&] {
    set = load_plans(o.load);
    if (static_cast<int>(set.plans.size()) != group.size())
      throw Error(ErrorCode::usage,
                  fmt::format("{}: plans of {} among {} (each rank has one). Use "
                              "--ranks {}.",
                              o.load, counted(set.plans.size(), "rank"), group.size(), set.plans.size()));
    auto const complaints = check(set.plans, set.patterns);
    if (!complaints.empty())
      throw Error(ErrorCode::bad_input, fmt::format("{}: {} (these plans carry out no exchange). Look at "
                                                    "them with `hostless plan --load`.",
                                                    o.load, complaints.front()));
  });
  what.plan = set.plans[static_cast<std::size_t>(group.rank())];
  what.patterns = std::move(set.patterns);
  what.made_with = set.options;
  return std::move(set.plans);
}

std::int64_t messages_sent(ExchangePlan const& plan) {
  std::int64_t messages = 0;
  for (Stage const& stage : plan.stages)
    for (Message const& message : stage.out) messages += message.items > 0 ? 1 : 0;
  return messages;
}

}  // namespace

void add_halo_options(CLI::App& command, MessageOptions& o) {
  std::vector<CLI::Option*> const before = command.get_options();
  command.add_option("file", o.input.file, "Matrix Market (plain or gz) or PETSc binary");
  o.input.add_problem(command);
  o.layout.add_block(command);
  o.layout.add_shares(command);
  std::vector<CLI::Option*> const all = command.get_options();
  auto* load = command.add_option("--load", o.load, "Plans that `hostless plan --save` has written");
  for (std::size_t k = before.size(); k < all.size(); ++k) load->excludes(all[k]);  // a saved plan is made
  command.add_option("--fields", o.fields, "Arrays that travel together, in one message a neighbour")
      ->capture_default_str()
      ->check(whole_number(1, most_fields));
  command.add_option("--item-bytes", o.item_bytes, "Bytes of an item of each array")
      ->capture_default_str()
      ->check(whole_number(std::size_t{1}, longest_item));
}

void take_ranks_of_plans(MessageOptions& o) {
  if (o.load.empty() || o.ranks.ranks > 0 || started_by_mpi() || started_by_launcher()) return;
  o.ranks.ranks = static_cast<int>(load_plans(o.load).plans.size());
}

std::vector<ExchangePlan> halo_plans(MessageOptions const& o, Group& group, bench::Halo& what) {
  what.fields = o.fields;
  what.item_bytes = o.item_bytes;
  auto plans = o.load.empty() ? planned_of_matrix(o, group, what) : loaded_plans(o, group, what);
  if (!o.queue.empty() && what.plan.route != Route::direct)
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "route {} with --queue is refused (its messages go from each rank directly to each that needs "
            "them). Use plans of the route direct.",
            name(what.plan.route)));
  return plans;
}

std::string describe_halo(MessageOptions const& o, Group& group, bench::Halo const& what,
                          std::vector<ExchangePlan> const& plans, Json& report) {
  auto const bytes = static_cast<std::int64_t>(o.item_bytes) * o.fields;
  std::int64_t const most_bytes = group.max(bytes * what.plan.items_sent()),
                     most_messages = group.max(messages_sent(what.plan));
  std::string const input = o.load.empty() ? o.input.describe() : o.load;
  report["input"] = input;
  report["route"] = name(what.plan.route);
  report["fields"] = o.fields;
  report["item_bytes"] = o.item_bytes;
  report["most_bytes_sent"] = most_bytes;
  report["most_messages_sent"] = most_messages;
  if (group.rank() == 0) {
    Json const summary = Json::parse(to_json(summarise(plans, static_cast<int>(bytes))));
    report["plan"] = summary["total"];
    report["per_rank"] = summary["per_rank"];
  }
  return fmt::format("{}: {}, {}, route {}, at most {} in {} sent by a rank", input,
                     counted(group.size(), "rank"),
                     o.gpu_transport.empty() ? report["transport"].get<std::string>() : o.gpu_transport,
                     name(what.plan.route), counted(most_bytes, "byte"), counted(most_messages, "message"));
}

int time_halo(MessageOptions const& o, Transport& transport) {
  Group& group = transport.group();
  bench::Halo what;
  auto const plans = halo_plans(o, group, what);
  auto const timing = bench::halo(transport, what, o.measure.protocol);
  Json report = bench_report("halo", o.provenance, transport);
  Table const table(o, transport);
  table.line(describe_halo(o, group, what, plans, report));
  add_times(report["exchange_and_sum"], timing.step);
  add_times(report["sum_alone"], timing.sum_alone);
  add_times(report["exchange_alone"], timing.alone);
  report["exchange_alone"]["reuse"] = name(timing.alone_by);
  table.line(head_of(Timed::halo));
  for (Json const& row : rows_of(Timed::halo, report)) table.line(line_of(Timed::halo, row));
  write_report(o, transport, report);
  return 0;
}

}  // namespace hostless
