// Queues whose messages NCCL moves in groups: ranks that are silent, and ranks that leave.
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "groups.hpp"
#include "hostless/base/wait.hpp"

namespace hostless::test {
namespace {

class LossesByNccl : public ByNccl {};
INSTANTIATE_TEST_SUITE_P(On, LossesByNccl, testing::Values(by_nccl(2)), named);

// Empty: a wait said that a rank is lost, and the request does; soon, and what is behind it was done.
std::string lost_in(Queue& queue, Request& request) {
  std::atomic<bool> went_on{false};
  queue.enqueue_function([&] { went_on = true; });
  auto const began = std::chrono::steady_clock::now();
  try {
    queue.wait();
    return "a wait for who is not there was complete";
  } catch (Error const& e) {
    if (e.code() != ErrorCode::peer_lost) throw;
  }
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
  if (took.count() > 150) return "a loss took " + std::to_string(took.count()) + " s";
  if (!request.status().lost) return "the request of a wait that was lost does not say so";
  return went_on ? "" : "the queue did not go on after a loss";
}

// Few of them by NCCL: connecting anew takes it a second each.
TEST_P(LossesByNccl, HangsEndByTheirLimit) {
  int const hangs = is_played() ? 20 : 3;
  for (int hang = 0; hang < hangs; ++hang)
    on_ranks(2, [&](Transport& t) -> std::string {
      Communicator communicator(t, home().gpu(), QueueType::nccl);
      int const rank = t.group().rank();
      std::byte* const buffer = home().other_memory(large);
      Request request = hang % 2 == 1 ? communicator.barrier_init()
                        : rank == 0   ? communicator.receive_init({buffer, large}, 1, 0)
                                      : communicator.send_init({buffer, large}, 0, 0);
      Request* const one = &request;
      match({&one, 1});
      std::string wrong;
      if (rank == 0) {
        Queue queue(QueueType::nccl, home().stream(0));
        queue.set_limit(0.02);
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
        wrong = lost_in(queue, request);
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
        if (wrong.empty()) wrong = lost_in(queue, request);
      }
      t.group().barrier();
      request.free();
      return wrong;
    });
}

// One rank sends more often than the other receives: its last wait ends by the limit, and leaves nothing behind that
// a later set would take for its own.
TEST_P(LossesByNccl, AWaitMoreThanThePeersIsLost) {
  on_ranks(2, [&](Transport& t) -> std::string {
    int const rank = t.group().rank();
    std::byte* const buffer = home().memory(little);
    std::string wrong;
    {
      Communicator communicator(t, home().gpu(), QueueType::nccl);
      Request request = rank == 0 ? communicator.send_init({buffer, little}, 1, 0)
                                  : communicator.receive_init({buffer, little}, 0, 0);
      Request* const one = &request;
      match({&one, 1});
      Queue queue(QueueType::nccl, home().stream(0));
      queue.enqueue_start({&one, 1});
      queue.enqueue_wait({&one, 1});
      queue.wait();
      if (rank == 0) {
        queue.set_limit(0.2);
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
        wrong = lost_in(queue, request);
        if (request.status().starts != 1) wrong = "a wait that was lost counts";
      }
      t.group().barrier();
    }
    Communicator communicator(t, home().gpu(), QueueType::nccl);
    Request request =
        rank == 0 ? communicator.send_init({buffer, 8}, 1, 0) : communicator.receive_init({buffer, 8}, 0, 0);
    Request* const one = &request;
    match({&one, 1});
    Queue queue(QueueType::nccl, home().stream(0));
    queue.enqueue_start({&one, 1});
    queue.enqueue_wait({&one, 1});
    queue.wait();
    t.group().barrier();
    return wrong;
  });
}

// One goes between matches and waits, the other waits: for it, and then, over a new communicator, for both.
TEST_P(LossesByNccl, APeerLeaves) {
  for (bool const has_started : {false, true})
    on_ranks(2, [&](Transport& t) -> std::string {
      int const rank = t.group().rank();
      std::byte *const in = home().memory(large), *const out = home().memory(large);
      std::string wrong;
      for (bool const goes : {true, false}) {
        auto communicator = std::make_unique<Communicator>(t, home().gpu(), QueueType::nccl);
        Request receive = communicator->receive_init({in, large}, rank ^ 1, 0);
        Request send = communicator->send_init({out, large}, rank ^ 1, 0);
        Request* const both[] = {&receive, &send};
        match(both);
        Queue queue(QueueType::nccl, home().stream(0));
        if (goes && rank == 1) {
          if (has_started) queue.enqueue_start(both);
          communicator.reset();
        } else {
          queue.enqueue_start(both);
          queue.enqueue_wait(both);
          if (goes) wrong = lost_in(queue, receive);
          if (!goes) queue.wait();
        }
        t.group().barrier();
      }
      return wrong;
    });
}

// The whole communicator goes while this rank's own stream waits; what was started is lost, and so is a wait that
// comes afterwards.
TEST_P(LossesByNccl, ACommunicatorGoesWhileItsStreamWaits) {
  for (bool const waits : {true, false})
    on_ranks(2, [&](Transport& t) -> std::string {
      auto communicator = std::make_unique<Communicator>(t, home().gpu(), QueueType::nccl);
      std::byte* const buffer = home().memory(large);
      Request mine = t.group().rank() == 0 ? communicator->receive_init({buffer, large}, 1, 0)
                                           : communicator->send_init({buffer, large}, 0, 0);
      Request* const one = &mine;
      match({&one, 1});
      std::string wrong;
      if (t.group().rank() == 0) {
        Queue queue(QueueType::nccl, home().stream(0));
        queue.enqueue_start({&one, 1});
        if (waits) queue.enqueue_wait({&one, 1});
        communicator.reset();
        if (!waits) queue.enqueue_wait({&one, 1});
        wrong = lost_in(queue, mine);
      }
      t.group().barrier();
      return wrong;
    });
}

// Over one that has lost a rank nothing is matched any more.
TEST_P(LossesByNccl, ALossEndsTheCommunicator) {
  std::atomic<bool> has_given_up{false};
  on_ranks(2, [&](Transport& t) -> std::string {
    Communicator communicator(t, home().gpu(), QueueType::nccl);
    int const rank = t.group().rank();
    std::byte* const buffer = home().memory(little);
    Request request = communicator.barrier_init();
    Request* const one = &request;
    match({&one, 1});
    Queue queue(QueueType::nccl, home().stream(0));
    queue.set_limit(rank == 0 ? 0.02 : 600);
    if (rank == 1) wait_for([&] { return has_given_up.load(); }, [] { return false; }, Deadline::after(240));
    queue.enqueue_start({&one, 1});
    queue.enqueue_wait({&one, 1});
    std::string wrong = lost_in(queue, request);
    has_given_up = true;
    Request more = communicator.send_init({buffer, little}, rank ^ 1, 3);
    Request* const again = &more;
    try {
      match({&again, 1});
      wrong = "something was matched after a loss";
    } catch (Error const& e) {
      if (e.code() != ErrorCode::peer_lost) throw;
    }
    t.group().barrier();
    return wrong;
  });
}

}  // namespace
}  // namespace hostless::test
