#include "hostless/base/status.hpp"

namespace hostless {

char const* name(Status status) {
  switch (status) {
    case Status::running:
      return "running";
    case Status::paused:
      return "paused";
    case Status::converged:
      return "converged";
    case Status::iteration_limit:
      return "iteration_limit";
    case Status::indefinite_matrix:
      return "indefinite_matrix";
    case Status::indefinite_preconditioner:
      return "indefinite_preconditioner";
    case Status::not_finite:
      return "not_finite";
    case Status::breakdown:
      return "breakdown";
    case Status::stagnated:
      return "stagnated";
    case Status::diverged:
      return "diverged";
    case Status::peer_lost:
      return "peer_lost";
    case Status::aborted:
      return "aborted";
  }
  return "unknown";
}

int exit_code(Status status) {
  switch (status) {
    case Status::converged:
      return 0;
    case Status::peer_lost:
    case Status::aborted:
      return 4;
    default:
      return 1;
  }
}

}  // namespace hostless
