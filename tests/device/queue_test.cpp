// Queues whose work GPUs' streams do: the contract of all queues with ranks that share one GPU and ranks on
// two, graphs that are launched again, hangs, ranks that leave, and what else a program does while a wait
// spins. Where the GPU is played by the processor (tests/unit/queue/fake_gpu) the host's half is tried.
#include "hostless/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#include "api/guarded.hpp"
#include "base/variable.hpp"
#include "gpu_queue_place.hpp"
#include "queue_cases.hpp"
#include "queue_programs.hpp"
#include "spinning_wait.hpp"

namespace hostless::test {
namespace {

constexpr std::size_t little = 1000, slot = 8192, large = 100000, huge = std::size_t{1} << 22;

std::string why_no_messages() {
  try {
    gpu::message_library();
  } catch (QueueError const& e) {
    return e.what();
  }
  return {};
}
int gpus_here() { return gpu::message_library().devices(); }

GpuQueuePlace& place_of(int gpus) {
  static auto* const used = new std::map<int, GpuQueuePlace*>;
  auto& place = (*used)[gpus];
  if (place == nullptr) place = new GpuQueuePlace(gpus);
  return *place;
}
/// What hands the place to the tests that know places alone.
class Lent final : public QueuePlace {
 public:
  explicit Lent(GpuQueuePlace& of) : of_(of) {}
  void enter(Transport& t) override { of_.enter(t); }
  void again() override { of_.again(); }
  int gpu() const override { return of_.gpu(); }
  QueueType type() const override { return of_.type(); }
  void* stream(int queue) override { return of_.stream(queue); }
  std::byte* memory(std::size_t bytes) override { return of_.memory(bytes); }
  std::byte* other_memory(std::size_t bytes) override { return of_.other_memory(bytes); }
  void pass(int queue, std::byte* to, std::byte const* from, std::size_t bytes) override {
    of_.pass(queue, to, from, bytes);
  }

 private:
  GpuQueuePlace& of_;
};

/// GPUs, and ranks that share them.
struct Shared {
  int gpus, ranks;
};
std::string name_of(Shared const& s) {
  return std::to_string(s.ranks) + "_ranks_on_" + std::to_string(s.gpus) + (s.gpus == 1 ? "_gpu" : "_gpus");
}

class OnGpus : public testing::TestWithParam<Shared> {
 protected:
  void SetUp() override {
    if (std::string const why = why_no_messages(); !why.empty()) GTEST_SKIP() << why;
    if (gpus_here() < GetParam().gpus)
      GTEST_SKIP() << gpus_here() << " GPUs here; ranks on " << GetParam().gpus << " were to be tried.";
    set_queue_place() = std::make_unique<Lent>(place());
  }
  static GpuQueuePlace& place() { return place_of(GetParam().gpus); }
  static int ranks() { return GetParam().ranks; }
  /// On every rank; what it returns is a failure.
  template <class Work>
  static void on_ranks(int count, Work const& work) {
    run_with_threads_transport(count, [&](Transport& transport) {
      place().enter(transport);
      std::string const wrong = work(transport);
      if (!wrong.empty()) throw std::runtime_error(wrong);
    });
  }
};
auto const named = [](auto const& one) { return name_of(one.param); };

// ---- the contract of all queues

class PeerQueues : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerQueues,
                         testing::Values(Shared{1, 2}, Shared{1, 3}, Shared{1, 4}, Shared{1, 6}, Shared{2, 2},
                                         Shared{2, 3}, Shared{2, 4}, Shared{2, 6}),
                         named);

TEST_P(PeerQueues, Cases) {
  for (QueueCase const& one : queue_cases()) {
    if (one.ranks != 0 && one.ranks != ranks()) continue;
    SCOPED_TRACE(one.name);
    on_ranks(ranks(), [&](Transport& transport) { return one.run(transport); });
  }
}

// HOSTLESS_QUEUE_PROGRAMS: how many in all.
TEST_P(PeerQueues, RandomPrograms) {
  std::int64_t const suites = gpus_here() > 1 ? 8 : 4;
  auto const count = static_cast<std::uint64_t>(count_of("HOSTLESS_QUEUE_PROGRAMS", 500) / suites);
  auto const first = static_cast<std::uint64_t>(count_of("HOSTLESS_QUEUE_SEED", 1000000 * ranks()));
  Drawn drawn;
  auto const began = std::chrono::steady_clock::now();
  on_ranks(ranks(), [&](Transport& transport) -> std::string {
    Communicator communicator(transport, place().gpu());
    int const rank = transport.group().rank();
    transport.group().barrier();
    Drawn mine;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      std::string const wrong = run_random_program(communicator, rank, ranks(), seed, mine);
      if (!wrong.empty()) return wrong;
    }
    transport.group().barrier();
    if (rank == 0) drawn = mine;
    return {};
  });
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
  std::printf("%d ranks, %llu programs: %d messages (%d ready), %d collectives, %d epochs, %.1f MB, %.1f s\n",
              ranks(), static_cast<unsigned long long>(count), drawn.messages, drawn.ready, drawn.collectives,
              drawn.epochs, 1e-6 * static_cast<double>(drawn.bytes), took.count());
}

// ---- graphs

class PeerGraphs : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerGraphs, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

// Both ranks pack, send to each other, wait and unpack: what one has becomes the other's, plus 2.
struct Swap {
  Swap(Transport& t, GpuQueuePlace& place, Communicator& communicator, std::size_t bytes_, bool ready_)
      : bytes(bytes_), ready(ready_), bench(place.bench(0)), queue(QueueType::peer, bench.stream()) {
    int const other = t.group().rank() ^ 1;
    for (std::byte** const one : {&data, &out, &in}) *one = place.other_memory(bytes);
    shown = place.memory(bytes);
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
    Request *both[] = {&receive, &send}, *const meeting = &barrier;
    bench.add_to_bytes(out, data, bytes, 1);
    if (ready) {
      queue.enqueue_start({both, 1});
      queue.enqueue_start({&meeting, 1});
      queue.enqueue_wait({&meeting, 1});
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
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{8}, slot, large, huge})
    for (bool const ready : {false, true})
      on_ranks(2, [&](Transport& t) -> std::string {
        Communicator communicator(t, place().gpu());
        Swap swap(t, place(), communicator, bytes, ready);
        int steps = 0;
        swap.step(), ++steps;
        if (std::string const wrong = swap.look(t.group().rank(), steps); !wrong.empty()) return wrong;
        constexpr int recorded = 3, launches = 25;
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
    gpu::StreamBench& bench = place().bench(0);
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

// ---- many requests, and what is refused

class PeerRequests : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerRequests, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

// More than one kernel takes, all modes and sizes in one start and one wait.
TEST_P(PeerRequests, ManyAtOnce) {
  on_ranks(2, [&](Transport& t) -> std::string {
    Communicator communicator(t, place().gpu());
    int const other = t.group().rank() ^ 1;
    constexpr int many = 60;
    std::vector<std::byte*> out, in;
    std::vector<std::size_t> bytes;
    std::vector<Request> requests;
    for (int k = 0; k < many; ++k) {
      bytes.push_back(k % 3 == 0   ? static_cast<std::size_t>(k)
                      : k % 3 == 1 ? large + static_cast<std::size_t>(k)
                                   : slot);
      out.push_back(place().memory(bytes.back())), in.push_back(place().memory(bytes.back()));
      requests.push_back(communicator.receive_init({in.back(), bytes.back()}, other, k));
      requests.push_back(communicator.send_init({out.back(), bytes.back()}, other, k));
    }
    std::vector<Request*> all;
    for (Request& one : requests) all.push_back(&one);
    match(all);
    t.group().barrier();
    Queue queue(QueueType::peer, place().stream(0));
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
    std::byte* const pinned = place().memory(64);
    {
      Communicator communicator(t, place().gpu());
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
    Queue queue(QueueType::peer, place().stream(0));
    if (refusal_of([&] { queue.enqueue_start(both); }).find("the host") == std::string::npos)
      return "a request of the host was taken by a stream";
    t.group().barrier();
    return {};
  });
}

TEST_P(PeerRequests, BothSidesAreAGpusOrTheHosts) {
  on_ranks(2, [&](Transport& t) -> std::string {
    int const rank = t.group().rank();
    Communicator communicator(t, rank == 0 ? place().gpu() : Communicator::no_gpu);
    std::byte* const buffer = place().memory(large);
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

// ---- hangs and losses

class PeerLosses : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerLosses, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

TEST_P(PeerLosses, TwentyHangsEndByTheirLimit) {
  std::atomic<int> lost{0};
  for (int hang = 0; hang < 20; ++hang)
    on_ranks(2, [&](Transport& t) -> std::string {
      Communicator communicator(t, place().gpu());
      int const rank = t.group().rank();
      std::size_t const bytes = hang % 2 == 0 ? little : large;
      std::byte* const buffer = place().other_memory(bytes);
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
        Queue queue(QueueType::peer, place().stream(0));
        queue.set_limit(0.02);
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
        try {
          queue.wait();
        } catch (Error const& e) {
          lost += e.code() == ErrorCode::peer_lost && request.status().lost;
        }
        std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
        if (took.count() > 5) return "a hang of 20 ms took " + std::to_string(took.count()) + " s";
      }
      t.group().barrier();
      request.free();
      return {};
    });
  EXPECT_EQ(lost.load(), 20);
}

enum class Dies { before_start, after_start, in_message };
enum class Sends { standard, small, ready };
struct How {
  Dies dies;
  Sends sends;
  bool dies_as_sender;
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
std::string die(Transport& t, GpuQueuePlace& place, How const& how) {
  std::byte* const buffer = place.memory(how.bytes());
  {
    Communicator communicator(t, place.gpu());
    Request mine = how.side_of(communicator, how.dies_as_sender, buffer, 0);
    Request* const one = &mine;
    match({&one, 1});
    t.group().barrier();
    Queue queue(QueueType::peer, place.stream(0));
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

std::string outlive(Transport& t, GpuQueuePlace& place, How const& how) {
  Communicator communicator(t, place.gpu());
  std::byte* const buffer = place.memory(how.bytes());
  Request mine = how.side_of(communicator, !how.dies_as_sender, buffer, 1);
  Request* const one = &mine;
  match({&one, 1});
  t.group().barrier();
  bool lost = false, went_on = false, has_met = false;
  for (int tries = 0; tries < 200 && !lost; ++tries) {
    Queue queue(QueueType::peer, place.stream(0));
    queue.set_limit(20);
    queue.enqueue_start({&one, 1});
    queue.enqueue_wait({&one, 1});
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
    if (took.count() > 15) return "a wait for who has left took the limit";
  }
  t.group().barrier();
  mine.free();
  return lost ? "" : "a wait for who has left was never lost";
}

TEST_P(PeerLosses, APeerLeaves) {
  for (Dies const dies : {Dies::before_start, Dies::after_start, Dies::in_message})
    for (Sends const sends : {Sends::standard, Sends::small, Sends::ready})
      for (bool const as_sender : {false, true})
        for (int again = 0; again < 3; ++again) {
          How const how{dies, sends, as_sender};
          SCOPED_TRACE(std::to_string(static_cast<int>(dies)) + std::to_string(static_cast<int>(sends)) +
                       std::to_string(as_sender));
          on_ranks(2, [&](Transport& t) {
            return t.group().rank() == 1 ? die(t, place(), how) : outlive(t, place(), how);
          });
        }
}

// The whole communicator goes while this rank's own stream waits.
TEST_P(PeerLosses, ACommunicatorGoesWhileItsStreamWaits) {
  on_ranks(2, [&](Transport& t) -> std::string {
    auto communicator = std::make_unique<Communicator>(t, place().gpu());
    std::byte* const buffer = place().memory(large);
    Request mine = t.group().rank() == 0 ? communicator->receive_init({buffer, large}, 1, 0)
                                         : communicator->send_init({buffer, large}, 0, 0);
    Request* const one = &mine;
    match({&one, 1});
    Queue queue(QueueType::peer, place().stream(0));
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
      if (std::chrono::steady_clock::now() - began > std::chrono::seconds(15)) return "it took the limit";
    }
    t.group().barrier();
    return lost || t.group().rank() == 1 ? "" : "a wait of a communicator that was closed was not lost";
  });
}

// ---- what else a program does meanwhile

class PeerWaits : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerWaits, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

// Each call while a wait spins on the GPU that it is about; then the message is sent. Nothing is lost: what
// the driver holds up ends with the wait, and holds up no start. What was held up is printed.
TEST_P(PeerWaits, OthersMayCallTheDriver) {
  Meanwhile const meanwhile;
  if (!meanwhile.problem().empty()) GTEST_SKIP() << meanwhile.problem();
  for (Meanwhile::Call const& call : meanwhile.calls()) {
    bool held_up = false;
    std::atomic<bool> lost{false};
    on_ranks(2, [&](Transport& t) -> std::string {
      Communicator communicator(t, place().gpu());
      int const rank = t.group().rank();
      std::byte* const buffer = place().other_memory(large);
      Request mine = rank == 0 ? communicator.receive_init({buffer, large}, 1, 0)
                               : communicator.send_init({buffer, large}, 0, 0);
      Request* const one = &mine;
      match({&one, 1});
      Queue queue(QueueType::peer, place().stream(0));
      queue.set_limit(4);
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
    EXPECT_FALSE(lost.load()) << call.name;
  }
}

}  // namespace
}  // namespace hostless::test

int main(int count, char** words) {
  // Before anything asks for a GPU: streams of six ranks that wait each need a queue of it.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
