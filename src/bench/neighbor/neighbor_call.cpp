#include "bench/neighbor/neighbor_call.hpp"

#include <algorithm>
#include <cmath>

#include "bench/known.hpp"
#include "hostless/machine/nodes.hpp"

namespace hostless::bench {
namespace {

/// What the library's time over this one's is, of what was measured in the same repeats, so that what disturbs a
/// repeat disturbs both.
void hold_against(NeighborTiming const& library, int steps, NeighborTiming& timing) {
  std::vector<double> ratios;
  for (std::size_t k = 0; k < library.call.step_s.size(); ++k)
    ratios.push_back(library.call.step_s[k] / timing.call.step_s[k]);
  timing.library_over = median_bound(ratios);
  auto const sorted = [](Timing const& of) {
    Timing rising = of;
    std::sort(rising.step_s.begin(), rising.step_s.end());
    return rising.median();
  };
  double const theirs = sorted(library.call), ours = sorted(timing.call);
  timing.library_over_with_set_up = (library.set_up_s + steps * theirs) / (timing.set_up_s + steps * ours);
  if (theirs <= ours) return;
  double const more = timing.set_up_s - library.set_up_s;
  timing.repaid_after = more <= 0 ? 0 : std::ceil(more / (theirs - ours));
}

}  // namespace

void NeighborCall::set_up(NeighborWay const& way, NeighborWays const& with, WaitLimits limits) {
  Group& group = transport_->group();
  group.together([&] {
    if (way.by_library && !with.vendor)
      throw Error(ErrorCode::usage,
                  "MPI's own collective without MPI (there is none between these "
                  "ranks). Start with mpirun, or leave that way out.");
  });
  group.barrier();
  auto const begin = Clock::now();
  if (way.by_library) {
    library_ = library_neighbors(*with.vendor, mine_->sources, mine_->destinations);
  } else {
    planned_ = plan(way, with.ranks_per_node);
    exchange_ = std::make_unique<Exchange>(*transport_, planned_.plan, std::vector<Field>{planned_.field},
                                           ExchangeOptions{limits, owner(), std::nullopt});
  }
  set_up_s_ = group.max(std::chrono::duration<double>(Clock::now() - begin).count());
}

void NeighborCall::operator()() {
  ++calls_;
  if (library_) {
    by_library(*library_);
  } else {
    exchange_->start();
    if (!exchange_->wait()) lose("in a call to the neighbours");
  }
  compute();
}

void NeighborCall::prove(std::uint64_t number) {
  fill(number);
  (*this)();
  transport_->group().together([&] { check(number); });
}

void NeighborCall::count(NodeMap const& nodes, NeighborTiming& timing) const {
  Group& group = transport_->group();
  auto const many = static_cast<std::size_t>(nodes.nodes());
  timing.bytes_out.assign(many, 0);
  timing.bytes_in.assign(many, 0);
  auto const node_of = [&](int of) {
    return static_cast<std::size_t>(nodes.node[static_cast<std::size_t>(of)]);
  };
  auto const add = [&](int target, std::int64_t bytes) {
    if (nodes.same_node(rank(), target) || bytes == 0) return;
    timing.bytes_out[node_of(rank())] += bytes;
    timing.bytes_in[node_of(target)] += bytes;
    ++timing.messages;
  };
  if (library_)
    for (int const target : mine_->destinations) add(target, static_cast<std::int64_t>(block_bytes()));
  for (Stage const& stage : planned_.plan.stages)
    for (Message const& message : stage.out)
      add(message.target, message.items * static_cast<std::int64_t>(planned_.field.item_bytes));
  for (auto* list : {&timing.bytes_out, &timing.bytes_in})
    for (std::int64_t& bytes : *list) bytes = group.sum(bytes);
  timing.messages = group.sum(timing.messages);
  timing.gathered = group.sum(static_cast<std::int64_t>(gathered_bytes()));
  timing.route = planned_.plan.route;
  timing.set_up_s = set_up_s_;
  timing.calls = calls_;
}

std::vector<NeighborTiming> time_in_turns(
    Transport& transport, NeighborWays const& with,
    std::function<std::unique_ptr<NeighborCall>(NeighborWay const&)> const& make, Protocol const& protocol) {
  Group& group = transport.group();
  NodeMap const nodes = find_nodes(group, with.ranks_per_node);
  std::vector<std::unique_ptr<NeighborCall>> calls;
  for (NeighborWay const& way : with.ways) {
    group.together([&] { calls.push_back(make(way)); });
    calls.back()->set_up(way, with, protocol.limits);
    calls.back()->prove(calls.size() - 1);
  }
  std::vector<NeighborTiming> timings(calls.size());
  Protocol once = protocol;
  once.repeat = 1;
  for (int repeat = 0; repeat < protocol.repeat; ++repeat) {
    for (std::size_t k = 0; k < calls.size(); ++k) {
      std::size_t const way = (k + static_cast<std::size_t>(repeat)) % calls.size();
      timings[way].call.step_s.push_back(time_steps(group, once, *calls[way]).best());
    }
    once.warm_up = 0;
  }
  std::size_t library = calls.size();
  for (std::size_t way = 0; way < calls.size(); ++way) {
    timings[way].way = way;
    calls[way]->prove(calls.size() + way);
    calls[way]->count(nodes, timings[way]);
    if (with.ways[way].by_library) library = way;
  }
  if (library < calls.size())
    for (NeighborTiming& timing : timings) hold_against(timings[library], protocol.steps, timing);
  for (NeighborTiming& timing : timings) std::sort(timing.call.step_s.begin(), timing.call.step_s.end());
  return timings;
}

}  // namespace hostless::bench
