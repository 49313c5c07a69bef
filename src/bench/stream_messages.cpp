#include "bench/stream_messages.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "base/counted.hpp"
#include "bench/communication.hpp"
#include "bench/known.hpp"
#include "queue/gpu/message_library.hpp"

namespace hostless::bench {
namespace {

constexpr int trips_of_graph = 20;
// Ranks that share a GPU: one must not fill what the driver keeps for all of them while it waits for the
// other.
constexpr int trips_at_once = 2 * trips_of_graph;

int stream_steps_of(std::size_t bytes, int asked) {
  constexpr std::size_t most_bytes = std::size_t{2} << 30;
  auto const steps = std::min(static_cast<std::size_t>(asked), std::max<std::size_t>(1, most_bytes / bytes));
  return static_cast<int>((steps + trips_of_graph - 1) / trips_of_graph * trips_of_graph);
}

constexpr double longest_hold_s = 60;

class StreamPair {
 public:
  StreamPair(Communicator& communicator, PeerPingPong const& what, std::size_t bytes, bool ready, int rank)
      : bench_(gpu::message_library().bench(rank % what.gpus)),
        queue_(QueueType::peer, bench_->stream()),
        bytes_(bytes),
        is_first_(rank == what.first) {
    int const other = is_first_ ? what.second : what.first;
    for (std::byte** const one : {&data_, &out_, &in_}) *one = bench_->memory(bytes);
    shown_ = bench_->pinned(bytes);
    bench_->add_to_bytes(data_, shown_, bytes, 0);  // loads the kernel
    send_ = ready ? communicator.ready_send_init({out_, bytes}, other, 0)
                  : communicator.send_init({out_, bytes}, other, 0);
    receive_ = communicator.receive_init({in_, bytes}, other, 0);
    Request* both[] = {&send_, &receive_};
    match(both);
    queue_.wait();
  }
  void enqueue(int trips) {
    Request* both[] = {&receive_, &send_};
    std::span<Request*const> const all(both), receive(both, 1), send(both + 1, 1);
    for (int k = 0; k < trips; ++k) {
      if (is_first_) {
        pack();
        queue_.enqueue_start_and_wait(all, all);
        unpack();
      } else {  // its start of a trip has the wait of the next one
        if (k == 0) queue_.enqueue_start_and_wait(receive, receive);
        unpack();
        pack();
        auto const next = k + 1 < trips ? all : send;
        queue_.enqueue_start_and_wait(next, next);
      }
    }
  }
  void record(int trips) {
    bench_->record([this, trips] { enqueue(trips); });
  }
  void replay() { bench_->replay(); }
  void wait() { queue_.wait(); }
  void hold() { bench_->hold(longest_hold_s); }
  void release() { bench_->release(); }
  /// Errors  environment  the stream went on before that
  void check_hold() const {
    if (bench_->went_on_unreleased())
      throw Error(
          ErrorCode::environment,
          fmt::format("queueing the round trips took more than {:g} s, and the GPU went on without being "
                      "released (its processor time would be of something else). Use fewer processes on "
                      "this machine, or drop --processor-time.",
                      longest_hold_s));
  }
  /// After n round trips `first` has 4 n: two packs and two unpacks each.
  bool is_right(std::int64_t trips) {
    bench_->add_to_bytes(shown_, data_, bytes_, 0);
    queue_.wait();
    auto const right = static_cast<std::byte>(4 * trips);
    return !is_first_ || std::all_of(shown_, shown_ + bytes_, [&](std::byte b) { return b == right; });
  }

 private:
  void pack() { bench_->add_to_bytes(out_, data_, bytes_, 1); }
  void unpack() { bench_->add_to_bytes(data_, in_, bytes_, 1); }

  std::unique_ptr<gpu::StreamBench> bench_;
  Queue queue_;
  std::size_t bytes_;
  bool is_first_;
  std::byte *data_ = nullptr, *out_ = nullptr, *in_ = nullptr, *shown_ = nullptr;
  Request send_, receive_;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// pair: null on ranks that only wait.
ProcessorTime time_processor(Group& group, StreamPair* pair, PeerPingPongTiming const& timing) {
  // Launches wait for room, and processors with them, where there are some 1,000.
  constexpr int most_replays = 100, trips_of_stream = 100, trips_of_long_graph = 200;
  constexpr double enough_s = 2;
  double const replay_s = trips_of_long_graph * timing.round_trip.median();
  int const replays = std::clamp(static_cast<int>(enough_s / replay_s), 1, most_replays);
  ProcessorTime time;
  time.trips = timing.by_graph ? replays * trips_of_long_graph : trips_of_stream;
  if (pair != nullptr && timing.by_graph) pair->record(trips_of_long_graph);
  group.barrier();  // a graph is made before anybody waits
  if (pair != nullptr) {
    pair->hold();
    if (!timing.by_graph) pair->enqueue(trips_of_stream);
    for (int k = 0; timing.by_graph && k < replays; ++k) pair->replay();
  }
  group.barrier();
  double const busy_before = processor_seconds();
  auto const begin = Clock::now();
  if (pair != nullptr) {
    pair->release();
    pair->wait();
  }
  double const wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  double const busy_s = processor_seconds() - busy_before;
  group.together([&] {
    if (pair != nullptr) pair->check_hold();
  });
  time.wall_s = group.max(wall_s);
  time.busy_s = group.max(busy_s);
  return time;
}

PeerPingPongTiming time_pair(Group& group, Communicator& communicator, PeerPingPong const& what,
                             PeerPingPongTiming timing, Protocol protocol) {
  timing.steps = protocol.steps = stream_steps_of(timing.bytes, protocol.steps);
  protocol.warm_up = stream_steps_of(timing.bytes, std::min(protocol.warm_up, protocol.steps));
  bool const takes_part = group.rank() == what.first || group.rank() == what.second;
  bool const is_shared = what.first % what.gpus == what.second % what.gpus;
  std::unique_ptr<StreamPair> pair;
  if (takes_part)
    pair = std::make_unique<StreamPair>(communicator, what, timing.bytes, timing.driver == Driver::ready,
                                        group.rank());
  if (takes_part && timing.by_graph) pair->record(trips_of_graph);
  std::int64_t trips = 0;
  auto const run = [&](int steps) {
    trips += steps;
    if (!takes_part) return;
    int const at_once = is_shared ? trips_at_once : steps;
    for (int done = 0; done < steps; done += at_once) {
      int const some = std::min(at_once, steps - done);
      if (!timing.by_graph) pair->enqueue(some);
      for (int k = 0; timing.by_graph && k < some; k += trips_of_graph) pair->replay();
      pair->wait();
    }
  };
  timing.round_trip = time_runs(
      group, protocol, [] {}, run);
  if (what.with_processor && !is_shared) {
    timing.processor = time_processor(group, pair.get(), timing);
    trips += timing.processor.trips;
  }
  bool const wrong_here = takes_part && !pair->is_right(trips);
  group.together([&] {
    if (wrong_here)
      throw wrong(fmt::format("after {} of {} the answer is wrong", counted(trips, "round trip"),
                              counted(timing.bytes, "byte")));
  });
  return timing;
}

}  // namespace

std::vector<PeerPingPongTiming> peer_ping_pong(Transport& transport, PeerPingPong const& what,
                                               Protocol const& protocol) {
  Group& group = transport.group();
  check_ping_pong({what.first, what.second, what.bytes}, group.size());
  std::optional<Communicator> communicator;
  group.together([&] { communicator.emplace(transport, group.rank() % what.gpus); });
  std::vector<PeerPingPongTiming> timings;
  for (std::size_t const bytes : what.bytes)
    for (bool const by_graph : {false, true})
      for (Driver const driver : {Driver::standard, Driver::ready})
        if (by_graph ? what.by_graph : what.by_stream)
          timings.push_back(
              time_pair(group, *communicator, what, {bytes, driver, by_graph, 0, {}, {}}, protocol));
  group.barrier();
  return timings;
}

}  // namespace hostless::bench
