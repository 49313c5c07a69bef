// Memory that runs out anywhere in a call about a queue, or in its work.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <thread>

#include "counted_memory.hpp"
#include "hostless/queue/halo.hpp"
#include "hostless/queue/queue.hpp"
#include "played_library.hpp"
#include "queue/communicator_state.hpp"

namespace hostless::test {
namespace {

/// A message of a rank to itself.
struct Loop {
  explicit Loop(Transport& transport) : communicator(transport) { match(all); }
  /// Starts and waits that were not reached.
  int unreached() const { return send.state()->unreached.load() + receive.state()->unreached.load(); }
  std::size_t started() const { return send.state()->communicator->started().now(); }
  Communicator communicator;
  std::array<std::byte, 8> out{std::byte{7}}, in{};
  Request send = communicator.send_init(out, 0, 1), receive = communicator.receive_init(in, 0, 1);
  std::array<Request*, 2> const all{&send, &receive};
};

/// While `work` does, the allocation of that number fails. False: there was none of it.
template <class Work>
bool without(std::int64_t number, Work const& work) {
  counted_memory::start();
  counted_memory::fail(number);
  work();
  bool const was_there = counted_memory::allocations() >= number;
  counted_memory::stop();
  return was_there;
}
/// Whether `call` had the memory that it takes.
template <class Call>
bool has_memory(Call const& call) {
  try {
    call();
    return true;
  } catch (std::bad_alloc const&) {
    return false;
  }
}

enum class Way { together, apart, all };
struct Case {
  bool by_thread;
  Way way;
};
class QueueWithoutMemory : public testing::TestWithParam<Case> {
 protected:
  static void enqueue_wait(Queue& queue, Loop& loop) {
    if (GetParam().way == Way::all) return queue.enqueue_wait_all();
    queue.enqueue_wait(loop.all);
  }
};

// Which are started and not waited for, whose work is enqueued, and what the queue is yet to reach are one count.
TEST_P(QueueWithoutMemory, ACallIsAcceptedOrRefusedAsAWhole) {
  int refused = 0, lost = 0;
  bool is_tried = true;
  for (std::int64_t number = 1; is_tried; ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    PlayedLibrary library(GetParam().by_thread);
    Loop loop(library);
    Queue queue;
    bool is_started = GetParam().way == Way::together, is_accepted = false, is_done = false;
    is_tried = without(number, [&] {
      if (GetParam().way == Way::together) {
        is_accepted = has_memory([&] { queue.enqueue_start_and_wait(loop.all, loop.all); });
      } else {
        is_started = has_memory([&] { queue.enqueue_start(loop.all); });
        is_accepted = is_started && has_memory([&] { enqueue_wait(queue, loop); });
      }
      is_done = has_memory([&] { queue.wait(); });
    });
    if (!is_done) {  // its work had none: all is lost, and said once
      ++lost;
      if (!is_accepted && is_started && GetParam().way != Way::together) enqueue_wait(queue, loop);
      EXPECT_THROW(queue.wait(), Error);
      EXPECT_TRUE(loop.send.status().lost || loop.receive.status().lost);
    } else if (!is_accepted) {
      ++refused;
      if (!is_started || GetParam().way == Way::together) {
        EXPECT_TRUE(queue.is_idle());
        queue.enqueue_start(loop.all);
      }
      enqueue_wait(queue, loop);
      queue.wait();
    }
    if (is_done) {
      EXPECT_EQ(loop.in, loop.out);
    }
    EXPECT_TRUE(queue.is_idle());
    EXPECT_EQ(loop.unreached(), 0);
    EXPECT_EQ(loop.started(), 0u);
  }
  EXPECT_GT(refused, 2);
  EXPECT_GT(lost, 0);
}

constexpr Case cases[] = {{false, Way::together}, {false, Way::apart}, {false, Way::all},
                          {true, Way::together},  {true, Way::apart},  {true, Way::all}};
std::string name_of(testing::TestParamInfo<Case> const& one) {
  constexpr char const* ways[] = {"Together", "Apart", "All"};
  return std::string(one.param.by_thread ? "ByThread" : "ByCalls") + ways[static_cast<int>(one.param.way)];
}
INSTANTIATE_TEST_SUITE_P(Queues, QueueWithoutMemory, testing::ValuesIn(cases), name_of);

/// A grid of one box of 2 x 2 cells that is its own neighbour, with its halo.
struct Torus {
  Torus() {
    for (std::size_t y : {1u, 2u})
      for (std::size_t x : {1u, 2u}) cells[y][x] = static_cast<double>(1 + 2 * (y - 1) + (x - 1));
  }
  bool is_filled() const {
    for (std::size_t y = 0; y < 4; ++y)
      for (std::size_t x = 0; x < 4; ++x)
        if (cells[y][x] != cells[1 + (y + 1) % 2][1 + (x + 1) % 2]) return false;
    return true;
  }
  std::array<std::array<double, 4>, 4> cells{};
};

class HaloWithoutMemory : public testing::TestWithParam<bool> {};

// Of a step that was refused nothing is started, and the next one is as if it had not been.
TEST_P(HaloWithoutMemory, AStepIsAcceptedOrRefusedAsAWhole) {
  int refused = 0;
  bool is_tried = true;
  for (std::int64_t number = 1; is_tried; ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    run_with_threads_transport(1, [&](Transport& transport) {
      Communicator communicator(transport);
      Torus torus;
      HaloGrid grid;
      grid.ranks = {1, 1};
      grid.periodic = {true, true};
      grid.size = {2, 2};
      QueueHalo halo(communicator, grid, {{torus.cells.data(), sizeof(double), Datatype::f64}},
                     {.ready = GetParam()});
      Queue queue;
      queue.enqueue_function([] {});  // its thread takes memory too
      queue.wait();
      bool is_accepted = false, is_done = false;
      HaloStep const only{.ends_run = true};
      // a function holds the work up until the memory is back: whose work takes some is tried above
      std::atomic<bool> goes_on{false};
      queue.enqueue_function([&] {
        while (!goes_on.load()) std::this_thread::yield();
      });
      is_tried =
          without(number, [&] { is_accepted = has_memory([&] { halo.enqueue_gather(queue, only); }); });
      goes_on.store(true);
      is_done = has_memory([&] { queue.wait(); });
      EXPECT_TRUE(is_done);
      if (!is_accepted) {
        ++refused;
        if (!GetParam()) {
          EXPECT_TRUE(queue.is_idle()) << "something is started";
        }
        EXPECT_FALSE(torus.is_filled());
        halo.enqueue_gather(queue, only);
        queue.wait();
      }
      EXPECT_TRUE(torus.is_filled());
      EXPECT_TRUE(queue.is_idle());
    });
  }
  EXPECT_GT(refused, 10);
}

INSTANTIATE_TEST_SUITE_P(Queues, HaloWithoutMemory, testing::Bool(), [](auto const& one) {
  return std::string(one.param ? "ReadySends" : "StandardSends");
});

}  // namespace
}  // namespace hostless::test
