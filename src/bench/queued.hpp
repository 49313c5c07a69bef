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

/// Collective. Errors  environment  no GPU can be used
std::shared_ptr<gpu::Workbench> workbench_for(Group& group, int device);

/// Steps that one rank queues on the stream of a bench, the same on all ranks.
class QueuedSteps {
 public:
  QueuedSteps(Transport& transport, std::shared_ptr<gpu::Workbench> bench, Protocol const& protocol)
      : transport_(transport), protocol_(protocol), bench_(std::move(bench)) {}
  virtual ~QueuedSteps() { bench_->drop_graph(); }
  QueuedSteps(QueuedSteps const&) = delete;
  QueuedSteps& operator=(QueuedSteps const&) = delete;

  gpu::Workbench& bench() { return *bench_; }
  virtual std::string describe() const = 0;
  /// One step, complete; the second after `record`.
  void step();
  void step_of_graph();
  /// A step becomes the graph. False: it cannot be recorded. Collective.
  bool record();
  /// Collective: so many steps of each repeat, some of them queued before the host waits; the second after
  /// `record`.
  Timing time() { return time(protocol_); }
  Timing time(Protocol const& protocol);
  Timing time_graph(Protocol const& protocol);
  /// The same by a graph. problem: why there is none.
  Timing time_graph(std::string& problem);

 protected:
  Transport& transport() { return transport_; }

 private:
  virtual void queue() = 0;
  /// Moves on what the host carries. True: what was queued is complete, but for what is on the stream.
  virtual bool test() { return true; }
  virtual bool lost() const { return false; }
  virtual void leave() {}
  virtual bool may_be_recorded() const { return true; }
  void settle();
  Timing time_queued(Protocol const& protocol, std::function<void()> const& queue);

  Transport& transport_;
  Protocol protocol_;
  std::shared_ptr<gpu::Workbench> bench_;
  bool waited_before_ = false;
};

/// Exchanges: all that is in a step, one after the other.
class QueuedExchanges final : public QueuedSteps {
 public:
  QueuedExchanges(Transport& transport, std::shared_ptr<gpu::Workbench> bench, GpuExchangeOptions options,
                  Protocol const& protocol)
      : QueuedSteps(transport, std::move(bench), protocol), options_(options) {
    options_.limits = protocol.limits;
  }
  ~QueuedExchanges() override;  // recorded graphs go before what they have calls of
  /// Collective. The fields lie in memory of bench(). A step has it after those that were added before.
  void add(ExchangePlan const& plan, std::vector<Field> const& fields);
  std::string describe() const override { return exchanges_.front()->describe(); }
  /// What queues on the stream what follows the exchanges of a step.
  void then(std::function<void()> follow) { follow_ = std::move(follow); }

 private:
  void queue() override;
  bool test() override;
  bool lost() const override;
  void leave() override;
  bool may_be_recorded() const override;

  GpuExchangeOptions options_;
  std::vector<std::unique_ptr<GpuExchange>> exchanges_;
  std::function<void()> follow_;
};

/// Every way of queuing what `add` adds: on a stream, in a graph, and by peer with the copy engine. prove is
/// called after each with a step that is complete when it returns; both are collective.
/// Errors  those of GpuExchange, of `add` and of `prove`; peer_lost
std::vector<QueuedTiming> time_ways(
    Transport& transport, StreamWay const& way, Protocol const& protocol,
    std::function<void(QueuedExchanges&)> const& add,
    std::function<void(QueuedExchanges&, std::function<void()> const& step)> const& prove);

}  // namespace hostless::bench
