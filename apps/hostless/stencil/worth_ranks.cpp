#include "stencil/worth_ranks.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/processors.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "stencil/plan_steps.hpp"

namespace hostless {

namespace {

bool are_threads(RankOptions const& ranks) {
  return ranks.transport == "threads" || (ranks.transport.empty() && !started_by_mpi());
}

}  // namespace

void take_ranks_along(RankOptions& ranks, DealtOptions const& dealt) {
  bool const starts_them = are_threads(ranks) || ranks.transport == "processes";
  if (ranks.ranks > 0 || !starts_them || dealt.ranks_along.empty()) return;
  std::int64_t product = 1;
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  for (int const along : dealt.ranks_along) product = std::min(product * along, most);
  ranks.ranks = static_cast<int>(product);
}

void settle_ranks(RankOptions& ranks, GridWords const& grid, DealtOptions const& dealt,
                  std::vector<std::int64_t> const& shape, std::size_t value_bytes, std::int64_t steps) {
  if (ranks.ranks > 0 || !are_threads(ranks) || !dealt.ranks_along.empty()) return;
  int const most = processors_of_rank(1, true), axes = static_cast<int>(shape.size());
  ranks.ranks =
      ranks_worth(grid.grid(shape), grid.kernel(axes, value_bytes), std::max(dealt.depth, dealt.block_steps),
                  steps, most, axes == 3 && most > 1 ? measure_handshake() : 0);
}

}  // namespace hostless
