// Equal plan, equal bits: the plans of tests/contract solved on a GPU, in every layout there, against the
// host run that is the reference there. HOSTLESS_FULL_PRODUCT chooses all cells instead of a cover of all
// pairs.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "gpu_place.hpp"
#include "solve_contract_check.hpp"

namespace hostless::test {
namespace {

using contract::Outcome;
using contract::Plan;

constexpr std::array<char const*, 5> formats = {"auto", "diagonals", "diagonals-full", "sell", "csr"};

struct GpuCell {
  Plan plan;
  RunKind run;
  std::string format;
  MatrixOptions matrix() const {
    MatrixOptions options = contract::matrix_options({plan, {0, 0, 1}});
    options.gpus = 1;
    options.gpu_format = options.row_lanes > 1 && format != "auto" ? "csr" : format;
    return options;
  }
  SolveOptions solve() const {
    SolveOptions options = contract::solve_options({plan, {0, 0, 1}}, {});
    options.run.gpus = 1;
    options.run.kind = run;
    return options;
  }
};
std::string name(GpuCell const& cell) {
  return contract::name(cell.plan) + " | GPU " + hostless::name(cell.run) + " " + cell.format;
}

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
  std::map<Plan, Outcome> references;
  int solved = 0, converged = 0, differ = 0;
  std::map<std::string, int> by_format;
  run_with_threads_transport(1, [&](Transport& transport) {
    for (GpuCell const& cell : cells()) {
      if (references.count(cell.plan) == 0) references[cell.plan] = contract::reference(cell.plan, 1);
      Matrix const matrix = contract::make_matrix(transport, cell.plan, cell.matrix());
      Outcome const expected = contract::share_of(references[cell.plan], matrix);
      Solver solver(matrix, cell.solve());
      for (char const* which : {"the first solve", "the second solve"}) {
        std::string const found = contract::solve(matrix, solver).difference(expected);
        EXPECT_EQ(found, "") << name(cell) << ", " << which;
        differ += found.empty() ? 0 : 1;
      }
      ++solved;
      ++by_format[cell.format];
      converged += expected.status == Status::converged ? 1 : 0;
    }
  });
  std::printf(
      "GPU contract: %d cells, %d solves, %d differ; %d cells converge, the others end at the iteration "
      "limit\n",
      solved, 2 * solved, differ, converged);
  EXPECT_GT(converged, 0);
  EXPECT_LT(converged, solved) << "all cells end the same way: choose another tolerance or limit";
  EXPECT_EQ(by_format.size(), formats.size()) << "a layout was never solved with";
}

}  // namespace
}  // namespace hostless::test
