#pragma once
// Sums of several ranks where something else than their kernels carries the parts.

#include "hostless/base/anywhere.hpp"
#include "hostless/base/order.hpp"
#include "run/gpu/launch.hpp"

namespace hostless::gpu {

/// What a rank says at a meeting: its order to stop (0 or not), then its part of every sum.
HOSTLESS_ANYWHERE int said_width(int sums) { return sums + 1; }

/// Sum k of what all ranks have said, rank after rank: the tree of decision 0001 goes on over the ranks, the
/// missing ones are zeros. At most most_ranks.
HOSTLESS_ANYWHERE double sum_of_ranks(double const* all, int ranks, int sums, int k) {
  double values[most_ranks] = {};
  for (int rank = 0; rank < ranks; ++rank) values[rank] = all[rank * said_width(sums) + 1 + k];
  return tree(values, power_of_two(ranks));
}

/// Whether any of them has been told to stop: all see it at the same sum.
HOSTLESS_ANYWHERE bool any_stops(double const* all, int ranks, int sums) {
  bool stop = false;
  for (int rank = 0; rank < ranks; ++rank) stop = stop || all[rank * said_width(sums)] != 0;
  return stop;
}

}  // namespace hostless::gpu
