#include "papers_alone.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/device_communication.hpp"

namespace hostless::papers {

bench::HaloTiming const& Alone::halo() {
  if (halo_) return *halo_;
  Group& group = transport_.group();
  auto const source = input_.open(group, nullptr, 0, Symmetry::any);
  PlannedMatrix planned = plan_matrix(group, *source, layout_, true);
  bench::Halo what;
  what.plan = std::move(planned.mine);
  what.patterns = std::move(planned.patterns);
  bench::share_patterns(group, what.patterns);
  halo_ = bench::halo(transport_, what, bench::Protocol{});
  return *halo_;
}

std::vector<double> Alone::of(SolveOptions const& solve) {
  if (transport_.group().size() == 1)
    throw Error(ErrorCode::usage,
                "the communication of one rank (it has nobody to exchange with). Use --ranks 2 or --gpus 2.");
  bool const one_sum = solve.method == Method::pipelined_cg;
  if (solve.run.gpus > 0) {
    if (solve.run.kind != RunKind::persistent)
      throw Error(
          ErrorCode::usage,
          fmt::format("the communication of the {} run alone (its kernels compute between exchanges). "
                      "Use `hostless bench halo --gpu-transport {}`.",
                      name(solve.run.kind), name(solve.run.gpu_transport)));
    gpu::Communication what;
    what.sums = one_sum ? 1 : 2;
    what.values = one_sum ? 3 : 2;
    return bench::device_steps(matrix_, solve.run, what, bench::Protocol{}).by_clock.step_s;
  }
  std::vector<double> seconds = halo().step.step_s;
  if (!one_sum)
    for (std::size_t k = 0; k < seconds.size(); ++k) seconds[k] += halo().sum_alone.step_s[k];
  return seconds;
}

double exposed_s(Group& group, Result const& result) {
  return group.min(result.times.sums_s + result.times.ghosts_s) / static_cast<double>(result.iterations);
}

double overlapped(double exposed, double alone) { return std::clamp(1.0 - exposed / alone, 0.0, 1.0); }

}  // namespace hostless::papers
