#pragma once
// Which of several right-hand sides tells how far a run is, and how far all of them are.

#include <cstdint>

#include "hostless/run/state.hpp"

namespace hostless {

/// The first that goes on; behind the end the one that went on longest. -1: none has begun.
HOSTLESS_HOST_DEVICE int told_column(State const* columns, int count) {
  int told = -1;
  for (int c = 0; c < count; ++c) {
    if (!columns[c].begun) continue;
    if (columns[c].status == Status::running) return c;
    if (told < 0 || columns[c].iteration > columns[told].iteration) told = c;
  }
  return told;
}

/// Of all: those that go on make their iterations together, and none that has ended is ahead of them.
HOSTLESS_HOST_DEVICE std::int64_t furthest_iteration(State const* columns, int count) {
  std::int64_t furthest = columns[0].iteration;
  for (int c = 1; c < count; ++c)
    if (columns[c].iteration > furthest) furthest = columns[c].iteration;
  return furthest;
}

}  // namespace hostless
