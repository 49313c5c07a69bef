// Ranks that leave before their start, between start and wait, and in the middle of a message: the others'
// queues go on, say peer_lost, and work with those who stay. Buffers of who has gone are freed: the address
// sanitizer sees whether somebody still uses them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "hostless/queue/queue.hpp"
#include "played_library.hpp"
#include "queue/request_state.hpp"

namespace hostless {
namespace {

enum class Dies { before_start, after_start, in_message };
enum class Sends { standard, small, ready };
struct How {
  Dies dies;
  Sends sends;
  bool dies_as_sender;
};

std::size_t bytes_of(Sends sends, Dies dies) {
  if (sends == Sends::small) return 1000;
  return dies == Dies::in_message ? std::size_t{1} << 25 : 100000;
}

Request side_of(Communicator& communicator, How const& how, bool sends, std::vector<std::byte>& buffer,
                int other) {
  if (!sends) return communicator.receive_init(buffer, other, 1);
  return how.sends == Sends::ready ? communicator.ready_send_init(buffer, other, 1)
                                   : communicator.send_init(buffer, other, 1);
}

struct Died {};

// Rank 1 dies; it is what `how` says.
void die(Transport& t, How const& how) {
  Communicator communicator(t);
  std::vector<std::byte> buffer(bytes_of(how.sends, how.dies));
  Request mine = side_of(communicator, how, how.dies_as_sender, buffer, 0);
  Request* const one = &mine;
  match({&one, 1});
  t.group().barrier();
  Queue queue;
  if (how.dies != Dies::before_start) {
    queue.enqueue_start({&one, 1});
    if (how.dies == Dies::after_start) queue.wait();
    // Else while somebody moves its bytes, or is about to.
    if (how.dies == Dies::in_message) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  throw Died{};  // its queue, its requests, its buffer and then its communicator go
}

// Whether a wait ended by the loss. Rank 0; rank 2 stays.
bool is_lost(Transport& t, How const& how) {
  Communicator communicator(t);
  bool const sends = !how.dies_as_sender;
  std::vector<std::byte> buffer(bytes_of(how.sends, how.dies)), other_out(100000, std::byte{7});
  Request mine = side_of(communicator, how, sends, buffer, 1),
          to_third = communicator.send_init(other_out, 2, 2);
  Request* all[] = {&mine, &to_third};
  match(all);
  t.group().barrier();
  bool lost = false, went_on = false;
  // Sends may still be complete, ready ones for as long as the other has not gone.
  for (int tries = 0; tries < 1000 && !lost; ++tries) {
    if (tries > 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Queue queue;
    queue.set_limit(300);
    queue.enqueue_start({&all[0], 1});
    queue.enqueue_wait({&all[0], 1});
    queue.enqueue_function([&] { went_on = true; });
    auto const began = std::chrono::steady_clock::now();
    try {
      queue.wait();
    } catch (Error const& e) {
      lost = e.code() == ErrorCode::peer_lost && mine.status().lost;
    }
    EXPECT_TRUE(went_on);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(150)) << "it took the limit";
  }
  Queue usable;
  usable.enqueue_start({&all[1], 1});
  usable.enqueue_wait({&all[1], 1});
  usable.wait();
  mine.free();
  to_third.free();
  return lost;
}

void stay(Transport& t) {
  Communicator communicator(t);
  std::vector<std::byte> in(100000);
  Request receive = communicator.receive_init(in, 0, 2);
  Request* const one = &receive;
  match({&one, 1});
  t.group().barrier();
  Queue queue;
  queue.enqueue_start({&one, 1});
  queue.enqueue_wait({&one, 1});
  queue.wait();
  EXPECT_EQ(in.back(), std::byte{7});
  receive.free();
}

TEST(QueueLoss, APeerDies) {
  int lost = 0, tried = 0;
  for (Dies const dies : {Dies::before_start, Dies::after_start, Dies::in_message})
    for (Sends const sends : {Sends::standard, Sends::small, Sends::ready})
      for (bool const as_sender : {false, true})
        for (int again = 0; again < 10; ++again) {
          How const how{dies, sends, as_sender};
          ++tried;
          try {
            run_with_threads_transport(3, [&](Transport& t) {
              if (t.group().rank() == 1) die(t, how);
              if (t.group().rank() == 2) return stay(t);
              lost += is_lost(t, how) ? 1 : 0;
            });
            ADD_FAILURE() << "nobody died";
          } catch (Died const&) {
          }
        }
  EXPECT_EQ(lost, tried);
}

// Peers that match and then are silent.
TEST(QueueLoss, HundredHangs) {
  std::atomic<int> lost{0};
  for (int hang = 0; hang < 100; ++hang)
    run_with_threads_transport(2, [&](Transport& t) {
      Communicator communicator(t);
      int const rank = t.group().rank();
      std::vector<std::byte> buffer(hang % 2 == 0 ? 100 : 100000);
      Request request;
      if (hang % 4 < 2) {
        request = rank == 0 ? communicator.receive_init(buffer, 1, 0) : communicator.send_init(buffer, 0, 0);
      } else {
        request = communicator.barrier_init();
      }
      Request* const one = &request;
      match({&one, 1});
      if (rank == 0) {
        Queue queue;
        queue.set_limit(0.01);
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
        try {
          queue.wait();
        } catch (Error const& e) {
          lost += e.code() == ErrorCode::peer_lost;
        }
      }
      t.group().barrier();
      request.free();
    });
  EXPECT_EQ(lost.load(), 100);
}

// A match whose other side leaves without one.
TEST(QueueLoss, OfAMatch) {
  int lost = 0;
  run_with_threads_transport(2, [&](Transport& t) {
    Communicator communicator(t);
    if (t.group().rank() == 1) return;
    std::vector<std::byte> buffer(8);
    Request request = communicator.send_init(buffer, 1, 0);
    Request* const one = &request;
    try {
      match({&one, 1});
    } catch (Error const& e) {
      lost += e.code() == ErrorCode::peer_lost;
    }
  });
  EXPECT_EQ(lost, 1);
}

// A request outlives its communicator, and can only be freed.
TEST(QueueLoss, OfACommunicator) {
  auto const transport = single_transport();
  std::byte out{5}, in{};
  Request send, receive, late;
  {
    Communicator communicator(*transport);
    send = communicator.send_init({&out, 1}, 0, 0);
    receive = communicator.receive_init({&in, 1}, 0, 0);
    late = communicator.barrier_init();
    Request* both[] = {&send, &receive};
    match(both);
  }
  Queue queue;
  Request* const one = &send;
  EXPECT_THROW(queue.enqueue_start({&one, 1}), QueueError);
  Request* const other = &late;
  EXPECT_THROW(match({&other, 1}), QueueError);
  for (Request* const r : {&send, &receive, &late}) r->free();
}

/// Whether memory of a request to its own rank, which a step fails or not, is there when the request has gone.
bool memory_stays(Transport& transport, bool is_lost) {
  Communicator communicator(transport);
  std::byte const out{5};
  std::byte in{};
  Request send = communicator.send_init({&out, 1}, 0, 0), receive = communicator.receive_init({&in, 1}, 0, 0);
  auto memory = std::shared_ptr<std::byte>(new std::byte);
  receive.state()->gpu_memory = memory;
  std::weak_ptr<std::byte> const seen = std::exchange(memory, nullptr);
  Request* const both[] = {&send, &receive};
  match(both);
  {
    Queue queue;
    queue.enqueue_start(both);
    queue.enqueue_wait(both);
    if (is_lost) {
      EXPECT_THROW(queue.wait(), Error);
    } else {
      queue.wait();
    }
  }
  receive.free();
  send.free();
  return !seen.expired();
}

// A library may still write to it.
TEST(QueueLoss, MemoryThatALibraryMayUseStays) {
  test::PlayedLibrary library(true);
  EXPECT_FALSE(memory_stays(library, false));
  library.at_start = [] { throw Error(ErrorCode::peer_lost, "nobody is there"); };
  EXPECT_TRUE(memory_stays(library, true));
}

}  // namespace
}  // namespace hostless
