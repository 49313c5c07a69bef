// Halos that GPUs' streams exchange, recorded in graphs that are launched again: by loads and stores between GPUs,
// and by NCCL.
#include "groups.hpp"
#include "halos/queue_halos.hpp"
#include "on_gpus.hpp"

namespace hostless::test {
namespace {

// Every other grid is enqueued, so that graphs are launched between other steps.
std::string halos_of_graphs(Transport& t, GpuQueueHome& home, QueueType type) {
  Communicator communicator(t, home.gpu(), type);
  t.group().barrier();
  gpu::StreamBench& bench = home.bench(0);
  Queue queue(type, bench.stream());
  int grids = 0;
  auto const by = [&](std::function<void()> const& steps) {
    steps();
    if (++grids % 2 == 0) return 1;
    queue.wait();
    bench.record(steps);
    t.group().barrier();  // a graph is made before anybody waits
    constexpr int launches = 3;
    for (int k = 0; k < launches; ++k) bench.replay();
    steps();
    return launches + 2;
  };
  std::string const wrong = run_random_halos(communicator, t.group(), queue, 1000, 20, by);
  bench.record([] {});  // the graph goes, and what is held for it
  return wrong;
}

class HaloGraphs : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, HaloGraphs,
                         testing::Values(Shared{1, 1}, Shared{1, 4}, Shared{2, 2}, Shared{2, 6}), named);
TEST_P(HaloGraphs, AreRightAfterEveryLaunch) {
  on_ranks(ranks(), [&](Transport& t) { return halos_of_graphs(t, home(), QueueType::peer); });
}

class HaloGraphsByNccl : public ByNccl {};
INSTANTIATE_TEST_SUITE_P(On, HaloGraphsByNccl, testing::Values(by_nccl(2), by_nccl(4), by_nccl(6)), named);
TEST_P(HaloGraphsByNccl, AreRightAfterEveryLaunch) {
  on_ranks(ranks(), [&](Transport& t) { return halos_of_graphs(t, home(), QueueType::nccl); });
}

}  // namespace
}  // namespace hostless::test
