#pragma once
// What a step takes in each way, as it was measured: for the choice between ways, which gives all of them equal bits.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "stencil/gpu/stencil_library.hpp"

namespace hostless::gpu {

constexpr double whole_gpu = 132;  // multiprocessors of the GPU that the numbers are of

/// Seconds a step; cycles are those of 1.9 GHz.
inline double cost_of(ResidentPlan const& plan, StencilKernel const& kernel) {
  double const words = static_cast<double>(kernel.value_bytes) / 4 * kernel.fields;
  ResidentShape const& shape = plan.shape;
  double const turns = (shape.warps + 3) / 4;  // of a scheduler's warps
  double const row = shape.width * 4.2 * words + 9;
  double const computed = 120 + std::max(turns * shape.rows * row, 25.0 * shape.rows);
  double const depth = plan.y.depth, threads = 32.0 * shape.warps;
  double const words_exchanged = 2 * depth * (32.0 * shape.width + shape.rows * shape.warps) * words;
  double const exchange = 2600 + 2200 * std::ceil(words_exchanged / (8 * threads));
  return (computed + exchange / depth) / 1.9e9 * (plan.even ? 1 : 1.5);
}
inline double cost_of(StreamedPlan const& plan, StencilKernel const& kernel, Grid const& grid,
                      StencilDevice const& device) {
  double const words = static_cast<double>(kernel.value_bytes) / 4 * kernel.fields;
  double const part = device.multiprocessors / whole_gpu;
  double const rows = static_cast<double>(grid.extent[0]), steps = plan.shape.steps;
  double const units = 8.0 * device.multiprocessors;
  double const chunks =
      std::max(1.0, std::min(std::floor(units / plan.x.count), std::floor(rows / (2 * steps))));
  double const chunk = std::ceil(rows / chunks) + 2 * steps;
  double const cells = 32.0 * plan.shape.width * plan.x.count * chunks * chunk;
  double const pass = std::max(cells * steps * words / (2.5e12 * part), chunk * steps * 100e-9);
  return (pass + 1.5e-6) / steps * (plan.even ? 1 : 1.3);
}
/// Seconds a pass. Blocks of a last turn that is not full have more of the memory each: 8 % at most (512 cells
/// an axis, H100).
inline double pass_of(PlanesPlan const& plan, StencilKernel const& kernel, StencilDevice const& device) {
  double const words = static_cast<double>(kernel.value_bytes) / 4 * kernel.fields;
  PlanesShape const& shape = plan.shape;
  double const cells = static_cast<double>(shape.threads() * shape.rows * shape.width);
  double const plane = 0.1e-6 + shape.steps * std::max(0.95e-10 * cells * words, 0.12e-6);
  std::int64_t const blocks = std::int64_t{plan.windows()} * plan.chunks;
  std::int64_t const full = (blocks - 1) / device.multiprocessors;
  double const rest = static_cast<double>(blocks - full * device.multiprocessors) / device.multiprocessors;
  double const turns = static_cast<double>(full) + std::clamp(rest + 0.05, 0.92, 1.0);
  return turns * (plan.chunk_planes + 2 * shape.steps) * plane;
}
inline double cost_of(PlanesPlan const& plan, StencilKernel const& kernel, StencilDevice const& device) {
  return (pass_of(plan, kernel, device) + 1.5e-6) / plan.shape.steps * (plan.even ? 1 : 1.5);
}
/// The same windows, with the number of chunks whose pass ends first.
inline PlanesPlan in_best_chunks(PlanesPlan plan, std::int64_t planes, StencilKernel const& kernel,
                                 StencilDevice const& device) {
  std::int64_t const most = std::max<std::int64_t>(1, planes / (2 * plan.shape.steps));
  std::optional<PlanesPlan> best;
  for (int chunks = 1; chunks <= most; ++chunks) {
    plan.chunks = chunks;
    plan.deal_out(planes);
    if (!best || pass_of(plan, kernel, device) < pass_of(*best, kernel, device)) best = plan;
  }
  return *best;
}
inline double cost_of_plain(RunKind run, StencilKernel const& kernel, Grid const& grid,
                            StencilDevice const& device) {
  double const bytes = static_cast<double>(grid.extent[0]) * static_cast<double>(grid.extent[1]) *
                       static_cast<double>(grid.extent[2]) * static_cast<double>(kernel.value_bytes) *
                       (2 * kernel.fields + kernel.coefficients);
  double const a_second = (bytes < 40e6 ? 5e12 : 3.5e12) * device.multiprocessors / whole_gpu;
  double const start = run == RunKind::stream ? 2.6e-6 : run == RunKind::graph ? 1.6e-6 : 2.2e-6;
  return start + bytes / a_second * (run == RunKind::persistent ? 1.2 : 1);
}

/// Of several parts: seconds of an exchange of halos beside what a step costs anyway.
inline double cost_of_halos(RunKind run, StencilKernel const& kernel, Grid const& grid, double rows) {
  double const bytes = 2 * rows * static_cast<double>(grid.extent[1] * grid.extent[2]) *
                       static_cast<double>(kernel.value_bytes) * kernel.fields;
  double const start = run == RunKind::stream ? 12e-6 : run == RunKind::graph ? 6e-6 : 5e-6;
  return start + bytes / 200e9;
}

}  // namespace hostless::gpu
