#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/exchange/kernel_view.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// This rank's kernel, and what its exchange is bound with beside the plan. `has_sums` and `item_bytes`
/// are equal on all ranks.
struct KernelExchangeOptions {
  int blocks = 1;  ///< all resident at once
  /// Which block has an owned item when an exchange starts. Empty: items that are sent are dealt out evenly,
  /// for kernels whose blocks all see them.
  std::function<std::int32_t(std::int32_t item)> block_of_item;
  /// [blocks] what else keeps a block busy, in items. Empty: what it sends.
  std::vector<std::int64_t> boundary_rows;
  /// [ghosts] which block takes each. Empty: those that have least to do.
  std::vector<std::int32_t> block_of_ghost;
  /// Your kernel has a sum or barrier over all blocks of all ranks between the end of each exchange and the
  /// start of the next but one: nobody answers then, and plans of `reduction` are taken.
  bool has_sums = false;
  std::size_t item_bytes = 8;  ///< a multiple of 8
  int device = 0;
  /// Of every wait in a kernel the longer one: nobody knows there when a kernel began.
  WaitLimits limits = WaitLimits::from_environment();
};

/// An exchange that kernels of your own execute while they run (hostless/exchange/kernel_exchange.hpp),
/// between ranks whose GPUs store into each other's memory.
class GpuKernelExchange {
 public:
  /// Collective. The plan is needed no longer afterwards.
  ///
  /// Errors  usage        on all ranks: a plan, options or numbers that blocks do not honour, by their names;
  ///                      ranks of several machines, or more than kernels know of
  ///         environment  on all ranks: no GPU; GPUs that do not reach each other
  /// Cost    O(n log n) in the items of this rank; 32 bytes a word of an item on the GPU
  GpuKernelExchange(Transport& transport, ExchangePlan const& plan, KernelExchangeOptions const& options);
  /// After all kernels of all ranks that use it have ended: others store to its memory.
  ~GpuKernelExchange();
  GpuKernelExchange(GpuKernelExchange const&) = delete;
  GpuKernelExchange& operator=(GpuKernelExchange const&) = delete;

  /// For kernels of this rank's GPU, by value.
  kernel::KernelExchange const& view() const;
  /// Whether a kernel that has ended has given up. It stays so: make a new one with ranks that live.
  bool lost() const;
  int device() const;
  /// Memory on the GPU.
  std::int64_t bytes() const;

 private:
  struct Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace hostless
