// Equal plan, equal bits: the plans of tests/contract solved on a GPU, in every layout there, against the
// host run that is the reference there. HOSTLESS_FULL_PRODUCT chooses all cells instead of a cover of all
// pairs.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "gpu_cells.hpp"

namespace hostless::test {
namespace {

constexpr std::array<char const*, 5> formats = {"auto", "diagonals", "diagonals-full", "sell", "csr"};

std::vector<GpuCell> cells() {
  contract::Point sizes = contract::plan_sizes();
  sizes.push_back(static_cast<int>(formats.size()));
  sizes.push_back(static_cast<int>(gpu_runs().size()));
  bool const full = std::getenv("HOSTLESS_FULL_PRODUCT") != nullptr;
  std::vector<GpuCell> all;
  for (auto const& p :
       full ? contract::all_points(sizes, {0, 1, 2, 3, 4, 5, 6}) : contract::cover_pairs(sizes))
    all.push_back({contract::plan_at(p), gpu_runs()[static_cast<std::size_t>(p[6])],
                   formats[static_cast<std::size_t>(p[5])]});
  return all;
}

class GpuContract : public Gpu {};

TEST_F(GpuContract, EqualPlansGiveEqualBits) {
  std::vector<GpuCell> const all = cells();
  std::set<std::string> seen;
  for (GpuCell const& cell : all) seen.insert(cell.format);
  GpuFindings found;
  solve_cells(1, all, found);
  std::printf(
      "GPU contract: %d cells, %d solves, %d differ; %d cells converge, the others end at the iteration "
      "limit\n",
      found.solved, 2 * found.solved, found.differ.load(), found.converged);
  EXPECT_GT(found.converged, 0);
  EXPECT_LT(found.converged, found.solved) << "all cells end the same way: choose another tolerance or limit";
  EXPECT_EQ(seen.size(), formats.size()) << "a layout was never solved with";
}

}  // namespace
}  // namespace hostless::test
