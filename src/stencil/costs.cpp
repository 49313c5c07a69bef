#include "stencil/costs.hpp"

#include <algorithm>
#include <limits>

#include "hostless/base/error.hpp"
#include "stencil/agreement.hpp"
#include "stencil/halo_exchange.hpp"

namespace hostless {

namespace {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// For exchanges that are repeated because others may have been in their way.
constexpr double patience_s = 2e-2;

/// Rows of zeros, again and again.
double of_a_cell(StencilKernel const& kernel) {
  constexpr std::int64_t rows = 16, cells = 256, edge = 64;
  auto const bytes = static_cast<std::int64_t>(kernel.value_bytes);
  std::int64_t const stride = cells + 2 * edge;
  std::vector<std::byte> old(static_cast<std::size_t>(rows * stride * bytes)), out(old);
  std::vector<void const*> in(static_cast<std::size_t>(kernel.rows_read()), old.data() + edge * bytes);
  std::vector<std::int64_t> const strides(in.size(), stride);
  std::vector<void*> const to(static_cast<std::size_t>(kernel.fields), out.data());
  CellBlock const block{to.data(), in.data(), strides.data(), stride, rows, cells, kernel.parameters.data()};
  double least = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto const begin = Clock::now();
    kernel.update(block);
    least = std::min(least, seconds_since(begin));
  }
  return least / static_cast<double>(rows * cells);
}

/// The same on all ranks.
double of_an_exchange(Transport& transport, BoxPartition const& partition, StencilKernel const& kernel,
                      StencilOptions const& options) {
  std::array<std::int64_t, 3> depth{};
  for (std::size_t a = 0; a < 3; ++a) depth[a] = kernel.radius[a];
  HaloShape const shape{depth, true, 1, kernel.value_bytes};
  ExchangeOptions bound;
  bound.limits = options.limits;
  HaloExchange exchange(transport, partition, shape, options.route, nodes_of(options, partition), bound);
  auto const once = [&] {
    if (!exchange.run({}))
      throw Error(ErrorCode::peer_lost,
                  "a rank left or stayed silent past the deadline (a stencil was being set up). Look at what "
                  "the rank said.");
  };
  once();
  // Two at a time: a rank that began later than its neighbour finds one message there already and waits twice
  // as long for the next, by turns. Two are never shorter than twice what messages take.
  double least = std::numeric_limits<double>::infinity();
  auto const pairs = [&](int count) {
    for (int pair = 0; pair < count; ++pair) {
      auto const begin = Clock::now();
      once(), once();
      least = std::min(least, seconds_since(begin) / 2);
    }
    return transport.group().max(least);
  };
  // Where processors are busy with other work, few exchanges are on time: of short ones many are looked at.
  constexpr int first = 3, most = 50;
  double const longest = pairs(first);
  return pairs(static_cast<int>(std::clamp(patience_s / (2 * longest), 0.0, double{most})));
}

}  // namespace

StencilCosts measure_costs(Transport& transport, BoxPartition const& partition, StencilKernel const& kernel,
                           StencilOptions const& options) {
  StencilCosts costs;
  bool wraps = false;
  for (std::size_t a = 0; a < 3; ++a)
    wraps = wraps || (partition.grid.boundary[a] == GridBoundary::periodic && kernel.radius[a] > 0);
  if (partition.ranks() == 1 && !wraps) return costs;  // nothing is exchanged
  costs.cell = transport.group().max(of_a_cell(kernel));
  costs.exchange = of_an_exchange(transport, partition, kernel, options);
  return costs;
}

}  // namespace hostless
