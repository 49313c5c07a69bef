#include "bench/neighbor/gpu/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/counted.hpp"
#include "bench/known.hpp"
#include "exchange/gpu/exchange_library.hpp"
#include "hostless/exchange/gpu_kernel_exchange.hpp"
#include "transport/mpi/library_neighbors.hpp"

namespace hostless::bench {
namespace {

/// Whether all that the bench's stream has is done within that time.
bool is_done_within(gpu::Workbench& bench, double seconds) {
  auto const done = [&] { return bench.is_done(); };
  return wait_for(
             done, [] { return false; }, Deadline::after(seconds)) == Waited::done;
}

/// time_steps of what may go wrong for a rank alone.
Timing time_host_steps(Group& group, Protocol const& protocol, std::function<void()> const& step) {
  UntilFailed until_failed;
  Timing timing = time_steps(group, protocol, [&] { until_failed(step); });
  until_failed.agree(group);
  return timing;
}

/// What is queued on a stream.
class StreamCall final : public GpuCall {
 public:
  StreamCall(Group& group, std::unique_ptr<QueuedSteps> steps) : group_(group), steps_(std::move(steps)) {}
  std::string describe() const override { return steps_->describe(); }
  std::string prepare(Trigger trigger) override {
    if (trigger != Trigger::graph) return {};
    UntilFailed until_failed;  // libraries connect ranks with their first messages, which no graph can record
    until_failed([this] { steps_->step(); });
    until_failed.agree(group_);
    if (steps_->record()) return {};
    return "cannot be recorded in a graph: " + describe();
  }
  void once(Trigger trigger) override {
    trigger == Trigger::graph ? steps_->step_of_graph() : steps_->step();
  }
  Timing time(Trigger trigger, Protocol const& protocol) override {
    if (trigger == Trigger::host) return time_host_steps(group_, protocol, [this] { steps_->step(); });
    return trigger == Trigger::graph ? steps_->time_graph(protocol) : steps_->time(protocol);
  }

 private:
  Group& group_;
  std::unique_ptr<QueuedSteps> steps_;
};

class GroupedSteps final : public QueuedSteps {
 public:
  GroupedSteps(GpuSide const& side, Protocol const& protocol, GpuCollective const& what,
               gpu::GroupedSends& sends)
      : QueuedSteps(*side.transport, side.bench, protocol), what_(what), sends_(sends) {}
  std::string describe() const override { return sends_.describe(); }

 private:
  void queue() override {
    sends_.enqueue(what_.out(), what_.in(), bench().stream());
    what_.queue_what_follows(bench());
  }
  void leave() override {
    bench().drop_graph();
    sends_.abort();
  }
  GpuCollective const& what_;
  gpu::GroupedSends& sends_;
};

class KernelCall final : public GpuCall {
 public:
  KernelCall(GpuSide const& side, GpuCollective const& what)
      : side_(side), planned_(what.plan(*side.transport)) {
    std::size_t words = 0;
    for (gpu::GroupedPart const& part : what.in()) words += part.bytes;
    for (gpu::GroupedPart const& part : what.out()) words += part.bytes;
    constexpr std::size_t words_of_block = 1024, word = 8;
    KernelExchangeOptions options;
    group().together([&] {
      int const most = std::max(1, side_.bench->most_step_blocks() / side_.sharers);
      options.blocks = static_cast<int>(
          std::clamp<std::size_t>(words / word / words_of_block, 1, static_cast<std::size_t>(most)));
    });
    options.item_bytes = planned_.field.item_bytes;
    options.device = side_.device;
    options.limits = side_.limits;
    blocks_ = options.blocks;
    exchange_ = std::make_unique<GpuKernelExchange>(*side_.transport, planned_.plan, options);
  }
  std::string describe() const override {
    return fmt::format("peer memory, {} of a kernel", counted(blocks_, "block"));
  }
  std::string prepare(Trigger) override {
    UntilFailed until_failed;
    until_failed([this] { run(0); });  // loads it while nobody's waits
    until_failed.agree(group());
    return {};
  }
  void once(Trigger) override { run(1); }
  Timing time(Trigger, Protocol const& protocol) override {
    UntilFailed until_failed;
    Timing timing = time_runs(
        group(), protocol, [] {}, [&](int steps) { until_failed([&] { run(steps); }); });
    until_failed.agree(group());
    return timing;
  }

 private:
  Group& group() { return side_.transport->group(); }
  void run(int steps) {
    side_.bench->queue_steps(exchange_->view(), planned_.field.send, planned_.field.receive, steps);
    double const seconds = std::max(side_.limits.first_s, side_.limits.later_s);  // of one wait in the kernel
    if (!is_done_within(*side_.bench, (steps + 1) * seconds) || exchange_->lost())
      lose("in an exchange inside kernels");
  }

  GpuSide side_;
  NeighborCollective planned_;
  int blocks_ = 1;
  std::unique_ptr<GpuKernelExchange> exchange_;
};

class LibraryCall final : public GpuCall {
 public:
  LibraryCall(GpuSide const& side, GpuCollective const& what, Neighbors const& mine, MpiVendor vendor,
              std::string words)
      : side_(side),
        what_(what),
        words_(std::move(words)),
        library_(library_neighbors(vendor, mine.sources, mine.destinations)) {}
  std::string describe() const override { return mpi_library_of_this_process() + "; " + words_; }
  std::string prepare(Trigger trigger) override {
    return trigger == Trigger::host ? "" : "the host calls MPI's own collective, and waits in it";
  }
  void once(Trigger) override {
    what_.by_library(*library_);
    if (!what_.is_followed()) return;
    what_.queue_what_follows(*side_.bench);
    if (!is_done_within(*side_.bench, side_.limits.first_s)) lose("while a GPU worked");
  }
  Timing time(Trigger trigger, Protocol const& protocol) override {
    return time_host_steps(side_.transport->group(), protocol, [&] { once(trigger); });
  }

 private:
  GpuSide side_;
  GpuCollective const& what_;
  std::string words_;
  std::unique_ptr<LibraryNeighbors> library_;
};

Protocol with_limits(WaitLimits const& limits) {
  Protocol protocol;
  protocol.limits = limits;
  return protocol;
}

}  // namespace

char const* name(Trigger trigger) {
  char const* const names[] = {"host", "stream", "graph", "kernel"};
  return names[static_cast<int>(trigger)];
}

std::unique_ptr<GpuCall> exchange_call(GpuSide const& side, GpuCollective const& what, GpuTransport transport,
                                       bool copy_engine) {
  Group& group = side.transport->group();
  group.together([&] {
    GpuTransportFacts const& facts = facts_of(transport);
    if (facts.actor == GpuTransportFacts::Actor::library && !facts.by_nodes && side.sharers > 1)
      throw Error(ErrorCode::usage,
                  fmt::format("GPU transport {} with {} ranks on a GPU (the library takes one "
                              "rank a GPU). Use as many GPUs as ranks.",
                              name(transport), side.sharers));
  });
  NeighborCollective const planned = what.plan(*side.transport);
  auto steps = std::make_unique<QueuedExchanges>(
      *side.transport, side.bench, GpuExchangeOptions{transport, side.limits, side.device, copy_engine},
      with_limits(side.limits));
  steps->add(planned.plan, {planned.field});
  if (what.is_followed()) steps->then([&what, bench = side.bench] { what.queue_what_follows(*bench); });
  return std::make_unique<StreamCall>(group, std::move(steps));
}

std::unique_ptr<GpuCall> kernel_call(GpuSide const& side, GpuCollective const& what) {
  side.transport->group().together([&] {
    if (what.is_followed())
      throw Error(ErrorCode::usage,
                  "what follows is a kernel of its own (there is none that has both inside). "
                  "Use another trigger.");
    if (side.sharers > 1 && !side.transport->capabilities().threads_as_ranks)
      throw Error(
          ErrorCode::usage,
          fmt::format("{} ranks on a GPU that are processes (their kernels take turns there, and wait for "
                      "each other). Use threads, or as many GPUs as ranks.",
                      side.sharers));
  });
  return std::make_unique<KernelCall>(side, what);
}

std::unique_ptr<GpuCall> grouped_call(GpuSide const& side, GpuCollective const& what,
                                      gpu::GroupedSends& sends) {
  side.transport->group().together([&] { what.require_parts(); });
  return std::make_unique<StreamCall>(
      side.transport->group(), std::make_unique<GroupedSteps>(side, with_limits(side.limits), what, sends));
}

std::unique_ptr<GpuCall> library_call(GpuSide const& side, GpuCollective const& what, Neighbors const& mine,
                                      std::optional<MpiVendor> vendor) {
  std::string words;
  side.transport->group().together([&] {
    if (!vendor)
      throw Error(ErrorCode::usage,
                  "MPI's own collective without MPI (there is none between these ranks). Start with mpirun.");
    what.require_parts();
    what.require_counted();
    words = takes_device_memory(GpuTransport::mpi, gpu::exchange_library().vendor());
  });
  return std::make_unique<LibraryCall>(side, what, mine, *vendor, words);
}

std::unique_ptr<gpu::GroupedSends> grouped_ranks(GpuSide const& side) {
  Group& group = side.transport->group();
  gpu::GroupedRank mine{side.device, group.rank(),        group.size(),
                        {},          side.limits.first_s, side.limits.later_s};
  group.together([&] {
    for (gpu::TransportFacts const& facts : gpu::exchange_library().transports())
      if (facts.name == name(GpuTransport::nccl) && !facts.problem.empty())
        throw Error(ErrorCode::environment, facts.problem);
    if (side.sharers > 1)
      throw Error(ErrorCode::usage,
                  fmt::format("{} ranks on a GPU (NCCL takes one rank a GPU). Use as many GPUs as ranks.",
                              side.sharers));
    if (group.rank() == 0) mine.name = gpu::exchange_library().group_name();
  });
  mine.name = group.all_gather(mine.name)[0];
  std::unique_ptr<gpu::GroupedSends> ranks;
  group.together([&] { ranks = gpu::exchange_library().grouped_sends(mine); });
  return ranks;
}

}  // namespace hostless::bench
