// Sums that a library or the host has gathered between GPUs, added by the kernel's function: the bits of a
// sum over ranks on the processor.
#include "run/gpu/gathered.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless::gpu {
namespace {

// Another order of additions has other bits.
double part(int rank, int k) { return (1 + 0.37 * rank) / (3 * rank + 7.0 + k) * (k == 1 ? -1 : 1); }

std::vector<double> on_the_processor(int ranks, int sums) {
  std::vector<double> totals(static_cast<std::size_t>(sums));
  auto const plans = make_plans(
      Route::direct, std::vector<Pattern>(static_cast<std::size_t>(ranks), Pattern{0, {}, {0}, {}}),
      NodeMap::blocks(ranks, ranks));
  run_with_threads_transport(ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    double nothing = 0;
    Exchange exchange(transport, plans[static_cast<std::size_t>(rank)], &nothing, Reduction::ordered,
                      {60, 60});
    std::vector<double> mine, all(totals.size());
    for (int k = 0; k < sums; ++k) mine.push_back(part(rank, k));
    exchange.begin_sum(mine);
    ASSERT_TRUE(exchange.finish_sum(all));
    if (rank == ranks - 1) totals = all;
  });
  return totals;
}

std::vector<double> said(int ranks, int sums, int stopping) {
  std::vector<double> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(rank == stopping ? 1 : 0);
    for (int k = 0; k < sums; ++k) all.push_back(part(rank, k));
  }
  return all;
}

TEST(GatheredSums, HaveTheBitsOfTheProcessor) {
  int other_orders = 0;
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    for (int sums = 1; sums < widest_sum; ++sums) {
      auto const expected = on_the_processor(ranks, sums);
      auto const all = said(ranks, sums, -1);
      for (int k = 0; k < sums; ++k) {
        EXPECT_EQ(sum_of_ranks(all.data(), ranks, sums, k), expected[static_cast<std::size_t>(k)])
            << "sum " << k << " of " << ranks << " ranks";
        double in_turn = 0;
        for (int rank = 0; rank < ranks; ++rank) in_turn += part(rank, k);
        other_orders += in_turn != expected[static_cast<std::size_t>(k)] ? 1 : 0;
      }
    }
  }
  EXPECT_GT(other_orders, 0) << "numbers whose order does not matter show nothing";
}

TEST(GatheredSums, AnOrderOfAnyRankIsSeen) {
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    EXPECT_FALSE(any_stops(said(ranks, 2, -1).data(), ranks, 2));
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_TRUE(any_stops(said(ranks, 2, rank).data(), ranks, 2)) << "rank " << rank << " of " << ranks;
  }
}

}  // namespace
}  // namespace hostless::gpu
