#pragma once
// What a stencil is timed against: two arrays, one loop over all cells a step, and a barrier.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/plan/boxes.hpp"
#include "hostless/stencil/kernel.hpp"
#include "hostless/stencil/stencil.hpp"
#include "run/engine.hpp"

namespace hostless {

/// Steps a grid in two arrays a field that all threads share, each its own slab along the first axis, with one
/// loop over the cells of a row that the compiler makes vectors of: what somebody writes who thinks of nothing
/// else. Cells beyond an end that is not Dirichlet's lie around the arrays; each thread fills those that its own
/// cells are read from. No blocks.
class PlainLoop {
 public:
  /// kernel  of a named stencil, whose loop over cells is taken for its own
  PlainLoop(Grid const& grid, StencilKernel const& kernel, int threads, WaitLimits const& limits);
  int threads() const { return threads_; }
  /// Cells of a field as they are now; all are filled before the first step.
  CellArray cells(int which);
  /// Called by all threads. Errors  peer_lost  one of them does not come
  void steps(int thread, std::int64_t count);

 private:
  using Arrays = std::vector<std::vector<std::byte>>;

  std::int64_t byte_of(std::int64_t a, std::int64_t b, std::int64_t c) const {
    return (((a + around_[0]) * along_[1] + b + around_[1]) * along_[2] + c + around_[2]) *
           static_cast<std::int64_t>(kernel_.value_bytes);
  }
  /// Of a block, made once a thread: a step allocates nothing.
  struct Rows {
    std::vector<void const*> in;
    std::vector<std::int64_t> strides;
    std::vector<void*> out;
  };
  void step(Rows& rows, std::int64_t first, std::int64_t last, Arrays const& from, Arrays& to) const;
  void fill_around(std::int64_t first, std::int64_t last, Arrays& arrays) const;
  void fill_rows(std::byte* field, std::int64_t plane) const;
  void fill_planes(std::byte* field, std::int64_t first, std::int64_t last) const;

  Grid grid_;
  StencilKernel kernel_;
  int threads_;
  std::array<std::int64_t, 3> fixed_{}, around_{},
      along_{};  ///< cells of an end that stay, beyond it, of a row
  host::ThreadBarrier barrier_;
  std::array<Arrays, 2> arrays_;
  std::int64_t taken_ = 0;
};

}  // namespace hostless
