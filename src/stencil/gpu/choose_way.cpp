#include "stencil/gpu/choose_way.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "stencil/gpu/way_costs.hpp"

namespace hostless::gpu {

namespace {

constexpr int deepest = 16;

/// Two axes, radius 1, no coefficients: what fast kernels can.
bool is_simple(Grid const& grid, StencilKernel const& kernel) {
  return kernel.axes == 2 && kernel.radius == std::array<int, 3>{1, 0, 1} && kernel.coefficients == 0 &&
         grid.extent[1] == 1;
}
/// Three axes: what the kernel can that goes through planes.
bool is_simple_in_planes(StencilKernel const& kernel) {
  return kernel.axes == 3 && kernel.radius == std::array<int, 3>{1, 1, 1} && kernel.coefficients == 0 &&
         kernel.star;
}
bool wraps(Grid const& grid, int axis) {
  return grid.boundary[static_cast<std::size_t>(axis)] == GridBoundary::periodic;
}

/// Parts of about as many rows each.
std::vector<StencilPart> parts_of_rows(std::int64_t rows, std::vector<int> const& devices) {
  std::vector<StencilPart> parts;
  auto const count = static_cast<std::int64_t>(devices.size());
  for (std::int64_t k = 0; k < count; ++k)
    parts.push_back({devices[static_cast<std::size_t>(k)], rows * k / count, rows * (k + 1) / count, 0, 0});
  return parts;
}
/// Parts of whole rows of tiles.
std::vector<StencilPart> parts_of_tiles(AxisTiles const& tiles, std::vector<int> const& devices) {
  std::vector<StencilPart> parts = parts_of_rows(tiles.count, devices);
  for (StencilPart& part : parts) {
    part.first_tile = static_cast<int>(part.low);
    part.tiles = static_cast<int>(part.high - part.low);
    part.low = tiles.own_low(part.first_tile);
    part.high = tiles.own_low(part.first_tile + part.tiles);
  }
  return parts;
}
int most_on_one(std::vector<int> const& devices) {
  std::ptrdiff_t most = 1;
  for (int const device : devices) most = std::max(most, std::count(devices.begin(), devices.end(), device));
  return static_cast<int>(most);
}
StencilDevice share_of(StencilDevice device, int sharers) {
  device.multiprocessors = std::max(1, device.multiprocessors / sharers);
  return device;
}

struct ResidentWish {
  int warps = 1, depth = 2;
  int parts = 1;  ///< each has whole rows of tiles
};
/// Tiles of `depth` steps between two exchanges, one a multiprocessor of the parts' GPUs (device: what a part
/// has of one), in the fewest windows of this shape; none: they are too many, or the windows too small.
std::optional<ResidentPlan> resident_plan(Grid const& grid, StencilKernel const& kernel,
                                          StencilShapes::Resident const& kind, ResidentWish const& wish,
                                          StencilDevice const& device) {
  int const warps = wish.warps, depth = wish.depth, most = wish.parts * device.multiprocessors;
  int const rows = static_cast<int>(grid.extent[0]), columns = static_cast<int>(grid.extent[2]);
  int const value_bytes = static_cast<int>(kernel.value_bytes);
  int const high = kind.rows * warps, wide = 32 * kind.width;
  std::int64_t const least = std::int64_t{rows / high} * (columns / wide);
  if (least > most || rows / high > most || columns / wide > device.multiprocessors) return std::nullopt;
  ResidentPlan plan;
  plan.shape = {kind.width, kind.rows, warps};
  plan.even = kind.even;
  int const chunk = std::min(kind.width, 16 / value_bytes);
  bool const could_be_even = columns % kind.width == 0 && depth % chunk == 0 &&
                             (wraps(grid, 2) || columns >= wide) && (wraps(grid, 0) || rows >= high);
  if (kind.even && !could_be_even) return std::nullopt;
  plan.y = AxisTiles::fewest(rows, high, depth, 1, grid.boundary[0], wish.parts);
  plan.x = AxisTiles::fewest(columns, wide, depth, kind.even ? kind.width : 1, grid.boundary[2]);
  int const of_part = (plan.y.count + wish.parts - 1) / wish.parts * plan.x.count;
  if (plan.tiles() == 0 || of_part > device.multiprocessors) return std::nullopt;
  if (resident_shared_bytes(plan.shape, depth, kernel.fields, value_bytes) > device.shared_bytes)
    return std::nullopt;
  return plan;
}

std::optional<StreamedPlan> streamed_plan(Grid const& grid, StencilShapes::Streamed const& kind) {
  int const rows = static_cast<int>(grid.extent[0]), columns = static_cast<int>(grid.extent[2]);
  int const width = kind.shape.width, steps = kind.shape.steps, wide = 32 * width;
  // the cells of a window are those of the grid, once around at most
  bool const could_be_even = columns % width == 0 && columns >= wide;
  if ((kind.even && !could_be_even) || rows < steps + 2) return std::nullopt;
  StreamedPlan plan;
  plan.shape = kind.shape;
  plan.even = kind.even;
  int const whole = (steps + width - 1) / width * width;
  plan.x = AxisTiles::fewest(columns, wide, wraps(grid, 2) ? whole : steps, kind.even ? width : 1,
                             grid.boundary[2]);
  if (plan.x.count == 0) return std::nullopt;
  return plan;
}

/// In the windows that cost least; none: the grid is too small for any.
std::optional<std::pair<PlanesPlan, double>> planes_plan(Grid const& grid, StencilKernel const& kernel,
                                                         StencilShapes::Planes const& kind,
                                                         StencilDevice const& device) {
  int const rows = static_cast<int>(grid.extent[1]), columns = static_cast<int>(grid.extent[2]);
  PlanesPlan plan;
  plan.shape = kind.shape;
  plan.even = kind.even;
  int const width = kind.shape.width, steps = kind.shape.steps;
  bool const could_be_even = columns % width == 0;
  if ((kind.even && !could_be_even) || grid.extent[0] < steps + 2) return std::nullopt;
  if (grid.extent[1] * (grid.extent[2] + 32) >= std::int64_t{1} << 31)
    return std::nullopt;  // as kernels count
  if (planes_shared_bytes(kind.shape, kernel.fields, static_cast<int>(kernel.value_bytes)) >
      device.shared_bytes)
    return std::nullopt;
  int const depth_x = kind.even && wraps(grid, 2) ? (steps + width - 1) / width * width : steps;
  std::optional<std::pair<PlanesPlan, double>> best;
  int const most_x = std::min(kind.shape.most_threads, columns / width);
  for (int across = 1; across <= most_x; ++across) {
    plan.shape.threads_x = across;
    plan.shape.threads_y = std::min(kind.shape.most_threads / across, rows / kind.shape.rows);
    if (plan.shape.threads_y == 0) break;
    plan.x = AxisTiles::fewest(columns, across * width, depth_x, kind.even ? width : 1, grid.boundary[2]);
    if (plan.x.count == 0) continue;
    plan.y = AxisTiles::fewest(rows, plan.shape.threads_y * kind.shape.rows, steps, 1, grid.boundary[1]);
    if (plan.y.count == 0) continue;
    PlanesPlan const chunked = in_best_chunks(plan, grid.extent[0], kernel, device);
    double const step_s = cost_of(chunked, kernel, device);
    if (!best || step_s < best->second) best = {chunked, step_s};
  }
  return best;
}

/// All ways that the options leave open, and why others are none.
class Ways {
 public:
  Ways(Grid const& grid, StencilKernel const& kernel, GpuStencilOptions const& options,
       StencilShapes const& shapes, StencilDevice const& device)
      : grid_(grid),
        kernel_(kernel),
        options_(options),
        shapes_(shapes),
        parts_(static_cast<int>(options.devices.size())),
        sharers_(most_on_one(options.devices)),
        device_(share_of(device, sharers_)) {}

  StencilWay best() {
    if (options_.run == RunKind::host) refuse("run host (it is a GPU's). Use StencilRun");
    check_halos();
    if (asks_resident()) try_resident();
    if (asks_streamed()) try_streamed();
    if (asks_plain()) try_plain();
    if (options_.cells == GpuCells::cached) try_cached();
    if (!found_) refuse(why_.empty() ? "options that exclude each other" : why_);
    return *found_;
  }

 private:
  bool may_be(GpuCells cells) const {
    return options_.cells == GpuCells::automatic || options_.cells == cells;
  }
  bool may_be(RunKind run) const { return options_.run == RunKind::automatic || options_.run == run; }
  bool asks_plain() const { return may_be(GpuCells::plain) && may_have_depth() && options_.block_steps <= 1; }
  /// Where nothing is exchanged there is none.
  bool may_have_depth() const { return parts_ > 1 || options_.depth <= 1; }
  /// `stream` and `graph` by themselves are a kernel a step.
  bool asks_streamed() const {
    bool const named = options_.cells == GpuCells::streamed || options_.block_steps > 1;
    return may_be(GpuCells::streamed) && options_.computes && options_.halos != GpuHalos::overlap &&
           may_have_depth() && options_.block_steps != 1 && (named || options_.run == RunKind::automatic);
  }
  bool asks_resident() const {
    bool const named = options_.cells == GpuCells::resident;
    return may_be(GpuCells::resident) && options_.computes && options_.halos == GpuHalos::kernel &&
           options_.block_steps <= 1 && (named || options_.depth != 1);
  }

  void check_halos() const {
    char const* const halos = name(options_.halos);
    if (options_.halos != GpuHalos::kernel && parts_ == 1 && !asks_split())
      refuse(fmt::format("halos by {} of a grid in one part (it has none). Name several GPUs", halos));
    if (options_.halos == GpuHalos::copies && (options_.run == RunKind::persistent || asks_split()))
      refuse(fmt::format("halos by {} in run persistent (its kernels exchange them). Use run stream or graph",
                         halos));
    if (options_.halos == GpuHalos::overlap && options_.depth > 1)
      refuse(fmt::format(
          "halos by overlap with depth {} are refused (every step has inner rows beside which they travel). "
          "Use depth 1",
          options_.depth));
  }
  /// A kernel of border rows beside that of the others, which both go on: only where it is named.
  bool asks_split() const {
    return options_.cells == GpuCells::cached ||
           (options_.run == RunKind::persistent && options_.halos == GpuHalos::overlap);
  }
  void offer(StencilWay way) {
    way.sharers = sharers_;
    way.halos = options_.halos;
    way.computes = options_.computes;
    way.shared_bytes = device_.shared_bytes;
    if (way.parts.empty()) way.parts = parts_of_rows(grid_.extent[0], options_.devices);
    if (!found_ || way.step_s < found_->step_s) found_ = way;
  }
  /// Rows of a halo of so many steps.
  std::int64_t halo_rows(int steps) const {
    return parts_ == 1 ? 0 : steps * std::int64_t{std::max(kernel_.radius[0], 1)};
  }
  /// What a part steps; none: it owns fewer rows than the next one reads.
  std::optional<Grid> part_grid(int steps) {
    std::int64_t const rows = grid_.extent[0], halo = halo_rows(steps);
    if (parts_ > 1 && rows / parts_ < halo) {
      why_ = fmt::format(
          "{} in {} parts that exchange halos of {} (a part has them from the next one alone). Use "
          "fewer "
          "parts, or a smaller depth",
          counted(rows, "row"), parts_, halo);
      return std::nullopt;
    }
    Grid part = grid_;
    part.extent[0] = (rows + parts_ - 1) / parts_ + 2 * halo;
    return part;
  }
  std::vector<int> halo_depths(int of_pass) const {
    if (parts_ == 1) return {1};
    if (options_.depth > 0) return {options_.depth};
    if (options_.halos == GpuHalos::overlap) return {1};
    return {of_pass, 2 * of_pass, 4 * of_pass, 8 * of_pass};
  }
  void try_plain() {
    for (RunKind const run : {RunKind::stream, RunKind::graph, RunKind::persistent}) {
      if (!may_be(run)) continue;
      if (run == RunKind::persistent && options_.halos != GpuHalos::kernel && !asks_split()) continue;
      // where cells stay on chip, a barrier of all blocks after each step is only what others do
      if (found_ && found_->cells == GpuCells::resident && options_.run == RunKind::persistent) continue;
      for (int const depth : halo_depths(1)) {
        std::optional<Grid> const part = part_grid(depth);
        if (!part) break;
        StencilWay way;
        way.run = run;
        way.halo_steps = depth;
        way.step_s = cost_of_plain(run, kernel_, *part, device_);
        if (parts_ > 1)
          way.step_s += cost_of_halos(run, kernel_, grid_, static_cast<double>(halo_rows(depth))) / depth;
        offer(way);
      }
    }
  }
  /// What two kernels wait for is exchanged after each step.
  void try_cached() {
    if (!may_be(RunKind::persistent)) {
      why_ = fmt::format("cells cached in run {} (they stay in one kernel). Use run persistent",
                         name(options_.run));
      return;
    }
    if (options_.depth > 1 || options_.block_steps > 1) {
      why_ = fmt::format(
          "cells cached with depth {}, block_steps {} (halos are exchanged after every step). Use 1, or "
          "resident",
          options_.depth, options_.block_steps);
      return;
    }
    if (device_.multiprocessors < 2) {
      why_ = fmt::format(
          "cells cached in {} on one GPU (each needs two multiprocessors, for a kernel of its border "
          "and "
          "one of its inner rows). Use fewer parts",
          counted(sharers_, "part"));
      return;
    }
    std::optional<Grid> const part = part_grid(1);
    if (!part) return;
    StencilWay way;
    way.run = RunKind::persistent;
    way.cells = GpuCells::cached;
    way.step_s = cost_of_plain(way.run, kernel_, *part, device_);
    offer(way);
  }
  bool simple(char const* what) {
    if (is_simple(grid_, kernel_)) return true;
    why_ = fmt::format("{} of stencil {} (it is for two axes, radius 1 and no coefficients). Use plain", what,
                       kernel_.name);
    return false;
  }
  void try_streamed() {
    if (!may_be(RunKind::graph) && !may_be(RunKind::stream)) {
      why_ = "cells streamed in run persistent (a pass is a kernel). Use run graph or stream";
      return;
    }
    if (kernel_.axes == 3) return try_planes();
    if (!simple("cells streamed")) return;
    try_passes(shapes_.streamed, [&](StencilShapes::Streamed const& kind, Grid const& part) {
      std::optional<StencilWay> way;
      std::optional<StreamedPlan> const plan = streamed_plan(part, kind);
      if (!plan) return way;
      way.emplace().streamed = *plan;
      way->step_s = cost_of(*plan, kernel_, part, device_);
      return way;
    });
  }
  /// way_of(kind, part): how kernels of a kind would pass over a part, and its seconds a step; none: they cannot.
  template <class Kinds, class WayOf>
  void try_passes(Kinds const& kinds, WayOf const& way_of) {
    bool known = false;
    for (auto const& kind : kinds) {
      if (options_.block_steps > 0 && kind.shape.steps != options_.block_steps) continue;
      known = true;
      for (int const depth : halo_depths(kind.shape.steps)) {
        std::optional<Grid> const part = part_of_passes(kind.shape.steps, depth);
        if (!part) continue;
        if (std::optional<StencilWay> const way = way_of(kind, *part)) offer_passes(*way, depth);
      }
    }
    say_why_not_streamed(known, kinds);
  }
  template <class Kinds>
  void say_why_not_streamed(bool known, Kinds const& kinds) {
    if (parts_ > 1 && !why_.empty()) return;
    if (known) {
      why_ =
          "cells streamed on so small a grid are refused (its rows and columns must be more than the steps "
          "of a pass). "
          "Use plain";
      return;
    }
    why_ = fmt::format("{} in one pass (there are kernels of", counted(options_.block_steps, "step"));
    std::vector<int> told;
    for (auto const& kind : kinds) {
      if (std::find(told.begin(), told.end(), kind.shape.steps) != told.end()) continue;
      told.push_back(kind.shape.steps);
      why_ += fmt::format(" {}", kind.shape.steps);
    }
    why_ += "). Use one of them, or 0";
  }
  void try_planes() {
    if (!is_simple_in_planes(kernel_)) {
      why_ = fmt::format(
          "cells streamed of stencil {} on three axes (it is for stars of radius 1 and no coefficients). Use "
          "plain",
          kernel_.name);
      return;
    }
    try_passes(shapes_.planes, [&](StencilShapes::Planes const& kind, Grid const& part) {
      std::optional<StencilWay> way;
      auto const found = planes_plan(part, kernel_, kind, device_);
      if (!found) return way;
      way.emplace().planes = found->first;
      way->step_s = found->second;
      return way;
    });
  }
  /// Of a part; none: halos of so many steps do not last for whole passes, or do not fit.
  std::optional<Grid> part_of_passes(int steps, int depth) {
    if (parts_ > 1 && depth % steps != 0) {
      why_ = fmt::format(
          "depth {} of cells streamed {} in one pass (halos last for whole passes). Use a "
          "multiple",
          depth, counted(steps, "step"));
      return std::nullopt;
    }
    return part_grid(depth);
  }
  void offer_passes(StencilWay way, int depth) {
    way.run = options_.run == RunKind::stream ? RunKind::stream : RunKind::graph;
    way.cells = GpuCells::streamed;
    way.halo_steps = depth;
    if (parts_ > 1)
      way.step_s += cost_of_halos(way.run, kernel_, grid_, static_cast<double>(halo_rows(depth))) / depth;
    offer(way);
  }
  void try_resident() {
    if (!may_be(RunKind::persistent)) {
      why_ = fmt::format("cells resident in run {} (they stay in one kernel). Use run persistent",
                         name(options_.run));
      return;
    }
    if (!simple("cells resident")) return;
    if (options_.depth % 2 != 0) {
      why_ = fmt::format(
          "cells resident with depth {} are refused (they are stepped down and up by turns). Use an even one",
          options_.depth);
      return;
    }
    bool fits = false;
    for (StencilShapes::Resident const& kind : shapes_.resident) {
      for (int const depth : depths())
        for (int warps = 1; warps <= kind.most_warps; ++warps) {
          auto const plan = resident_plan(grid_, kernel_, kind, {warps, depth, parts_}, device_);
          if (!plan) continue;
          fits = true;
          constexpr double way_between_gpus_s = 0.7e-6;
          StencilWay way;
          way.run = RunKind::persistent;
          way.cells = GpuCells::resident;
          way.resident = *plan;
          way.parts = parts_of_tiles(plan->y, options_.devices);
          way.step_s = cost_of(*plan, kernel_) + (parts_ > 1 ? way_between_gpus_s / depth : 0);
          offer(way);
        }
    }
    if (!fits)
      why_ = fmt::format(
          "{} x {} cells resident{} (they must fit into the registers of {} "
          "multiprocessors, tile by tile). Use a smaller grid, another depth, streamed or plain",
          grid_.extent[0], grid_.extent[2],
          options_.depth > 0 ? fmt::format(" with depth {}", options_.depth) : "",
          parts_ * device_.multiprocessors);
  }
  std::vector<int> depths() const {
    if (options_.depth > 0) return {options_.depth};
    return {2, 4, 8, 12, deepest};
  }
  [[noreturn]] void refuse(std::string const& what) const { throw Error(ErrorCode::usage, what + "."); }

  Grid const& grid_;
  StencilKernel const& kernel_;
  GpuStencilOptions const& options_;
  StencilShapes const& shapes_;
  int parts_, sharers_;
  StencilDevice device_;  ///< a part's share of it
  std::optional<StencilWay> found_;
  std::string why_;
};

}  // namespace

StencilWay choose_way(Grid const& grid, StencilKernel const& kernel, GpuStencilOptions const& options,
                      StencilShapes const& shapes, StencilDevice const& device) {
  return Ways(grid, kernel, options, shapes, device).best();
}

}  // namespace hostless::gpu
