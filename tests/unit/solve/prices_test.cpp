// What `hostless predict` counts on processors is what solves count.
#include <gtest/gtest.h>

#include "hostless/model/solve_price.hpp"
#include "solve/methods/method_vectors.hpp"

namespace hostless {
namespace {

TEST(Prices, HaveTheCountsOfTheMethods) {
  constexpr SolveShare row{1, 0, 0, 0};
  for (PricedMethod const priced : all_priced_methods) {
    SCOPED_TRACE(name(priced));
    SolveOptions options;
    options.method = method_from(name(priced));
    IterationTraffic const traffic = traffic_of(options, 1);
    EXPECT_EQ(counts_of(priced).products * product_bytes(row, MemoryKind::host) +
                  vector_bytes(priced, row, MemoryKind::host),
              static_cast<double>(traffic.vector_bytes));
    EXPECT_EQ(counts_of(priced).products, traffic.products);
    EXPECT_EQ(counts_of(priced).products, traffic.exchanges);
    EXPECT_EQ(counts_of(priced).sums, traffic.sums);
  }
}

}  // namespace
}  // namespace hostless
