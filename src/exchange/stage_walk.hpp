#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exchange/lowering.hpp"

namespace hostless {

/// The one routine that walks the stages of a plan on the host: a stage begins when those it comes after are
/// done, packs, sends, and is done when all it awaits is unpacked. Polls and never blocks.
class StageWalk {
 public:
  explicit StageWalk(LoweredPlan plan);
  void start(Endpoint& endpoint);
  /// True when all stages are done and all messages have left.
  bool advance(Endpoint& endpoint);
  /// Errors  usage  a stage that the plan has not
  bool done(StageId stage) const {
    auto const id = static_cast<std::size_t>(stage);  // too large where it is negative
    int const position = id < plan_.position_of_stage.size() ? plan_.position_of_stage[id] : -1;
    if (position < 0) refuse(stage);
    return phase_[static_cast<std::size_t>(position)] == Phase::done;
  }

 private:
  enum class Phase : std::uint8_t { waiting, started, done };
  [[noreturn]] static void refuse(StageId stage);
  bool step(Endpoint& endpoint, std::size_t stage);
  bool all_sent(Endpoint& endpoint);

  LoweredPlan plan_;
  std::vector<Phase> phase_;
  std::vector<std::uint8_t> sent_;
  std::uint32_t epoch_ = 0;
};

}  // namespace hostless
