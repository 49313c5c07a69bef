#pragma once
// The steps of `hostless stencil`: with looks, checkpoints, and an ear for whoever wants an end.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

struct StepsWanted {
  std::int64_t steps = 0;  ///< counted from the initial fields, also of a run that goes on
  std::int64_t every = 0;  ///< looks at multiples of it, counted so too
  double tolerance = 0;
  double time_limit_s = 0;  ///< 0: none
  std::string checkpoint;
  std::int64_t checkpoint_every = 0;  ///< 0: only in the end
  std::function<void(StencilChange const&)> looked;
};

struct StepsTaken {
  /// Of all steps that were taken; times are those of the slowest rank, where no rank was lost.
  StencilResult result;
  int checkpoints = 0;
  std::optional<Error> unsaved;  ///< why the last checkpoint was not written
  /// A rank was lost before the last step: run_s is the time until that was noticed, the wait for it included.
  bool lost_among_steps = false;
};

/// Collective. Takes steps until so many have been taken, or something ends them; asks all ranks several
/// times a second whether to go on. A checkpoint is written at multiples of `checkpoint_every` and in the
/// end, never of fields that are not finite. One that cannot be written ends nothing: the next may fit, and in
/// the end `unsaved` has the error of the last. Nor is a lost rank an error: StencilStatus::peer_lost
StepsTaken take_steps(Group& group, CellStepper& run, StencilKernel const& kernel, StepsWanted const& wanted);

}  // namespace hostless
