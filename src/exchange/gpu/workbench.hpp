#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "hostless/exchange/kernel_view.hpp"

namespace hostless::gpu {

/// y = A b with A sparse, b and y dense; all of it in memory of the GPU.
struct SparseProduct {
  std::int64_t rows = 0, columns = 1;    ///< of y
  std::int64_t const* offset = nullptr;  ///< [rows + 1] entries in front of each row
  std::int64_t const* first =
      nullptr;                    ///< [entries] where the row of b that an entry takes begins, in values
  double const* value = nullptr;  ///< [entries]
  double const* b = nullptr;
  double* y = nullptr;  ///< [rows * columns]
};

/// Memory, a stream and a graph of one GPU, for programs without a runtime of the vendor's.
class Workbench {
 public:
  virtual ~Workbench() = default;
  /// The vendor's stream: exchanges are queued on it.
  virtual void* stream() = 0;
  /// Memory of the GPU, which goes with this.
  /// Errors  environment  there is not so much
  virtual std::byte* take(std::size_t bytes) = 0;
  /// Copies that are done when they return, as is what was on the stream before them.
  virtual void put(std::byte* to, void const* from, std::size_t bytes) = 0;
  virtual void get(void* to, std::byte const* from, std::size_t bytes) = 0;
  /// What `queue` queues on the stream becomes the graph, which `replay` queues.
  virtual void record(std::function<void()> const& queue) = 0;
  virtual void replay() = 0;
  /// There is no graph any more: libraries that it has calls of wait for that when they end.
  virtual void drop_graph() noexcept = 0;
  /// Whether all that was queued is done.
  virtual bool is_done() = 0;
  /// One kernel on the stream that executes an exchange inside itself, so many times one after the other; 0 times:
  /// it is loaded. And how many blocks of it the GPU holds at once, those of all ranks together.
  virtual void queue_steps(kernel::KernelExchange const& exchange, void const* send, void* receive,
                           int steps) = 0;
  virtual int most_step_blocks() = 0;
  /// On the stream, as exchanges are.
  virtual void queue_product(SparseProduct const& product) = 0;
};

/// Inside a GPU library.
std::unique_ptr<Workbench> make_workbench(int device);

}  // namespace hostless::gpu
