// Exchanges of GPUs that are played (tests/unit/exchange/fake_gpu), for which the host carries over
// transports that are right, and over such that are wrong in one way: what is told of bytes must be noticed.
#include "bench/stream_communication.hpp"

#include <gtest/gtest.h>

#include "exchange/gpu/exchange_library.hpp"
#include "plan_cases.hpp"
#include "wrong_transport.hpp"

namespace hostless::bench {
namespace {

constexpr StreamWay by_host = {GpuTransport::host, 2, true};

Halo halo_of(int ranks, Rank rank, bool apart) {
  Halo what;
  what.patterns = hostless::testing::random_reads(ranks, 11, 60).patterns();
  what.made_with.apart = apart;  // and relies on sums
  what.plan = make_plan(Route::two_step, what.patterns, hostless::testing::random_nodes(ranks, 5), rank,
                        what.made_with);
  what.fields = 3;
  what.item_bytes = 13;
  return what;
}

// Of ranks that share a played GPU nothing is recorded, as where the host must wait.
void expect_ways(std::vector<QueuedTiming> const& all, bool share) {
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].by, "stream");
  EXPECT_EQ(all[1].by, "graph");
  for (QueuedTiming const& one : all) {
    bool const is_refused = share && one.by == "graph";
    EXPECT_EQ(one.problem, is_refused ? "cannot be recorded in a graph: played" : "");
    EXPECT_EQ(one.described, "played");
    EXPECT_FALSE(one.is_fastest);
    if (!is_refused) expect_times(one.timing, brief());
  }
}

TEST(StreamCommunication, MessagesOfAllSizes) {
  run_with_threads_transport(3, [](Transport& transport) {
    auto const all = stream_ping_pong(transport, {2, 0, {1, 8, 4099, 65536}}, by_host, brief());
    ASSERT_EQ(all.size(), 8u);
    for (std::size_t k = 0; k < all.size(); ++k) {
      EXPECT_EQ(all[k].bytes, (std::vector<std::size_t>{1, 8, 4099, 65536})[k / 2]);
      EXPECT_EQ(all[k].steps, brief().steps);
    }
    expect_ways({all[6].one_way, all[7].one_way}, true);
  });
}

TEST(StreamCommunication, HalosInBothLayouts) {
  for (int const ranks : {2, 4})
    for (bool const apart : {false, true})
      run_with_threads_transport(ranks, [&](Transport& transport) {
        Halo const what = halo_of(ranks, transport.group().rank(), apart);
        expect_ways(stream_halo(transport, what, by_host, brief()), ranks > 2);
      });
}

TEST(StreamCommunication, PartsOfSums) {
  for (int const ranks : {1, 2, 5})
    run_with_threads_transport(ranks, [&](Transport& transport) {
      expect_ways(stream_parts_of_sums(transport, widest_sum, by_host, brief()), ranks > 2);
    });
}

TEST(StreamCommunication, WhatWentWrongIsNoticed) {
  for (Fault const fault : {Fault::other_message, Fault::other_middle, Fault::late_message}) {
    expect_error(2, ErrorCode::environment, "a ghost is not what its owner has", fault,
                 [](Transport& transport) {
                   stream_ping_pong(transport, {0, 1, {4099}}, by_host, brief());
                 });
    expect_error(4, ErrorCode::environment, "a ghost is not what its owner has", fault,
                 [](Transport& transport) {
                   stream_halo(transport, halo_of(4, transport.group().rank(), true), by_host, brief());
                 });
    expect_error(3, ErrorCode::environment, "a sum over ranks is ", fault,
                 [](Transport& transport) { stream_parts_of_sums(transport, 2, by_host, brief()); });
  }
}

TEST(StreamCommunication, SilenceIsALoss) {
  expect_error(2, ErrorCode::peer_lost, "a rank was lost", Fault::silence, [](Transport& transport) {
    Protocol soon = brief();
    soon.limits = {0.2, 0.2};
    stream_ping_pong(transport, {0, 1, {8}}, by_host, soon);
  });
}

TEST(StreamCommunication, WhatCannotBeIsRefused) {
  auto const refused = [](int ranks, std::string const& words, std::function<void(Transport&)> const& body) {
    expect_error(ranks, ErrorCode::usage, words, Fault::none, body);
  };
  refused(2, "3 GPUs (this machine has 2)", [](Transport& transport) {
    stream_parts_of_sums(transport, 1, {GpuTransport::host, 3, false}, brief());
  });
  refused(3, "3 ranks on 2 GPUs (some would share one)", [](Transport& transport) {
    stream_parts_of_sums(transport, 1, {GpuTransport::host, 2, false}, brief());
  });
  refused(2, "sums of 9 values",
          [](Transport& transport) { stream_parts_of_sums(transport, 9, by_host, brief()); });
  refused(2, "ranks 0 and 0 as a pair", [](Transport& transport) {
    stream_ping_pong(transport, {0, 0, {8}}, by_host, brief());
  });
  refused(2, "no such stream face", [](Transport& transport) {
    stream_ping_pong(transport, {0, 1, {8}}, {GpuTransport::peer, 2, false}, brief());
  });
}

TEST(StreamCommunication, RanksTakeGpusInTurn) {
  run_with_threads_transport(3, [](Transport& transport) {
    EXPECT_EQ(device_of_rank(transport.group(), by_host), transport.group().rank() % 2);
  });
  EXPECT_EQ(gpu::exchange_library().devices(), 2);
}

}  // namespace
}  // namespace hostless::bench
