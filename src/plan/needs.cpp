#include "plan/needs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/plan/routes.hpp"
#include "plan/index.hpp"
#include "plan/pieces.hpp"

namespace hostless {
namespace {}  // namespace

std::vector<StageId> ghost_writers(HaloPlan const& plan) {
  std::vector<StageId> stage_of(at(plan.ghosts), -1);
  auto mark = [&](std::int64_t offset, StageId stage) {
    if (offset >= plan.owned) stage_of[at(offset - plan.owned)] = stage;
  };
  auto mark_move = [&](Pieces const& to, StageId stage) {
    if (to.buffer == 0) each_item(to, [&](std::int64_t offset) { mark(offset, stage); });
  };
  for (Stage const& stage : plan.stages) {
    for (Move const& move : stage.pack) mark_move(move.to, stage.id);
    for (Message const& message : stage.in)
      for (std::int64_t k = 0; message.to == 0 && k < message.items; ++k)
        mark(message.to_first + k, stage.id);
    for (Move const& move : stage.unpack) mark_move(move.to, stage.id);
  }
  return stage_of;
}

void set_needs(HaloPlan& plan, Tiling const& tiling, std::span<std::int64_t const> first,
               std::span<std::int32_t const> ghost) {
  std::string problem;
  if (tiling.leaves != plan.tiling.leaves || tiling.block != plan.tiling.block ||
      tiling.slices != plan.tiling.slices || tiling.row_lanes != plan.tiling.row_lanes)
    problem = fmt::format(
        "a tiling of {} leaves of {} rows in {} slices with {} row lanes is not the plan's, {} of {} in {} "
        "with {}",
        tiling.leaves, tiling.block, tiling.slices, tiling.row_lanes, plan.tiling.leaves, plan.tiling.block,
        plan.tiling.slices, plan.tiling.row_lanes);
  else if (first.size() != at(tiling.slices) + 1 || first.front() != 0 ||
           first.back() != static_cast<std::int64_t>(ghost.size()) ||
           !std::is_sorted(first.begin(), first.end()))
    problem =
        fmt::format("{} offsets for {} slices and {} ghosts read", first.size(), tiling.slices, ghost.size());
  std::vector<StageId> const stage_of = ghost_writers(plan);
  for (std::size_t k = 0; problem.empty() && k < ghost.size(); ++k)
    if (ghost[k] < 0 || ghost[k] >= plan.ghosts || stage_of[at(ghost[k])] < 0)
      problem =
          fmt::format("ghost {} is written by no stage of the plan with {} ghosts", ghost[k], plan.ghosts);
  if (!problem.empty())
    throw Error(ErrorCode::usage,
                fmt::format("cannot set what slices wait for: {} (a slice that waits for the wrong "
                            "stage would read old ghosts). Pass the tiling and ghosts of this plan",
                            problem));
  for (std::size_t s = 0; s < plan.needs.size(); ++s) {
    std::set<StageId> stages;
    for (std::int64_t k = first[s]; k < first[s + 1]; ++k) stages.insert(stage_of[at(ghost[at(k)])]);
    plan.needs[s].assign(stages.begin(), stages.end());
  }
}

}  // namespace hostless
