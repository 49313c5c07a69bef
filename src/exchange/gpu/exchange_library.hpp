#pragma once
// What a GPU library (loaded at run time) offers to exchanges. The same compiler builds both sides; the
// version of transport/stream/gpu_files.hpp changes with every change of this file.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exchange/gpu/grouped_sends.hpp"
#include "exchange/gpu/kernel_window.hpp"
#include "exchange/gpu/workbench.hpp"
#include "exchange/message_rounds.hpp"
#include "hostless/exchange/field.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "hostless/transport/gpu_transport.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

/// What arrives is added to own items, in its order: contribution k to item sum[k].
struct AddedFields {
  std::vector<SumField> fields;
  std::vector<std::int32_t> sum;
  std::int64_t owned = 0;
};

struct ExchangeProblem {
  GpuTransport transport = GpuTransport::peer;
  StreamSetup setup;
  std::vector<MessageRound> const* rounds = nullptr;  ///< those of setup.rounds
  std::int64_t staging = 0;                           ///< items that are passed on
  std::int64_t ghosts = 0;
  std::vector<Field> fields;           ///< in device memory; with `added`: nothing is received in them
  AddedFields const* added = nullptr;  ///< or null
};

/// An exchange over fields in the memory of one GPU.
class BoundExchange {
 public:
  virtual ~BoundExchange() = default;
  /// After it was made: contacts of all ranks are gathered, messages of the host bound to the buffers where
  /// it has some, then all connect. have_met: all ranks have named one place where they met before.
  virtual StreamContact contact() = 0;
  virtual std::vector<StreamBuffers> message_buffers() const = 0;
  virtual void connect(std::vector<StreamContact> const& all) = 0;
  /// Queues the whole exchange on a stream of the vendor's, after what is there.
  virtual void enqueue(void* stream) = 0;
  /// On a stream of its own, after what is on `stream`; what is queued on the stream of `finish` comes after
  /// it.
  virtual void start(void* stream) = 0;
  virtual void finish(void* stream) = 0;
  /// Of what was started, and of what was queued since; where the host carries it moves messages on, without
  /// waiting for them. True: it is complete.
  virtual bool test() = 0;
  /// False: a rank is lost.
  virtual bool wait(double limit_s) = 0;
  virtual bool lost() const = 0;
  /// After a loss: what waits goes off the GPU.
  virtual void leave() noexcept = 0;
  virtual bool may_be_recorded() const = 0;
  virtual std::string describe() const = 0;
  virtual std::int64_t bytes() const = 0;
};

class ExchangeLibrary {
 public:
  virtual ~ExchangeLibrary() = default;
  virtual int devices() const = 0;
  virtual std::string vendor() const = 0;  ///< cuda, hip
  /// What carries between GPUs and is a library of its own.
  virtual std::vector<TransportFacts> transports() const = 0;
  /// The GPU in whose memory an address lies; -1: in none.
  virtual int device_of(void const* address) const = 0;
  /// Where it is in the machine: processes may see other GPUs under the same number.
  virtual std::string bus_of(int device) const = 0;
  virtual SymmetricOffer symmetric_offer(GpuTransport transport, StreamSetup const& setup) const = 0;
  virtual std::shared_ptr<SymmetricMemory> symmetric_memory(GpuTransport transport, StreamSetup const& setup,
                                                            std::vector<SymmetricOffer> const& all) const = 0;
  virtual std::unique_ptr<BoundExchange> bind(ExchangeProblem const& problem) const = 0;
  /// Of an exchange inside kernels of the caller.
  virtual std::unique_ptr<KernelWindow> kernel_window(KernelProblem const& problem) const = 0;
  virtual std::unique_ptr<Workbench> workbench(int device) const = 0;
  /// Of NCCL or RCCL by themselves. The name is made by rank 0.
  virtual UniqueId group_name() const = 0;
  virtual std::unique_ptr<GroupedSends> grouped_sends(GroupedRank const& mine) const = 0;
};

using OpenExchanges = ExchangeLibrary*();
constexpr char const* open_exchanges_name = "hostless_gpu_exchanges";

/// The first library that sees a GPU.
/// Errors  environment  none does, and why
ExchangeLibrary& exchange_library();

}  // namespace hostless::gpu
