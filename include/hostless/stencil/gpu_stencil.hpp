#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/run/run_options.hpp"
#include "hostless/stencil/stencil.hpp"

namespace hostless {

/// What a GPU steps cells with. None of them can change a bit.
enum class GpuCells : std::uint8_t {
  automatic,  ///< what a model takes for the fastest that fits
  plain,      ///< a thread a cell, a step after the other, any stencil
  streamed,   ///< several steps in one pass over memory, rows or planes of cells in registers
  resident,   ///< two axes: the grid stays in registers, tiles exchange what they need of each other
  cached,  ///< what fits stays in shared memory, halos are exchanged every step; any stencil; only if named
};
char const* name(GpuCells cells);
/// Errors  usage  unknown name
GpuCells gpu_cells_from(char const* text);

/// How parts of a grid on several GPUs get the rows of their neighbours, where kernels do not exchange them
/// while they run.
enum class GpuHalos : std::uint8_t {
  kernel,  ///< a kernel of the part that reads them, out of the other GPU's memory
  copies,  ///< copies that the host queues
  /// Beside the kernel of inner rows; `plain` with depth 1. In runs `stream` and `graph` such copies, and border
  /// rows after them; in run `persistent` a second kernel, which steps border rows and exchanges them.
  overlap,
};
char const* name(GpuHalos halos);
/// Errors  usage  unknown name
GpuHalos gpu_halos_from(char const* text);

/// None of these can change a bit of a cell. 0: chosen.
struct GpuStencilOptions {
  /// stream: a kernel a pass over the cells; graph: so many recorded and replayed; persistent: one kernel for
  /// all steps, whose blocks wait for each other after each (plain) or every `depth` ones (resident), or two
  /// (cached, and plain with halos by overlap), which wait for each other after each.
  RunKind run = RunKind::automatic;
  GpuCells cells = GpuCells::automatic;
  int depth = 0;        ///< of `resident`: steps between two exchanges of tiles; of several parts: of halos
  int block_steps = 0;  ///< of `streamed`: steps in one pass
  /// A GPU for each part of the grid: parts are rows of the first axis (planes, of three), one after the
  /// other. A GPU that is named several times has so many parts.
  std::vector<int> devices{0};
  /// Of several parts in runs `stream` and `graph`; `overlap` in run `persistent` too, also of one part.
  GpuHalos halos = GpuHalos::kernel;
  /// False, of `plain`: for a measurement of exchanges alone no cell is computed.
  bool computes = true;
  WaitLimits limits = WaitLimits::from_environment();
  /// A persistent kernel returns after about that long and is launched again.
  double longest_launch_s = 0.5;
};

/// StencilRun on one GPU, or on several of this process, which reach each other's memory: the same verbs, and
/// the bits of the host in every cell and every change of a step.
///
/// Of the stencils that have a name, whose kernels are in the GPU library. Used by one thread.
class GpuStencilRun final : public CellStepper {
 public:
  /// Errors  usage        a kernel that is not `make_stencil`'s, a grid or options that make no sense or do
  ///                      not fit together
  ///         environment  no GPU, or not enough memory there; GPUs that cannot reach each other's
  /// Cost    two copies of each field and one of each coefficient in the GPU's memory
  GpuStencilRun(Grid const& grid, StencilKernel const& kernel, GpuStencilOptions const& options = {});
  ~GpuStencilRun() override;
  GpuStencilRun(GpuStencilRun const&) = delete;
  GpuStencilRun& operator=(GpuStencilRun const&) = delete;

  Grid const& grid() const override;
  /// All cells.
  Box const& box() const override;
  /// What was chosen: 1 where nothing is exchanged, or blocked.
  int depth() const;
  int parts() const;
  int block_steps() const;
  RunKind run_kind() const;
  GpuCells cells() const;
  /// In a few words: how the cells are stepped, and why so.
  std::string describe() const;
  std::string device_name() const;    ///< of the first part's GPU
  std::int64_t device_bytes() const;  ///< of all
  std::int64_t steps() const override;
  void count_from(std::int64_t steps) override;

  /// The array, of all cells, is in host memory or in that of one of this run's GPUs: then what is queued
  /// there, on any stream of this process, is waited for, and the copy is done when the call returns.
  /// Errors  usage  no such array; memory of another GPU
  void give(int array, CellArray const& cells) override;
  void take(int field, CellArray const& cells) const override;

  /// `peer_lost`: blocks waited for each other, or for another GPU, in vain.
  /// Errors  environment  the GPU fails
  StencilResult run(std::int64_t steps, StencilStop const& stop = {}) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Steps whole host arrays (fields, then coefficients) in place: fields are given, stepped and taken back.
///
/// how   null, or where to say what stepped them
/// Errors  as GpuStencilRun
StencilResult run_stencil_on_gpu(Grid const& grid, StencilKernel const& kernel,
                                 std::vector<CellArray> const& arrays, std::int64_t steps,
                                 StencilStop const& stop = {}, GpuStencilOptions const& options = {},
                                 std::string* how = nullptr);

}  // namespace hostless
