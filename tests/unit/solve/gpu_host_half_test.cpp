// The host's half of the GPU libraries on a runtime of the tests (fake_runtime/): where memory goes, what is
// copied, what stream endpoints say and refuse, and that every call of the runtime may fail without anything
// being lost or left behind.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "device/graph.hpp"
#include "exchange/gpu/solver_exchange.hpp"
#include "exchange/stream_rounds.hpp"
#include "fake_runtime.hpp"
#include "operate/gpu/host_copy.hpp"
#include "peers_case.hpp"
#include "played_ask.hpp"
#include "transport/memory/paths.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {

namespace {

namespace runtime = test::fake_runtime;

class HostHalf : public testing::Test {
 protected:
  void SetUp() override { runtime::begin_again(); }
  void TearDown() override {
    unsetenv("HOSTLESS_GPU_GUARD");
    EXPECT_EQ(runtime::held(), 0) << "something was not given back";
    EXPECT_EQ(runtime::device_in_use(), 0) << "another GPU is in use than before";
  }
  /// Words of the error; empty: none.
  static std::string error_of(std::function<void()> const& what, ErrorCode code = ErrorCode::environment) {
    try {
      what();
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return {};
  }
  /// Each call of the runtime fails once: the error says what was attempted, and nothing stays. `unheard`:
  /// calls whose failure changes nothing, as that which only puts the GPU in use back.
  static void expect_every_failure_named(std::function<void()> const& what, int unheard = 0) {
    int const before = runtime::calls();
    what();
    int const calls = runtime::calls() - before;
    ASSERT_GT(calls, unheard);
    for (int k = 0; k < calls; ++k) {
      runtime::fail_call(k);
      std::string const said = error_of(what);
      runtime::fail_call(-1);
      if (said.empty()) {
        EXPECT_GE(--unheard, 0) << "call " << k << " failed unheard";
      } else {
        EXPECT_NE(said.find(" failed: told to fail (HIP). "), std::string::npos)
            << "call " << k << ": " << said;
      }
      EXPECT_EQ(runtime::held(), 0) << "call " << k;
    }
  }
};

std::vector<double> rising(std::size_t count) {
  std::vector<double> all(count);
  for (std::size_t k = 0; k < count; ++k) all[k] = 0.25 + static_cast<double>(k);
  return all;
}

// ------------------------------------------------------------------------------------------------ memory

TEST_F(HostHalf, ArraysHoldWhatIsPut) {
  std::vector<double> const given = rising(100);
  std::vector<double> back(100);
  std::int64_t const to_gpu = copied_bytes.to_gpu, to_host = copied_bytes.to_host;
  Array<double> array(100);
  array.put(given.data(), 100);
  Array<double> moved = std::move(array);
  EXPECT_EQ(array.size(), 0u);
  moved.get(back.data(), 100);
  EXPECT_EQ(back, given);
  moved.get(back.data(), 2, 98);
  EXPECT_EQ(back[1], given[99]);
  moved.clear();
  moved.get(back.data(), 100);
  EXPECT_EQ(back, std::vector<double>(100, 0.0));
  EXPECT_EQ(copied_bytes.to_gpu - to_gpu, 800);
  EXPECT_EQ(copied_bytes.to_host - to_host, 1616);
}

TEST_F(HostHalf, GuardsSeeAByteTooMuchOnEitherSide) {
  EXPECT_TRUE(Array<double>(3).guards_hold());
  setenv("HOSTLESS_GPU_GUARD", "1", 1);
  for (int at : {-1, 24, -256, 279}) {
    Array<double> const array(3);
    EXPECT_TRUE(array.guards_hold());
    reinterpret_cast<unsigned char*>(array.data())[at] ^= 1;
    EXPECT_FALSE(array.guards_hold()) << at;
  }
}

TEST_F(HostHalf, ArenasAreCutAndRefuseMore) {
  std::vector<std::byte> memory(2048);
  Arena arena(memory.data(), 2048);
  Array<double> const first(1, {false, &arena}), second(65, {false, &arena});
  EXPECT_EQ(arena.offset_of(first.data()), 0);
  EXPECT_EQ(arena.offset_of(second.data()), 512);
  EXPECT_NE(error_of([&] {
              Array<double> const more(65, {false, &arena});
            }).find("cutting 520 bytes from 2048"),
            std::string::npos);
}

TEST_F(HostHalf, NoMemoryIsSaidToBeThat) {
  runtime::limit_memory(1000);
  EXPECT_EQ(error_of([] { Array<double> const array(126); }),
            "allocating device memory failed: out of memory (HIP). Use a smaller problem or another GPU.");
}

TEST_F(HostHalf, EveryCallOfMemoryMayFail) {
  setenv("HOSTLESS_GPU_GUARD", "1", 1);
  expect_every_failure_named([] {
    Array<double> array(8);
    array.clear();
    double const value = 1;
    array.put(&value, 1);
    Pinned<double> const pinned(4);
    Stream const stream, first = Stream::first();
    TimedEvent begin, end;
    begin.record(stream);
    end.record(first);
    end.hold(stream);
    (void)end.seconds_since(begin);
    (void)stream.done();
    stream.wait();
    (void)array.guards_hold();
  });
}

TEST_F(HostHalf, CopiesOfTheHostAreWhole) {
  constexpr std::size_t chunk = std::size_t{1} << 20;
  for (std::size_t bytes : {std::size_t{1}, chunk, 31 * chunk + 7, 32 * chunk, 48 * chunk + 1}) {
    std::vector<unsigned char> given(bytes);
    for (std::size_t k = 0; k < bytes; ++k) given[k] = static_cast<unsigned char>(k * 2654435761u >> 13);
    for (int threads : {1, 2, 3}) {
      auto const held = copy_of_host(given.data(), bytes, 1, threads);
      EXPECT_EQ(std::memcmp(held.get(), given.data(), bytes), 0) << bytes << " by " << threads;
      EXPECT_EQ(runtime::device_in_use(), 0);
    }
  }
}

TEST_F(HostHalf, EveryCallOfACopyMayFail) {
  std::vector<unsigned char> const given(1000);
  expect_every_failure_named([&] { copy_of_host(given.data(), given.size(), 1, 2); }, 1);
  runtime::limit_memory(5000);
  EXPECT_EQ(free_bytes(1), 5000);
}

// ------------------------------------------------------------------------------------------------ graphs

TEST_F(HostHalf, GraphsLaunchWhatWasRecorded) {
  auto const kernel = [](Stream const& stream) {
    DirectQueue queue(stream);
    queue.launch({nullptr, 1, nullptr, false});
  };
  auto const record = [&] {
    Stream const stream;
    Graph graph;
    void* none[] = {nullptr};
    graph.add_kernel(nullptr, 1, 1, none);
    graph.add_recorded(stream, [&](hipStream_t) { kernel(stream), kernel(stream); });
    EXPECT_EQ(graph.nodes(), 2);
    graph.instantiate(stream);
    graph.launch(stream);
    graph.launch(stream);
  };
  record();
  EXPECT_EQ(runtime::launches(), 6);
  expect_every_failure_named(record);
}

TEST_F(HostHalf, WhatThrowsWhileItIsRecordedLeavesNoGraph) {
  Stream const stream;
  Graph graph;
  EXPECT_EQ(error_of([&] {
              graph.add_recorded(stream, [](hipStream_t) { throw Error(ErrorCode::environment, "lost"); });
            }),
            "lost");
  DirectQueue(stream).launch({nullptr, 1, nullptr, false});
  EXPECT_EQ(runtime::launches(), 1) << "the stream still records";
}

// -------------------------------------------------------------------------------------------- peer memory

TEST_F(HostHalf, RanksThatAreThreadsStoreToAddresses) {
  Peers const peers;
  std::vector<double> others(5);
  PeerWindow window(peers.who, peers.copies, peers.layout, {});
  window.connect(peers.memory(window, others));
  EXPECT_EQ(window.view()->staging[1], others.data());
  EXPECT_EQ(window.view()->staging[0], lent(window).staging.address);
  EXPECT_EQ(window.view()->item[1].from, 3);
  EXPECT_EQ(window.bytes(), static_cast<std::int64_t>(2 * sizeof(PeerCopy) + 3 * 4 + 5 * 8));
  runtime::links(false);
  EXPECT_EQ(
      error_of([&] { window.connect(peers.memory(window, others)); }),
      "GPU 0 cannot reach the memory of GPU 1 (ranks store into each other's memory). Use GPUs that are "
      "linked, or one GPU.");
}

TEST_F(HostHalf, RanksThatAreProcessesOpenWhatWasLent) {
  setenv("HOSTLESS_GPU_GUARD", "1", 1);  // what is opened begins before the array
  Peers peers;
  peers.who.processes = true;
  PeerWindow window(peers.who, peers.copies, peers.layout, {true, nullptr}),
      other(peers.who, peers.copies, peers.layout, {true, nullptr});
  std::vector<PeerMemory> all(2);
  all[0] = lent(window);
  all[1] = lent(other);
  void* const there = all[1].staging.address;
  all[1].staging.address = &all;  // means nothing in another process
  window.connect(all);
  EXPECT_EQ(window.view()->staging[1], there);
  EXPECT_TRUE(window.guards_hold());
}

TEST_F(HostHalf, SymmetricMemoryIsFoundByItsOffset) {
  struct Symmetric final : SymmetricMemory {
    mutable std::vector<std::byte> memory{4096};
    bool linked = true;
    std::byte* here() const override { return memory.data(); }
    std::byte* of(int rank) const override { return linked || rank == 0 ? memory.data() + 2048 : nullptr; }
    std::int64_t bytes() const override { return 4096; }
  };
  auto const symmetric = std::make_shared<Symmetric>();
  Arena arena(symmetric->here(), 2048);
  Peers peers;
  peers.who.symmetric = symmetric;
  PeerWindow window(peers.who, peers.copies, peers.layout, {false, &arena});
  std::vector<PeerMemory> all(2);
  all[0] = all[1] = lent(window);
  window.connect(all);
  EXPECT_EQ(reinterpret_cast<std::byte*>(window.view()->staging[1]), symmetric->here() + 2048);
  symmetric->linked = false;
  EXPECT_NE(error_of([&] { window.connect(all); }).find("between ranks 0 and 1 (its kernel loads and stores"),
            std::string::npos);
}

TEST_F(HostHalf, MoreRanksOrRoundsThanKernelsKnow) {
  EXPECT_NE(error_of(
                [] {
                  Peers const p(9);
                  PeerWindow const w(p.who, p.copies, p.layout, {});
                },
                ErrorCode::usage)
                .find("9 ranks and a plan of 1 rounds"),
            std::string::npos);
  EXPECT_NE(error_of(
                [] {
                  Peers const p(2, 9);
                  PeerWindow const w(p.who, p.copies, p.layout, {});
                },
                ErrorCode::usage)
                .find("2 ranks and a plan of 9 rounds"),
            std::string::npos);
}

TEST_F(HostHalf, EveryCallOfAPeerWindowMayFail) {
  Peers peers;
  peers.who.processes = true;
  expect_every_failure_named([&] {
    PeerWindow window(peers.who, peers.copies, peers.layout, {true, nullptr});
    std::vector<PeerMemory> all(2);
    all[0] = all[1] = lent(window);
    window.connect(all);
  });
}

TEST_F(HostHalf, PathsWhoseKernelsDoNothingAreNoPaths) {
  auto const paths = prove_paths(2);
  ASSERT_EQ(paths.size(), 2u);
  for (PathFacts const& path : paths)
    EXPECT_NE(path.problem.find("a message of 8 bytes between two kernels did not come"), std::string::npos)
        << path.problem;
  runtime::links(false);
  EXPECT_EQ(prove_paths(2)[1].problem, "GPU 1 cannot reach the memory of GPU 0");
  EXPECT_TRUE(prove_paths(1).empty());
  hipSetDevice(0);
}

// ---------------------------------------------------------------------------------------------- stream
// endpoints

struct StreamProblem {
  StreamSetup setup;
  HostMessaging host;
  GpuTransport transport;
  std::vector<MessageRound> rounds;
  explicit StreamProblem(GpuTransport by) : transport(by) {
    setup.ranks = 2;
    setup.deadline_s = setup.first_s = 0.05;
    host.gather = [](double const* mine, int count, double* all) {
      for (int r = 0; r < 2; ++r)
        for (int k = 0; k < count; ++k) all[r * count + k] = mine[k] + r;
      return true;
    };
    host.library = "an MPI of the tests";
    host.start = [](int) {};
    host.test = [] { return MessageState::complete; };
    setup.host = &host;
    // What comes from rank 1, and one item that this rank sends to itself.
    MessageRound round;
    round.from = {{1, 0}, {4, 0}, {5, 0}};
    round.to = {{6, 0}, {7, 0}, {8, 0}};
    round.out = {{0, 2, 1, 2}, {1, 0, 2, 0}};
    round.in = {{0, 2, 1, 0}, {1, 0, 2, 0}};
    if (transport == GpuTransport::host) {
      round.from = {{1, 0}, {4, 0}};
      round.to = {{-1, 0}, {6, 0}, {7, 0}};
      round.out = {{0, 0, 2, 0}};
      round.in = {{0, 0, 1, 0}, {0, 1, 2, 0}};
      round.in_place = true;
    }
    rounds = {round};
    describe();
  }
  void describe() { setup.rounds = stream_rounds(rounds, sizeof(double), true); }
  std::unique_ptr<StreamEndpoint> endpoint() const { return make_stream_endpoint(transport, setup); }
};

// The number that the MPI stream's trial expects from rank 1: computed here from what its comment promises,
// that every one is another and exact, would need its formula; rank 1's own stream sends it instead.
struct TwoRanks {
  StreamProblem first{GpuTransport::mpi}, second{GpuTransport::mpi};
  std::unique_ptr<StreamEndpoint> one, other;
  TwoRanks() {
    second.setup.rank = 1;
    second.rounds[0].out = {{0, 0, 2, 0}, {1, 2, 1, 2}};
    second.rounds[0].in = {{0, 0, 2, 0}, {1, 2, 1, 0}};
    second.describe();
    one = first.endpoint();
    other = second.endpoint();
  }
  /// Items [0, 2) of what `from` sends to what `to` has got.
  static void deliver(StreamEndpoint const& from, StreamEndpoint const& to) {
    std::copy_n(from.buffers()[0].first, 2 * sizeof(double), to.buffers()[0].second);
  }
};

TEST_F(HostHalf, LibrariesThatCarrySayWhatTheyAre) {
  auto const all = library_transports();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].library + ", " + all[0].detail + all[0].problem,
            "a library of the tests, by what tests say");
  EXPECT_EQ(all[1].library + all[1].detail + all[1].problem, "absent");
}

TEST_F(HostHalf, AnMpiIsTriedBeforeItCarries) {
  TwoRanks ranks;
  std::vector<double> sent(2);
  // Rank 1 tries first, and fails for want of rank 0; what it has sent by then is what rank 0 expects.
  ranks.second.host.start = [&](int) {
    std::memcpy(sent.data(), ranks.other->buffers()[0].first, 2 * sizeof(double));
  };
  ranks.second.host.test = [] { return MessageState::lost; };
  EXPECT_EQ(
      error_of([&] { ranks.other->connect({}, nullptr); }),
      "GPU transport mpi: a trial between device buffers did not end (an MPI of the tests, but nothing is "
      "carried that was not seen to arrive). Use --gpu-transport host, which stages it.");
  EXPECT_FALSE(ranks.other->is_connected());
  ranks.first.host.start = [&](int) {
    std::memcpy(ranks.one->buffers()[0].second, sent.data(), 2 * sizeof(double));
  };
  ranks.one->connect({}, nullptr);
  EXPECT_TRUE(ranks.one->is_connected());
  bool const is_usual = std::getenv("HOSTLESS_MPI_DEVICE_BYTES") == nullptr;  // a second start has 0
  char const* const few =
      is_usual ? "; through pinned memory where a round has less than 1048576 bytes)" : ")";
  EXPECT_EQ(ranks.one->describe(),
            std::string("mpi (device memory, as an MPI of the tests and a trial shows") + few);
  sent[1] = std::nextafter(sent[1], 0);
  EXPECT_NE(error_of([&] {
              ranks.one->connect({}, nullptr);
            }).find("value 1 of a trial from rank 1 did not arrive in device memory"),
            std::string::npos);
}

TEST_F(HostHalf, AnMpiThatMovesNothingIsRefused) {
  StreamProblem stream_problem(GpuTransport::mpi);
  auto const endpoint = stream_problem.endpoint();
  EXPECT_NE(error_of([&] { endpoint->connect({}, nullptr); }).find("value 0 of a trial from rank 1"),
            std::string::npos);
}

TEST_F(HostHalf, KernelsThatAskAreServed) {
  StreamProblem stream_problem(GpuTransport::host);
  int exchanges = 0;
  stream_problem.host.start = [&](int) { ++exchanges; };
  auto const endpoint = stream_problem.endpoint();
  EXPECT_TRUE(endpoint->is_recorded());
  endpoint->connect({}, nullptr);
  Stream const stream;
  DirectQueue queue(stream);
  std::vector<double> field(16);
  SolverExchange between(*endpoint, stream_problem.rounds, 0);
  int const before = runtime::launches();
  between.begin_exchange(queue, field.data() + 1);
  between.finish_exchange(queue, field.data() + 1);
  EXPECT_EQ(runtime::launches() - before, 3);  // pack, ask, await
  EXPECT_EQ(endpoint->serve(),
            StreamEndpoint::Served::nothing);  // no kernel is executed here: nobody has asked
  EXPECT_TRUE(endpoint->wait(stream));
  EXPECT_EQ(exchanges, 0);
  endpoint->abort();
  EXPECT_FALSE(endpoint->is_connected());
  EXPECT_EQ(endpoint->serve(), StreamEndpoint::Served::lost);
  endpoint->connect({}, nullptr);
  EXPECT_EQ(endpoint->serve(), StreamEndpoint::Served::nothing);
}

TEST_F(HostHalf, WhereKernelsMustNotWaitTheHostDoes) {
  StreamProblem stream_problem(GpuTransport::host);
  stream_problem.setup.sharers = 2;
  int tests = 0;
  stream_problem.host.test = [&] { return ++tests < 3 ? MessageState::under_way : MessageState::complete; };
  auto const endpoint = stream_problem.endpoint();
  EXPECT_FALSE(endpoint->is_recorded());
  endpoint->connect({}, nullptr);
  std::vector<double> field(16);
  SolverExchange between(*endpoint, stream_problem.rounds, 0);
  {
    test::PlayedAsk const asks(2);  // after the kernel that packs
    DirectQueue queue(nullptr);
    between.exchange(queue, field.data() + 1);
  }
  EXPECT_EQ(tests, 3);
  setenv("HOSTLESS_GPU_HOST_WAITS", "1", 1);
  stream_problem.setup.sharers = 1;
  EXPECT_FALSE(stream_problem.endpoint()->is_recorded());
  unsetenv("HOSTLESS_GPU_HOST_WAITS");
}

TEST_F(HostHalf, EveryCallOfStreamsMayFail) {
  for (GpuTransport transport : {GpuTransport::host, GpuTransport::mpi}) {
    StreamProblem stream_problem(transport);
    expect_every_failure_named([&] {
      auto const endpoint = stream_problem.endpoint();
      Stream const stream;
      DirectQueue queue(stream);
      double field[16] = {};
      SolverExchange between(*endpoint, stream_problem.rounds, 0);
      between.begin_exchange(queue, field + 1);
      between.finish_exchange(queue, field + 1);
      (void)endpoint->gather(queue, field, 2);
      (void)(endpoint->guards_hold() && between.guards_hold());
    });
  }
}

TEST_F(HostHalf, MoreRanksOrRoundsThanStreamsKnow) {
  StreamProblem stream_problem(GpuTransport::mpi);
  stream_problem.rounds.resize(9);
  stream_problem.describe();
  EXPECT_NE(error_of([&] { stream_problem.endpoint(); }, ErrorCode::usage).find("a plan of 9 rounds"),
            std::string::npos);
  stream_problem.setup.ranks = 9;
  EXPECT_NE(error_of([&] { stream_problem.endpoint(); }, ErrorCode::usage).find("9 ranks on GPUs"),
            std::string::npos);
}

}  // namespace
}  // namespace hostless::gpu
