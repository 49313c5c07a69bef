// Queues whose work GPUs' streams do: the contract of all queues with ranks that share one GPU and ranks on
// two, graphs that are launched again, many requests at once, and what is refused. Where the GPU is played by
// the processor (tests/unit/queue/fake_gpu) the host's half is tried.
#include <atomic>
#include <cstdlib>
#include <vector>

#include "on_gpus.hpp"
#include "queue_cases.hpp"
#include "queue_programs.hpp"
#include "sample.hpp"

namespace hostless::test {
namespace {

// ---- the contract of all queues

class PeerQueues : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerQueues,
                         testing::ValuesIn(is_sample() ? std::vector<Shared>{{1, 2}, {1, 5}, {2, 2}, {2, 6}}
                                                       : std::vector<Shared>{{1, 2},
                                                                             {1, 3},
                                                                             {1, 4},
                                                                             {1, 5},
                                                                             {1, 6},
                                                                             {2, 2},
                                                                             {2, 3},
                                                                             {2, 4},
                                                                             {2, 5},
                                                                             {2, 6}}),
                         named);

TEST_P(PeerQueues, Cases) {
  for (QueueCase const& one : queue_cases()) {
    if (one.ranks != 0 && one.ranks != ranks()) continue;
    SCOPED_TRACE(one.name);
    on_ranks(ranks(), [&](Transport& transport) { return one.run(transport); });
  }
}

// HOSTLESS_QUEUE_PROGRAMS: how many in all; without it 500 or a few more.
TEST_P(PeerQueues, RandomPrograms) {
  std::uint64_t const suites = gpus_here() > 1 ? 10 : 5;
  auto const& here = *testing::UnitTest::GetInstance()->current_test_info();
  std::string const how =
      "device_queue --gtest_filter=" + std::string(here.test_suite_name()) + "." + here.name();
  on_ranks(ranks(), [&](Transport& transport) {
    Communicator communicator(transport, home().gpu());
    transport.group().barrier();
    return run_random_programs(communicator, transport.group(),
                               seeds_of(ranks(), of_all<std::uint64_t>(500, 80) / suites, suites), how);
  });
}

// ---- graphs

class PeerGraphs : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerGraphs, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

// Both ranks pack, send to each other, wait and unpack: what one has becomes the other's, plus 2.
struct Swap {
  Swap(Transport& t, GpuQueueHome& home, Communicator& communicator, std::size_t bytes_, bool ready_)
      : bytes(bytes_), ready(ready_), bench(home.bench(0)), queue(QueueType::peer, bench.stream()) {
    int const other = t.group().rank() ^ 1;
    for (std::byte** const one : {&data, &out, &in}) *one = home.other_memory(bytes);
    shown = home.memory(bytes);
    std::fill_n(shown, bytes, static_cast<std::byte>(100 * t.group().rank()));
    bench.add_to_bytes(data, shown, bytes, 0);
    receive = communicator.receive_init({in, bytes}, other, 0);
    send = ready ? communicator.ready_send_init({out, bytes}, other, 0)
                 : communicator.send_init({out, bytes}, other, 0);
    barrier = communicator.barrier_init();
    Request* all[] = {&receive, &send, &barrier};
    match(all);
  }
  void step() {
    Request *both[] = {&receive, &send}, *const barrier_alone = &barrier;
    bench.add_to_bytes(out, data, bytes, 1);
    if (ready) {
      queue.enqueue_start({both, 1});
      queue.enqueue_start({&barrier_alone, 1});
      queue.enqueue_wait({&barrier_alone, 1});
      queue.enqueue_start({both + 1, 1});
    } else {
      queue.enqueue_start(both);
    }
    queue.enqueue_wait(both);
    bench.add_to_bytes(data, in, bytes, 1);
  }
  std::string look(int rank, int steps) {
    bench.add_to_bytes(shown, data, bytes, 0);
    queue.wait();
    auto const right = static_cast<std::byte>(2 * steps + 100 * (steps % 2 == 0 ? rank : rank ^ 1));
    for (std::size_t k = 0; k < bytes; ++k)
      if (shown[k] != right)
        return "byte " + std::to_string(k) + " of " + std::to_string(bytes) + " after " +
               std::to_string(steps) + " steps" + (ready ? " of ready sends" : "") + " is " +
               std::to_string(std::to_integer<int>(shown[k])) + " instead of " +
               std::to_string(std::to_integer<int>(right));
    for (Request const* const one : {&receive, &send})
      if (one->status().starts != static_cast<std::uint64_t>(steps) || one->status().lost)
        return "a status says " + std::to_string(one->status().starts) + " starts instead of " +
               std::to_string(steps);
    return {};
  }
  std::size_t bytes;
  bool ready;
  gpu::StreamBench& bench;
  Queue queue;
  std::byte *data = nullptr, *out = nullptr, *in = nullptr, *shown = nullptr;
  Request receive, send, barrier;
};

// Epochs, parities and slots go on in every launch, and in what is enqueued between them.
TEST_P(PeerGraphs, AreLaunchedAgainAndAgain) {
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{8}, slot, large, is_played() ? slot + 1 : huge})
    for (bool const ready : {false, true})
      on_ranks(2, [&](Transport& t) -> std::string {
        Communicator communicator(t, home().gpu());
        Swap swap(t, home(), communicator, bytes, ready);
        int steps = 0;
        swap.step(), ++steps;
        if (std::string const wrong = swap.look(t.group().rank(), steps); !wrong.empty()) return wrong;
        constexpr int recorded = 3;
        int const launches = of_all(25, 8);
        swap.bench.record([&] {
          for (int k = 0; k < recorded; ++k) swap.step();
        });
        t.group().barrier();  // a graph is made before anybody waits
        for (int k = 0; k < launches; ++k) {
          swap.bench.replay(), steps += recorded;
          if (k % 7 == 3) swap.step(), ++steps;
        }
        std::string const wrong = swap.look(t.group().rank(), steps);
        t.group().barrier();
        for (Request* const one : {&swap.receive, &swap.send, &swap.barrier}) one->free();
        return wrong;
      });
}

// A function, a loss of the recording itself: the queue says that it records.
TEST_P(PeerGraphs, CallFunctionsAndSayThatTheyRecord) {
  on_ranks(2, [&](Transport& t) -> std::string {
    gpu::StreamBench& bench = home().bench(0);
    Queue queue(QueueType::automatic, bench.stream());
    std::atomic<int> called{0};
    bool refused = false, was_done = true;
    bench.record([&] {
      queue.enqueue_function([&] { ++called; });
      was_done = queue.test();
      try {
        queue.wait();
      } catch (Error const& e) {
        refused = e.code() == ErrorCode::usage;
      }
    });
    if (!refused || was_done) return "a wait for a queue that records was not refused";
    for (int k = 0; k < 5; ++k) bench.replay();
    queue.wait();
    t.group().barrier();
    return called.load() == 5 ? ""
                              : "a recorded function was called " + std::to_string(called.load()) + " times";
  });
}

// A stream that is held goes on when it is released, or by itself after the limit, and says which it was.
TEST_P(PeerGraphs, AHoldSaysWhetherItWasReleased) {
  auto const bench = gpu::message_library().bench(0);
  Queue queue(QueueType::peer, bench->stream());
  bench->hold(600);
  if (queue.test()) ADD_FAILURE() << "nothing was held";
  bench->release();
  queue.wait();
  EXPECT_FALSE(bench->went_on_unreleased());
  bench->hold(0.02);
  queue.wait();
  EXPECT_TRUE(bench->went_on_unreleased());
}

// ---- many requests, and what is refused

class PeerRequests : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerRequests, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

// More than one kernel takes, all modes and sizes in one start and one wait.
TEST_P(PeerRequests, ManyAtOnce) {
  on_ranks(2, [&](Transport& t) -> std::string {
    Communicator communicator(t, home().gpu());
    int const other = t.group().rank() ^ 1;
    constexpr int many = 60;
    std::vector<std::byte*> out, in;
    std::vector<std::size_t> bytes;
    std::vector<Request> requests;
    for (int k = 0; k < many; ++k) {
      bytes.push_back(k % 3 == 0   ? static_cast<std::size_t>(k)
                      : k % 3 == 1 ? large + static_cast<std::size_t>(k)
                                   : slot);
      out.push_back(home().memory(bytes.back())), in.push_back(home().memory(bytes.back()));
      requests.push_back(communicator.receive_init({in.back(), bytes.back()}, other, k));
      requests.push_back(communicator.send_init({out.back(), bytes.back()}, other, k));
    }
    std::vector<Request*> all;
    for (Request& one : requests) all.push_back(&one);
    match(all);
    t.group().barrier();
    Queue queue(QueueType::peer, home().stream(0));
    for (int round = 0; round < 4; ++round) {
      for (std::size_t k = 0; k < out.size(); ++k)
        std::fill_n(out[k], bytes[k],
                    static_cast<std::byte>(t.group().rank() + 7 * round + static_cast<int>(k)));
      queue.enqueue_start(all);
      queue.enqueue_wait(all);
      queue.wait();
      for (std::size_t k = 0; k < in.size(); ++k)
        for (std::size_t b = 0; b < bytes[k]; ++b)
          if (in[k][b] != static_cast<std::byte>(other + 7 * round + static_cast<int>(k)))
            return "byte " + std::to_string(b) + " of message " + std::to_string(k) + " in round " +
                   std::to_string(round) + " is wrong";
    }
    t.group().barrier();
    return {};
  });
}

template <class Call>
std::string refusal_of(Call const& call) {
  try {
    call();
  } catch (QueueError const& e) {
    return e.why() == Refusal::unsupported ? e.what() : "another refusal: " + std::string(e.what());
  }
  return {};
}

TEST_P(PeerRequests, OfTheHostAreNoStreamsWork) {
  on_ranks(2, [&](Transport& t) -> std::string {
    int const other = t.group().rank() ^ 1;
    std::vector<std::byte> unpinned(64);
    std::byte* const pinned = home().memory(64);
    {
      Communicator communicator(t, home().gpu());
      if (refusal_of([&] { communicator.send_init(unpinned, other, 0); }).find("not pinned") ==
          std::string::npos)
        return "memory that is not pinned was not refused";
      Request send = communicator.send_init({pinned, 64}, other, 0);
      Request receive = communicator.receive_init({pinned, 64}, other, 0);
      Request* both[] = {&send, &receive};
      match(both);
      Queue of_threads(QueueType::threads);
      if (refusal_of([&] { of_threads.enqueue_start(both); }).find("the host") == std::string::npos)
        return "a request of a GPU was taken by a queue of threads";
      t.group().barrier();
    }
    Communicator of_host(t);
    Request send = of_host.send_init(unpinned, other, 0),
            receive = of_host.receive_init({pinned, 64}, other, 0);
    Request* both[] = {&send, &receive};
    match(both);
    Queue queue(QueueType::peer, home().stream(0));
    if (refusal_of([&] { queue.enqueue_start(both); }).find("the host") == std::string::npos)
      return "a request of the host was taken by a stream";
    t.group().barrier();
    return {};
  });
}

TEST_P(PeerRequests, BothSidesAreAGpusOrTheHosts) {
  on_ranks(2, [&](Transport& t) -> std::string {
    int const rank = t.group().rank();
    Communicator communicator(t, rank == 0 ? home().gpu() : Communicator::no_gpu);
    std::byte* const buffer = home().memory(large);
    Request one = rank == 0 ? communicator.send_init({buffer, large}, 1, 0)
                            : communicator.receive_init({buffer, large}, 0, 0);
    Request* const all[] = {&one};
    std::string wrong = "a message between a GPU's stream and the host was matched";
    try {
      match(all);
    } catch (QueueError const& e) {
      if (e.why() == Refusal::mismatch) wrong.clear();
    }
    t.group().barrier();
    return wrong;
  });
}

}  // namespace
}  // namespace hostless::test

int main(int count, char** words) {
  // Before anything asks for a GPU: streams of six ranks that wait each need a queue of it.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
