#include "hostless/stencil/gpu_stencil.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "plan/index.hpp"
#include "stencil/agreement.hpp"
#include "stencil/change.hpp"
#include "stencil/endings.hpp"
#include "stencil/gpu/choose_way.hpp"
#include "stencil/gpu/stencil_library.hpp"

namespace hostless {

namespace {

/// Kernels are compiled for a functor: another one of the same name would have other cells.
void require_named(StencilKernel const& kernel) {
  bool known = false;
  try {
    known = make_stencil(kernel.name, kernel.axes, kernel.value_bytes).update == kernel.update;
  } catch (Error const&) {  // no such name
  }
  if (known) return;
  std::string names;
  for (NamedStencil const& one : named_stencils())
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  throw Error(
      ErrorCode::usage,
      fmt::format("stencil '{}' on a GPU (its library has kernels of {}, as make_stencil makes them). "
                  "Use one of those, or StencilRun.",
                  kernel.name, names));
}

void require_options(Grid const& grid, GpuStencilOptions const& options, int devices) {
  constexpr std::int64_t longest = std::int64_t{1} << 30;  // kernels count cells in 32 bits
  for (std::int64_t const extent : grid.extent)
    if (extent > longest)
      throw Error(ErrorCode::usage, fmt::format("{} cells along an axis on a GPU (kernels count up to {}). "
                                                "Use StencilRun.",
                                                extent, longest));
  if (options.devices.empty())
    throw Error(ErrorCode::usage, "no GPU (nothing would step the cells). Name one for each part.");
  for (int const device : options.devices)
    if (device < 0 || device >= devices)
      throw Error(ErrorCode::usage, fmt::format("GPU {} of {} (there is none of that number). Use 0 to {}.",
                                                device, devices, devices - 1));
  if (options.depth < 0 || options.block_steps < 0)
    throw Error(ErrorCode::usage,
                fmt::format("depth {}, block_steps {} (none can be negative). Use 0 to have them chosen.",
                            options.depth, options.block_steps));
  if (!(options.longest_launch_s > 0) || !(options.limits.later_s > 0))
    throw Error(ErrorCode::usage, fmt::format("launches of {} s and waits of {} s (nothing would ever end in "
                                              "time). Use more than 0.",
                                              options.longest_launch_s, options.limits.later_s));
}

}  // namespace

char const* name(GpuCells cells) {
  switch (cells) {
    case GpuCells::automatic:
      return "auto";
    case GpuCells::plain:
      return "plain";
    case GpuCells::streamed:
      return "streamed";
    case GpuCells::resident:
      return "resident";
    case GpuCells::cached:
      return "cached";
  }
  return "unknown";
}

GpuCells gpu_cells_from(char const* text) {
  for (GpuCells const cells :
       {GpuCells::automatic, GpuCells::plain, GpuCells::streamed, GpuCells::resident, GpuCells::cached})
    if (std::strcmp(text, name(cells)) == 0) return cells;
  throw Error(ErrorCode::usage, fmt::format("unknown cells '{}' (it says what a GPU steps a stencil with). "
                                            "Use auto, plain, streamed, resident or cached.",
                                            text));
}

char const* name(GpuHalos halos) {
  switch (halos) {
    case GpuHalos::kernel:
      return "kernel";
    case GpuHalos::copies:
      return "copies";
    case GpuHalos::overlap:
      return "overlap";
  }
  return "unknown";
}

GpuHalos gpu_halos_from(char const* text) {
  for (GpuHalos const halos : {GpuHalos::kernel, GpuHalos::copies, GpuHalos::overlap})
    if (std::strcmp(text, name(halos)) == 0) return halos;
  throw Error(ErrorCode::usage, fmt::format("unknown halos '{}' (it says how parts on GPUs get their "
                                            "neighbours' rows). Use kernel, copies or overlap.",
                                            text));
}

struct GpuStencilRun::Parts {
  Grid grid;
  Box box;
  StencilKernel kernel;
  std::string device;
  gpu::StencilWay way;
  std::unique_ptr<gpu::BoundStencil> bound;
  std::vector<char> given;
  std::int64_t steps = 0;

  bool asked = false;  ///< to stop, in this run

  // What step_and_look asks for.
  int ranks() const { return 1; }
  std::int64_t longest() const { return std::numeric_limits<std::int64_t>::max(); }
  /// A kernel that keeps cells steps them by twos, and what is recorded ends with the arrays it began with.
  std::int64_t grain() const { return std::int64_t{2} * std::max(way.depth(), way.block_steps()); }
  std::int64_t least() const { return grain(); }
  /// The model may be wrong by much, and the first launches are slow.
  std::int64_t first_stretch() const { return static_cast<std::int64_t>(0.01 / (way.step_s + 1e-8)); }
  void wish_to_stop() { asked = true; }
  bool hear(bool& heard, double&) const {
    heard = asked;
    return true;
  }
  void lost(StencilResult& result) const {
    result.status = StencilStatus::peer_lost;
    result.message =
        way.parts.size() == 1
            ? fmt::format("blocks on the GPU waited for each other past the deadline after step {}", steps)
            : fmt::format("parts on GPUs waited for each other past the deadline after step {}", steps);
  }
  bool look(StencilChange& change) const {
    change.step = steps;
    for (int f = 0; f < kernel.fields; ++f) {
      double const top = bound->largest(f);
      std::array<double, change::digits> digits{};
      auto const parts = bound->squares(f, top);
      unsigned __int128 sum = 0;
      for (std::size_t k = parts.size(); k-- > 0;) sum = (sum << 20) + parts[k];
      for (double& digit : digits) {
        digit = static_cast<double>(static_cast<std::uint32_t>(sum));
        sum >>= 32;
      }
      change.largest.push_back(top);
      change.norm.push_back(change::norm(top, digits));
    }
    return true;
  }
  bool all_finite(bool& finite) const {
    for (int f = 0; f < kernel.fields; ++f)
      if (!bound->is_finite(f)) finite = false;
    return true;
  }
  bool advance(std::int64_t count, bool looks, std::int64_t& taken) {
    bool const whole = bound->advance(looks ? count - 1 : count, taken);
    if (whole && looks) bound->advance_alone();
    if (whole) taken = count;
    steps += taken;
    return whole;
  }
};

GpuStencilRun::GpuStencilRun(Grid const& grid, StencilKernel const& kernel, GpuStencilOptions const& options)
    : parts_(std::make_unique<Parts>()) {
  check_kernel(kernel);
  check_grid(grid, kernel);
  require_named(kernel);
  gpu::StencilLibrary& library = gpu::stencil_library();
  require_options(grid, options, library.devices());
  gpu::StencilProblem problem;
  problem.text = {kernel.name, kernel.axes, kernel.value_bytes};
  problem.grid = grid;
  problem.parameters = kernel.parameters;
  gpu::StencilShapes const* const shapes = library.shapes(problem.text);
  if (shapes == nullptr)
    throw Error(ErrorCode::environment,
                fmt::format("the GPU library has no kernels of stencil '{}'. Build and install it again.",
                            kernel.name));
  gpu::StencilDevice device = library.device(options.devices.front());
  for (int const one : options.devices) {
    gpu::StencilDevice const other = library.device(one);
    device.multiprocessors = std::min(device.multiprocessors, other.multiprocessors);
    device.shared_bytes = std::min(device.shared_bytes, other.shared_bytes);
  }
  problem.way = gpu::choose_way(grid, kernel, options, *shapes, device);
  problem.multiprocessors = std::max(1, device.multiprocessors / problem.way.sharers);
  problem.deadline_s = options.limits.later_s;
  problem.longest_launch_s = options.longest_launch_s;
  parts_->grid = grid;
  parts_->box = {{0, 0, 0}, grid.extent};
  parts_->kernel = kernel;
  parts_->device = device.name;
  parts_->way = problem.way;
  parts_->given.assign(at(kernel.arrays()), 0);
  parts_->bound = library.bind(problem);
}

GpuStencilRun::~GpuStencilRun() = default;

Grid const& GpuStencilRun::grid() const { return parts_->grid; }
Box const& GpuStencilRun::box() const { return parts_->box; }
int GpuStencilRun::depth() const { return parts_->way.depth(); }
int GpuStencilRun::block_steps() const { return parts_->way.block_steps(); }
int GpuStencilRun::parts() const { return static_cast<int>(parts_->way.parts.size()); }
RunKind GpuStencilRun::run_kind() const { return parts_->way.run; }
GpuCells GpuStencilRun::cells() const { return parts_->way.cells; }
std::string GpuStencilRun::describe() const {
  return fmt::format("{}, {}: {}", hostless::name(parts_->way.run), hostless::name(parts_->way.cells),
                     parts_->bound->describe());
}
std::string GpuStencilRun::device_name() const { return parts_->device; }
std::int64_t GpuStencilRun::device_bytes() const { return parts_->bound->device_bytes(); }
std::int64_t GpuStencilRun::steps() const { return parts_->steps; }
void GpuStencilRun::count_from(std::int64_t steps) { parts_->steps = steps; }

void GpuStencilRun::give(int array, CellArray const& cells) {
  check_array(parts_->kernel, array);
  parts_->bound->put(array, cells);
  parts_->given[at(array)] = 1;
}

void GpuStencilRun::take(int field, CellArray const& cells) const {
  check_field(parts_->kernel, field);
  parts_->bound->get(field, cells);
}

StencilResult GpuStencilRun::run(std::int64_t steps, StencilStop const& stop) {
  Parts& parts = *parts_;
  check_stop(steps, stop);
  check_given(parts.given);
  StencilResult result;
  auto const begin = Clock::now();
  parts.asked = false;
  step_and_look(parts, steps, stop, result);
  result.run_s = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

StencilResult run_stencil_on_gpu(Grid const& grid, StencilKernel const& kernel,
                                 std::vector<CellArray> const& arrays, std::int64_t steps,
                                 StencilStop const& stop, GpuStencilOptions const& options,
                                 std::string* how) {
  GpuStencilRun run(grid, kernel, options);
  for (std::size_t k = 0; k < arrays.size(); ++k) run.give(static_cast<int>(k), arrays[k]);
  StencilResult result = run.run(steps, stop);
  for (int f = 0; f < kernel.fields; ++f) run.take(f, arrays[at(f)]);
  if (how != nullptr) *how = run.describe();
  return result;
}

}  // namespace hostless
