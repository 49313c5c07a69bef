#pragma once
// What moves the blocks of neighbours between GPUs, made once and then triggered: exchanges of hostless, a group of
// NCCL's sends and receives, the MPI library's own collective, and an exchange inside a kernel.

#include <memory>
#include <string>

#include "bench/neighbor/gpu/blocks.hpp"
#include "bench/queued.hpp"
#include "bench/timing.hpp"
#include "hostless/transport/mpi.hpp"

namespace hostless::bench {

/// Who starts a collective, and when.
enum class Trigger {
  host,    ///< the host, which waits for each before the next
  stream,  ///< a stream, on which the host queues them ahead
  graph,   ///< a graph of one, which is replayed
  kernel   ///< a kernel that runs, and has one inside itself
};
char const* name(Trigger trigger);

/// All member functions but `describe` are collective. Where something goes wrong for one rank in `prepare` or `time`,
/// all throw that.
class GpuCall {
 public:
  virtual ~GpuCall() = default;
  virtual std::string describe() const = 0;
  /// Why it cannot be triggered so; empty: it is ready.
  virtual std::string prepare(Trigger trigger) = 0;
  /// One that is complete when this returns. Errors  peer_lost  a rank fell silent past its deadline
  virtual void once(Trigger trigger) = 0;
  virtual Timing time(Trigger trigger, Protocol const& protocol) = 0;
};

/// What calls of a rank have in common. It outlives them.
struct GpuSide {
  Transport* transport = nullptr;
  std::shared_ptr<gpu::Workbench> bench;
  int device = 0;
  int sharers = 1;  ///< ranks of this GPU
  WaitLimits limits;
};

/// Each binds `what`, which outlives it. Collective.
/// Errors  those of GpuExchange
std::unique_ptr<GpuCall> exchange_call(GpuSide const& side, GpuCollective const& what, GpuTransport transport,
                                       bool copy_engine);
/// Errors  those of GpuKernelExchange; usage  processes that share a GPU
std::unique_ptr<GpuCall> kernel_call(GpuSide const& side, GpuCollective const& what);
std::unique_ptr<GpuCall> grouped_call(GpuSide const& side, GpuCollective const& what,
                                      gpu::GroupedSends& sends);
/// Errors  usage        no MPI between these ranks (vendor is empty); more bytes than MPI counts
///         environment  the MPI takes no memory of GPUs
std::unique_ptr<GpuCall> library_call(GpuSide const& side, GpuCollective const& what, Neighbors const& mine,
                                      std::optional<MpiVendor> vendor);

/// NCCL's ranks, for grouped_call. Collective.
/// Errors  usage        ranks that share a GPU
///         environment  no NCCL, or with its words
std::unique_ptr<gpu::GroupedSends> grouped_ranks(GpuSide const& side);

}  // namespace hostless::bench
