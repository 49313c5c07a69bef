// Neighbourhood collectives: cases that are seen by hand, what is refused, and random graphs over every
// transport on the list, byte for byte. Ranks that are processes are this program again; those of an MPI are
// neighborhood_mpi_<vendor>, where MPI's own collectives are the second oracle.
#include "hostless/exchange/neighborhood.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>

#include "host_ranks.hpp"
#include "hostless/plan/checker.hpp"
#include "random_neighborhoods.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

using testing::at;

template <class T>
std::span<std::byte const> bytes_of(std::vector<T> const& numbers) {
  return std::as_bytes(std::span(numbers));
}
template <class T>
std::span<std::byte> writable(std::vector<T>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

// ---- by hand

void finish(Transport& transport, NeighborCollective const& planned) {
  Exchange exchange(transport, planned.plan, {planned.field});
  exchange.start();
  EXPECT_TRUE(exchange.wait());
}

// A ring of three: each rank to the next one, and twice to itself.
TEST(Neighborhood, BlocksComeInTheOrderOfTheLists) {
  run_with_threads_transport(3, [](Transport& transport) {
    int const me = transport.group().rank(), next = (me + 1) % 3, last = (me + 2) % 3;
    std::vector<Rank> const sources{me, last, me}, destinations{next, me, me};
    Neighborhood const ring(transport, sources, destinations, {Route::direct, 3});
    std::vector<std::int32_t> const send{10 * me, 10 * me + 1, 10 * me + 2};
    std::vector<std::int32_t> receive(3, -1), all(3, -1);
    finish(transport, ring.alltoall(bytes_of(send), writable(receive)));
    EXPECT_EQ(receive, (std::vector<std::int32_t>{10 * me + 1, 10 * last, 10 * me + 2}));
    std::vector<std::int32_t> const mine{100 + me};
    finish(transport, ring.allgather(bytes_of(mine), writable(all)));
    EXPECT_EQ(all, (std::vector<std::int32_t>{100 + me, 100 + last, 100 + me}));
  });
}

// Rank 0 sends 1, 0 and 3 items; those that receive them leave what lies around.
TEST(Neighborhood, GapsStayAsTheyAre) {
  run_with_threads_transport(4, [](Transport& transport) {
    int const me = transport.group().rank();
    std::vector<Rank> const all{1, 2, 3}, root{0}, nobody;
    Neighborhood const star(transport, me == 0 ? nobody : root, me == 0 ? all : nobody, {Route::two_step, 2});
    std::vector<std::int16_t> const send{7, 8, 9, 10, 11, 12};
    std::vector<std::int16_t> receive(6, -1);
    std::vector<std::int64_t> const counts{1, 0, 3}, first{5, 0, 1}, wanted{counts[at(me + 2) % 3]}, to{2};
    std::vector<std::int64_t> const none;
    finish(transport, star.alltoallv({bytes_of(send), me == 0 ? counts : none, me == 0 ? first : none, 2},
                                     {writable(receive), me == 0 ? none : wanted, me == 0 ? none : to, 2}));
    std::vector<std::int16_t> expected(6, -1);
    if (me == 1) expected[2] = 12;
    if (me == 3) expected = {-1, -1, 8, 9, 10, -1};
    EXPECT_EQ(receive, expected);
  });
}

/// Messages and their units that all ranks together send from node to node.
std::pair<std::int64_t, std::int64_t> between_nodes(Group& group, ExchangePlan const& plan) {
  std::int64_t messages = 0, units = 0;
  for (Stage const& stage : plan.stages)
    for (Message const& message : stage.out)
      if (message.locality == Locality::network && message.items > 0) ++messages, units += message.items;
  return {group.sum(messages), group.sum(units)};
}

// What one rank sends to all crosses to the other node once, as one item of as many units.
TEST(Neighborhood, ABlockEntersANodeOnce) {
  run_with_threads_transport(4, [](Transport& transport) {
    std::vector<Rank> const everybody{0, 1, 2, 3};
    for (Route const route : {Route::two_step, Route::three_step, Route::split, Route::leader}) {
      Neighborhood const full(transport, everybody, everybody, {route, 2});
      std::vector<double> const send(1024, 1.0);
      std::vector<double> receive(4096);
      NeighborCollective const planned = full.allgather(bytes_of(send), writable(receive));
      EXPECT_EQ(planned.field.item_bytes, 4096u);  // two of them are a block
      EXPECT_EQ(between_nodes(transport.group(), planned.plan).second, 4 * 2) << name(route);
      finish(transport, planned);
      EXPECT_EQ(receive, std::vector<double>(4096, 1.0));
    }
  });
}

// Two blocks for each node: a message each from 8 KiB on, else one of both.
TEST(Neighborhood, SplitCountsBytes) {
  run_with_threads_transport(4, [](Transport& transport) {
    std::vector<Rank> const everybody{0, 1, 2, 3};
    Neighborhood const full(transport, everybody, everybody, {Route::split, 2});
    for (auto const& [doubles, messages] : {std::pair<std::size_t, int>{1024, 4}, {64, 2}}) {
      std::vector<double> const send(doubles, 1.0);
      std::vector<double> receive(4 * doubles);
      auto const planned = full.allgather(bytes_of(send), writable(receive));
      EXPECT_EQ(between_nodes(transport.group(), planned.plan).first, messages) << doubles;
    }
  });
}

TEST(Neighborhood, NobodyIsANeighbourhoodToo) {
  auto const one = single_transport();
  Neighborhood const nobody(*one, {}, {});
  EXPECT_FALSE(nobody.route());
  EXPECT_EQ(nobody.alltoall({}, {}).plan.route, Route::direct);
  finish(*one, nobody.alltoall({}, {}));
  finish(*one, nobody.allgather({}, {}));
}

// ---- what is refused

/// Every rank leaves with one text, which has `part`.
void expect_refused(int ranks, std::string const& part, std::function<void(Transport&)> const& act) {
  std::vector<std::string> texts(at(ranks));
  run_with_threads_transport(ranks, [&](Transport& transport) {
    try {
      act(transport);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      texts[at(transport.group().rank())] = error.what();
    }
  });
  for (std::string const& text : texts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' does not say " << part;
    EXPECT_EQ(text, texts[0]);
  }
}

struct Pair {  // each of two ranks sends to itself and to the other
  explicit Pair(Transport& transport) : me(transport.group().rank()), both(transport, list, list) {}
  std::vector<Rank> const list{0, 1};
  int me;
  Neighborhood both;
  std::vector<double> send = std::vector<double>(4), receive = std::vector<double>(4);
  std::vector<std::int64_t> counts{1, 2}, first{0, 1}, wanted{1, 2}, to{0, 1};
  /// Block k is of k + 1 items on the side that sends, so rank me receives twice me + 1.
  void call() {
    wanted = {me + 1, me + 1};
    to = {0, 2};
  }
  void run() { both.alltoallv({bytes_of(send), counts, first, 8}, {writable(receive), wanted, to, 8}); }
};

void expect_refused(std::string const& part, std::function<void(Pair&)> const& spoil) {
  expect_refused(2, part, [&](Transport& transport) {
    Pair pair(transport);
    pair.call();
    spoil(pair);
    pair.run();
  });
}

TEST(NeighborhoodRefuses, BlocksThatDoNotFit) {
  expect_refused(
      "alltoallv: rank 0 sends 16 bytes to its destinations[1], rank 1, which receives 8 from its sources[0] "
      "(a block has one length). Pass the same on both sides.",
      [](Pair& pair) {
        if (pair.me == 1) pair.wanted[0] = 1;
      });
  expect_refused("rank 1: received blocks 0 and 1 share bytes, from byte 8 on", [](Pair& pair) {
    if (pair.me == 1) pair.to[1] = 1;
  });
  expect_refused(
      "rank 0: sent block 1 has 2 items of 8 bytes from item 3 on, which leave the memory's 32 bytes",
      [](Pair& pair) { pair.first[1] = 3; });
  expect_refused(
      "rank 1: received block 1 has 2 items of 8 bytes from item 9223372036854775807 on, which leave",
      [](Pair& pair) {
        if (pair.me == 1) pair.to[1] = std::numeric_limits<std::int64_t>::max();
      });
  expect_refused("rank 0: sent block 0 has -1 items", [](Pair& pair) { pair.counts[0] = -1; });
  expect_refused("rank 0: sent block 0 begins at item -1, in front of the memory",
                 [](Pair& pair) { pair.first[0] = -1; });
  expect_refused("rank 1: 1 count of sent blocks for 2 neighbours", [](Pair& pair) {
    if (pair.me == 1) pair.counts.pop_back();
  });
  expect_refused("rank 0: 3 displacements of received blocks for 2 neighbours",
                 [](Pair& pair) { pair.to.push_back(9); });
}

TEST(NeighborhoodRefuses, WhatRanksDoNotAllDo) {
  expect_refused(2, "rank 0 calls allgather and rank 1 alltoall (all take part in one collective)",
                 [](Transport& transport) {
                   Pair pair(transport);
                   std::vector<double> const one(1);
                   if (pair.me == 0)
                     pair.both.allgather(bytes_of(one), writable(pair.receive));
                   else
                     pair.both.alltoall(bytes_of(pair.send), writable(pair.receive));
                 });
  expect_refused(2, "allgather: rank 0 sends 8 bytes to its destinations[0], rank 0, which receives 16",
                 [](Transport& transport) {
                   Pair pair(transport);
                   std::vector<double> const one(1);
                   pair.both.allgather(bytes_of(one), writable(pair.receive));
                 });
  expect_refused(2, "rank 0: 12 bytes are received in 8 equal blocks", [](Transport& transport) {
    std::vector<Rank> const list{0, 0, 0, 0, 1, 1, 1, 1};
    Neighborhood const both(transport, list, list);
    std::vector<std::int32_t> const send(1);
    std::vector<std::int32_t> receive(3);
    both.allgather(bytes_of(send), writable(receive));
  });
}

TEST(NeighborhoodRefuses, GraphsThatAreNone) {
  auto const make = [](std::vector<Rank> const& sources, std::vector<Rank> const& destinations,
                       NeighborhoodOptions const& options = {}) {
    return [=](Transport& transport) {
      bool const first = transport.group().rank() == 0;
      Neighborhood const made(transport, first ? std::vector<Rank>{1} : sources,
                              first ? std::vector<Rank>{1} : destinations,
                              first ? NeighborhoodOptions{} : options);
    };
  };
  expect_refused(2, "rank 1: sources[1] is 2, and there are 2 ranks", make({0, 2}, {0}));
  expect_refused(2, "rank 1: destinations[0] is -1, and there are 2 ranks (MPI_PROC_NULL is such a number",
                 make({0}, {-1}));
  expect_refused(2, "rank 0 has rank 1 among its destinations once, which has it among its sources 2 times",
                 make({0, 0}, {0}));
  expect_refused(2,
                 "rank 1 has rank 0 among its destinations not at all, which has it among its sources once",
                 make({0}, {}));
  expect_refused(2, "options.route is that of what moves on rank 0 and two_step on rank 1",
                 make({0}, {0}, {Route::two_step, 0}));
  expect_refused(2, "options.ranks_per_node is 0 on rank 0 and 2 on rank 1", make({0}, {0}, {{}, 2}));
  expect_refused(2, "options.ranks_per_node: -1", make({0}, {0}, {{}, -1}));
  expect_refused(2, "options.route: 9 is no Route", make({0}, {0}, {static_cast<Route>(9), 0}));
}

// The exchange it becomes: what is sent and received may not share bytes, and one start follows another's
// end.
TEST(NeighborhoodRefuses, WhatExchangesRefuse) {
  expect_refused(2, "the 2 ghosts of fields[0] and the 2 owned items of fields[0] share bytes",
                 [](Transport& transport) {
                   Pair pair(transport);
                   auto const planned = pair.both.alltoall(bytes_of(pair.send), writable(pair.send));
                   Exchange const exchange(transport, planned.plan, {planned.field});
                 });
  run_with_threads_transport(2, [](Transport& transport) {
    Pair pair(transport);
    auto const planned = pair.both.alltoall(bytes_of(pair.send), writable(pair.receive));
    Exchange exchange(transport, planned.plan, {planned.field});
    if (pair.me == 0) {
      exchange.start();
      EXPECT_THROW(exchange.start(), Error);
    }
    transport.group().barrier();
    if (pair.me == 1) exchange.start();
    EXPECT_TRUE(exchange.wait());
  });
}

// ---- random graphs

class Threads : public ::testing::TestWithParam<test::Ranks> {};
INSTANTIATE_TEST_SUITE_P(RandomNeighborhood, Threads,
                         ::testing::ValuesIn(test::with_ranks(test::names_with_threads(), {1, 2, 3, 6, 16})),
                         [](auto const& one) { return test::name_of(one.param); });

TEST_P(Threads, EveryByteComes) {
  auto const& [name, count] = GetParam();
  int const collectives = (count == 16 ? 12 : 120) / test::of_all(1, 6);
  std::mutex guard;
  std::string text;
  test::tested_transport(name).run(count, [&](Transport& transport) {
    std::string const mine = testing::try_collectives(transport, collectives, testing::alone);
    std::lock_guard const lock(guard);
    text += mine;
  });
  EXPECT_EQ(text, "");
}

class Processes : public ::testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(RandomNeighborhood, Processes,
                         ::testing::ValuesIn(test::with_ranks(test::names_with_processes(), {2, 4})),
                         [](auto const& one) { return test::name_of(one.param); });

TEST_P(Processes, EveryByteComes) {
  auto const& [name, count] = GetParam();
  std::string const collectives = std::to_string(test::of_all(60, 10));
  auto const beside_mpi =
      std::filesystem::path(test::own_path()).parent_path() / ("neighborhood_mpi_" + name);
  if (!std::filesystem::exists(beside_mpi)) {
    EXPECT_EQ(test::start_again(transport(), count, {collectives}), 0) << "the lines above say what differs";
    return;
  }
  test::Printed const printed = test::run_as_ranks(transport(), count, {beside_mpi.string(), collectives});
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("neighborhood"), count) << printed.output;
}

int as_rank(HostTransport const& wanted, std::vector<std::string> const& words) {
  return test::rank_that_looks(wanted, [&](Transport& transport) {
    return testing::try_collectives(transport, std::atoi(words.at(0).c_str()), testing::alone);
  });
}

}  // namespace
}  // namespace hostless

int main(int count, char** words) { return hostless::test::main_of_ranks(count, words, hostless::as_rank); }
