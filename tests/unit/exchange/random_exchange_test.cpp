// Exchanges without a solver by plans made up at random, over every transport on the list: all routes, both
// directions, several fields, compared byte for byte with what the numbers of items say. Ranks that are
// processes are this program again, with the number of plans.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "host_ranks.hpp"
#include "random_plans.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

constexpr int ranks = 3;
int plans_on_threads() { return test::of_all(1000, 100); }
int plans_on_processes(HostTransport const& transport) {
  return test::of_all(transport.spins ? 200 : 1000, 100);
}

/// All the plans; what is wrong on this rank.
std::string try_plans(Transport& transport, int plans) {
  std::string text;
  for (int k = 0; k < plans && text.size() < 2000; ++k) {
    text += testing::try_plan(transport, static_cast<unsigned>(k));
    if (transport.group().any(!text.empty())) break;
  }
  return text;
}

class Threads : public ::testing::TestWithParam<test::Ranks> {};
INSTANTIATE_TEST_SUITE_P(RandomExchange, Threads,
                         ::testing::ValuesIn(test::with_ranks(test::names_with_threads(), {1, 2, ranks, 7})),
                         [](auto const& one) { return test::name_of(one.param); });

TEST_P(Threads, EveryByteComes) {
  auto const& [name, count] = GetParam();
  std::mutex guard;
  std::string text;
  test::tested_transport(name).run(count, [&, count = count](Transport& transport) {
    std::string const mine = try_plans(transport, count == ranks ? plans_on_threads() : test::of_all(60, 20));
    std::lock_guard const lock(guard);
    text += mine;
  });
  EXPECT_EQ(text, "");
}

// The oracle sees what is wrong: one byte of one ghost that came from elsewhere.
TEST(RandomExchange, AWrongPlanIsSeen) {
  std::atomic<int> seen{0};
  run_with_threads_transport(ranks, [&](Transport& transport) {
    for (unsigned number = 0; number < 20; ++number) {
      testing::World const world(ranks, number);
      auto patterns = world.patterns(transport.group());
      bool some = false;
      for (Pattern& pattern : patterns)  // two ghosts change places
        if (pattern.position.size() > 1) std::swap(pattern.position[0], pattern.position[1]), some = true;
      testing::Wrong wrong(world);
      testing::exchange_bytes(transport, world, patterns, wrong);
      bool const noticed = transport.group().any(!wrong.text().empty());
      EXPECT_EQ(noticed, some) << number;
      if (noticed && transport.group().rank() == 0) ++seen;
    }
  });
  EXPECT_GT(seen, 5);
}

class Processes : public ::testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(RandomExchange, Processes,
                         ::testing::ValuesIn(test::with_ranks(test::names_with_processes(), {ranks})),
                         [](auto const& one) { return test::name_of(one.param); });

TEST_P(Processes, EveryByteComes) {
  std::string const plans = std::to_string(plans_on_processes(transport()));
  EXPECT_EQ(test::start_again(transport(), ranks, {plans}), 0) << "the lines above say what differs";
}

int as_rank(HostTransport const& wanted, std::vector<std::string> const& words) {
  return test::rank_that_looks(
      wanted, [&](Transport& transport) { return try_plans(transport, std::atoi(words.at(0).c_str())); });
}

}  // namespace
}  // namespace hostless

int main(int count, char** words) { return hostless::test::main_of_ranks(count, words, hostless::as_rank); }
