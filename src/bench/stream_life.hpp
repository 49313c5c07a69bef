#pragma once
// Life on GPUs: what a step costs when streams start and wait for its halos (queues of the types peer and nccl), and when
// a processor does.

#include "bench/life.hpp"

namespace hostless::bench {

/// How a step's halos go.
struct StreamLifeWay {
  Driver driver = Driver::standard;
  bool by_graph = false;  ///< 20 steps each; else enqueued one by one. Not of Driver::host
  bool in_gpus = false;  ///< of Driver::host: its messages lie in the GPUs' memory, which the transport takes
};

/// As life(), each rank's box on GPU rank % gpus. A step packs all halos by one kernel, starts and waits for
/// them, unpacks them by one kernel, and computes. The host's way: its kernel packs into memory of the host (or,
/// in_gpus, of the GPU), the processor waits for it, exchanges through an Endpoint and launches what unpacks
/// from there and computes; its ranks may be processes.
///
/// Ready sends go to receives that were started a step before; what a replay or a repeat begins with is told
/// by a barrier; by nccl there are none. Steps of a repeat and before it are rounded up to a multiple of 20.
///
/// Collective; the same on every rank. what.type: peer or nccl; of Driver::host it is not used.
/// Errors  those of life()
///         environment  no such GPU, or none can be used
///         QueueError unsupported  ranks are processes, and a queue is asked for
LifeTiming stream_life(Transport& transport, Life const& what, int gpus, StreamLifeWay const& way,
                       Protocol const& protocol);

}  // namespace hostless::bench
