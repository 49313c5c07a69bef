// What is called of NCCL by itself to be compared with: with a library in its place between threads
// (fake_rccl.cpp), bytes come, and no call of it that waits for a rank which does not come lasts beyond its deadline.
#include "exchange/gpu/grouped_sends.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"

namespace hostless::gpu {
namespace {

constexpr double short_s = 0.2, long_s = 600;

// Calls that wait for others in the library return with an error from here on, so that nothing is left behind.
void let_go(bool go) {
  void* const library = dlopen("librccl.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  auto const function = reinterpret_cast<void (*)(bool)>(dlsym(library, "fake_rccl_let_go"));
  ASSERT_NE(function, nullptr);
  function(go);
}

class GroupedSendsOfRanks : public ::testing::Test {
 protected:
  void SetUp() override { let_go(false); }
  void TearDown() override { let_go(true); }
};

void in_ranks(int ranks, std::function<void(int rank, UniqueId const& name)> const& body) {
  UniqueId const name = make_group_name();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { body(rank, name); });
  for (std::thread& thread : threads) thread.join();
}

GroupedRank one_of(int rank, int ranks, UniqueId const& name) {
  return {0, rank, ranks, name, long_s, long_s};
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Far from the deadline of who is patient, however slow the machine is.
void expect_soon(Clock::time_point begin) { EXPECT_LT(seconds_since(begin), long_s / 4); }

TEST_F(GroupedSendsOfRanks, BringEveryByteToEveryRankAgainAndAgain) {
  constexpr int ranks = 3;
  in_ranks(ranks, [](int rank, UniqueId const& name) {
    auto const mine = make_grouped_sends(one_of(rank, ranks, name));
    for (int turn = 0; turn < 3; ++turn) {  // the first one connects
      std::vector<std::byte> out(ranks), in(ranks);
      std::vector<GroupedPart> sent, received;
      for (int other = 0; other < ranks; ++other) {
        auto const at = static_cast<std::size_t>(other);
        out[at] = static_cast<std::byte>(100 * turn + 10 * rank + other);
        sent.push_back({other, &out[at], 1});
        received.push_back({other, &in[at], 1});
      }
      mine->enqueue(sent, received, nullptr);
      for (int other = 0; other < ranks; ++other)
        EXPECT_EQ(in[static_cast<std::size_t>(other)],
                  static_cast<std::byte>(100 * turn + 10 * other + rank));
    }
  });
}

TEST_F(GroupedSendsOfRanks, DoNotWaitForARankThatNeverJoins) {
  GroupedRank alone = one_of(0, 2, make_group_name());
  alone.first_s = short_s;
  auto const begin = Clock::now();
  try {
    make_grouped_sends(alone);
    ADD_FAILURE() << "one rank has met two";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::environment);
    EXPECT_EQ(std::string(e.what()).find("ncclCommInitRank has not returned within the deadline (RCCL 2.20"),
              0u)
        << e.what();
  }
  EXPECT_GE(seconds_since(begin), short_s);
  expect_soon(begin);
}

TEST_F(GroupedSendsOfRanks, DoNotWaitForAFirstMessageThatNeverComes) {
  constexpr double first_s = 4;  // of the one who waits in vain; both have to join within it
  std::latch over(1);
  in_ranks(2, [&](int rank, UniqueId const& name) {
    GroupedRank who = one_of(rank, 2, name);
    if (rank == 0) who.first_s = first_s;
    auto const mine = make_grouped_sends(who);
    if (rank == 1) {
      over.wait();  // bounded: by rank 0, whose every wait is what is tested
      mine->abort();
      return;
    }
    auto const begin = Clock::now();
    std::byte in{};
    try {
      mine->enqueue({}, {{1, &in, 1}}, nullptr);
      ADD_FAILURE() << "something has come";
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::peer_lost);
      EXPECT_EQ(std::string(e.what()).find("ncclGroupEnd has not returned within the deadline"), 0u)
          << e.what();
    }
    EXPECT_GE(seconds_since(begin), first_s);
    mine->abort();
    expect_soon(begin);
    over.count_down();
  });
}

TEST_F(GroupedSendsOfRanks, DoNotWaitForTheEndOfARankThatStays) {
  std::latch over(1);
  in_ranks(2, [&](int rank, UniqueId const& name) {
    GroupedRank who = one_of(rank, 2, name);
    who.deadline_s = short_s;
    auto mine = make_grouped_sends(who);
    if (rank == 1) {
      over.wait();  // bounded: by rank 0, whose every wait is what is tested
      mine->abort();
      return;
    }
    auto const begin = Clock::now();
    mine.reset();
    EXPECT_GE(seconds_since(begin), short_s);
    expect_soon(begin);
    over.count_down();
  });
}

/// While it lives, no thread can be had: the stack of one is larger than any address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t usual;
    pthread_getattr_default_np(&usual);
    pthread_attr_getstacksize(&usual, &usual_);
    pthread_attr_destroy(&usual);
    set(std::size_t{1} << 60);
  }
  ~NoThreads() { set(usual_); }
  NoThreads(NoThreads const&) = delete;
  NoThreads& operator=(NoThreads const&) = delete;

 private:
  static void set(std::size_t bytes) {
    pthread_attr_t attributes;
    pthread_getattr_default_np(&attributes);
    EXPECT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
  }
  std::size_t usual_ = 0;
};

// Who leaves may have run out of them; its destructor and `abort` cannot say so.
TEST_F(GroupedSendsOfRanks, EndWithoutAThread) {
  for (bool const aborts : {false, true}) {
    auto mine = make_grouped_sends(one_of(0, 1, make_group_name()));
    NoThreads const none;
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
    if (aborts) mine->abort();
    mine.reset();
  }
}

}  // namespace
}  // namespace hostless::gpu
