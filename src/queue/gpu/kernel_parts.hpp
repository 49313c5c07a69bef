#pragma once
// Which messages kernels of a stream have.

#include <algorithm>
#include <cstddef>
#include <span>

namespace hostless::gpu {

/// As many as fit into a kernel's parameters, and a few, which are copied faster.
constexpr int most_ends = 24, few_ends = 4;

/// Calls launch(starts, waits) for each kernel, of at most most_ends each: the last that starts is the first that
/// waits, a launch less than for both by themselves. All starts come before the first waits or beside them, so what
/// others wait for has left.
template <class End, class Launch>
void launch_kernels(std::span<End> starts, std::span<End> waits, Launch const& launch) {
  constexpr std::size_t most = most_ends;
  while (!starts.empty() || !waits.empty()) {
    auto const first = starts.first(std::min(most, starts.size()));
    bool const is_last = first.size() == starts.size();
    auto const then = waits.first(is_last ? std::min(most, waits.size()) : 0);
    launch(first, then);
    starts = starts.subspan(first.size()), waits = waits.subspan(then.size());
  }
}

}  // namespace hostless::gpu
