#include "exchange/stage_walk.hpp"

#include <fmt/format.h>

#include <utility>

#include "hostless/base/error.hpp"

namespace hostless {

StageWalk::StageWalk(LoweredPlan plan)
    : plan_(std::move(plan)), phase_(plan_.stages.size(), Phase::done), sent_(plan_.out.size(), 1) {}

void StageWalk::refuse(StageId stage) {
  throw Error(
      ErrorCode::usage,
      fmt::format("the plan has no stage {} (nobody can wait for it). Ask for stages of the plan.", stage));
}

void StageWalk::start(Endpoint& endpoint) {
  ++epoch_;
  for (std::size_t s = 0; s < phase_.size(); ++s) {
    phase_[s] = Phase::waiting;
    for (int const index : plan_.stages[s].in) endpoint.receive(index, epoch_);
  }
}

bool StageWalk::step(Endpoint& endpoint, std::size_t s) {
  LoweredStage const& stage = plan_.stages[s];
  if (phase_[s] == Phase::waiting) {
    for (int const a : stage.after) {
      if (phase_[static_cast<std::size_t>(a)] != Phase::done) return false;
    }
    for (CopyStep const& copy : stage.pack) run(copy);
    for (int const index : stage.out) {
      sent_[static_cast<std::size_t>(index)] = 0;
      endpoint.send(index, epoch_);
    }
    phase_[s] = Phase::started;
  }
  if (phase_[s] == Phase::started) {
    for (int const index : stage.in) {
      if (!endpoint.received(index)) return false;
    }
    for (CopyStep const& copy : stage.unpack) run(copy);
    phase_[s] = Phase::done;
  }
  return true;
}

bool StageWalk::all_sent(Endpoint& endpoint) {
  bool all = true;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (sent_[i] == 0) sent_[i] = endpoint.sent(static_cast<int>(i)) ? 1 : 0;
    all = all && sent_[i] != 0;
  }
  return all;
}

bool StageWalk::advance(Endpoint& endpoint) {
  bool done = true;
  for (std::size_t s = 0; s < phase_.size(); ++s) done = step(endpoint, s) && done;
  return all_sent(endpoint) && done;
}

}  // namespace hostless
