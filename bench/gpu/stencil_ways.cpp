// Microseconds a step of named stencils on one GPU, by GpuStencilRun: every way that fits, and the one that
// it chooses itself.
//   stencil_ways STENCIL AXES fp32|fp64 SIZE [SECONDS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/gpu_stencil.hpp"

namespace hostless {
namespace {

struct Wanted {
  StencilKernel kernel;
  Grid grid;
  double seconds;  // of each measurement, about
};

/// The best of three, each after a first one that tells how many steps are enough.
void measure(Wanted const& wanted, std::vector<std::byte>& cells, GpuStencilOptions const& options) {
  auto const bytes = static_cast<std::int64_t>(wanted.kernel.value_bytes);
  auto const& n = wanted.grid.extent;
  CellArray const array{cells.data(), {n[1] * n[2] * bytes, n[2] * bytes, bytes}};
  try {
    GpuStencilRun run(wanted.grid, wanted.kernel, options);
    for (int f = 0; f < wanted.kernel.fields; ++f) run.give(f, array);
    std::int64_t steps = 240;
    double best = 1e30;
    for (int repeat = 0; repeat < 4; ++repeat) {
      StencilResult const result = run.run(steps);
      if (result.status != StencilStatus::steps_done) {
        std::printf("%s: %s\n", run.describe().c_str(), result.message.c_str());
        return;
      }
      double const a_step = result.run_s / static_cast<double>(steps);
      if (repeat > 0) best = std::min(best, a_step);
      steps = std::clamp(static_cast<std::int64_t>(wanted.seconds / a_step) / 240 * 240, std::int64_t{240},
                         std::int64_t{240'000});
    }
    bool const chosen = options.cells == GpuCells::automatic;
    std::printf("  %9.3f us a step%s: %s\n", best * 1e6, chosen ? ", chosen" : "", run.describe().c_str());
  } catch (Error const& e) {
    std::printf("          - %s\n", e.what());
  }
  std::fflush(stdout);
}

int main_of(int argc, char** argv) {
  if (argc < 5) {
    std::printf("stencil_ways STENCIL AXES fp32|fp64 SIZE [SECONDS]\n");
    return 2;
  }
  Wanted wanted;
  int const axes = std::atoi(argv[2]);
  std::int64_t const size = std::atoll(argv[4]);
  wanted.kernel = make_stencil(argv[1], axes, std::strcmp(argv[3], "fp32") == 0 ? 4 : 8);
  wanted.grid.extent = {size, axes == 3 ? size : 1, size};
  wanted.seconds = argc > 5 ? std::atof(argv[5]) : 0.1;
  std::printf("%s %s %d axes of %lld\n", argv[1], argv[3], axes, static_cast<long long>(size));
  std::vector<std::byte> cells(static_cast<std::size_t>(size * size * (axes == 3 ? size : 1)) *
                               wanted.kernel.value_bytes);
  GpuStencilOptions options;
  measure(wanted, cells, options);
  for (RunKind const run : {RunKind::stream, RunKind::graph, RunKind::persistent}) {
    options = {};
    options.run = run;
    options.cells = GpuCells::plain;
    measure(wanted, cells, options);
  }
  options = {};
  options.cells = GpuCells::streamed;
  measure(wanted, cells, options);
  for (int const depth : {2, 4, 8, 12, 16}) {
    if (axes == 3) break;
    options = {};
    options.cells = GpuCells::resident;
    options.depth = depth;
    measure(wanted, cells, options);
  }
  return 0;
}

}  // namespace
}  // namespace hostless

int main(int argc, char** argv) {
  try {
    return hostless::main_of(argc, argv);
  } catch (hostless::Error const& e) {
    std::printf("%s\n", e.what());
    return e.exit_code();
  }
}
