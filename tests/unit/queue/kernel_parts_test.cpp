// Which messages kernels have: all of them, in order, no wait before the last start, and a kernel less than by turns.
#include "queue/gpu/kernel_parts.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace hostless::gpu {
namespace {

TEST(QueueKernelParts, TheLastThatStartsIsTheFirstThatWaits) {
  for (std::size_t const starts : {0, 1, 23, 24, 25, 26, 48, 49, 52, 72, 73})
    for (std::size_t const waits : {0, 1, 24, 25, 52, 72, 73}) {
      std::vector<int> ends(starts + waits), started, awaited;
      std::iota(ends.begin(), ends.end(), 0);
      std::span<int const> const all(ends);
      std::size_t kernels = 0;
      launch_kernels(all.first(starts), all.last(waits), [&](auto const& first, auto const& then) {
        ++kernels;
        EXPECT_LE(std::max(first.size(), then.size()), 24u);
        EXPECT_FALSE(first.empty() && then.empty());
        started.insert(started.end(), first.begin(), first.end());
        awaited.insert(awaited.end(), then.begin(), then.end());
        EXPECT_TRUE(then.empty() || started.size() == starts);
      });
      std::size_t const by_turns = (starts + 23) / 24 + (waits + 23) / 24;
      EXPECT_EQ(kernels, by_turns - (starts > 0 && waits > 0 ? 1 : 0)) << starts << " and " << waits;
      started.insert(started.end(), awaited.begin(), awaited.end());
      EXPECT_EQ(started, ends);
    }
}

}  // namespace
}  // namespace hostless::gpu
