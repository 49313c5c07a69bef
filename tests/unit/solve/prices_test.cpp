// What `hostless predict` counts on processors is what solves count.
#include <gtest/gtest.h>

#include <utility>

#include "hostless/model/solve_price.hpp"
#include "solve/methods/method_vectors.hpp"

namespace hostless {
namespace {

TEST(Prices, HaveTheVectorsOfTheMethods) {
  constexpr SolveShare row{1, 0, 0, 0};
  for (auto const& [priced, method] :
       {std::pair{PricedMethod::cg, Method::cg}, {PricedMethod::pipelined_cg, Method::pipelined_cg}}) {
    SolveOptions options;
    options.method = method;
    EXPECT_EQ(product_bytes(row, MemoryKind::host) + vector_bytes(priced, row, MemoryKind::host),
              static_cast<double>(traffic_of(options, 1).vector_bytes))
        << name(method);
  }
}

}  // namespace
}  // namespace hostless
