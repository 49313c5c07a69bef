#include "bench/queued.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "bench/known.hpp"
#include "exchange/gpu/exchange_library.hpp"
#include "hostless/machine/nodes.hpp"

namespace hostless::bench {
namespace {

/// Queued before the host waits: a GPU takes a thousand launches at most, and a step has a few.
constexpr int most_queued = 32;

/// Ranks of this one's machine, and those before it.
struct Neighbours {
  int here = 0, before = 0;
};
Neighbours neighbours_of(Group& group) {
  NodeMap const machines = find_machines(group);
  auto const me = static_cast<std::size_t>(group.rank());
  Neighbours all;
  for (std::size_t r = 0; r < machines.node.size(); ++r) {
    if (machines.node[r] != machines.node[me]) continue;
    ++all.here;
    all.before += r < me ? 1 : 0;
  }
  return all;
}

}  // namespace

int gpus_for_ranks(Group& group) {
  int gpus = neighbours_of(group).here;
  group.together([&] { gpus = std::clamp(gpu::exchange_library().devices(), 1, gpus); });
  return static_cast<int>(group.max(gpus));
}

int device_of_rank(Group& group, StreamWay const& way) {
  Neighbours const all = neighbours_of(group);
  group.together([&] {
    int const devices = gpu::exchange_library().devices();
    if (way.gpus > devices)
      throw Error(ErrorCode::usage, fmt::format("{} (this machine has {}). Use --gpus {}.",
                                                counted(way.gpus, "GPU"), devices, devices));
    if (all.here > way.gpus && !way.may_share_gpus)
      throw Error(ErrorCode::usage, fmt::format("{} on {} (some would share one). Use fewer ranks, "
                                                "or --oversubscribe to test.",
                                                counted(all.here, "rank"), counted(way.gpus, "GPU")));
  });
  return all.before % way.gpus;
}

std::shared_ptr<gpu::Workbench> workbench_for(Group& group, int device) {
  std::shared_ptr<gpu::Workbench> bench;
  group.together([&] { bench = gpu::exchange_library().workbench(device); });
  return bench;
}

// The host may have to carry for what was queued.
void QueuedSteps::settle() {
  double const seconds = waited_before_ ? protocol_.limits.later_s : protocol_.limits.first_s;
  waited_before_ = true;
  auto const done = [this] {
    bool const all = test();
    return all && bench_->is_done();
  };
  if (wait_for(
          done, [this] { return lost(); }, Deadline::after(seconds)) == Waited::done)
    return;
  leave();
  lose("in an exchange between GPUs");
}

void QueuedSteps::step() {
  queue();
  settle();
}

void QueuedSteps::step_of_graph() {
  bench_->replay();
  settle();
}

Timing QueuedSteps::time_queued(Protocol const& protocol, std::function<void()> const& queue) {
  UntilFailed until_failed;
  auto const several = [&](int steps) {
    until_failed([&] {
      for (int k = 1; k <= steps; ++k) {
        queue();
        if (k % most_queued == 0) settle();
      }
      settle();
    });
  };
  several(protocol.warm_up);
  Protocol whole = protocol;
  whole.warm_up = 0;
  whole.steps = 1;
  Timing timing = time_steps(transport_.group(), whole, [&] { several(protocol.steps); });
  until_failed.agree(transport_.group());
  for (double& seconds : timing.step_s) seconds /= protocol.steps;
  return timing;
}

Timing QueuedSteps::time(Protocol const& protocol) {
  return time_queued(protocol, [this] { queue(); });
}

Timing QueuedSteps::time_graph(Protocol const& protocol) {
  return time_queued(protocol, [this] { bench_->replay(); });
}

bool QueuedSteps::record() {
  if (transport_.group().any(!may_be_recorded())) return false;
  transport_.group().together([&] { bench_->record([this] { queue(); }); });
  return true;
}

Timing QueuedSteps::time_graph(std::string& problem) {
  if (record()) return time_graph(protocol_);
  problem = "cannot be recorded in a graph: " + describe();
  return {};
}

void QueuedExchanges::add(ExchangePlan const& plan, std::vector<Field> const& fields) {
  exchanges_.push_back(std::make_unique<GpuExchange>(transport(), plan, fields, options_));
}

void QueuedExchanges::queue() {
  for (auto const& exchange : exchanges_) exchange->enqueue(bench().stream());
  if (follow_) follow_();
}

bool QueuedExchanges::test() {
  bool all = true;
  for (auto const& exchange : exchanges_) all = exchange->test() && all;
  return all;
}

bool QueuedExchanges::lost() const {
  for (auto const& exchange : exchanges_)
    if (exchange->lost()) return true;
  return false;
}

QueuedExchanges::~QueuedExchanges() { bench().drop_graph(); }

void QueuedExchanges::leave() {
  bench().drop_graph();
  for (auto const& exchange : exchanges_) exchange->leave();
}

bool QueuedExchanges::may_be_recorded() const {
  for (auto const& exchange : exchanges_)
    if (!exchange->may_be_recorded()) return false;
  return true;
}

std::vector<QueuedTiming> time_ways(
    Transport& transport, StreamWay const& way, Protocol const& protocol,
    std::function<void(QueuedExchanges&)> const& add,
    std::function<void(QueuedExchanges&, std::function<void()> const& step)> const& prove) {
  int const device = device_of_rank(transport.group(), way);
  std::vector<QueuedTiming> all;
  for (bool const copies : {false, true}) {
    if (copies && way.transport != GpuTransport::peer) continue;
    QueuedExchanges queued(transport, workbench_for(transport.group(), device),
                           {way.transport, protocol.limits, device, copies}, protocol);
    add(queued);
    QueuedTiming& on_stream = all.emplace_back();
    on_stream.by = copies ? "copies" : "stream";
    on_stream.described = queued.describe();
    on_stream.timing = queued.time();
    prove(queued, [&] { queued.step(); });
    if (!copies) {
      QueuedTiming& in_graph = all.emplace_back();
      in_graph.by = "graph";
      in_graph.described = queued.describe();
      in_graph.timing = queued.time_graph(in_graph.problem);
      if (in_graph.problem.empty()) prove(queued, [&] { queued.step_of_graph(); });
    }
    transport.group().barrier();  // memory goes when nobody waits any more
  }
  if (all.size() == 3) {
    QueuedTiming &stores = all.front(), &copied = all.back();
    (copied.timing.best() < stores.timing.best() ? copied : stores).is_fastest = true;
  }
  return all;
}

}  // namespace hostless::bench
