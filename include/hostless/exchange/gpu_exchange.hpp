#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/exchange/field.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/reverse.hpp"
#include "hostless/transport/gpu_transport.hpp"

namespace hostless {

/// What an exchange between GPUs is bound with, beside its plan and its fields. `transport` and `limits` are
/// equal on all ranks.
struct GpuExchangeOptions {
  GpuTransport transport = GpuTransport::automatic;
  /// How long a wait for a rank may take: the first, and every later one; longer than anything a rank
  /// computes between two exchanges.
  WaitLimits limits = WaitLimits::from_environment();
  /// The GPU of the fields, where a rank has no memory that says so; -1: the first.
  int device = -1;
  /// With peer: the GPU's copy engine brings messages where they go, not stores of a kernel; what is not
  /// consecutive items of one field is packed first. Faster for long messages (`hostless bench pingpong
  /// --gpu-transport peer` tells from which size on); cannot be recorded. The same on all ranks.
  bool copy_engine = false;
};

/// An exchange over fields in the memory of GPUs, queued on streams: ghosts of all fields from their owners,
/// in one message a neighbour and round of the plan's route; or ghosts added to what their owners hold, with
/// the bits of ReverseExchange.
///
/// Streams are those of the vendor (cudaStream_t, hipStream_t) of the fields' GPU as void*; nullptr is its
/// default stream. An exchange comes after all that was queued on its stream before, and what is queued after
/// its end comes after the ghosts are there: the host waits for nothing. All ranks queue equally many, one
/// after the other: on another stream than the last one an exchange is queued where it comes after it.
/// Between start and end the owned items may not change and the ghosts may not be touched, by work on other
/// streams.
///
/// It may be recorded: `enqueue`, or `start` and `finish`, on a stream that captures become part of the
/// graph, which may be replayed any number of times and mixed with exchanges that are not recorded (not by
/// nvshmem, and not where the host must wait: by mpi or host with several ranks on a GPU). Where the host
/// carries (transports mpi, host, peer+mpi, peer+host), it must call `test` or `wait` while exchanges are under way, also in
/// replayed graphs: its thread moves the messages.
class GpuExchange {
 public:
  /// Collective. The plan is needed no longer afterwards, the fields' memory (of one GPU) is.
  ///
  /// Errors  usage        on all ranks: memory of the host, or of several GPUs; fields or transports that
  ///                      differ between ranks; a plan that kernels do not honour; more ranks or rounds than
  ///                      they know of; transports that these ranks cannot have (check_gpu_transport)
  ///         environment  on all ranks: no GPU; a library that is absent or fails; GPUs that do not reach
  ///         each other
  /// Cost    O(items moved by this rank) time and memory; with nccl or nvshmem about a second once
  GpuExchange(Transport& transport, ExchangePlan const& plan, std::vector<Field> const& fields,
              GpuExchangeOptions const& options = {});
  /// Of the other direction.
  GpuExchange(Transport& transport, ReversePlan const& plan, std::vector<SumField> const& fields,
              GpuExchangeOptions const& options = {});
  /// Waits two seconds for what is under way, then takes it off the GPU; where the host carries, nothing goes
  /// on meanwhile, and for graphs that are replayed nobody waits. In any order on the ranks: by peer, memory
  /// that other processes store to is kept until they have destroyed theirs. The process itself ends after
  /// all are through with what was queued, or lost.
  ~GpuExchange();
  GpuExchange(GpuExchange const&) = delete;
  GpuExchange& operator=(GpuExchange const&) = delete;

  /// Queues the next exchange on a stream.
  /// Errors  usage      the stream records, and this transport cannot be recorded
  ///         peer_lost  after a rank was lost
  void enqueue(void* stream = nullptr);
  /// The same beside the stream: what is queued on `stream` between start and finish runs at the same time.
  /// Where ranks share a GPU it is queued on the stream itself.
  void start(void* stream = nullptr);
  void finish(void* stream = nullptr);

  /// True when the last exchange that was queued (not recorded) is complete. Does not block. Where the host
  /// carries, it starts what kernels have asked for and moves messages on; a rank that is silent for the
  /// limits while this is called is lost. So a loop says `while (!test() && !lost())`.
  bool test();
  /// Waits for that, at most as long as the limits say. False: a rank is lost (it stays so). Where the host
  /// carries, no other exchange of this rank goes on meanwhile: all ranks wait for several in one order, or
  /// test all in turn.
  [[nodiscard]] bool wait();
  bool lost() const;
  /// Gives the other ranks up, and tells them where it can: through memory of their GPUs, or where the host
  /// carries.
  void leave() noexcept;

  GpuTransport transport() const;
  bool may_be_recorded() const;
  int device() const;
  /// What carries, in a few words.
  std::string describe() const;
  /// Memory on the GPU beside the fields'.
  std::int64_t bytes() const;

 private:
  struct Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace hostless
