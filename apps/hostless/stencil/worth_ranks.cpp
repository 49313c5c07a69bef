#include "stencil/worth_ranks.hpp"

#include <algorithm>

#include "base/processors.hpp"
#include "hostless/transport/launcher.hpp"
#include "hostless/transport/mpi.hpp"
#include "stencil/plan_steps.hpp"

namespace hostless {

void settle_ranks(RankOptions& ranks, GridWords const& grid, DealtOptions const& dealt,
                  std::vector<std::int64_t> const& shape, std::size_t value_bytes, std::int64_t steps) {
  bool const are_threads = ranks.transport == "threads" || (ranks.transport.empty() && !started_by_mpi());
  if (ranks.ranks > 0 || !are_threads || !dealt.ranks_along.empty()) return;
  ranks.ranks = ranks_worth(grid.grid(shape), grid.kernel(static_cast<int>(shape.size()), value_bytes),
                            std::max(dealt.depth, dealt.block_steps), steps, processors_of_rank(1, true));
}

}  // namespace hostless
