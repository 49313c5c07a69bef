#pragma once
// What a stencil is timed against: two arrays, one loop over all cells a step, and a barrier.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/plan/boxes.hpp"
#include "hostless/stencil/kernel.hpp"
#include "run/engine.hpp"

namespace hostless {

/// Steps a grid with Dirichlet boundaries in two arrays a field that all threads share, each its own slab
/// along the first axis, with the kernel's own loop over rows: what somebody writes who thinks of nothing
/// else. No halos, no blocks.
class PlainLoop {
 public:
  PlainLoop(Grid const& grid, StencilKernel const& kernel, int threads, WaitLimits const& limits);
  /// Cells of a field, the last axis fastest; all threads fill their part before the first step.
  std::byte* field(int which);
  /// Called by all threads. Errors  peer_lost  one of them does not come
  void steps(int thread, std::int64_t count);

 private:
  using Arrays = std::vector<std::vector<std::byte>>;

  void step(int thread, Arrays const& from, Arrays& to) const;
  void update(std::array<std::int64_t, 3> const& first, std::int64_t rows, Arrays const& from,
              Arrays& to) const;

  Grid grid_;
  StencilKernel kernel_;
  int threads_;
  host::ThreadBarrier barrier_;
  std::array<Arrays, 2> arrays_;
  std::int64_t taken_ = 0;
};

}  // namespace hostless
