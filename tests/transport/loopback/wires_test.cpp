// That the messages of the loopback transport come late, in another order, and some of them after their
// sources have been let go: what its use in the contracts rests on.
#include "wires.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace hostless::loopback {
namespace {

constexpr int messages = 64;

struct Seen {
  std::vector<int> order;  // in which they were told as received
  int polls = 0;           // until all were
  int let_go_early = 0;    // sources that were told as sent while nothing awaited them
};

// One rank that sends itself messages, in the order of their numbers.
Seen look(unsigned seed) {
  Wires wires(1, seed);
  std::vector<double> from(messages), to(messages, -1.0);
  std::vector<Wires::Message*> all;
  for (int k = 0; k < messages; ++k) all.push_back(&wires.message(0, 0, k, sizeof(double)));
  auto const at = [](std::vector<double>& of, int k) { return reinterpret_cast<std::byte*>(&of[k]); };
  Seen seen;
  for (int k = 0; k < messages; ++k) {
    from[k] = k;
    EXPECT_TRUE(wires.offer(*all[k], at(from, k), 1));
  }
  for (int poll = 0; poll < 1000; ++poll)
    for (int k = 0; k < messages; ++k)
      if (from[k] >= 0 && wires.sent(*all[k])) from[k] = -2.0, ++seen.let_go_early;
  for (int k = 0; k < messages; ++k) EXPECT_TRUE(wires.await(*all[k], at(to, k), 1));
  std::vector<bool> told(messages, false);
  while (static_cast<int>(seen.order.size()) < messages && seen.polls < 100000) {
    for (int k = 0; k < messages; ++k) {
      ++seen.polls;
      if (told[k] || !wires.received(*all[k])) continue;
      told[k] = true;
      seen.order.push_back(k);
      EXPECT_EQ(to[k], k);
    }
  }
  return seen;
}

TEST(Loopback, MessagesComeLateAndInAnotherOrder) {
  Seen const seen = look(1);
  ASSERT_EQ(seen.order.size(), static_cast<std::size_t>(messages));
  EXPECT_FALSE(std::is_sorted(seen.order.begin(), seen.order.end()));
  EXPECT_GT(seen.polls, 2 * messages);
  EXPECT_GT(seen.let_go_early, messages / 4);
  EXPECT_LT(seen.let_go_early, 3 * messages / 4);
}

TEST(Loopback, TheSeedSaysInWhichOrder) {
  EXPECT_EQ(look(1).order, look(1).order);
  EXPECT_NE(look(1).order, look(2).order);
}

TEST(Loopback, WhatWasNotTakenIsReadWhenItIs) {
  int late = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    Wires wires(1, seed);
    double from = 1, to = 0;
    Wires::Message& m = wires.message(0, 0, 0, sizeof from);
    wires.offer(m, reinterpret_cast<std::byte*>(&from), 1);
    from = 2;  // against the contract
    wires.await(m, reinterpret_cast<std::byte*>(&to), 1);
    while (!wires.received(m)) {
    }
    late += to == 2 ? 1 : 0;
  }
  EXPECT_EQ(late, 20);
}

TEST(Loopback, AMessageWithoutBytesComesAsOften) {
  Wires wires(1, 1);
  Wires::Message& m = wires.message(0, 0, 0, 0);
  int come = 0;
  for (std::uint32_t epoch = 1; epoch <= 50; ++epoch) {
    wires.offer(m, nullptr, epoch);
    wires.await(m, nullptr, epoch);
    bool sent = false, received = false;
    for (int poll = 0; poll < 1000 && !(sent && received); ++poll) {
      sent = sent || wires.sent(m);
      received = received || wires.received(m);
    }
    come += sent && received ? 1 : 0;
  }
  EXPECT_EQ(come, 50);
}

TEST(Loopback, WhatIsWithdrawnMovesNothing) {
  Wires wires(1, 1);
  double from = 1, to = 0;
  Wires::Message& m = wires.message(0, 0, 0, sizeof from);
  auto const bytes = [](double& d) { return reinterpret_cast<std::byte*>(&d); };
  wires.offer(m, bytes(from), 1);
  EXPECT_FALSE(wires.offer(m, bytes(from), 2)) << "one at a time";
  wires.withdraw(m, true);
  wires.await(m, bytes(to), 1);
  EXPECT_FALSE(wires.await(m, bytes(to), 2)) << "one at a time";
  for (int poll = 0; poll < 1000; ++poll) EXPECT_FALSE(wires.received(m));
  wires.withdraw(m, false);
  wires.offer(m, bytes(from), 3);
  for (int poll = 0; poll < 1000; ++poll) wires.sent(m);
  EXPECT_EQ(to, 0);
}

}  // namespace
}  // namespace hostless::loopback
