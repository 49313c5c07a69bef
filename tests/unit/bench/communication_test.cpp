// Measurements of right transports are judged by what must hold for every clock; of wrong ones by being
// noticed: a wrapped endpoint alters or swallows what passes.
#include "bench/communication.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "hostless/plan/routes.hpp"
#include "plan_cases.hpp"

namespace hostless::bench {
namespace {

using hostless::testing::Reads;

enum class Fault { none, late_message, other_message, other_sum, silence };

class WrongEndpoint final : public Endpoint {
 public:
  WrongEndpoint(std::unique_ptr<Endpoint> right, Binding binding, Fault fault)
      : right_(std::move(right)), binding_(std::move(binding)), fault_(fault) {}
  void send(int index, std::uint32_t epoch) override {
    if (fault_ != Fault::silence) right_->send(index, epoch);
  }
  void receive(int index, std::uint32_t epoch) override { right_->receive(index, epoch); }
  bool sent(int index) override { return right_->sent(index); }
  bool received(int index) override {
    Incoming const& in = binding_.in[static_cast<std::size_t>(index)];
    std::vector<std::byte> const before(in.to, in.to + in.bytes);
    if (!right_->received(index)) return false;
    if (fault_ == Fault::other_message) in.to[in.bytes - 1] = std::byte{0xee};
    if (fault_ == Fault::late_message) std::copy(before.begin(), before.end(), in.to);  // what was there
    return true;
  }
  void gather(std::span<double const> mine) override { right_->gather(mine); }
  bool gathered(std::span<double> all) override {
    if (!right_->gathered(all)) return false;
    if (fault_ == Fault::other_sum) all[0] += 0.5;
    return true;
  }
  void all_reduce(std::span<double const> mine) override { right_->all_reduce(mine); }
  bool all_reduced(std::span<double> sums) override { return right_->all_reduced(sums); }
  bool peer_left() override { return right_->peer_left(); }
  void leave() noexcept override { right_->leave(); }

 private:
  std::unique_ptr<Endpoint> right_;
  Binding binding_;
  Fault fault_;
};

class WrongTransport final : public Transport {
 public:
  WrongTransport(Transport& right, Fault fault) : right_(right), fault_(fault) {}
  Capabilities capabilities() const override { return right_.capabilities(); }
  Group& group() override { return right_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    return std::make_unique<WrongEndpoint>(right_.bind(binding), binding, fault_);
  }

 private:
  Transport& right_;
  Fault fault_;
};

Protocol brief() {
  Protocol protocol;
  protocol.warm_up = 2;
  protocol.steps = 20;
  protocol.repeat = 3;
  protocol.limits = {30, 30};
  return protocol;
}

void expect_times(Timing const& timing, Protocol const& protocol) {
  ASSERT_EQ(timing.step_s.size(), static_cast<std::size_t>(protocol.repeat));
  EXPECT_GT(timing.best(), 0);
  EXPECT_LE(timing.best(), timing.median());
  EXPECT_LE(timing.median(), timing.worst());
}

// Runs on threads; what `body` throws must be such an error with these words.
void expect_error(int ranks, ErrorCode code, std::string const& words, Fault fault,
                  std::function<void(Transport&)> const& body) {
  try {
    run_with_threads_transport(ranks, [&](Transport& transport) {
      WrongTransport wrong(transport, fault);
      body(wrong);
    });
    FAIL() << "nothing was thrown: " << words;
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

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

TEST(PingPong, SilenceEndsByTheDeadline) {
  Protocol protocol = brief();
  protocol.limits = {0.2, 0.2};
  auto const begin = Clock::now();
  expect_error(2, ErrorCode::peer_lost, "while two ranks answered each other", Fault::silence,
               [&](Transport& transport) {
                 ping_pong(transport, {0, 1, {8}}, protocol);
               });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
}

TEST(PingPong, PairsThatAreNoneAreRefused) {
  for (PingPong const& what : {PingPong{0, 2, {8}}, PingPong{-1, 1, {8}}, PingPong{1, 1, {8}}})
    expect_error(2, ErrorCode::usage, "as a pair among 2 ranks", Fault::none,
                 [&](Transport& transport) { ping_pong(transport, what, brief()); });
  expect_error(2, ErrorCode::usage, "0 bytes", Fault::none, [&](Transport& transport) {
    ping_pong(transport, {0, 1, {8, 0}}, brief());
  });
}

class Halo : public ::testing::TestWithParam<Route> {
 protected:
  static HaloTiming timed(Transport& transport, Protocol const& protocol) {
    Reads const reads = hostless::testing::random_reads(4, 11, 60);
    auto const plans =
        make_plans(GetParam(), reads.patterns(), hostless::testing::random_nodes(4, 5), PlanOptions{});
    return halo(transport, plans[static_cast<std::size_t>(transport.group().rank())], protocol);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Halo, ::testing::Values(Route::direct, Route::two_step, Route::three_step),
                         [](auto const& one) { return std::string(name(one.param)); });

TEST_P(Halo, IsTimedWithItsSumAndTheSumAlone) {
  run_with_threads_transport(4, [](Transport& transport) {
    HaloTiming const timing = timed(transport, brief());
    expect_times(timing.step, brief());
    expect_times(timing.sum_alone, brief());
  });
}

TEST_P(Halo, GhostsAndSumsAreCompared) {
  for (Fault const fault : {Fault::other_message, Fault::late_message})
    expect_error(4, ErrorCode::environment, "a ghost is", fault,
                 [](Transport& transport) { timed(transport, brief()); });
  expect_error(4, ErrorCode::environment, "a sum over ranks is", Fault::other_sum,
               [](Transport& transport) { timed(transport, brief()); });
}

TEST_P(Halo, SilenceEndsByTheDeadline) {
  Protocol protocol = brief();
  protocol.limits = {0.2, 0.2};
  expect_error(4, ErrorCode::peer_lost, "in an exchange", Fault::silence,
               [&](Transport& transport) { timed(transport, protocol); });
}

TEST(Sum, OfOneToFourValues) {
  run_with_threads_transport(3, [](Transport& transport) {
    for (int values = 1; values <= Exchange::widest_sum; ++values)
      expect_times(sum(transport, values, Reduction::ordered, brief()), brief());
  });
}

TEST(Sum, IsCompared) {
  expect_error(3, ErrorCode::environment, "a sum over ranks is 6.5 instead of 6", Fault::other_sum,
               [](Transport& transport) { sum(transport, 1, Reduction::ordered, brief()); });
}

TEST(Sum, WhatThereIsNotIsRefused) {
  for (int const values : {0, 5})
    expect_error(2, ErrorCode::usage, "values (one carries 1 to 4)", Fault::none,
                 [&](Transport& transport) { sum(transport, values, Reduction::ordered, brief()); });
  expect_error(2, ErrorCode::usage, "the threads transport has no library all-reduce", Fault::none,
               [&](Transport& transport) { sum(transport, 1, Reduction::fast, brief()); });
}

}  // namespace
}  // namespace hostless::bench
