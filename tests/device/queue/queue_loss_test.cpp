// Queues whose work GPUs' streams do: hangs, ranks that leave, and what else a program does while a wait
// spins.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "hostless/base/wait.hpp"
#include "on_gpus.hpp"
#include "sample.hpp"
#include "spinning_wait.hpp"

namespace hostless::test {
namespace {

// ---- hangs and losses

void enqueue_both(Queue& queue, Request* one, bool by_one_call) {
  if (by_one_call) return queue.enqueue_start_and_wait({&one, 1}, {&one, 1});
  queue.enqueue_start({&one, 1});
  queue.enqueue_wait({&one, 1});
}

// A wait has words of several messages for each thread. That the sender of one that has come has left says nothing of the others.
class PeerLeavesEarly : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerLeavesEarly, testing::Values(Shared{1, 3}, Shared{2, 3}), named);

TEST_P(PeerLeavesEarly, AndTheOthersMessagesAreAwaited) {
  on_ranks(3, [&](Transport& t) -> std::string {
    constexpr int late = 20;  // of a slot each: more words than threads that wait
    Communicator communicator(t, home().gpu());
    int const rank = t.group().rank();
    std::vector<Request> requests;
    if (rank == 0) requests.push_back(communicator.receive_init({home().other_memory(1), 0}, 1, 0));
    if (rank == 1) requests.push_back(communicator.send_init({home().other_memory(1), 0}, 0, 0));
    for (int k = 0; k < late; ++k) {
      std::span<std::byte> const buffer{home().other_memory(slot), slot};
      if (rank == 0) requests.push_back(communicator.receive_init(buffer, 2, k));
      if (rank == 2) requests.push_back(communicator.send_init(buffer, 0, k));
    }
    std::vector<Request*> all;
    for (Request& one : requests) all.push_back(&one);
    match(all);
    {
      Queue queue(QueueType::peer, home().stream(0));
      if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      queue.enqueue_start(all);
      queue.enqueue_wait(all);
      queue.wait();
    }
    for (Request& one : requests) one.free();
    t.group().barrier();
    return {};
  });
}

class PeerLosses : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerLosses, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

TEST_P(PeerLosses, HundredHangsEndByTheirLimit) {
  std::atomic<int> lost{0};
  int const hangs = of_all(100, 12);
  for (int hang = 0; hang < hangs; ++hang)
    on_ranks(2, [&](Transport& t) -> std::string {
      Communicator communicator(t, home().gpu());
      int const rank = t.group().rank();
      std::size_t const bytes = hang % 2 == 0 ? little : large;
      std::byte* const buffer = home().other_memory(bytes);
      Request request;
      if (hang % 4 < 2) {
        request = rank == 0 ? communicator.receive_init({buffer, bytes}, 1, 0)
                            : communicator.send_init({buffer, bytes}, 0, 0);
      } else {
        request = communicator.barrier_init();
      }
      Request* const one = &request;
      match({&one, 1});
      if (rank == 0) {
        auto const began = std::chrono::steady_clock::now();
        Queue queue(QueueType::peer, home().stream(0));
        queue.set_limit(0.02);
        for (int again = 0; again < 2; ++again) enqueue_both(queue, one, hang % 8 < 4);
        try {
          queue.wait();
        } catch (Error const& e) {
          lost += e.code() == ErrorCode::peer_lost && request.status().lost;
        }
        std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
        if (took.count() > 100) return "a hang of 20 ms took " + std::to_string(took.count()) + " s";
      }
      t.group().barrier();
      request.free();
      return {};
    });
  EXPECT_EQ(lost.load(), hangs);
}

enum class Dies { before_start, after_start, in_message };
enum class Sends { standard, small, ready };
struct How {
  Dies dies;
  Sends sends;
  bool dies_as_sender;
  bool waits_by_one_call;  ///< who outlives it: start and wait
  std::size_t bytes() const {
    return sends == Sends::small ? little : dies == Dies::in_message ? huge : large;
  }
  Request side_of(Communicator& communicator, bool as_sender, std::byte* buffer, int other) const {
    std::span<std::byte> const all(buffer, bytes());
    if (!as_sender) return communicator.receive_init(all, other, 1);
    return sends == Sends::ready ? communicator.ready_send_init(all, other, 1)
                                 : communicator.send_init(all, other, 1);
  }
};

// Its memory is its own again once it has left.
std::string die(Transport& t, GpuQueueHome& home, How const& how) {
  std::byte* const buffer = home.memory(how.bytes());
  {
    Communicator communicator(t, home.gpu());
    Request mine = how.side_of(communicator, how.dies_as_sender, buffer, 0);
    Request* const one = &mine;
    match({&one, 1});
    t.group().barrier();
    Queue queue(QueueType::peer, home.stream(0));
    if (how.dies != Dies::before_start) {
      queue.enqueue_start({&one, 1});
      if (how.dies == Dies::after_start) queue.wait();
    }
  }
  std::fill_n(buffer, how.bytes(), std::byte{0x5a});
  t.group().barrier();
  t.group().barrier();
  for (std::size_t k = 0; k < how.bytes(); ++k)
    if (buffer[k] != std::byte{0x5a}) return "memory of a rank was stored to after it had left";
  return {};
}

std::string outlive(Transport& t, GpuQueueHome& home, How const& how) {
  Communicator communicator(t, home.gpu());
  std::byte* const buffer = home.memory(how.bytes());
  Request mine = how.side_of(communicator, !how.dies_as_sender, buffer, 1);
  Request* const one = &mine;
  match({&one, 1});
  t.group().barrier();
  bool lost = false, went_on = false, has_met = false;
  for (int tries = 0; tries < 200 && !lost; ++tries) {
    Queue queue(QueueType::peer, home.stream(0));
    queue.set_limit(300);
    enqueue_both(queue, one, how.waits_by_one_call);
    queue.enqueue_function([&] { went_on = true; });
    if (!std::exchange(has_met, true)) t.group().barrier();
    auto const began = std::chrono::steady_clock::now();
    try {
      queue.wait();
    } catch (Error const& e) {
      lost = e.code() == ErrorCode::peer_lost && mine.status().lost;
    }
    if (!went_on) return "the queue did not go on after a loss";
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
    if (took.count() > 150) return "a wait for who has left took the limit";
  }
  t.group().barrier();
  mine.free();
  return lost ? "" : "a wait for who has left was never lost";
}

TEST_P(PeerLosses, APeerLeaves) {
  for (Dies const dies : {Dies::before_start, Dies::after_start, Dies::in_message})
    for (Sends const sends : {Sends::standard, Sends::small, Sends::ready})
      for (bool const as_sender : {false, true})
        for (int again = 0; again < of_all(4, 2); ++again) {
          How const how{dies, sends, as_sender, again % 2 == 1};
          SCOPED_TRACE(std::to_string(static_cast<int>(dies)) + std::to_string(static_cast<int>(sends)) +
                       std::to_string(as_sender));
          on_ranks(2, [&](Transport& t) {
            return t.group().rank() == 1 ? die(t, home(), how) : outlive(t, home(), how);
          });
        }
}

// The whole communicator goes while this rank's own stream waits.
TEST_P(PeerLosses, ACommunicatorGoesWhileItsStreamWaits) {
  on_ranks(2, [&](Transport& t) -> std::string {
    auto communicator = std::make_unique<Communicator>(t, home().gpu());
    std::byte* const buffer = home().memory(large);
    Request mine = t.group().rank() == 0 ? communicator->receive_init({buffer, large}, 1, 0)
                                         : communicator->send_init({buffer, large}, 0, 0);
    Request* const one = &mine;
    match({&one, 1});
    Queue queue(QueueType::peer, home().stream(0));
    bool lost = false;
    if (t.group().rank() == 0) {
      queue.enqueue_start({&one, 1});
      queue.enqueue_wait({&one, 1});
      communicator.reset();
      auto const began = std::chrono::steady_clock::now();
      try {
        queue.wait();
      } catch (Error const& e) {
        lost = e.code() == ErrorCode::peer_lost;
      }
      if (std::chrono::steady_clock::now() - began > std::chrono::seconds(150)) return "it took the limit";
    }
    t.group().barrier();
    return lost || t.group().rank() == 1 ? "" : "a wait of a communicator that was closed was not lost";
  });
}

/// Holds a queue's stream until it goes, or `open`.
class Gate {
 public:
  explicit Gate(Queue& queue) {
    queue.enqueue_function([is_open = is_open_] {
      while (!is_open->load()) Backoff::give_core_away();
    });
  }
  ~Gate() { open(); }
  void open() { is_open_->store(true); }

 private:
  std::shared_ptr<std::atomic<bool>> is_open_ = std::make_shared<std::atomic<bool>>(false);
};

// Its message has come, and lies in a slot, when the receiver's communicator goes: what its stream reaches only
// afterwards stores nothing into memory that is its caller's again.
std::string leave_before_wait(Transport& t, GpuQueueHome& home, bool reduces) {
  constexpr std::size_t count = 100, bytes = count * sizeof(double);
  auto communicator = std::make_unique<Communicator>(t, home.gpu());
  int const rank = t.group().rank();
  std::byte* const own = home.memory(bytes);
  std::byte* const result = home.memory(bytes);
  Request mine = reduces
                     ? communicator->all_reduce_init(own, result, count, Datatype::f64, ReduceOperation::sum)
                 : rank == 0 ? communicator->receive_init({result, bytes}, 1, 0)
                             : communicator->send_init({own, bytes}, 0, 0);
  Request* const one = &mine;
  match({&one, 1});
  Queue queue(QueueType::peer, home.stream(0));
  queue.enqueue_start({&one, 1});
  if (rank == 1) {
    queue.wait();
    t.group().barrier();
    t.group().barrier();
    return {};
  }
  Gate gate(queue);
  queue.enqueue_wait({&one, 1});
  t.group().barrier();
  communicator.reset();
  std::fill_n(result, bytes, std::byte{0x5a});
  gate.open();
  bool lost = false;
  try {
    queue.wait();
  } catch (Error const& e) {
    lost = e.code() == ErrorCode::peer_lost;
  }
  t.group().barrier();
  if (!lost) return "a wait of a communicator that was closed was not lost";
  for (std::size_t k = 0; k < bytes; ++k)
    if (result[k] != std::byte{0x5a}) return "memory was stored to whose rank had left";
  return {};
}

TEST_P(PeerLosses, WhatIsReachedAfterLeavingStoresNothing) {
  for (bool const reduces : {false, true}) {
    SCOPED_TRACE(reduces);
    on_ranks(2, [&](Transport& t) { return leave_before_wait(t, home(), reduces); });
  }
}

// ---- what else a program does meanwhile

class PeerWaits : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerWaits, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

// Each call while a wait spins on the GPU that it is about; then the message is sent. What waits for the
// GPU's kernels ends with the wait. Where the start is of the same GPU, such a call keeps it from being
// launched: the wait ends by its limit, and the next message goes. Everything else holds up nothing.
TEST_P(PeerWaits, OthersMayCallTheDriver) {
  Meanwhile const meanwhile;
  if (!meanwhile.problem().empty()) GTEST_SKIP() << meanwhile.problem();
  for (Meanwhile::Call const& call : meanwhile.calls()) {
    bool held_up = false;
    std::atomic<bool> lost{false};
    on_ranks(2, [&](Transport& t) -> std::string {
      Communicator communicator(t, home().gpu());
      int const rank = t.group().rank();
      std::byte* const buffer = home().other_memory(large);
      Request mine = rank == 0 ? communicator.receive_init({buffer, large}, 1, 0)
                               : communicator.send_init({buffer, large}, 0, 0);
      Request* const one = &mine;
      match({&one, 1});
      Queue queue(QueueType::peer, home().stream(0));
      queue.set_limit(2);
      if (rank == 0) {
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
      }
      t.group().barrier();
      if (rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it spins
        std::atomic<bool> is_through{false};
        std::thread somebody([&] {
          meanwhile.on_gpu_0(call);
          is_through.store(true);
        });
        for (int ms = 0; ms < 300 && !is_through.load(); ++ms)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        held_up = !is_through.load();
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
        somebody.join();
      }
      try {
        queue.wait();
      } catch (Error const&) {
        lost = true;
      }
      t.group().barrier();
      return {};
    });
    std::printf("while a wait spins, %s: %s\n", call.name,
                lost      ? "HELD UP THE START"
                : held_up ? "returned when the wait had ended"
                          : "returned at once");
    bool const may_hold_up = call.waits_for_kernels && GetParam().gpus == 1;
    EXPECT_TRUE(!lost.load() || may_hold_up) << call.name;
    EXPECT_TRUE(!held_up || call.waits_for_kernels) << call.name;
  }
}

}  // namespace
}  // namespace hostless::test
