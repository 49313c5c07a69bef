#pragma once
// Life on GPUs: what a step costs when streams start and wait for its halos (queues of the type peer), and when
// a processor does.

#include "bench/life.hpp"

namespace hostless::bench {

/// How a step's halos go.
struct StreamLifeWay {
  Driver driver = Driver::standard;
  bool by_graph = false;  ///< 20 steps each; else enqueued one by one. Not of Driver::host
};

/// As life(), each rank's box on GPU rank % gpus. A step packs all halos by one kernel, starts and waits for
/// them, unpacks them by one kernel, and computes. The host's way: its kernel packs into memory of the host,
/// the processor waits for it, exchanges through an Endpoint and launches what unpacks from there and
/// computes.
///
/// Ready sends go to receives that were started a step before; what a replay or a repeat begins with is told
/// by a barrier. Steps of a repeat and before it are rounded up to a multiple of 20.
///
/// Collective; the same on every rank. `what.type` is not used.
/// Errors  those of life()
///         environment  no such GPU
///         QueueError unsupported  no GPU can be used, or ranks are processes
LifeTiming stream_life(Transport& transport, Life const& what, int gpus, StreamLifeWay const& way,
                       Protocol const& protocol);

}  // namespace hostless::bench
