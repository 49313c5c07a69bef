// Patterns made up at random, on 2 to 8 ranks and declared nodes: what each route brings equals, byte for byte,
// what the reads alone say. Ranks that are processes are this program again. HOSTLESS_ALL_ROUTES says how many
// patterns, and has up to 16 threads, and more ranks as processes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>

#include "host_ranks.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/plan/checker.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::Reads;
using Bytes = std::vector<std::byte>;

constexpr bool is_slow = HOSTLESS_THREAD_SANITIZER || HOSTLESS_ADDRESS_SANITIZER;

/// 0: few, as on each commit.
unsigned wanted_patterns() {
  char const* const text = std::getenv("HOSTLESS_ALL_ROUTES");
  return text == nullptr ? 0 : static_cast<unsigned>(std::atoi(text));
}
unsigned patterns_to_try(unsigned few) {
  unsigned const wanted = wanted_patterns();
  return wanted > 0 ? wanted : is_slow ? few / 8 : few;
}

/// One in 200 has long messages: up to a megabyte where the number of patterns was asked for.
bool is_long(unsigned number) { return number % 200 == 2; }
int long_ones(int ranks) { return wanted_patterns() > 0 && ranks < 6 ? 16000 : 2000; }

/// One exchange in the plainest form: who reads what, where ranks run, bytes of an item.
struct Drawn {
  unsigned number;
  Reads reads;
  NodeMap nodes;
  std::size_t bytes;
  PlanOptions options;

  Drawn(int count, unsigned which)
      : number(which),
        reads(testing::random_reads(count, 7919 * number + 1, is_long(number) ? long_ones(count) : 12)),
        nodes(number % 3 == 0 ? NodeMap::blocks(count, 1 + static_cast<int>(number % 5))
                              : testing::random_nodes(count, number)),
        bytes(is_long(number) ? 64 : 1 + 13 * number % 64),
        options{number % 4 == 0 ? ReuseGuarantee::credit : ReuseGuarantee::answer, Space::host, true} {
    if (number % 5 == 0) {  // a rank that neither sends nor receives
      auto const alone = static_cast<Rank>(number % static_cast<unsigned>(count));
      reads.receivers[at(alone)].clear();
      for (auto& of_rank : reads.receivers)
        for (auto& [item, to] : of_rank) to.erase(alone);
      for (auto& of_rank : reads.receivers)
        std::erase_if(of_rank, [](auto const& one) { return one.second.empty(); });
    }
  }
  static std::byte byte_of(Rank source, std::int64_t item, std::size_t k, int epoch) {
    return static_cast<std::byte>(
        (131 * (source + 1) + 31 * item + 7 * static_cast<std::int64_t>(k) + 3 * epoch) % 251);
  }
  /// Ghosts of a rank after an exchange.
  Bytes expected(Rank rank, int epoch) const {
    Bytes all;
    for (auto const& [source, item] : reads.ghosts(rank))
      for (std::size_t k = 0; k < bytes; ++k) all.push_back(byte_of(source, item, k, epoch));
    return all;
  }
};

/// What is wrong with two exchanges of one route on this rank. Collective.
std::string try_route(Transport& transport, Drawn const& drawn, ExchangePlan const& plan) {
  Rank const me = transport.group().rank();
  Bytes owned(at(plan.owned) * drawn.bytes), ghosts(at(plan.ghosts) * drawn.bytes);
  Exchange exchange(transport, plan, {Field::apart(owned.data(), ghosts.data(), drawn.bytes)},
                    {{60, 60}, {}, {}});
  for (int epoch = 1; epoch <= 2; ++epoch) {
    std::fill(ghosts.begin(), ghosts.end(), std::byte{255});
    for (std::size_t b = 0; b < owned.size(); ++b)
      owned[b] = Drawn::byte_of(me, static_cast<std::int64_t>(b / drawn.bytes), b % drawn.bytes, epoch);
    exchange.start();
    bool const came = exchange.wait();
    if (!came || ghosts != drawn.expected(me, epoch))
      return fmt::format("{}, pattern {} on rank {} of {}, exchange {}: {}\n", name(plan.route), drawn.number,
                         me, plan.ranks, epoch, came ? "bytes differ" : "a rank was lost");
  }
  return {};
}

/// All routes of one pattern on this rank, and how many messages it sends by each. Collective.
std::string try_pattern(Transport& transport, unsigned number, std::map<Route, std::int64_t>& messages) {
  Group& group = transport.group();
  Drawn const drawn(group.size(), number);
  auto const patterns = drawn.reads.patterns();
  std::string text;
  for (Route const route : all_routes) {
    PlanOptions const options = testing::varied(route, drawn.nodes, number, drawn.options);
    ExchangePlan const plan = make_plan(route, patterns, drawn.nodes, group.rank(), options);
    for (Stage const& stage : plan.stages) messages[route] += std::ssize(stage.out);
    text += try_route(transport, drawn, plan);
    if (group.any(!text.empty())) break;
  }
  return text;
}

std::string try_patterns(Transport& transport, unsigned count, std::map<Route, std::int64_t>& messages) {
  std::string text;
  for (unsigned number = 0; number < count; ++number) {
    text += try_pattern(transport, number, messages);
    if (transport.group().any(!text.empty())) break;
  }
  return text;
}

void expect_busy(std::map<Route, std::int64_t> const& messages, unsigned patterns) {
  ASSERT_GT(patterns, 0u);
  ASSERT_EQ(messages.size(), all_routes.size());
  for (auto const& [route, sent] : messages) {
    EXPECT_GT(sent, patterns) << name(route);
    fmt::print("{}: {} messages of {} patterns\n", name(route), sent, patterns);
  }
}

class Threads : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(AllRoutes, Threads, ::testing::ValuesIn(test::names_with_threads()),
                         [](auto const& one) { return one.param + "_many"; });

TEST_P(Threads, EveryByteComes) {
  unsigned const count = patterns_to_try(GetParam() == "threads" ? 60 : 15);
  std::map<Route, std::int64_t> messages;
  for (unsigned number = 0; number < count && !HasFailure(); ++number) {
    int const ranks = 2 + static_cast<int>(number % (wanted_patterns() > 0 ? 15 : 7));
    std::mutex guard;
    std::string text;
    test::tested_transport(GetParam()).run(ranks, [&](Transport& transport) {
      std::map<Route, std::int64_t> sent;
      std::string const mine = try_pattern(transport, number, sent);
      std::lock_guard const lock(guard);
      text += mine;
      for (auto const& [route, some] : sent) messages[route] += some;
    });
    EXPECT_EQ(text, "");
  }
  expect_busy(messages, count);
}

// The same plans, proven: what is read is brought, in an order without deadlocks.
TEST(AllRoutes, PlansAreProven) {
  for (unsigned number = 0; number < patterns_to_try(60); ++number) {
    Drawn const drawn(2 + static_cast<int>(number % 15), number);
    auto const patterns = drawn.reads.patterns();
    for (Route const route : all_routes)
      EXPECT_EQ(check(make_plans(route, patterns, drawn.nodes,
                                 testing::varied(route, drawn.nodes, number, drawn.options)),
                      patterns),
                std::vector<std::string>{})
          << name(route) << ", pattern " << number;
  }
}

std::vector<int> ranks_as_processes() {
  return wanted_patterns() > 0 ? std::vector<int>{2, 4, 7, 16} : std::vector<int>{4};
}

class Processes : public ::testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(AllRoutes, Processes,
                         ::testing::ValuesIn(test::with_ranks(test::names_with_processes(),
                                                              ranks_as_processes())),
                         [](auto const& one) { return test::name_of(one.param); });

TEST_P(Processes, EveryByteComes) {
  std::string const patterns = std::to_string(patterns_to_try(20));
  EXPECT_EQ(test::start_again(transport(), std::get<1>(GetParam()), {patterns}), 0)
      << "the lines above say what differs";
}

int as_rank(HostTransport const& wanted, std::vector<std::string> const& words) {
  return test::rank_that_looks(wanted, [&](Transport& transport) {
    std::map<Route, std::int64_t> messages;
    return try_patterns(transport, static_cast<unsigned>(std::atoi(words.at(0).c_str())), messages);
  });
}

}  // namespace
}  // namespace hostless

int main(int count, char** words) { return hostless::test::main_of_ranks(count, words, hostless::as_rank); }
