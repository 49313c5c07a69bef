// Measurements of right transports are judged by what must hold for every clock; of wrong ones by being
// noticed: a wrapped endpoint alters or swallows what passes.
#include "bench/communication.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "wrong_transport.hpp"

namespace hostless::bench {
namespace {

TEST(Timing, StepsAreCountedAndTheSlowestRankCounts) {
  run_with_threads_transport(2, [](Transport& transport) {
    Protocol protocol = brief();
    protocol.steps = 4;
    int steps = 0;
    Timing const timing = time_steps(transport.group(), protocol, [&] {
      ++steps;
      if (transport.group().rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    EXPECT_EQ(steps, 2 + 3 * 4);
    expect_times(timing, protocol);
    EXPECT_GE(timing.best(), 2e-3);  // of a step, on the rank that did not sleep too
  });
}

TEST(PingPong, TwoRanksAnswerAndTheOthersWait) {
  run_with_threads_transport(3, [](Transport& transport) {
    PingPong const what{2, 0, {1, 8, 100000, std::size_t{16} << 20}};
    auto const all = ping_pong(transport, what, brief());
    ASSERT_EQ(all.size(), what.bytes.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      EXPECT_EQ(all[k].bytes, what.bytes[k]);
      EXPECT_EQ(all[k].steps, k < 3 ? 20 : 8);  // long ones carry less often
      expect_times(all[k].one_way, brief());
      EXPECT_DOUBLE_EQ(all[k].bytes_per_s() * all[k].one_way.best(), static_cast<double>(what.bytes[k]));
      EXPECT_EQ(transport.group().max(all[k].one_way.best()), transport.group().min(all[k].one_way.best()));
    }
  });
}

TEST(PingPong, WhatArrivesIsCompared) {
  for (Fault const fault : {Fault::other_message, Fault::late_message})
    for (std::size_t const bytes : {1, 64})
      expect_error(2, ErrorCode::environment, "brought another one's mark", fault, [&](Transport& transport) {
        ping_pong(transport, {0, 1, {bytes}}, brief());
      });
}

TEST(PingPong, EveryByteIsLookedAtInTheEnd) {
  for (std::size_t const bytes : {3, 64, 4097})
    expect_error(2, ErrorCode::environment, "came with another byte " + std::to_string(bytes / 2),
                 Fault::other_middle, [&](Transport& transport) {
                   ping_pong(transport, {0, 1, {bytes}}, brief());
                 });
}

TEST(PingPong, SilenceEndsByTheDeadline) {
  Protocol protocol = brief();
  protocol.limits = {0.2, 0.2};
  auto const begin = Clock::now();
  expect_error(2, ErrorCode::peer_lost, "while two ranks answered each other", Fault::silence,
               [&](Transport& transport) {
                 ping_pong(transport, {0, 1, {8}}, protocol);
               });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(240));
}

TEST(PingPong, PairsThatAreNoneAreRefused) {
  for (PingPong const& what : {PingPong{0, 2, {8}}, PingPong{-1, 1, {8}}, PingPong{1, 1, {8}}})
    expect_error(2, ErrorCode::usage, "as a pair among 2 ranks", Fault::none,
                 [&](Transport& transport) { ping_pong(transport, what, brief()); });
  expect_error(2, ErrorCode::usage, "0 bytes", Fault::none, [&](Transport& transport) {
    ping_pong(transport, {0, 1, {8, 0}}, brief());
  });
}

TEST(Sum, OfOneToEightValues) {
  run_with_threads_transport(3, [](Transport& transport) {
    WrongTransport with_library(transport, Fault::none);
    for (int values = 1; values <= widest_sum; ++values) {
      expect_times(sum(transport, values, Reduction::ordered, brief()), brief());
      expect_times(library_sum(with_library, values, brief()), brief());
    }
  });
}

TEST(Sum, IsCompared) {
  expect_error(3, ErrorCode::environment, "a sum over ranks is 6.5 instead of 6", Fault::other_sum,
               [](Transport& transport) { sum(transport, 1, Reduction::ordered, brief()); });
  for (int const values : {1, 8})
    expect_error(3, ErrorCode::environment, "a sum over ranks is 6.5 instead of 6", Fault::other_sum,
                 [&](Transport& transport) { library_sum(transport, values, brief()); });
}

TEST(Sum, OfALibraryThatIsSilentEndsByTheDeadline) {
  Protocol protocol = brief();
  protocol.limits = {0.2, 0.2};
  expect_error(2, ErrorCode::peer_lost, "in a sum of the library", Fault::silence,
               [&](Transport& transport) { library_sum(transport, 2, protocol); });
}

TEST(Sum, WhatThereIsNotIsRefused) {
  for (int const values : {0, 9})
    for (bool const by_library : {false, true})
      expect_error(2, ErrorCode::usage, "values (1 to 8 are timed)", Fault::none, [&](Transport& transport) {
        if (by_library) {
          library_sum(transport, values, brief());
        } else {
          sum(transport, values, Reduction::ordered, brief());
        }
      });
  run_with_threads_transport(2, [](Transport& transport) {
    EXPECT_THROW(sum(transport, 1, Reduction::fast, brief()), Error);
    try {
      library_sum(transport, 1, brief());
      FAIL() << "threads have no library";
    } catch (Error const& e) {
      EXPECT_NE(std::string(e.what()).find("the threads transport has no library all-reduce"),
                std::string::npos);
    }
  });
}

}  // namespace
}  // namespace hostless::bench
