#include "stencil/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "hostless/base/error.hpp"
#include "hostless/stencil/checkpoint.hpp"
#include "signals.hpp"

namespace hostless {
namespace {

std::int64_t multiple_after(std::int64_t at, std::int64_t of) { return (at / of + 1) * of; }

class Steps {
 public:
  Steps(Group& group, CellStepper& run, StencilKernel const& kernel, StepsWanted const& wanted)
      : group_(group), run_(run), kernel_(kernel), wanted_(wanted) {}

  void take() {
    StencilResult& all = taken_.result;
    std::int64_t saved = -1;
    while (all.status == StencilStatus::steps_done && run_.steps() < wanted_.steps) {
      std::int64_t end = wanted_.steps;
      if (wanted_.checkpoint_every > 0)
        end = std::min(end, multiple_after(run_.steps(), wanted_.checkpoint_every));
      step(end - run_.steps());
      bool const is_between = all.status == StencilStatus::steps_done && run_.steps() < wanted_.steps;
      if (all.status == StencilStatus::aborted || is_between) ask();
      bool const due = wanted_.checkpoint_every > 0 && run_.steps() % wanted_.checkpoint_every == 0;
      if (due && can_be_saved()) save(saved);
    }
    if (!wanted_.checkpoint.empty() && can_be_saved()) save(saved);
  }
  StepsTaken& taken() { return taken_; }
  /// Since the beginning.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  bool can_be_saved() const {
    StencilStatus const status = taken_.result.status;
    return status != StencilStatus::not_finite && status != StencilStatus::peer_lost;
  }

  void step(std::int64_t steps) {
    StencilResult& all = taken_.result;
    StencilStop stop;
    stop.every = wanted_.every;
    stop.tolerance = wanted_.tolerance;
    stop.observer = [&](StencilChange const& change) {
      if (wanted_.looked) wanted_.looked(change);
      return false;
    };
    stop.stop_requested = [&] { return reason() != none; };
    StencilResult const some = run_.run(steps, stop);
    all.status = some.status;
    all.message = some.message;
    all.steps += some.steps;
    all.history.insert(all.history.end(), some.history.begin(), some.history.end());
    if (all.status == StencilStatus::peer_lost) {  // nobody knows the slowest rank's any more
      all.exchange_s += some.exchange_s;
      return;
    }
    struct Times {
      double run_s, exchange_s;
      bool operator>(Times const& other) const { return run_s > other.run_s; }
    };
    Times const slowest = group_.max(Times{some.run_s, some.exchange_s});
    all.run_s += slowest.run_s;
    all.exchange_s += slowest.exchange_s;
  }

  // Of several that ranks have the last one is told.
  static constexpr int none = 0, late = -1;
  static constexpr std::array reasons{none, late, SIGXCPU, SIGHUP, SIGTERM, SIGINT};

  /// This rank's.
  int reason() const {
    if (int const number = asked_to_end(); number != none) return number;
    bool const is_late = wanted_.time_limit_s > 0 && seconds() > wanted_.time_limit_s;
    return is_late ? late : none;
  }

  /// Whether and why to end, of all ranks.
  void ask() {
    auto const mine = std::find(reasons.begin(), reasons.end(), reason()) - reasons.begin();
    int const why = reasons.at(static_cast<std::size_t>(group_.max(mine)));
    if (why == none) return;
    taken_.result.status = StencilStatus::aborted;
    taken_.result.message = why == late
                                ? fmt::format("the time limit of {} s was reached.", wanted_.time_limit_s)
                                : fmt::format("{}.", words_of_end(why));
  }

  void save(std::int64_t& saved) {
    if (saved == run_.steps()) return;
    saved = run_.steps();
    try {
      write_stencil_checkpoint(group_, wanted_.checkpoint, run_, kernel_);
      ++taken_.checkpoints;
      taken_.unsaved.reset();
    } catch (Error const& e) {
      if (e.code() == ErrorCode::peer_lost) throw;
      taken_.unsaved.emplace(e);
    }
  }

  Group& group_;
  CellStepper& run_;
  StencilKernel const& kernel_;
  StepsWanted const& wanted_;
  StepsTaken taken_;
  Clock::time_point const begun_ = Clock::now();
};

}  // namespace

StepsTaken take_steps(Group& group, CellStepper& run, StencilKernel const& kernel,
                      StepsWanted const& wanted) {
  Steps steps(group, run, kernel, wanted);
  try {
    steps.take();
  } catch (Error const& e) {
    if (e.code() != ErrorCode::peer_lost) throw;
    steps.taken().result.status = StencilStatus::peer_lost;
    steps.taken().result.message = e.what();
  }
  if (steps.taken().result.status == StencilStatus::peer_lost) {
    steps.taken().lost_among_steps = true;
    steps.taken().result.run_s = steps.seconds();
  }
  return std::move(steps.taken());
}

}  // namespace hostless
