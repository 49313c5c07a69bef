#include "hostless/plan/routes.hpp"
#include "plan/index.hpp"
#include "plan/pieces.hpp"

namespace hostless {

std::vector<StageId> ghost_writers(ExchangePlan const& plan) {
  std::vector<StageId> stage_of(at(plan.ghosts), -1);
  auto mark = [&](BufferId buffer, std::int64_t item, StageId stage) {
    if (std::int64_t const ghost = plan.ghost_at(buffer, item); ghost >= 0) stage_of[at(ghost)] = stage;
  };
  auto mark_move = [&](Pieces const& to, StageId stage) {
    if (to.buffer == plan.receive) each_item(to, [&](std::int64_t item) { mark(to.buffer, item, stage); });
  };
  for (Stage const& stage : plan.stages) {
    for (Move const& move : stage.pack) mark_move(move.to, stage.id);
    for (Message const& message : stage.in)
      for (std::int64_t k = 0; message.to == plan.receive && k < message.items; ++k)
        mark(message.to, message.to_first + k, stage.id);
    for (Move const& move : stage.unpack) mark_move(move.to, stage.id);
  }
  return stage_of;
}

}  // namespace hostless
