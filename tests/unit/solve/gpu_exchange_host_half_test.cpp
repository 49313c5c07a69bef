// The host's half of an exchange of fields between GPUs, on a runtime of the tests (fake_runtime/): on which
// GPU it works, and what is given back when it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "exchange/gpu/exchange_library.hpp"
#include "exchange/stream_rounds.hpp"
#include "fake_runtime.hpp"
#include "played_ask.hpp"
#include "transport/memory/borrowing.hpp"

extern "C" hostless::gpu::ExchangeLibrary* hostless_gpu_exchanges();

namespace hostless::gpu {
namespace {

namespace runtime = test::fake_runtime;

/// Two ranks of this thread, both on GPU 1, each of which reads the other's item over peer memory.
class TwoRanks {
 public:
  explicit TwoRanks(bool processes = false) {
    for (int rank = 0; rank < 2; ++rank) {
      auto& rounds = rounds_[rank];
      rounds.resize(1);
      rounds[0].from = {{0, 0}};
      rounds[0].to = {{1, 0}};
      rounds[0].out = rounds[0].in = {{1 - rank, 0, 1, 0}};
      rounds[0].most_in = 1;
      ExchangeProblem problem;
      problem.setup.device = 1;
      problem.setup.rank = rank;
      problem.setup.ranks = problem.setup.sharers = 2;
      problem.setup.processes = processes;
      problem.setup.rounds = stream_rounds(rounds, sizeof(double), false);
      problem.rounds = &rounds;
      problem.fields = {Field::around(field_[rank], sizeof(double))};
      of[rank] = hostless_gpu_exchanges()->bind(problem);
    }
    std::vector<StreamContact> const contacts = {of[0]->contact(), of[1]->contact()};
    for (auto const& one : of) one->connect(contacts);
  }
  std::unique_ptr<BoundExchange> of[2];

 private:
  std::vector<MessageRound> rounds_[2];
  double field_[2][2] = {};
};

/// Rank 0 of two, with one item for the other and one ghost, by messages that the host carries.
class RankOfTheHost {
 public:
  RankOfTheHost() {
    rounds_.resize(1);
    rounds_[0].from = {{0, 0}};
    rounds_[0].to = {{1, 0}};
    rounds_[0].out = rounds_[0].in = {{0, 0, 1, 0}};
    host_.start = [this](int) { ++started; };
    host_.test = [this] { return how_far; };
    ExchangeProblem problem;
    problem.transport = GpuTransport::host;
    problem.setup.ranks = 2;
    problem.setup.rounds = stream_rounds(rounds_, sizeof(double), false);
    problem.setup.host = &host_;
    problem.rounds = &rounds_;
    problem.fields = {Field::around(field_, sizeof(double))};
    of = hostless_gpu_exchanges()->bind(problem);
    of->connect({of->contact(), {}});
  }
  void enqueue() {
    test::PlayedAsk const asks(2);  // after the kernel that packs
    of->enqueue(nullptr);
  }
  int started = 0;
  MessageState how_far = MessageState::under_way;

 private:
  std::vector<MessageRound> rounds_;
  HostMessaging host_;
  double field_[2] = {};

 public:
  std::unique_ptr<BoundExchange> of;
};

class FieldExchanges : public testing::Test {
 protected:
  void TearDown() override { runtime::forget_held(); }
};

TEST_F(FieldExchanges, WhoLeavesTellsTheOthersFromItsOwnGpu) {
  runtime::begin_again();
  TwoRanks ranks;
  ASSERT_EQ(runtime::device_in_use(), 0);
  int const before = runtime::launches();
  ranks.of[0]->leave();
  EXPECT_EQ(runtime::timed_events(), 0) << "nobody asks when something was, only whether";
  EXPECT_EQ(runtime::launches(), before + 1);
  EXPECT_EQ(runtime::device_of_last_launch(), 1);
  EXPECT_EQ(runtime::device_in_use(), 0);
}

// Events of this runtime have always passed: what says that messages are under way is the host's side alone.
TEST_F(FieldExchanges, ATestStartsMessagesAndWaitsForNone) {
  runtime::begin_again();
  RankOfTheHost rank;
  EXPECT_TRUE(rank.of->test()) << "nothing was queued";
  rank.enqueue();
  for (int k = 0; k < 3; ++k) EXPECT_FALSE(rank.of->test());
  EXPECT_EQ(rank.started, 1);
  EXPECT_FALSE(rank.of->lost());
  rank.how_far = MessageState::complete;
  EXPECT_TRUE(rank.of->test());
  rank.enqueue();
  EXPECT_TRUE(rank.of->wait(60));
  EXPECT_EQ(rank.started, 2);
  rank.how_far = MessageState::under_way;
  rank.enqueue();
  EXPECT_FALSE(rank.of->test());
  rank.how_far = MessageState::lost;
  EXPECT_FALSE(rank.of->test());
  EXPECT_TRUE(rank.of->lost());
}

// Others' kernels may still store to what a rank takes away that has lost another, or goes by an exception.
TEST_F(FieldExchanges, MemoryThatOthersStoreToStaysAfterALossAlone) {
  auto const kept = [](std::function<void(TwoRanks&)> const& end) {
    runtime::begin_again();
    int const before = runtime::held();
    {
      TwoRanks ranks;
      end(ranks);
    }
    return runtime::held() - before;
  };
  EXPECT_EQ(kept([](TwoRanks&) {}), 0);
  EXPECT_EQ(kept([](TwoRanks& ranks) {
              ranks.of[0]->enqueue(nullptr);
              EXPECT_TRUE(ranks.of[0]->wait(1));
            }),
            0);
  EXPECT_EQ(kept([](TwoRanks& ranks) { ranks.of[0]->leave(); }), 1);
  EXPECT_EQ(kept([](TwoRanks& ranks) {
              try {
                auto const gone = std::move(ranks.of[1]);
                throw std::runtime_error("of the caller");
              } catch (std::runtime_error const&) {
              }
            }),
            1);
}

// By their number in this runtime's process: a rank's page is found under /proc as another process would.
TEST_F(FieldExchanges, WhatOtherProcessesHaveOpenLivesUntilTheyHaveClosedIt) {
  for (int const first : {0, 1}) {
    runtime::begin_again();
    int const before = runtime::held();
    TwoRanks ranks(true);
    int const opened = runtime::opened();
    ranks.of[first].reset();
    EXPECT_EQ(runtime::opened(), opened - 1);
    EXPECT_EQ(runtime::freed_while_open(), 0) << "memory went that rank " << 1 - first << " still stores to";
    ranks.of[1 - first].reset();
    EXPECT_EQ(runtime::opened(), 0);
    EXPECT_EQ(runtime::freed_while_open(), 0);
    EXPECT_EQ(runtime::held(), before) << "all have closed it";
  }
}

TEST(Borrowing, IsOverWhenAllHaveSaidSo) {
  auto lent = std::make_unique<Lent>();
  constexpr std::uint32_t both = 1u << 1 | 1u << 2;
  Borrowed one(lent->contact()), two(lent->contact());
  EXPECT_TRUE(lent->is_returned_by(0));
  one.give_back(1);
  one.give_back(1);
  EXPECT_FALSE(lent->is_returned_by(both));
  {
    Borrowed const of_none(Borrowing{});
    Borrowing other = lent->contact();
    ++other.key;
    Borrowed of_another(other);
    of_another.give_back(2);
    Borrowed(Borrowing{other.process, 100000, other.key}).give_back(2);
  }
  if (pid_t const child = fork(); child == 0) {
    two.give_back(2);
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);  // bounded: it does nothing else
  }
  EXPECT_FALSE(lent->is_returned_by(both)) << "a forked child has opened nothing";
  if (pid_t const child = fork(); child == 0) {
    Borrowed(lent->contact()).give_back(2);  // of a process that has opened it itself
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);  // bounded: it does nothing else
  }
  EXPECT_TRUE(lent->is_returned_by(both));
  lent.reset();
  two.give_back(2);  // who was lent to may say so later than the lender lives
}

}  // namespace
}  // namespace hostless::gpu
