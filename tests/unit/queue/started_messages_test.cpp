#include "queue/started_messages.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "hostless/base/wait.hpp"

namespace hostless {
namespace {

// Threads that start at once on one communicator never have more under way than there may be.
TEST(StartedMessages, OfSeveralThreadsAreCountedTogether) {
  constexpr std::size_t most = 5;
  constexpr int tries = 2'000'000;
  queue::StartedMessages started(most);
  std::atomic<std::size_t> worst{0};
  std::atomic<int> here{0};
  auto const start_and_end = [&](std::size_t messages) {
    ++here;
    while (here.load() < 4) Backoff::give_core_away();  // else the first has ended when the last begins
    for (int k = 0; k < tries; ++k) {
      if (!started.add(messages)) continue;
      std::size_t const now = started.now();
      for (std::size_t before = worst.load(); now > before && !worst.compare_exchange_weak(before, now);) {
      }
      started.remove(messages);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t const messages : {3, 2, 4, 3}) threads.emplace_back(start_and_end, messages);
  for (std::thread& one : threads) one.join();
  EXPECT_LE(worst.load(), most);
  EXPECT_GE(worst.load(), 4u);
  EXPECT_EQ(started.now(), 0u);
  EXPECT_FALSE(started.add(most + 1));
  EXPECT_TRUE(started.add(most));
  EXPECT_FALSE(started.add(1));
}

}  // namespace
}  // namespace hostless
