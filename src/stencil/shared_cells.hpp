#pragma once
// Arrays that ranks of one memory step together, each its own slab, and how they await each other.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "hostless/plan/boxes.hpp"
#include "hostless/stencil/kernel.hpp"
#include "hostless/transport/group.hpp"
#include "stencil/grid_array.hpp"

namespace hostless {

/// The arrays of a stencil over the whole grid, in the memory of ranks that are threads. A step needs its
/// neighbours' cells of the step before, and overwrites what they read of the one before that: both are said by one
/// number a rank, of the steps that it has taken.
class SharedCells {
 public:
  /// Collective. halo: of what lies beyond the ends of the grid.
  /// Errors  environment  no memory
  static std::shared_ptr<SharedCells> of_all(Group& group, Grid const& grid, StencilKernel const& kernel,
                                             std::array<std::int64_t, 3> const& halo);

  /// The same cells for each rank that asks.
  std::vector<GridArray> now() const { return of_same_cells(now_); }
  std::vector<GridArray> next() const { return of_same_cells(next_); }
  std::vector<GridArray> coefficients() const { return of_same_cells(coefficients_); }

  /// Says that a rank has taken a step more, or has made its first one ready.
  void took(int rank) {
    auto& steps = took_[static_cast<std::size_t>(rank)].steps;
    steps.store(steps.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Waits until the ranks on both sides of one have said so as often as it has; `exchange` knows who has left and
  /// for how long to wait. False: a peer is lost.
  [[nodiscard]] bool await_neighbours(int rank, bool wraps, Exchange& exchange) const;

 private:
  struct alignas(64) Steps {
    std::atomic<std::int64_t> steps{0};
  };

  SharedCells(Grid const& grid, StencilKernel const& kernel, std::array<std::int64_t, 3> const& halo,
              int ranks);
  static std::vector<GridArray> of_same_cells(std::vector<GridArray> const& arrays);
  std::int64_t steps_of(int rank) const {
    return took_[static_cast<std::size_t>(rank)].steps.load(std::memory_order_acquire);
  }

  std::vector<GridArray> now_, next_, coefficients_;
  std::vector<Steps> took_;  ///< [ranks]
};

}  // namespace hostless
