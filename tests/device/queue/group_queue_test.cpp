// Queues whose messages NCCL moves in groups: the contract of all queues as far as groups can keep it, random
// programs of what groups can, graphs that are launched again, and what is refused.
#include <algorithm>
#include <vector>

#include "api/guarded.hpp"
#include "group_programs.hpp"
#include "groups.hpp"
#include "hostless/queue.h"
#include "queue_cases.hpp"
#include "sample.hpp"

namespace hostless::test {
namespace {

class QueuesByNccl : public ByNccl {};
INSTANTIATE_TEST_SUITE_P(On, QueuesByNccl,
                         testing::ValuesIn(is_sample() ? std::vector{by_nccl(2), by_nccl(3), by_nccl(6)}
                                                       : std::vector{by_nccl(2), by_nccl(3), by_nccl(4),
                                                                     by_nccl(5), by_nccl(6)}),
                         named);

TEST_P(QueuesByNccl, Cases) {
  for (QueueCase const& one : queue_cases()) {
    if (!one.in_groups || (one.ranks != 0 && one.ranks != ranks())) continue;
    SCOPED_TRACE(one.name);
    on_ranks(ranks(), [&](Transport& transport) { return one.run(transport); });
  }
}

// HOSTLESS_QUEUE_PROGRAMS: how many in all; without it 500.
TEST_P(QueuesByNccl, RandomPrograms) {
  auto const suites = static_cast<std::uint64_t>(std::clamp(gpus_here() - 1, 1, 5));
  auto const& here = *testing::UnitTest::GetInstance()->current_test_info();
  std::string const how =
      "device_queue --gtest_filter=" + std::string(here.test_suite_name()) + "." + here.name();
  on_ranks(ranks(), [&](Transport& t) {
    Communicator communicator(t, home().gpu(), QueueType::nccl);
    return run_group_programs(communicator, t.group(), home(),
                              seeds_of(ranks(), of_all<std::uint64_t>(500, 50) / suites, suites), how);
  });
}

// ---- two ranks

class PairByNccl : public ByNccl {};
INSTANTIATE_TEST_SUITE_P(On, PairByNccl, testing::Values(by_nccl(2)), named);

// Both ranks send to each other, of every size: what one has becomes the other's, plus 1. Launched again and again,
// mixed with steps that are enqueued.
std::string swap(Transport& t, GpuQueueHome& home, std::size_t bytes) {
  Communicator communicator(t, home.gpu(), QueueType::nccl);
  int const rank = t.group().rank(), other = rank ^ 1;
  gpu::StreamBench& bench = home.bench(0);
  std::byte *const out = home.other_memory(bytes), *const in = home.other_memory(bytes),
                   *const shown = home.memory(bytes);
  std::fill_n(shown, bytes, static_cast<std::byte>(100 * rank));
  bench.add_to_bytes(in, shown, bytes, 0);
  Request receive = communicator.receive_init({in, bytes}, other, 0);
  Request send = communicator.ready_send_init({out, bytes}, other, 0);
  Request barrier = communicator.barrier_init();
  Request* all[] = {&receive, &send, &barrier};
  match(all);
  Queue queue(QueueType::nccl, bench.stream());
  auto const step = [&] {
    bench.add_to_bytes(out, in, bytes, 1);
    queue.enqueue_start(all);
    queue.enqueue_wait(all);
  };
  step();
  queue.wait();
  constexpr int recorded = 3;
  int const launches = of_all(20, 8);
  bench.record([&] {
    for (int k = 0; k < recorded; ++k) step();
  });
  t.group().barrier();  // a graph is made before anybody waits
  int steps = 1;
  for (int k = 0; k < launches; ++k) {
    bench.replay(), steps += recorded;
    if (k % 7 == 3) step(), ++steps;
  }
  bench.add_to_bytes(shown, in, bytes, 0);
  queue.wait();
  t.group().barrier();
  bench.record([] {});  // the graph goes, and with it what NCCL holds for it
  auto const right = static_cast<std::byte>(steps + 100 * (steps % 2 == 0 ? rank : other));
  if (!std::all_of(shown, shown + bytes, [&](std::byte b) { return b == right; }))
    return std::to_string(bytes) + " bytes are wrong after " + std::to_string(steps) + " steps";
  for (Request* const one : all) {
    if (one->status().starts != static_cast<std::uint64_t>(steps) || one->status().lost)
      return "a status says " + std::to_string(one->status().starts) + " starts instead of " +
             std::to_string(steps);
    one->free();
  }
  return {};
}
TEST_P(PairByNccl, GraphsAreLaunchedAgainAndAgain) {
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{8}, slot, is_played() ? slot + 1 : huge})
    on_ranks(2, [&](Transport& t) { return swap(t, home(), bytes); });
}

// Messages of one direction in the order of their sender, whatever that in which their receiver matches and waits.
TEST_P(PairByNccl, TagsTellMessagesApart) {
  on_ranks(2, [&](Transport& t) -> std::string {
    Communicator communicator(t, home().gpu(), QueueType::nccl);
    constexpr int many = 40;
    int const rank = t.group().rank();
    std::vector<std::byte*> buffers;
    std::vector<Request> requests;
    for (int k = 0; k < many; ++k) {
      int const tag = rank == 0 ? k : many - 1 - k;
      std::size_t const bytes = 100 + static_cast<std::size_t>(tag);
      buffers.push_back(home().memory(bytes));
      std::span<std::byte> const all(buffers.back(), bytes);
      if (rank == 0) std::fill(all.begin(), all.end(), static_cast<std::byte>(tag));
      requests.push_back(rank == 0 ? communicator.send_init(all, 1, tag)
                                   : communicator.receive_init(all, 0, tag));
    }
    std::vector<Request*> all;
    for (Request& one : requests) all.push_back(&one);
    match(all);
    std::rotate(all.begin(), all.begin() + 7, all.end());
    Queue queue(QueueType::nccl, home().stream(0));
    queue.enqueue_start(all);
    std::reverse(all.begin(), all.end());
    queue.enqueue_wait(all);
    queue.wait();
    t.group().barrier();
    for (int k = 0; k < many; ++k)
      if (rank == 1 && *buffers[static_cast<std::size_t>(k)] != static_cast<std::byte>(many - 1 - k))
        return "message " + std::to_string(k) + " is another one";
    return {};
  });
}

// ---- what is refused, with nothing enqueued

// Two requests of each direction, matched by one call.
struct Both {
  Both(Communicator& communicator, GpuQueueHome& home, int rank_) : rank(rank_), other(rank_ ^ 1) {
    for (int tag = 0; tag < 2; ++tag) {
      in.push_back(home.memory(bytes)), out.push_back(home.memory(bytes));
      requests.push_back(communicator.receive_init({in.back(), bytes}, other, tag));
      requests.push_back(communicator.send_init({out.back(), bytes}, other, tag));
    }
    for (Request& one : requests) all.push_back(&one);
    match(all);
  }
  /// Whether all of it moves as before.
  std::string works(Queue& queue) {
    ++round;
    for (std::byte* const buffer : out) std::fill_n(buffer, bytes, static_cast<std::byte>(10 * round + rank));
    queue.enqueue_start(all);
    queue.enqueue_wait(all);
    queue.wait();
    for (std::byte const* const buffer : in)
      if (buffer[bytes - 1] != static_cast<std::byte>(10 * round + other)) return "a message is wrong";
    for (Request const& one : requests)
      if (one.status().starts != static_cast<std::uint64_t>(round)) return "a status is wrong";
    return {};
  }
  static constexpr std::size_t bytes = 1000;
  int rank, other, round = 0;
  std::vector<std::byte*> in, out;
  std::vector<Request> requests;
  std::vector<Request*> all;
};

TEST_P(PairByNccl, APartOfASetIsRefused) {
  on_ranks(2, [&](Transport& t) -> std::string {
    Communicator communicator(t, home().gpu(), QueueType::nccl);
    Both both(communicator, home(), t.group().rank());
    Queue queue(QueueType::nccl, home().stream(0));
    if (std::string const wrong = both.works(queue); !wrong.empty()) return wrong;
    std::span<Request* const> const all(both.all);
    queue.enqueue_start(all.first(2));
    std::string const said[] = {unsupported([&] { queue.enqueue_start_and_wait({}, all.first(2)); }),
                                unsupported([&] { queue.enqueue_start_and_wait(all.last(2), all.first(3)); }),
                                unsupported([&] { queue.enqueue_wait(all.first(1)); }),
                                unsupported([&] { queue.enqueue_wait(all.first(2)); }),
                                unsupported([&] { queue.enqueue_wait_all(); })};
    for (std::string const& text : said)
      if (!has(text, "leaves out some of what was matched with rank")) return "a part of a set: " + text;
    queue.enqueue_start_and_wait(all.last(2), all);
    queue.wait();
    ++both.round;
    if (std::string const wrong = both.works(queue); !wrong.empty()) return wrong;
    t.group().barrier();
    both.requests[0].free();
    queue.enqueue_start(all.last(3));
    std::string const text = unsupported([&] { queue.enqueue_wait(all.last(3)); });
    t.group().barrier();
    return has(text, "of which a request was freed") ? "" : "a set without one of its requests: " + text;
  });
}

TEST_P(PairByNccl, OneCallMatchesWhatTwoRanksHave) {
  on_ranks(2, [&](Transport& t) -> std::string {
    Communicator communicator(t, home().gpu(), QueueType::nccl);
    int const rank = t.group().rank(), other = rank ^ 1;
    Queue queue(QueueType::nccl, home().stream(0));
    for (int again = 0; again < 2; ++again) {
      Both both(communicator, home(), rank);
      Request more = communicator.send_init({both.out[0], 8}, other, 7);
      Request* const one = &more;
      std::string const text = unsupported([&] { match({&one, 1}); });
      if (!has(text, "beside what an earlier call has matched")) return "a second match: " + text;
      if (std::string const wrong = both.works(queue); !wrong.empty()) return wrong;
      for (Request& request : both.requests) request.free();
    }
    t.group().barrier();
    return {};
  });
}

// One call there, two here: both sides are told, and nothing moves.
TEST_P(PairByNccl, SetsThatAreNotEqualAreMisfits) {
  on_ranks(2, [&](Transport& t) -> std::string {
    Communicator communicator(t, home().gpu(), QueueType::nccl);
    int const rank = t.group().rank(), other = rank ^ 1;
    std::byte* const buffer = home().memory(16);
    Request a = rank == 0 ? communicator.send_init({buffer, 8}, other, 5)
                          : communicator.receive_init({buffer, 8}, other, 5);
    Request b = rank == 0 ? communicator.send_init({buffer + 8, 8}, other, 6)
                          : communicator.receive_init({buffer + 8, 8}, other, 6);
    Request* const both[] = {&a, &b};
    std::string said = "it was matched";
    try {
      match(std::span(both).first(rank == 0 ? 2 : 1));
    } catch (QueueError const& e) {
      said = e.why() == Refusal::mismatch ? e.what() : "another refusal: " + std::string(e.what());
    }
    t.group().barrier();
    if (!has(said, "in one call each")) return "sets that are not equal: " + said;
    for (Request* const one : both) one->free();
    Both after(communicator, home(), rank);
    Queue queue(QueueType::nccl, home().stream(0));
    std::string const wrong = after.works(queue);
    t.group().barrier();
    return wrong;
  });
}

TEST_P(PairByNccl, OtherQueuesRefuseItsRequests) {
  on_ranks(2, [&](Transport& t) -> std::string {
    Queue peers(QueueType::peer, home().stream(1)), second(QueueType::nccl, home().stream(2));
    Queue queue(QueueType::nccl, home().stream(0));
    {
      Communicator communicator(t, home().gpu(), QueueType::nccl);
      Both both(communicator, home(), t.group().rank());
      if (std::string const text = unsupported([&] { peers.enqueue_start(both.all); }); !has(text, "by NCCL"))
        return "on a queue of peers: " + text;
      std::span<Request* const> const all(both.all);
      queue.enqueue_start(all.first(1));
      if (std::string const text = unsupported([&] { second.enqueue_start(all.last(3)); });
          !has(text, "a second queue"))
        return "on a second queue: " + text;
      queue.enqueue_start(all.last(3));
      queue.enqueue_wait_all();
      queue.wait();
      ++both.round;
      if (std::string const wrong = both.works(second); !wrong.empty()) return "on the next queue " + wrong;
      t.group().barrier();
    }
    Communicator communicator(t, home().gpu());
    Both both(communicator, home(), t.group().rank());
    std::string const text = unsupported([&] { queue.enqueue_start(both.all); });
    t.group().barrier();
    return has(text, "loaded and stored between GPUs") ? "" : "requests of peers: " + text;
  });
}

TEST_P(PairByNccl, ARankHasAGpuOfItsOwn) {
  on_ranks(2, [&](Transport& t) -> std::string {
    std::string const text = unsupported([&] { Communicator const one(t, 0, QueueType::nccl); });
    if (!has(text, "GPU 0 for the ranks 0 and 1")) return "ranks that share a GPU: " + text;
    hostless_transport handle;
    handle.transport = &t;
    if (hostless_requests_over_nccl(&handle, 0) != HOSTLESS_UNSUPPORTED)
      return "in C: ranks that share a GPU";
    if (hostless_requests_over_nccl(&handle, -1) != HOSTLESS_USAGE) return "in C: GPU -1";
    if (hostless_requests_over_nccl(&handle, home().gpu()) != HOSTLESS_OK)
      return std::string("in C: ") + hostless_last_error();
    if (hostless_requests_over_nccl(&handle, home().gpu()) != HOSTLESS_USAGE) return "in C: once more";
    t.group().barrier();
    handle.communicator.reset();
    for (QueueType const by : {QueueType::nccl, QueueType::peer, QueueType::mpi}) {
      try {
        Communicator const one(t, Communicator::no_gpu, by);
        return std::string("a communicator of no GPU by ") + name(by);
      } catch (Error const& e) {
        if (e.code() != ErrorCode::usage) throw;
      }
    }
    t.group().barrier();
    return {};
  });
}

}  // namespace
}  // namespace hostless::test
