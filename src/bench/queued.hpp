#pragma once
// Exchanges between GPUs that are queued on one stream, timed: queued by the host one after the other, and as
// a graph that is replayed.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/timing.hpp"
#include "exchange/gpu/workbench.hpp"
#include "hostless/exchange/gpu_exchange.hpp"

namespace hostless::bench {

/// What carries between the ranks' GPUs.
struct StreamWay {
  GpuTransport transport = GpuTransport::peer;
  int gpus = 1;  ///< of each machine; ranks take them in turn
  bool may_share_gpus = false;
};

/// How a step was queued, and its time; or why there is none.
struct QueuedTiming {
  std::string by;         ///< "stream", "graph", or "copies": a stream, by the GPU's copy engine
  std::string described;  ///< GpuExchange::describe
  std::string problem;
  Timing timing;
  bool is_fastest = false;  ///< of stores and copies on a stream
};

/// How many GPUs of each machine its ranks need, and it has. Collective.
/// Errors  environment  no GPU can be used
int gpus_for_ranks(Group& group);

/// The GPU of this rank. Collective.
/// Errors  usage        fewer GPUs than asked for; ranks that would share one
///         environment  no GPU can be used
int device_of_rank(Group& group, StreamWay const& way);

/// What one rank queues: all that is in a step, one after the other, the same steps on all ranks.
class QueuedExchanges {
 public:
  QueuedExchanges(Transport& transport, int device, StreamWay const& way, bool by_copy_engine,
                  Protocol const& protocol);
  gpu::Workbench& bench() { return *bench_; }
  /// Collective. The fields lie in memory of bench(). A step has it after those that were added before.
  void add(ExchangePlan const& plan, std::vector<Field> const& fields);
  std::string describe() const { return exchanges_.front()->describe(); }
  /// One step, complete; the second after time_graph.
  void step();
  void step_of_graph();
  /// Collective: so many steps of each repeat, some of them queued before the host waits.
  Timing time();
  /// The same by a graph. problem: why there is none.
  Timing time_graph(std::string& problem);

 private:
  void queue();
  void settle();
  Timing time_queued(std::function<void()> const& queue);

  Transport& transport_;
  GpuExchangeOptions options_;
  Protocol protocol_;
  std::unique_ptr<gpu::Workbench> bench_;
  std::vector<std::unique_ptr<GpuExchange>> exchanges_;
  bool waited_before_ = false;
};

/// Every way of queuing what `add` adds: on a stream, in a graph, and by peer with the copy engine. prove is
/// called after each with a step that is complete when it returns; both are collective.
/// Errors  those of GpuExchange, of `add` and of `prove`; peer_lost
std::vector<QueuedTiming> time_ways(
    Transport& transport, StreamWay const& way, Protocol const& protocol,
    std::function<void(QueuedExchanges&)> const& add,
    std::function<void(QueuedExchanges&, std::function<void()> const& step)> const& prove);

}  // namespace hostless::bench
