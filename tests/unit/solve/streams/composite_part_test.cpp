// A stream endpoint that is a part of a composite, on the runtime of the tests: whose name it says, and that its host
// waits no longer than its limits behind kernels of the other part.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "exchange/stream_rounds.hpp"
#include "fake_runtime.hpp"
#include "hostless/base/error.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

namespace runtime = test::fake_runtime;

/// What a host carries between two ranks, of which this is the first.
class CompositePart : public testing::Test {
 protected:
  void SetUp() override {
    runtime::begin_again();
    host.start = [](int) {};
    host.test = [] { return MessageState::complete; };
    host.library = "an MPI of the tests";
    setup.host = &host;
    setup.ranks = 2;
    setup.composite = "peer+host";
    setup.in_pinned_memory = true;
    MessageRound round;
    round.from = {{1, 0}};
    round.to = {{6, 0}};
    round.out = round.in = {{1, 0, 1, 0}};
    setup.rounds = stream_rounds({round}, sizeof(double), false);
  }
  void TearDown() override { EXPECT_EQ(runtime::held(), 0) << "something was not given back"; }
  std::unique_ptr<StreamEndpoint> endpoint() const { return make_stream_endpoint(GpuTransport::mpi, setup); }
  std::string refusal() const {
    auto const tried = endpoint();
    try {
      tried->connect({}, nullptr);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::environment);
      return error.what();
    }
    return {};
  }
  StreamSetup setup;
  HostMessaging host;
};

TEST_F(CompositePart, NamesTheWholeInWhatItRefuses) {
  EXPECT_EQ(
      refusal(),
      "GPU transport peer+host: value 0 of a trial from rank 1 did not arrive through pinned memory "
      "(nothing is carried that was not seen to arrive). See what the other ranks say; else use another "
      "--transport.");
  host.test = [] { return MessageState::lost; };
  EXPECT_EQ(refusal(),
            "GPU transport peer+host: a trial through pinned memory did not end (a rank has left, or was "
            "silent past the deadline). See what the other ranks say; else use another --transport.");
  setup.composite = "peer+mpi";
  setup.in_pinned_memory = false;
  EXPECT_EQ(
      refusal(),
      "GPU transport peer+mpi: a trial between device buffers did not end (an MPI of the tests, but "
      "nothing is carried that was not seen to arrive). Use --gpu-transport peer+host, which stages it.");
}

TEST_F(CompositePart, WaitsForItsLimitsBehindKernelsThatWait) {
  setup.sharers = 2;  // the host waits
  setup.rounds = {{}};
  setup.first_s = 1;
  setup.deadline_s = 0.1;
  auto const hasty = endpoint();
  hasty->connect({}, nullptr);
  hasty->expect_late_ranks();
  DirectQueue queue(nullptr);
  auto const seconds_of_wait = [&] {
    runtime::keep_streams_busy(true);
    auto const begin = Clock::now();
    EXPECT_THROW(hasty->await(queue, 0, nullptr), RankLost);
    runtime::keep_streams_busy(false);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  EXPECT_GE(seconds_of_wait(), 1) << "ranks do not start together";
  EXPECT_GE(seconds_of_wait(), 0.1);
  hasty->await(queue, 0, nullptr);
}

TEST_F(CompositePart, HearsOfALossBehindKernelsThatWait) {
  setup.sharers = 2;
  setup.rounds = {{}};
  setup.first_s = setup.deadline_s = 600;
  auto const patient = endpoint();
  patient->connect({}, nullptr);
  runtime::keep_streams_busy(true);
  runtime::at_waits([&, asked = 0]() mutable {
    if (++asked == 3) patient->abort();
  });
  DirectQueue queue(nullptr);
  EXPECT_THROW(patient->await(queue, 0, nullptr), RankLost);
}

}  // namespace
}  // namespace hostless::gpu
