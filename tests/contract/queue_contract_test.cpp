// Queues over every transport that carries between two ranks: what is refused, random programs, losses. Ranks
// that are processes are this program again, with the name of a case and its words.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "api/guarded.hpp"
#include "base/variable.hpp"
#include "host_ranks.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/queue.h"
#include "hostless/transport/mpi.hpp"
#include "hostless/transport/ofi.hpp"
#include "queue_cases.hpp"
#include "queue_home.hpp"
#include "queue_programs.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

constexpr char const* over_fabric = "ofi";
using test::Printed;

// ---- what a rank does

// words  the first seed, how many, and the suite by whose name one runs again
std::string random_programs(Transport& transport, std::vector<std::string> const& words) {
  Communicator communicator(transport);
  return test::run_random_programs(communicator, transport.group(),
                                   {std::stoull(words[1]), std::stoull(words[2])},
                                   "queue_contract --gtest_filter=" + words[3]);
}

// Waits for a queue whose last wait ends by a loss. Empty: it said so, its request does, and the queue went on.
std::string lost_in(Queue& queue, Request const& request, char const* otherwise) {
  std::atomic<bool> went_on{false};
  queue.enqueue_function([&] { went_on.store(true); });
  try {
    queue.wait();
  } catch (Error const& e) {
    if (e.code() != ErrorCode::peer_lost) throw;
    if (!request.status().lost) return "the request of a wait that was lost does not say so";
    return went_on.load() ? "" : "the queue did not go on after a loss";
  }
  return otherwise;
}

// The last rank is killed before its start, between start and wait, or in the middle of a long message.
std::string killed(Transport& transport, std::string const& moment) {
  Communicator communicator(transport);
  int const rank = transport.group().rank(), last = transport.group().size() - 1;
  std::vector<std::byte> buffer(moment == "in_message" ? std::size_t{1} << 25 : 100000);
  Request request = communicator.all_reduce_init(buffer.data(), buffer.data(), buffer.size() / 8,
                                                 Datatype::f64, ReduceOperation::sum);
  Request* const one = &request;
  match({&one, 1});
  transport.group().barrier();
  Queue queue;
  if (rank == last && moment == "before_start") std::raise(SIGKILL);
  queue.enqueue_start({&one, 1});
  if (rank == last && moment == "in_message") queue.test();
  if (rank == last) std::raise(SIGKILL);
  queue.enqueue_wait({&one, 1});
  constexpr char const* complete = "a collective was complete without a rank";
  std::string wrong = lost_in(queue, request, complete);
  if (wrong != complete || moment == "before_start") return wrong;
  // All that it had started may have left before it was killed. It starts nothing more.
  queue.enqueue_start({&one, 1});
  queue.enqueue_wait({&one, 1});
  return lost_in(queue, request, complete);
}

// A rank that matches and then is silent. The other's wait ends by its limit, not by the silent one's end. It tells
// so in a file: a launcher may lose what a rank that ends with an error has printed.
std::string hang(Transport& transport, std::string const& what, std::string const& told) {
  constexpr double limit_s = 0.02, enough_s = 20;
  Communicator communicator(transport);
  int const rank = transport.group().rank();
  std::vector<std::byte> buffer(what == "short" ? 100 : 100000);
  Request request = what == "barrier" ? communicator.barrier_init()
                    : rank == 0       ? communicator.receive_init(buffer, 1, 0)
                                      : communicator.send_init(buffer, 0, 0);
  Request* const one = &request;
  match({&one, 1});
  transport.group().barrier();
  if (rank != 0) {
    try {
      transport.group().barrier();
    } catch (Error const&) {  // rank 0 tells what it has seen: a launcher ends it when this one leaves
    }
    wait_for([&] { return std::filesystem::exists(told); }, [] { return false; }, Deadline::after(enough_s));
    leave_process(4);
  }
  auto const began = std::chrono::steady_clock::now();
  Queue queue;
  queue.set_limit(limit_s);
  queue.enqueue_start({&one, 1});
  queue.enqueue_wait({&one, 1});
  std::string const wrong = lost_in(queue, request, "a wait for who is silent was complete");
  if (!wrong.empty()) return wrong;
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
  if (took.count() > enough_s) return "a hang of 20 ms took " + std::to_string(took.count()) + " s";
  std::ofstream(told) << "kept" << std::flush;
  leave_process(4);
}

// More starts than there is room for: the one beyond is refused, with nothing enqueued, and has room later.
std::string bounded(Transport& transport) {
  setenv("HOSTLESS_QUEUE_STARTS", "3", 1);
  Communicator communicator(transport);
  int const other = transport.group().rank() ^ 1;
  std::vector<std::byte> out(100000, std::byte{7}), in(100000);
  Request send = communicator.send_init(out, other, 0), receive = communicator.receive_init(in, other, 0);
  Request *const s = &send, *const r = &receive;
  Request* const both[] = {s, r};
  match(both);
  Queue queue(QueueType::ofi);
  queue.set_limit(30);
  std::atomic<bool> open{false};
  queue.enqueue_function([&] {
    while (!open.load()) Backoff::give_core_away();
  });
  std::string wrong;
  auto const too_many = [](auto const& call) {
    try {
      call();
      return false;
    } catch (QueueError const& e) {
      return e.why() == Refusal::too_many;
    }
  };
  auto const refused = [&](std::span<Request* const> requests) {
    return too_many([&] { queue.enqueue_start(requests); });
  };
  queue.enqueue_start_and_wait(both, both);
  if (!refused(both) || !too_many([&] { queue.enqueue_start_and_wait(both, both); }))
    wrong = "the start of two more than two of three was not refused";
  queue.enqueue_start({&r, 1});
  if (!refused({&s, 1})) wrong = "a fourth start was not refused";
  open.store(true);
  for (bool sent = false; !sent; sent = !refused({&s, 1})) Backoff::give_core_away();
  queue.enqueue_wait(both);
  queue.wait();
  if (send.status().starts != 2 || receive.status().starts != 2 || in != out) wrong += " a start is missing";
  transport.group().barrier();
  return wrong;
}

// Requests of the C interface, once they were said to go over libfabric.
std::string by_c(Transport& transport) {
  hostless_transport handle;
  handle.transport = &transport;
  int const rank = transport.group().rank(), other = rank ^ 1;
  std::string wrong;
  auto const expect = [&](int code, int right, char const* call) {
    if (code != right && wrong.empty()) wrong = std::string(call) + ": " + hostless_last_error();
  };
  expect(hostless_requests_over_fabric(&handle), HOSTLESS_OK, "requests_over_fabric");
  expect(hostless_requests_over_fabric(&handle), HOSTLESS_USAGE, "requests_over_fabric once more");
  std::vector<double> out(3000), in(out.size());
  hostless_request* both[2] = {};
  expect(hostless_send_init(out.data(), out.size(), HOSTLESS_DATA_F64, other, 5, &handle, &both[0]),
         HOSTLESS_OK, "send_init");
  expect(hostless_recv_init(in.data(), in.size(), HOSTLESS_DATA_F64, other, 5, &handle, &both[1]),
         HOSTLESS_OK, "recv_init");
  expect(hostless_matchall(2, both), HOSTLESS_OK, "matchall");
  hostless_queue *queue = nullptr, *of_threads = nullptr;
  expect(hostless_queue_init(&queue, over_fabric, nullptr), HOSTLESS_OK, "queue_init");
  expect(hostless_queue_init(&of_threads, "threads", nullptr), HOSTLESS_OK, "queue_init of threads");
  expect(hostless_enqueue_startall(of_threads, 2, both) != HOSTLESS_OK, 1, "startall on a queue of threads");
  for (int round = 0; round < 3 && wrong.empty(); ++round) {
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<double>(k) + 0.5 * rank + 7 * round;
    expect(hostless_enqueue_startall(queue, 2, both), HOSTLESS_OK, "startall");
    expect(hostless_enqueue_waitall(queue, 2, both), HOSTLESS_OK, "waitall");
    expect(hostless_queue_wait(queue), HOSTLESS_OK, "queue_wait");
    for (std::size_t k = 0; k < in.size() && wrong.empty(); ++k)
      if (in[k] != static_cast<double>(k) + 0.5 * other + 7 * round)
        wrong = "wrong number " + std::to_string(k);
  }
  for (hostless_request*& one : both) expect(hostless_request_free(&one), HOSTLESS_OK, "request_free");
  for (hostless_queue** const one : {&queue, &of_threads})
    expect(hostless_queue_free(one), HOSTLESS_OK, "queue_free");
  transport.group().barrier();
  return wrong;
}

std::string run_case(Transport& transport, std::vector<std::string> const& words) {
  test::queue_home().enter(transport);
  if (words[0] == "by_c") return by_c(transport);
  if (words[0] == "bounded") return bounded(transport);
  if (words[0] == "killed") return killed(transport, words[1]);
  if (words[0] == "hang") return hang(transport, words[1], words[2]);
  if (words[0] == "random") return random_programs(transport, words);
  for (test::QueueCase const& one : test::queue_cases())
    if (words[0] == one.name) return one.run(transport);
  return "there is no case " + words[0];
}

// While its transport is open.
int ends_as(std::string const& wrong, std::string const& name) {
  std::printf("%s\n", wrong.empty() ? "kept queue;" : wrong.c_str());
  std::fflush(stdout);
  for (test::QueueCase const& one : test::queue_cases())
    if (name == one.name && one.breaks_world) test::leave_together(4);
  if (!wrong.empty()) leave_process(1);
  return 0;
}

int as_rank(HostTransport const& transport, std::vector<std::string> const& words) {
  try {
    auto const opened = test::open_with_all(transport);
    if (words[0] == over_fabric) {
      auto const fabric = open_ofi_transport(*opened);
      return ends_as(run_case(*fabric, {words.begin() + 1, words.end()}), words[1]);
    }
    return ends_as(run_case(*opened, words), words[0]);
  } catch (std::exception const& e) {
    std::printf("%s\n", e.what());
  }
  leave_process(1);
}

// ---- the tests

class QueueContract : public testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override {
    test::need(transport());
    if (!is_over_fabric()) return;
    if (HOSTLESS_THREAD_SANITIZER) GTEST_SKIP() << "libfabric is not built for the thread sanitizer";
    if (std::string const problem = find_ofi_plugin().problem; !problem.empty()) GTEST_SKIP() << problem;
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0);  // what a loss leaves to libfabric is not ours to free
  }
  static bool is_over_fabric() { return std::get<0>(GetParam()) == over_fabric; }
  // Ranks over libfabric are processes that tell each other their addresses.
  static HostTransport const& transport() {
    return test::tested_transport(is_over_fabric() ? "processes" : std::get<0>(GetParam()));
  }
  static std::vector<std::string> rank_command(std::vector<std::string> const& words) {
    std::vector<std::string> command{test::own_path(), "--as-rank", transport().name};
    if (is_over_fabric()) command.emplace_back(over_fabric);
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  static int ranks() { return std::get<1>(GetParam()); }
  static void expect_programs(std::uint64_t otherwise, std::uint64_t suites,
                              std::string const& variables = "") {
#if HOSTLESS_THREAD_SANITIZER || HOSTLESS_ADDRESS_SANITIZER
    otherwise = std::min<std::uint64_t>(otherwise, 60);
#endif
    auto const& here = *testing::UnitTest::GetInstance()->current_test_info();
    auto const [first, count] = test::seeds_of(ranks(), otherwise, suites);
    expect_kept({"random", std::to_string(first), std::to_string(count),
                 std::string(here.test_suite_name()) + "." + here.name()},
                false, variables);
  }
  static void expect_kept(std::vector<std::string> const& words, bool breaks_world = false,
                          std::string const& variables = "") {
    if (transport().run != nullptr) {
      transport().run(ranks(), [&](Transport& t) {
        if (std::string const wrong = run_case(t, words); !wrong.empty()) throw std::runtime_error(wrong);
      });
      return;
    }
    Printed const printed = test::run_as_ranks(transport(), ranks(), rank_command(words), variables);
    EXPECT_TRUE(breaks_world || printed.status == 0) << printed.output;
    EXPECT_EQ(printed.kept("queue"), ranks()) << printed.output;
    std::printf("%s", printed.output.substr(0, printed.output.find("kept")).c_str());
  }
};

TEST_P(QueueContract, Cases) {
  for (test::QueueCase const& one : test::queue_cases()) {
    if (one.ranks != 0 && one.ranks != ranks()) continue;
    SCOPED_TRACE(one.name);
    expect_kept({one.name}, one.breaks_world);
  }
}

// HOSTLESS_QUEUE_PROGRAMS: how many for each transport, over all its numbers of ranks (2 to 6).
TEST_P(QueueContract, RandomPrograms) {
  expect_programs(transport().run != nullptr ? test::of_all(400, 100) : is_over_fabric() ? 10 : 40, 5);
}

// The same with a thread of the library that calls MPI beside those of the ranks.
class QueueByThread : public QueueContract {};

TEST_P(QueueByThread, RandomPrograms) { expect_programs(20, 2, "HOSTLESS_QUEUE_PROGRESS=thread "); }

// Whether the launcher lets survivors tell is its affair: they end, and none says that all is well.
// HOSTLESS_QUEUE_KILLS: how many.
class QueueKilled : public QueueContract {};

TEST_P(QueueKilled, TheOthersEnd) {
  constexpr char const* moments[] = {"before_start", "after_start", "in_message"};
  auto const kills = count_of("HOSTLESS_QUEUE_KILLS", 3);
  int told = 0;
  for (std::int64_t k = 0; k < kills; ++k) {
    std::string const moment = moments[k % 3];
    Printed const printed = test::run_as_ranks(transport(), ranks(), rank_command({"killed", moment}),
                                               "HOSTLESS_DEADLINE_SCALE=0.05 ");
    EXPECT_NE(printed.status, 0) << moment << printed.output;
    EXPECT_LT(printed.seconds, 400) << moment << printed.output;
    EXPECT_EQ(printed.output.find("complete without"), std::string::npos) << printed.output;
    if (is_over_fabric()) {
      EXPECT_EQ(printed.kept("queue"), ranks() - 1) << moment << printed.output;
    }
    told += printed.kept("queue");
  }
  std::printf("%lld kills of one of %d ranks, %d survivors said peer_lost before they ended\n",
              static_cast<long long>(kills), ranks(), told);
}

// HOSTLESS_QUEUE_HANGS: how many, each a job.
class QueueHangs : public QueueContract {};

TEST_P(QueueHangs, EndByTheirLimit) {
  auto const hangs = static_cast<int>(count_of("HOSTLESS_QUEUE_HANGS", 3));
  constexpr char const* what[] = {"short", "long", "barrier"};
  int ended = 0;
  auto const told = std::filesystem::temp_directory_path() / ("hostless_hang_" + std::to_string(getpid()));
  for (int k = 0; k < hangs; ++k) {
    std::filesystem::remove(told);
    Printed const printed =
        test::run_as_ranks(transport(), ranks(), rank_command({"hang", what[k % 3], told.string()}));
    EXPECT_TRUE(std::filesystem::exists(told)) << what[k % 3] << printed.output;
    ended += std::filesystem::exists(told) ? 1 : 0;
  }
  std::filesystem::remove(told);
  std::printf("%d hangs, %d ended by their limit\n", hangs, ended);
}

// Over libfabric: every rank of more than two has threads of the library too, so there are fewer of them.
class QueueOfMore : public QueueContract {};

TEST_P(QueueOfMore, RandomPrograms) { expect_programs(ranks() == 3 ? 10 : 2, 5); }

class QueueBounded : public QueueContract {};

TEST_P(QueueBounded, OneStartBeyondIsRefused) { expect_kept({"bounded"}); }

class QueueByC : public QueueContract {};

TEST_P(QueueByC, RequestsGoOverIt) {
  Printed const printed =
      test::run_as_ranks(transport(), ranks(), {test::own_path(), "--as-rank", transport().name, "by_c"});
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("queue"), ranks()) << printed.output;
}

TEST_P(QueueByC, RefusesRanksThatAreThreads) {
  test::tested_transport("threads").run(ranks(), [](Transport& t) {
    hostless_transport handle;
    handle.transport = &t;
    EXPECT_EQ(hostless_requests_over_fabric(&handle), HOSTLESS_UNSUPPORTED) << hostless_last_error();
  });
}

auto const named = [](auto const& one) { return test::name_of(one.param); };
INSTANTIATE_TEST_SUITE_P(On, QueueContract,
                         testing::ValuesIn(test::with_ranks({"threads", "openmpi", "mpich"},
                                                            {2, 3, 4, 5, 6})),
                         named);
INSTANTIATE_TEST_SUITE_P(Fabric, QueueContract, testing::ValuesIn(test::with_ranks({over_fabric}, {2})),
                         named);
INSTANTIATE_TEST_SUITE_P(Fabric, QueueOfMore,
                         testing::ValuesIn(test::with_ranks({over_fabric}, {3, 4, 5, 6})), named);
INSTANTIATE_TEST_SUITE_P(Fabric, QueueBounded, testing::ValuesIn(test::with_ranks({over_fabric}, {2})),
                         named);
INSTANTIATE_TEST_SUITE_P(Fabric, QueueByC, testing::ValuesIn(test::with_ranks({over_fabric}, {2})), named);
INSTANTIATE_TEST_SUITE_P(Fabric, QueueKilled, testing::ValuesIn(test::with_ranks({over_fabric}, {3})), named);
INSTANTIATE_TEST_SUITE_P(On, QueueKilled, testing::ValuesIn(test::with_ranks({"openmpi", "mpich"}, {3})),
                         named);
INSTANTIATE_TEST_SUITE_P(Fabric, QueueHangs, testing::ValuesIn(test::with_ranks({over_fabric}, {2})), named);
INSTANTIATE_TEST_SUITE_P(On, QueueHangs, testing::ValuesIn(test::with_ranks({"openmpi", "mpich"}, {2})),
                         named);
INSTANTIATE_TEST_SUITE_P(On, QueueByThread, testing::ValuesIn(test::with_ranks({"openmpi", "mpich"}, {2, 4})),
                         named);

}  // namespace
}  // namespace hostless

int main(int count, char** words) { return hostless::test::main_of_ranks(count, words, hostless::as_rank); }
