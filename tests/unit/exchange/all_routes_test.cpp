// Patterns made up at random, on 2 to 16 threads and declared nodes: what every route brings equals what the
// direct one brings, byte for byte. HOSTLESS_ALL_ROUTES says how many patterns.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "hostless/exchange/exchange.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/transport/transport.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::Reads;

unsigned patterns_to_try() {
  if (char const* const text = std::getenv("HOSTLESS_ALL_ROUTES"); text != nullptr)
    return static_cast<unsigned>(std::atoi(text));
  return HOSTLESS_THREAD_SANITIZER ? 40 : 400;
}

/// One exchange in the plainest form: who reads what, where ranks run, bytes of an item.
struct Drawn {
  Reads reads;
  NodeMap nodes;
  std::size_t bytes;
  PlanOptions options;

  explicit Drawn(unsigned number)
      : reads(testing::random_reads(2 + static_cast<int>(number % 15), 7919 * number + 1, 12)),
        nodes(number % 3 == 0 ? NodeMap::blocks(ranks(), 1 + static_cast<int>(number % 5))
                              : testing::random_nodes(ranks(), number)),
        bytes(1 + 13 * number % 64),
        options{number % 4 == 0 ? ReuseGuarantee::credit : ReuseGuarantee::answer, Space::host, true} {
    if (number % 5 == 0) {  // a rank that neither sends nor receives
      auto const alone = static_cast<Rank>(number % static_cast<unsigned>(ranks()));
      reads.receivers[at(alone)].clear();
      for (auto& of_rank : reads.receivers)
        for (auto& [item, to] : of_rank) to.erase(alone);
      for (auto& of_rank : reads.receivers)
        std::erase_if(of_rank, [](auto const& one) { return one.second.empty(); });
    }
  }
  int ranks() const { return static_cast<int>(reads.owned.size()); }
  std::byte byte_of(Rank source, std::int64_t item, std::size_t k, int epoch) const {
    return static_cast<std::byte>(
        (131 * (source + 1) + 31 * item + 7 * static_cast<std::int64_t>(k) + 3 * epoch) % 251);
  }
};

using Held = std::vector<std::vector<std::byte>>;

/// [routes][ranks] what each rank holds after two exchanges by each of these routes. Nothing where one was
/// lost.
std::vector<Held> brought(Drawn const& drawn, std::vector<std::vector<ExchangePlan>> const& by_route) {
  std::vector<Held> all(by_route.size(), Held(at(drawn.ranks())));
  run_with_threads_transport(drawn.ranks(), [&](Transport& transport) {
    Rank const me = transport.group().rank();
    for (std::size_t r = 0; r < by_route.size(); ++r) {
      ExchangePlan const& plan = by_route[r][at(me)];
      std::vector<std::byte> owned(at(plan.owned) * drawn.bytes), ghosts(at(plan.ghosts) * drawn.bytes);
      Exchange exchange(transport, plan, {Field::apart(owned.data(), ghosts.data(), drawn.bytes)},
                        {{60, 60}, {}, {}});
      for (int epoch = 1; epoch <= 2; ++epoch) {
        std::fill(ghosts.begin(), ghosts.end(), std::byte{255});
        for (std::size_t b = 0; b < owned.size(); ++b)
          owned[b] = drawn.byte_of(me, static_cast<std::int64_t>(b / drawn.bytes), b % drawn.bytes, epoch);
        exchange.start();
        if (!exchange.wait()) return;
        all[r][at(me)].insert(all[r][at(me)].end(), ghosts.begin(), ghosts.end());
      }
    }
  });
  return all;
}

/// The same from the reads alone.
Held expected(Drawn const& drawn) {
  Held all(at(drawn.ranks()));
  for (int epoch = 1; epoch <= 2; ++epoch)
    for (Rank r = 0; r < drawn.ranks(); ++r)
      for (auto const& [source, item] : drawn.reads.ghosts(r))
        for (std::size_t k = 0; k < drawn.bytes; ++k)
          all[at(r)].push_back(drawn.byte_of(source, item, k, epoch));
  return all;
}

TEST(AllRoutes, BringWhatTheDirectOneBrings) {
  std::map<Route, std::int64_t> messages;
  unsigned const count = patterns_to_try();
  ASSERT_GT(count, 0u);
  for (unsigned number = 0; number < count && !HasFailure(); ++number) {
    Drawn const drawn(number);
    auto const patterns = drawn.reads.patterns();
    std::vector<std::vector<ExchangePlan>> by_route;
    for (Route const route : all_routes) {
      PlanOptions const options = testing::varied(route, drawn.nodes, number, drawn.options);
      by_route.push_back(make_plans(route, patterns, drawn.nodes, options));
      EXPECT_EQ(check(by_route.back(), patterns), std::vector<std::string>{})
          << name(route) << ", pattern " << number;
      for (ExchangePlan const& plan : by_route.back())
        for (Stage const& stage : plan.stages) messages[route] += std::ssize(stage.out);
    }
    std::vector<Held> const held = brought(drawn, by_route);
    ASSERT_EQ(held[0], expected(drawn)) << "direct, pattern " << number;
    for (std::size_t r = 1; r < held.size(); ++r)
      EXPECT_EQ(held[r], held[0]) << name(all_routes[r]) << ", pattern " << number;
  }
  for (auto const& [route, sent] : messages) EXPECT_GT(sent, count) << name(route);
  for (auto const& [route, sent] : messages)
    fmt::print("{}: {} messages of {} patterns\n", name(route), sent, count);
}

}  // namespace
}  // namespace hostless
