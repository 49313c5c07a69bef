#pragma once
// The kernels of one stencil and one type of values, inside a GPU library.

#include <memory>
#include <vector>

#include "device/memory.hpp"
#include "stencil/gpu/parts/parted.hpp"
#include "stencil/gpu/parts/split.hpp"
#include "stencil/gpu/plain.hpp"
#include "stencil/gpu/stencil_library.hpp"

namespace hostless::gpu {

constexpr int most_stencil_arrays = 4;

/// Where cells are: cell (a, b, c) at a * stride[0] + b * stride[1] + c, in values.
struct StencilArrays {
  void const* in[most_stencil_arrays] = {};  ///< fields, then coefficients
  void* out[most_stencil_arrays] = {};
  std::int64_t stride[2] = {};
};

/// What two kernels of a part wait by, and the streams that they are queued on.
struct SplitWaits {
  BlockBarrier border, inner;
  HaloWords halo;
};
struct SplitStreams {
  HOSTLESS_GPU(Stream_t) border, inner;
};

/// What a kernel that waits is told beside.
struct ResidentMemory {
  std::uint64_t* words = nullptr;
  std::int64_t row_words = 0;
  std::uint32_t epoch = 1;
  std::uint32_t* lost = nullptr;
  std::uint64_t deadline_ns = 0;
  StencilPart part;
  std::int64_t first_row = 0;     ///< of the grid, that of the arrays
  std::uint64_t* beyond[2] = {};  ///< words of the parts before and after; null: there is none
};

class StencilInstance {
 public:
  virtual ~StencilInstance() = default;
  StencilText text;
  StencilShapes shapes;
  int fields = 1, arrays = 1;
  int radius = 1;                   ///< along the first axis
  std::size_t parameter_bytes = 0;  ///< 0: its functor is empty

  /// What kernels of other parts would wait for, when this one's were loaded beside them.
  virtual void load(StencilProblem const& problem) const = 0;
  /// All queue on a stream: one step of the cells that are stepped at all;
  virtual void step(StencilProblem const& problem, StencilArrays const& arrays,
                    HOSTLESS_GPU(Stream_t) stream) const = 0;
  /// of those among some rows of the first axis;
  virtual void step_rows(StencilProblem const& problem, StencilArrays const& arrays, RowRange rows,
                         HOSTLESS_GPU(Stream_t) stream) const = 0;
  /// so many, by as many blocks as there can be at once;
  virtual int blocks_at_once(StencilProblem const& problem) const = 0;
  virtual void steps_with_barriers(StencilProblem const& problem, StencilArrays const& arrays,
                                   std::int64_t steps, int blocks, BlockBarrier const& barrier,
                                   HOSTLESS_GPU(Stream_t) stream) const = 0;
  /// the same of one part of several, whose kernels exchange halos;
  virtual void steps_of_part(StencilProblem const& problem, StencilArrays const& arrays, std::int64_t steps,
                             int blocks, BlockBarrier const& barrier, HaloWords const& halo,
                             HOSTLESS_GPU(Stream_t) stream) const = 0;
  /// the same by two kernels at a time, on a stream each, as they were dealt out for the rows that a part has.
  virtual SplitPlan split(StencilProblem const& problem, PartRows const& rows) const = 0;
  virtual void steps_split(StencilProblem const& problem, StencilArrays const& arrays, std::int64_t steps,
                           SplitPlan const& plan, SplitWaits const& waits, SplitStreams streams) const = 0;
  /// those of one pass over memory, once its chunks have been dealt out to the warps that there can be;
  virtual void deal_out(StencilProblem& problem) const = 0;
  virtual void pass(StencilProblem const& problem, StencilArrays const& arrays,
                    HOSTLESS_GPU(Stream_t) stream) const = 0;
  /// so many with the cells on chip.
  virtual void resident(StencilProblem const& problem, StencilArrays const& arrays, std::int64_t steps,
                        ResidentMemory const& memory, HOSTLESS_GPU(Stream_t) stream) const = 0;
};

/// Of all stencils; never goes.
std::vector<std::unique_ptr<StencilInstance>> const& stencil_instances();

}  // namespace hostless::gpu
