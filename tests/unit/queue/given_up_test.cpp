// Matches that one side gives up: the other one is told at once, whichever comes first.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "hostless/queue/queue.hpp"
#include "played_library.hpp"
#include "queue/offer.hpp"

namespace hostless {
namespace {

// Limits are 600 s where a test sets none: what ends by itself takes less.
class QueueGivenUp : public testing::Test {
 protected:
  ~QueueGivenUp() override {
    EXPECT_LT(std::chrono::steady_clock::now() - began_, std::chrono::seconds(300)) << "by the limit";
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// What its match says of the loss; empty: it is matched.
std::string text_of_match(Request& request) {
  Request* const one = &request;
  try {
    match({&one, 1});
  } catch (Error const& e) {
    return std::string(e.code() == ErrorCode::peer_lost ? "lost: " : "") + e.what();
  }
  return {};
}
enum class Told { never, by_start, by_wait };
// at_wait: before its wait is enqueued.
Told told_by(
    Request& request, std::function<void()> const& at_wait = [] {}) {
  Request* const one = &request;
  Queue queue;
  try {
    queue.enqueue_start({&one, 1});
  } catch (QueueError const& e) {
    return e.why() == Refusal::not_matched ? Told::by_start : Told::never;
  }
  at_wait();
  queue.enqueue_wait({&one, 1});
  try {
    queue.wait();
  } catch (Error const& e) {
    if (e.code() == ErrorCode::peer_lost && request.status().lost) return Told::by_wait;
  }
  return Told::never;
}

// One side is given up at about the moment when the other one is offered: that one's match says so, its
// start or its wait.
TEST_F(QueueGivenUp, AsTheOtherSideComes) {
  constexpr int rounds = 400;
  int at_match = 0, later = 0, both = 0;
  run_with_threads_transport(2, [&](Transport& t) {
    Communicator communicator(t);
    std::vector<std::byte> buffer(100000);  // too long for a slot, which would end the send
    bool const gives_up = t.group().rank() == 0;
    if (gives_up) communicator.set_limit(1e-6);
    for (int k = 0; k < rounds; ++k) {
      Request request =
          gives_up ? communicator.receive_init(buffer, 1, k) : communicator.send_init(buffer, 0, k);
      t.group().barrier();
      if (!gives_up) std::this_thread::sleep_for(std::chrono::microseconds(k % 8));
      bool const is_matched = text_of_match(request).empty();
      bool const are_both = t.group().sum(is_matched ? 1 : 0) == 2;
      if (!gives_up) {
        both += are_both ? 1 : 0;
        at_match += is_matched ? 0 : 1;
        if (is_matched && !are_both) later += told_by(request) != Told::never ? 1 : 0;
      }
      request.free();
    }
  });
  EXPECT_EQ(at_match + later + both, rounds);
  std::printf("%d were told by their match, %d behind it, %d were matched\n", at_match, later, both);
}

// What comes behind the match, over a library, is heard by the first start, or by the wait.
TEST_F(QueueGivenUp, AfterTheMatchOverALibrary) {
  test::PlayedLibrary library(true);
  Communicator communicator(library);
  std::vector<std::byte> buffer(8);
  std::uint64_t serial = 0;
  for (bool const before_start : {true, false}) {
    Request send = communicator.send_init(buffer, 0, 1), receive = communicator.receive_init(buffer, 0, 1);
    Request* const both[] = {&send, &receive};
    match(both);
    Bytes const note = queue::withdrawn_text({0, 1, 0, queue::Side::sender}, serial + 1);
    serial += 2;
    if (before_start) {
      library.late.push_back(note);
      EXPECT_EQ(told_by(receive), Told::by_start);
      EXPECT_FALSE(receive.is_matched());
    } else {
      EXPECT_EQ(told_by(receive, [&] { library.late.push_back(note); }), Told::by_wait);
    }
    receive.free();
    send.free();
  }
}

// A collective waits for two ranks, of which one gives up; the last one finds it so.
TEST_F(QueueGivenUp, ACollectiveEndsOnAllRanks) {
  std::atomic<bool> is_told{false};
  run_with_threads_transport(3, [&](Transport& t) {
    Communicator communicator(t);
    int const rank = t.group().rank();
    Request barrier = communicator.barrier_init();
    if (rank == 0) communicator.set_limit(0.2);
    while (rank == 2 && !is_told.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::string const said = text_of_match(barrier);
    EXPECT_EQ(said.find("lost: a match"), 0u) << said;
    EXPECT_EQ(rank != 0, said.find("of a barrier whose other side rank ") != said.npos) << said;
    if (rank == 1) is_told.store(true);
    t.group().barrier();
    barrier.free();
  });
}

// A handle that goes with the match that was begun: the other side is told as soon as it is heard.
TEST_F(QueueGivenUp, AHandleThatGoesWithItsMatch) {
  std::atomic<bool> is_told{false};
  run_with_threads_transport(2, [&](Transport& t) {
    Communicator communicator(t);
    std::vector<std::byte> buffer(100000);
    if (t.group().rank() == 0) {
      {
        Request gone = communicator.receive_init(buffer, 1, 0);
        Request* const one = &gone;
        Request const match = begin_match({&one, 1});
      }
      Request stays = communicator.receive_init(buffer, 1, 1);
      Request* const one = &stays;
      Request match = begin_match({&one, 1});
      t.group().barrier();
      while (!is_told.load()) match.test();
      t.group().barrier();
    } else {
      t.group().barrier();
      Request request = communicator.send_init(buffer, 0, 0);
      EXPECT_TRUE(!text_of_match(request).empty() || told_by(request) != Told::never);
      is_told.store(true);
      t.group().barrier();
    }
  });
}

// Who has said its side and left owes a match nothing: it goes on waiting for the others.
TEST_F(QueueGivenUp, ARankThatLeftBehindItsSideIsNoLoss) {
  test::PlayedLibrary library(true);
  library.ranks = 3;
  Communicator communicator(library);
  Request barrier = communicator.barrier_init();
  Request* const one = &barrier;
  Request match = begin_match({&one, 1});
  library.answer_for(2);
  EXPECT_FALSE(match.test());
  library.left = {2};
  EXPECT_FALSE(match.test());
  library.answer_for(1);
  EXPECT_TRUE(match.test());
  EXPECT_TRUE(barrier.is_matched());
  match.free();
  barrier.free();
}
TEST_F(QueueGivenUp, ARankThatLeftWithoutItsSideIsALoss) {
  test::PlayedLibrary library(true);
  library.ranks = 3;
  Communicator communicator(library);
  Request barrier = communicator.barrier_init();
  Request* const one = &barrier;
  Request match = begin_match({&one, 1});
  library.answer_for(1);
  library.left = {2};
  EXPECT_THROW(match.test(), Error);
  match.free();
  barrier.free();
}

}  // namespace
}  // namespace hostless
