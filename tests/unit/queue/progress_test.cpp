// Who calls a library: threads of queues only where it may be called by them.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <new>
#include <thread>

#include "hostless/queue/queue.hpp"
#include "played_library.hpp"
#include "queue/communicator_state.hpp"
#include "queue/looks.hpp"

namespace hostless::test {
namespace {

/// A message of a rank to itself.
struct Loop {
  explicit Loop(Transport& transport) : communicator(transport) {
    std::array<Request*, 2> const all{&send, &receive};
    match(all);
  }
  Communicator communicator;
  std::array<std::byte, 8> out{std::byte{7}}, in{};
  Request send = communicator.send_init(out, 0, 1), receive = communicator.receive_init(in, 0, 1);
};

// Whichever request of an item stands first, and whatever the queue's thread has begun before.
TEST(QueueProgress, ALibraryThatNoThreadMayCallIsCalledByCallsAlone) {
  PlayedLibrary by_thread(true), by_calls(false);
  Loop free(by_thread), bound(by_calls);
  auto const caller = std::this_thread::get_id();
  int of_others = 0, starts = 0;
  by_calls.at_start = [&] { ++starts, of_others += std::this_thread::get_id() != caller ? 1 : 0; };
  constexpr int many = 300;
  for (int k = 0; k < many; ++k) {
    Queue queue;
    if (k % 3 != 0) queue.enqueue_function([] {});  // the thread begins
    std::array<Request*, 2> const to_free{&free.receive, &bound.receive}, from_free{&free.send, &bound.send};
    queue.enqueue_start(to_free);
    queue.enqueue_start(from_free);
    queue.enqueue_wait(to_free);
    queue.enqueue_wait(from_free);
    queue.wait();
  }
  EXPECT_EQ(starts, 2 * many);
  EXPECT_EQ(of_others, 0);
  EXPECT_EQ(bound.in, bound.out);
  EXPECT_EQ(free.in, free.out);
}

// A caller that computes for longer than the limit, and a message that takes two looks once it looks again.
TEST(QueueProgress, TimeInWhichNobodyLooksIsNobodysSilence) {
  PlayedLibrary library(false);
  Loop loop(library);
  int looks = -1;  // not until it looks again
  library.lets_arrive = [&] { return looks >= 0 && ++looks > 1; };
  Queue queue;
  queue.set_limit(0.2);
  std::array<Request*, 2> const both{&loop.send, &loop.receive};
  queue.enqueue_start(both);
  queue.enqueue_wait(both);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  looks = 0;
  EXPECT_NO_THROW(queue.wait());
  EXPECT_EQ(loop.in, loop.out);
}

/// While it lives no thread can be started: each would have a stack that no machine has.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 48);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  NoMoreThreads(NoMoreThreads const&) = delete;
  NoMoreThreads& operator=(NoMoreThreads const&) = delete;
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

// What was refused as a whole can be started again, and does not count among what is under way.
TEST(QueueProgress, AStartForWhichNoThreadCanBeHadIsNone) {
  PlayedLibrary library(true);
  Loop loop(library);
  Queue queue;
  std::array<Request*, 2> const both{&loop.send, &loop.receive};
  {
    NoMoreThreads const none;
    for (int k = 0; k < 2; ++k) try {
        queue.enqueue_start(both);
        ADD_FAILURE() << "somebody does its work";
      } catch (QueueError const& e) {
        ADD_FAILURE() << e.what();
      } catch (Error const& e) {
        EXPECT_EQ(e.code(), ErrorCode::environment) << e.what();
      }
  }
  EXPECT_TRUE(queue.is_idle());
  EXPECT_EQ(loop.send.state()->communicator->started().now(), 0u);
  queue.enqueue_start(both);
  queue.enqueue_wait(both);
  queue.wait();
  EXPECT_EQ(loop.in, loop.out);
}

/// Seconds until it must end, looked at all the time.
double looked_until_end(queue::LossWatch& watch, bool has_left) {
  auto const begin = Clock::now();
  while (!watch.look() || !watch.must_end(has_left)) std::this_thread::yield();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

TEST(LossWatch, EndsByTheLimitOfItsWait) {
  queue::LossWatch watch;
  for (double const limit_s : {0.2, 0.05}) {
    watch.begin(limit_s);
    EXPECT_GE(looked_until_end(watch, false), limit_s);
  }
}
// What it had sent comes within a second; and who is there after all has not left.
TEST(LossWatch, WaitsASecondForWhatCameBeforeAPeerHasLeft) {
  constexpr double grace_s = 1, long_s = 1000;
  queue::LossWatch watch;
  watch.begin(long_s);
  EXPECT_GE(looked_until_end(watch, true), grace_s);
  EXPECT_FALSE(watch.must_end(false));
  EXPECT_GE(looked_until_end(watch, true), grace_s);
  watch.begin(long_s);
  EXPECT_FALSE(watch.must_end(true));
}
TEST(LossWatch, CountsAQuarterOfTheLimitBetweenTwoLooks) {
  queue::LossWatch watch;
  watch.begin(0.2);
  for (int look = 1; look <= 3; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    EXPECT_TRUE(watch.look());
    EXPECT_FALSE(watch.must_end(false)) << look;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_TRUE(watch.look());
  EXPECT_TRUE(watch.must_end(false));
}

// The library's last word comes behind a message that no look has seen.
TEST(QueueProgress, WhatCameBeforeTheLastWordIsTaken) {
  PlayedLibrary library(false);
  Loop loop(library);
  bool has_come = false;
  library.lets_arrive = [&] { return has_come; };
  Queue queue;
  std::array<Request*, 2> const both{&loop.send, &loop.receive};
  queue.enqueue_start(both);
  library.at_hear = [&] {
    has_come = true;
    throw Error(ErrorCode::peer_lost, "it carries no more");
  };
  queue.enqueue_wait(both);
  EXPECT_NO_THROW(queue.wait());
  EXPECT_TRUE(has_come);
  EXPECT_EQ(loop.in, loop.out);
  library.at_hear = nullptr;
}

// Memory that runs out, say: it neither ends the queue's thread nor comes out of somebody else's call.
TEST(QueueProgress, WhatIsNoErrorIsThrownByTheQueuesWait) {
  for (bool const by_thread : {false, true}) {
    PlayedLibrary library(by_thread);
    Loop loop(library);
    Queue queue;
    std::array<Request*, 2> const both{&loop.send, &loop.receive};
    library.at_start = [] { throw std::bad_alloc(); };
    queue.enqueue_start(both);
    queue.enqueue_wait(both);
    EXPECT_THROW(queue.wait(), std::bad_alloc);
    EXPECT_THROW(queue.wait(), Error);
    EXPECT_TRUE(loop.send.status().lost);
  }
  PlayedLibrary library(false);
  Loop loop(library);
  Queue queue, other;
  std::array<Request*, 2> const both{&loop.send, &loop.receive};
  int looks = 0;
  library.lets_arrive = [&]() -> bool { return ++looks > 1 ? throw std::bad_alloc() : false; };
  queue.enqueue_start(both);
  queue.enqueue_wait(both);
  EXPECT_NO_THROW(other.test());
  EXPECT_THROW(queue.wait(), std::bad_alloc);
}

}  // namespace
}  // namespace hostless::test
