#pragma once
// Sums over several ranks, whatever brings the parts; and what ranks say where it is not their kernels.

#include "hostless/base/host_device.hpp"
#include "hostless/base/order.hpp"
#include "run/gpu/launch.hpp"

namespace hostless::gpu {

/// What a rank says at a barrier: its order to stop (0 or not), then its part of every sum.
HOSTLESS_HOST_DEVICE int said_width(int sums) { return sums + 1; }

/// The parts of all ranks, part(rank): the tree of decision 0001 goes on over the ranks, the missing ones are
/// zeros. At most most_ranks.
template <class Part>
HOSTLESS_HOST_DEVICE double tree_of_ranks(int ranks, Part const& part) {
  double values[most_ranks] = {};
  for (int rank = 0; rank < ranks; ++rank) values[rank] = part(rank);
  return tree(values, power_of_two(ranks));
}
/// Sum k of what all ranks have said, rank after rank.
HOSTLESS_HOST_DEVICE double sum_of_ranks(double const* all, int ranks, int sums, int k) {
  return tree_of_ranks(ranks, [&](int rank) { return all[rank * said_width(sums) + 1 + k]; });
}

/// Whether any of them has been told to stop: all see it at the same sum.
HOSTLESS_HOST_DEVICE bool any_stops(double const* all, int ranks, int sums) {
  bool stop = false;
  for (int rank = 0; rank < ranks; ++rank) stop = stop || all[rank * said_width(sums)] != 0;
  return stop;
}

}  // namespace hostless::gpu
