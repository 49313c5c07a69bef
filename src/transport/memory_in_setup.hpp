#pragma once

#include <new>
#include <stdexcept>

#include "hostless/base/error.hpp"

namespace hostless {

/// What `collective` returns. A rank that has no memory for what the others send it is in step with nobody any more:
/// it calls `leave`, lest they wait for it as long as a set-up may take.
/// Errors  environment  out of memory
template <class Collective, class Leave>
auto within_memory(Collective const& collective, Leave const& leave) {
  try {
    return collective();
  } catch (std::bad_alloc const&) {
    leave();
  } catch (std::length_error const&) {
    leave();
  }
  throw Error(
      ErrorCode::environment,
      "out of memory for what the ranks send each other in set-up (so this one has left them). Use more "
      "ranks or a smaller problem.");
}

}  // namespace hostless
