#include "stencil/shared_cells.hpp"

#include "hostless/base/wait.hpp"
#include "stencil/pass.hpp"

namespace hostless {

SharedCells::SharedCells(Grid const& grid, StencilKernel const& kernel,
                         std::array<std::int64_t, 3> const& halo, int ranks)
    : took_(static_cast<std::size_t>(ranks)) {
  Box const all{{0, 0, 0}, grid.extent};
  std::int64_t const given = given_before(grid, kernel, all);
  for (int f = 0; f < kernel.fields; ++f) {
    now_.emplace_back(all, halo, kernel.value_bytes, given);
    next_.emplace_back(all, halo, kernel.value_bytes, given);
  }
  for (int c = 0; c < kernel.coefficients; ++c)
    coefficients_.emplace_back(all, halo, kernel.value_bytes, given);
}

std::shared_ptr<SharedCells> SharedCells::of_all(Group& group, Grid const& grid, StencilKernel const& kernel,
                                                 std::array<std::int64_t, 3> const& halo) {
  std::shared_ptr<SharedCells> made;
  group.together([&] {
    if (group.rank() == 0) made.reset(new SharedCells(grid, kernel, halo, group.size()));
  });
  auto const all = group.all_gather(reinterpret_cast<std::uintptr_t>(&made));
  // a thread's of this process
  std::shared_ptr<SharedCells> const found = *reinterpret_cast<std::shared_ptr<SharedCells> const*>(all[0]);
  group.barrier();  // until all have it
  return found;
}

std::vector<GridArray> SharedCells::of_same_cells(std::vector<GridArray> const& arrays) {
  std::vector<GridArray> found;
  for (GridArray const& one : arrays) found.push_back(one.of_same_cells());
  return found;
}

bool SharedCells::await_neighbours(int rank, bool wraps, Exchange& exchange) const {
  int const ranks = static_cast<int>(took_.size()), last = ranks - 1;
  int const below = rank > 0 ? rank - 1 : wraps ? last : rank;
  int const above = rank < last ? rank + 1 : wraps ? 0 : rank;
  std::int64_t const mine = steps_of(rank);
  auto const came = [&] { return steps_of(below) >= mine && steps_of(above) >= mine; };
  // mostly it is a matter of some hundred nanoseconds, for which no clock is asked
  constexpr int looks = 200;
  Backoff between;
  for (int k = 0; k < looks && !came(); ++k) between.pause();
  return exchange.wait(came);
}

}  // namespace hostless
