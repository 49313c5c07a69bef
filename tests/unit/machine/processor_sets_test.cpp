#include "hostless/machine/processor_sets.hpp"

#include <gtest/gtest.h>
#include <sched.h>

namespace hostless {
namespace {

ProcessorSet processors(std::size_t first, std::size_t count) {
  ProcessorSet set;
  for (std::size_t k = first; k < first + count; ++k) set.set(k);
  return set;
}

std::vector<int> threads(std::vector<ProcessorSet> const& sets) { return threads_on_all_processors(sets); }

using Threads = std::vector<int>;

TEST(ProcessorSets, RanksThatShareAllShareEvenly) {
  EXPECT_EQ(threads({processors(0, 64), processors(0, 64)}), (Threads{32, 32}));
  EXPECT_EQ(threads({processors(0, 64), processors(0, 64), processors(0, 64)}), (Threads{22, 21, 21}));
  EXPECT_EQ(threads({processors(0, 64)}), (Threads{64}));
}

// As `mpirun --bind-to core` and `--bind-to socket` start them.
TEST(ProcessorSets, BoundRanksTakeAllOfTheirs) {
  std::vector<ProcessorSet> cores;
  for (std::size_t k = 0; k < 56; ++k) cores.push_back(processors(2 * k, 2));
  EXPECT_EQ(threads(cores), Threads(56, 2));
  EXPECT_EQ(threads({processors(0, 32), processors(32, 32), processors(0, 32), processors(32, 32)}),
            Threads(4, 16));
}

TEST(ProcessorSets, NoneIsIdleAndNoneHasTwo) {
  // What only one may use is that rank's; of the others whoever has fewer gets more.
  EXPECT_EQ(threads({processors(0, 2), processors(0, 1)}), (Threads{1, 1}));
  EXPECT_EQ(threads({processors(0, 8), processors(6, 4)}), (Threads{6, 4}));
  EXPECT_EQ(threads({processors(0, 8), processors(4, 8), processors(4, 4)}), (Threads{4, 4, 4}));
  EXPECT_EQ(threads({processors(4000, 96), processors(0, 8)}), (Threads{96, 8}));
}

TEST(ProcessorSets, EveryRankStartsOne) {
  EXPECT_EQ(threads({processors(5, 1), processors(5, 1), processors(5, 1)}), (Threads{1, 1, 1}));
  EXPECT_EQ(threads({ProcessorSet(), processors(0, 4)}), (Threads{1, 4}));  // of whom nothing is known
  EXPECT_EQ(threads({}), Threads());
}

TEST(ProcessorSets, OfAThreadAreThoseOfTheSystem) {
  cpu_set_t mask, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  ProcessorSet const all = processors_of_thread();
  EXPECT_EQ(all.count(), static_cast<std::size_t>(CPU_COUNT(&mask)));
  std::size_t last = 0;
  for (std::size_t k = 0; k < CPU_SETSIZE; ++k) {
    EXPECT_EQ(all[k], CPU_ISSET(k, &mask) != 0) << k;
    if (all[k]) last = k;
  }
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  ProcessorSet const bound = processors_of_thread();
  ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
  EXPECT_EQ(bound, processors(last, 1));
}

}  // namespace
}  // namespace hostless
