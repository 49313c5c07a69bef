#pragma once

#include <cstdint>

namespace hostless {

/// How a solve ended. The numerical endings are the same on every rank.
enum class Status : std::int32_t {
  running,                    ///< not ended
  paused,                     ///< left at an iteration to checkpoint; goes on bit for bit
  converged,                  ///< a true residual |b - A x| met the tolerance; said by nothing else
  iteration_limit,            ///< max_iterations reached
  indefinite_matrix,          ///< p' A p < 0: A is not positive definite
  indefinite_preconditioner,  ///< r' M r <= 0: the preconditioner is not positive definite
  not_finite,                 ///< NaN or infinity in A, b or x0, or overflow: scale the system
  breakdown,                  ///< a divisor is exactly zero: A is singular, or the numbers underflow
  stagnated,                  ///< three restarts in a row did not halve the true residual, it grew from
                              ///< rounding level, or rounding x to fp32 lost what had converged
  diverged,                   ///< the true residual grew beyond SolveOptions::divergence_limit
  peer_lost,                  ///< a rank died or stayed silent past the deadline
  aborted  ///< asked to stop (signal, callback, time limit); x is of the last complete iteration
};

char const* name(Status status);

/// The exit code of the command line: 0 converged, 1 not converged, 4 peer_lost or aborted.
int exit_code(Status status);

}  // namespace hostless
