#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/plan/boxes.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/stencil/kernel.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// How a run of a stencil ended; the same on every rank, but for a peer that is lost.
enum class StencilStatus : std::int32_t {
  steps_done,  ///< all steps that were asked for
  steady,      ///< the change of a step met the tolerance
  /// A field has NaN or infinity, which is found at looks and where a run ends, whatever ends it: no clock
  /// decides.
  not_finite,
  peer_lost,  ///< a rank died or stayed silent past the deadline
  aborted     ///< asked to stop
};
char const* name(StencilStatus status);
/// The exit code of the command: 0 steps_done or steady, 1 not_finite, 4 peer_lost or aborted.
int exit_code(StencilStatus status);

/// Whether ranks that are threads step arrays that all of them share, each a slab of the first axis, a step at a time:
/// there is nothing to exchange then, and a rank waits for those beside it before every step.
enum class ShareCells : std::int32_t {
  chosen,  ///< where it pays: a rank's cells fit the caches, and are many
  always,  ///< wherever it can be
  never
};

/// Equal on all ranks. None of these can change a bit of a cell.
struct StencilOptions {
  /// Steps between two exchanges: halos are so many radii deep, and a rank steps them for itself. 0: chosen.
  int depth = 0;
  /// Boxes along each axis of Grid; all 0: least surface.
  std::array<int, 3> ranks_along{0, 0, 0};
  Route route = Route::direct;
  /// What nodes the ranks are on, for routes; empty: one.
  NodeMap nodes;
  /// Steps that are taken in one pass over memory, blocked by the cache; 0: chosen, 1: none. At most `depth`.
  int block_steps = 0;
  /// Cells of the first pass that read nothing of other ranks are stepped while halos travel. It pays where a
  /// network carries them without this rank's core.
  bool overlap = false;
  /// It can be where slabs are as thick as a radius, a route or several nodes are not named, and depth, more than one
  /// step in a pass, other boxes or overlap are not asked for.
  ShareCells share = ShareCells::chosen;
  /// first_s is of the first wait of all, later_s of every other, that at the beginning of a later run too: ranks may
  /// be so far apart when they call it.
  WaitLimits limits = WaitLimits::from_environment();
};

/// What a step changed, where it was asked for: sqrt(sum (new - old)^2) and max |new - old| over all cells of
/// a field.
struct StencilChange {
  std::int64_t step = 0;        ///< after so many steps since the first run
  std::vector<double> norm;     ///< [fields]
  std::vector<double> largest;  ///< [fields]
};

/// When a run looks, and when it ends before its last step. Equal on all ranks, but for the functions.
struct StencilStop {
  /// Looks at the change of steps that are multiples of it, counted since the first run; 0: none.
  std::int64_t every = 0;
  double tolerance = 0;  ///< ends when every field's norm is at most this, with `every`; 0: never
  /// Called on each rank after a look; true asks all ranks to stop.
  std::function<bool(StencilChange const&)> observer;
  /// Polled by each rank at looks, and about every tenth of a second in between: true asks all ranks to stop.
  /// May differ from rank to rank, or be there on some alone.
  std::function<bool()> stop_requested;
};

struct StencilResult {
  StencilStatus status = StencilStatus::steps_done;
  std::int64_t steps = 0;  ///< taken by this run
  std::vector<StencilChange> history;
  double run_s = 0, exchange_s = 0;  ///< of this rank: all, and waiting for halos
  std::string message;
};

/// A global array of the caller's in host memory: cell (a, b, c) at data + a * stride[0] + b * stride[1] + c
/// * stride[2], strides in bytes, of the axes of Grid.
struct CellArray {
  void* data = nullptr;
  std::array<std::int64_t, 3> stride{};
};

/// What steps the cells of a grid, or of this rank's box of it: StencilRun on ranks of the processor,
/// GpuStencilRun on a GPU.
class CellStepper {
 public:
  virtual ~CellStepper() = default;
  virtual Grid const& grid() const = 0;
  /// This rank's cells.
  virtual Box const& box() const = 0;
  /// Steps taken since the cells were given.
  virtual std::int64_t steps() const = 0;
  /// That so many were taken before: of a run that a checkpoint goes on with.
  virtual void count_from(std::int64_t steps) = 0;
  /// Copies this rank's cells of an array (fields, then coefficients). All arrays must be given before the
  /// first run. Local. Errors  usage  no such array
  virtual void give(int array, CellArray const& cells) = 0;
  /// Copies this rank's cells of a field into the caller's array. Local. Errors  usage  no such field
  virtual void take(int field, CellArray const& cells) const = 0;
  /// Takes `steps` steps, or fewer where `stop` ends it. Collective over the ranks that step together. After
  /// a lost peer the cells are those of the last complete step, on a GPU of the last launch that ended.
  /// Errors  usage  on all ranks, before a step: steps below 0, arrays that were not given or a stop that makes
  ///                no sense on one of them; other steps, another stop or other steps before than on rank 0
  virtual StencilResult run(std::int64_t steps, StencilStop const& stop = {}) = 0;
};

/// A stencil on a grid that is dealt out to the ranks of a transport, one thread a rank on the processor.
///
/// Every cell has the bits that one step at a time on one rank gives, whatever ranks, depth and blocking are.
/// Collective throughout. Used by one thread of each rank.
class StencilRun final : public CellStepper {
 public:
  /// Errors  usage  on all ranks: a kernel, grid or options that make no sense or do not fit together, a
  ///                depth larger than a rank's box; other arguments on other ranks
  /// Cost    two copies of each field and one of each coefficient in memory, with halos; one plan
  StencilRun(Transport& transport, Grid const& grid, StencilKernel const& kernel,
             StencilOptions const& options = {});
  ~StencilRun() override;
  StencilRun(StencilRun const&) = delete;
  StencilRun& operator=(StencilRun const&) = delete;

  Grid const& grid() const override;
  BoxPartition const& partition() const;
  Box const& box() const override;
  int depth() const;
  int block_steps() const;
  /// StencilOptions::share: whether it was so.
  bool shares_cells() const;
  std::int64_t steps() const override;
  void count_from(std::int64_t steps) override;
  void give(int array, CellArray const& cells) override;
  void take(int field, CellArray const& cells) const override;
  StencilResult run(std::int64_t steps, StencilStop const& stop = {}) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hostless
