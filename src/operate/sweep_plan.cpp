#include "hostless/operate/sweep_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/hash.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless {
namespace {

std::size_t index_of(std::int64_t k) { return static_cast<std::size_t>(k); }

void require_tiling(ExchangePlan const& plan, Tiling const& tiling) {
  std::string problem;
  // More slices than any machine has threads, few enough that a list of them is no danger.
  constexpr int most_slices = 1 << 24;
  if (tiling.block < 1)
    problem = fmt::format("tiling.block: {} is not positive", tiling.block);
  else if (tiling.slices < 1 || tiling.slices > most_slices)
    problem = fmt::format("tiling.slices: {} is not in [1, {}]", tiling.slices, most_slices);
  else if (!Tiling::has_threads_per_row(tiling.threads_per_row))
    problem = fmt::format("tiling.row_lanes: {} is no power of two up to {}", tiling.threads_per_row,
                          Tiling::most_threads_per_row);
  else if (tiling.block_rows < 0 || tiling.rows() != plan.owned)
    problem = fmt::format("tiling.leaves: {} leaves of {} rows are not the {} owned rows", tiling.block_rows,
                          tiling.block, plan.owned);
  if (!problem.empty())
    throw Error(ErrorCode::usage,
                fmt::format("{} (a sweep goes over the rows that its rank owns). Pass the tiling of the "
                            "matrix that the plan was made for",
                            problem));
}

}  // namespace

SweepPlan make_sweep(ExchangePlan const& plan, Tiling const& tiling) {
  require_tiling(plan, tiling);
  std::vector<StageId> const stage_of = ghost_writers(plan);
  std::set<StageId> const all(stage_of.begin(), stage_of.end());
  SweepPlan sweep{tiling, {}};
  sweep.needs.assign(index_of(tiling.slices), {all.begin(), all.end()});
  return sweep;
}

SweepPlan make_sweep(ExchangePlan const& plan, Tiling const& tiling, std::span<std::int64_t const> first,
                     std::span<std::int32_t const> ghost) {
  require_tiling(plan, tiling);
  std::string problem;
  if (first.size() != index_of(tiling.slices) + 1 || first.front() != 0 ||
      first.back() != static_cast<std::int64_t>(ghost.size()) || !std::is_sorted(first.begin(), first.end()))
    problem =
        fmt::format("{} offsets for {} slices and {} ghosts read", first.size(), tiling.slices, ghost.size());
  std::vector<StageId> const stage_of = ghost_writers(plan);
  for (std::size_t k = 0; problem.empty() && k < ghost.size(); ++k)
    if (ghost[k] < 0 || ghost[k] >= plan.ghosts || stage_of[index_of(ghost[k])] < 0)
      problem =
          fmt::format("ghost {} is written by no stage of the plan with {} ghosts", ghost[k], plan.ghosts);
  if (!problem.empty())
    throw Error(ErrorCode::usage,
                fmt::format("cannot set what slices wait for: {} (a slice that waits for the wrong "
                            "stage would read old ghosts). Pass the tiling and ghosts of this plan",
                            problem));
  SweepPlan sweep{tiling, {}};
  sweep.needs.resize(index_of(tiling.slices));
  for (std::size_t s = 0; s < sweep.needs.size(); ++s) {
    std::set<StageId> stages;
    for (std::int64_t k = first[s]; k < first[s + 1]; ++k)
      stages.insert(stage_of[index_of(ghost[index_of(k)])]);
    sweep.needs[s].assign(stages.begin(), stages.end());
  }
  return sweep;
}

std::uint64_t fingerprint(ExchangePlan const& plan, SweepPlan const& sweep) {
  Hash hash;
  hash.add(static_cast<std::int64_t>(plan.fingerprint ^ mark_of_devices(plan.nodes)));
  hash.add(sweep.tiling.block);
  hash.add(sweep.tiling.slices);
  hash.add(Tiling::aligned);
  hash.add(sweep.tiling.threads_per_row);
  return hash.value();
}

}  // namespace hostless
