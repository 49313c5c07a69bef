// Which messages kernels have: all of them, in order, no wait before the last start, and a kernel less than by turns.
// And from which memory: every byte of it is lent.
#include "queue/gpu/kernel_parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "queue/gpu/free_blocks.hpp"

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

// A block that needs a piece of its own loses nothing of the piece before it.
TEST(QueueMemory, EveryByteOfAPieceIsLentBeforeAnotherIsAsked) {
  constexpr std::size_t smallest = FreeBlocks::smallest, small = 64 * smallest, large = 128 * smallest;
  static std::array<std::byte, small + large> memory;
  std::byte* const other = memory.data() + small;
  FreeBlocks blocks;
  EXPECT_EQ(blocks.take(smallest), nullptr);
  blocks.add(memory.data(), small);
  EXPECT_EQ(blocks.take(smallest), memory.data());
  EXPECT_EQ(blocks.take(large), nullptr);
  blocks.add(other, large);
  EXPECT_EQ(blocks.take(large), other);
  std::vector<int> lent(small / smallest, 0);
  lent[0] = 1;
  for (std::size_t size = small; size >= smallest; size /= 2)
    while (std::byte* const block = blocks.take(size)) {
      ASSERT_LT(block, other);
      for (std::size_t k = 0; k < size; k += smallest)
        ++lent[(static_cast<std::size_t>(block - memory.data()) + k) / smallest];
    }
  EXPECT_EQ(lent, std::vector<int>(small / smallest, 1));
}
TEST(QueueMemory, WhatIsGivenBackIsLentAgain) {
  std::array<std::byte, FreeBlocks::smallest * 2> memory;
  FreeBlocks blocks;
  blocks.add(memory.data(), memory.size());
  std::size_t const size = FreeBlocks::size_of(FreeBlocks::smallest + 1);
  EXPECT_EQ(size, memory.size());
  EXPECT_EQ(blocks.take(size), memory.data());
  EXPECT_EQ(blocks.take(size), nullptr);
  blocks.give(memory.data(), size);
  EXPECT_EQ(blocks.take(size), memory.data());
}

}  // namespace
}  // namespace hostless::gpu
