#pragma once
// What every run of a stencil asks of its caller, says of how it ended, and does between.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/stencil/stencil.hpp"

namespace hostless {

/// Errors  usage  steps below 0, a stop that makes no sense
void check_stop(std::int64_t steps, StencilStop const& stop);
/// given: of every array, whether it was
/// Errors  usage  one was not
void check_given(std::vector<char> const& given);
/// Errors  usage  no such array; no such field
void check_array(StencilKernel const& kernel, int array);
void check_field(StencilKernel const& kernel, int field);

/// After a look at the change of a step. asked: to stop.
void judge_change(StencilChange const& change, StencilStop const& stop, bool asked, StencilResult& result);
/// That somebody asked to stop after so many steps since the first run.
void say_asked(std::int64_t step, StencilResult& result);
/// That a field has NaN or infinity after so many steps since the first run.
void say_not_finite(std::int64_t step, StencilResult& result);

/// Steps until all ranks hear next whether somebody asks to stop: about a tenth of a second. Equal on all
/// ranks, for the time is that of the slowest.
class Stretch {
 public:
  /// first: where no time is known; grain: whole passes and exchanges; least: of one pass, where so many
  /// steps take longer than a tenth of a second
  Stretch(std::int64_t first, std::int64_t grain, std::int64_t least)
      : grain_(grain), least_(least), steps_(rounded(first)) {}
  std::int64_t steps() const { return steps_; }
  void took(std::int64_t steps, double slowest_s);

 private:
  std::int64_t rounded(std::int64_t steps) const {
    if (steps >= grain_) return steps - steps % grain_;
    return std::clamp(steps - steps % least_, std::min(least_, most), most);
  }
  static constexpr std::int64_t most = std::int64_t{1} << 40;
  std::int64_t grain_, least_, steps_;
};

/// Steps, looks and endings of a run, whoever steps:
///   ranks()                        that step together
///   longest()                      steps at once, at most
///   first_stretch(), grain(), least()  of Stretch
///   advance(count, looks, taken)   takes them, the last so that its change can be asked for; how many were
///                                  taken
///   look(change), all_finite(yes)  of the last step; of the cells
///   wish_to_stop()                 somebody asks to stop
///   hear(asked, seconds)           whether anybody of all has; the largest number of seconds of all
///   steps                          since the cells were given
///   lost(result)                   says that somebody is lost
/// advance, look, all_finite and hear are false where somebody is.
template <class Stepper>
void step_and_look(Stepper& stepper, std::int64_t steps, StencilStop const& stop, StencilResult& result) {
  bool const by_time = stepper.ranks() > 1 || stop.stop_requested;  // other ranks may have one
  Stretch stretch(stepper.first_stretch(), stepper.grain(), stepper.least());
  std::int64_t heard_after = 0;
  auto heard = Clock::now();
  bool is_known = false;  // that the cells are finite
  while (result.status == StencilStatus::steps_done && result.steps < steps) {
    std::int64_t const left = steps - result.steps;
    std::int64_t const until_look = stop.every > 0 ? stop.every - stepper.steps % stop.every : left + 1;
    std::int64_t const until_heard = by_time ? heard_after + stretch.steps() - result.steps : left + 1;
    std::int64_t const count = std::min({stepper.longest(), left, until_look, until_heard});
    bool const looks = count == until_look;
    std::int64_t taken = 0;
    bool const whole = stepper.advance(count, looks, taken);
    result.steps += taken;
    if (!whole) return stepper.lost(result);
    is_known = false;
    if (!looks && (count < until_heard || count == left)) continue;
    if (stop.stop_requested && stop.stop_requested()) stepper.wish_to_stop();
    StencilChange change;
    if (looks) {
      if (!stepper.look(change)) return stepper.lost(result);
      if (stop.observer && stop.observer(change)) stepper.wish_to_stop();
      result.history.push_back(change);
    }
    bool asked = false;
    double slowest_s = std::chrono::duration<double>(Clock::now() - heard).count();
    if (!stepper.hear(asked, slowest_s)) return stepper.lost(result);
    stretch.took(result.steps - heard_after, slowest_s);
    heard_after = result.steps, heard = Clock::now();
    if (looks) {
      judge_change(change, stop, asked, result);
      is_known = true;
    } else if (asked) {
      say_asked(stepper.steps, result);
    }
  }
  bool finite = result.status != StencilStatus::not_finite;
  if (!is_known && !stepper.all_finite(finite)) return stepper.lost(result);
  if (!finite) say_not_finite(stepper.steps, result);
}

}  // namespace hostless
