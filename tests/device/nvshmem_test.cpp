// NVSHMEM knows a process a GPU: this program starts itself as several, in which one rank at a time falls
// silent. All end with `peer_lost` by the deadline and a second; the next solve has the bits of the host.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bound_case.hpp"
#include "hostless/base/error.hpp"
#include "hostless/transport/launcher.hpp"

namespace hostless::test {
namespace {

constexpr int fewest_ranks = 2, most_ranks_here = 3;

RunKind run_of(std::string const& name) { return run_kind_from(name.c_str()); }

std::vector<Method> methods_of(RunKind run) {
  if (run != RunKind::persistent) return {Method::cg, Method::pipelined_cg};
  std::vector<Method> methods;
  for (Method method : all_methods())
    if (spans_ranks(method, PreconditionerKind::none)) methods.push_back(method);
  return methods;
}

int wanted_hangs() {
  char const* const wanted = std::getenv("HOSTLESS_HANGS");
  return wanted != nullptr ? std::stoi(wanted) : 10;
}

/// A method bound to this rank's GPU, over a transport whose ranks are processes.
std::unique_ptr<PeersCase> make_case(Transport& transport, System const& a, RunKind run, Method method,
                                     WaitLimits limits) {
  Setting host;
  host.ranks = transport.group().size();
  host.matrix.partition = MatrixOptions::Partition::contiguous;
  host.matrix.slices = 32;
  host.solve.method = method;
  host.solve.rtol = 0;
  host.solve.max_iterations = 40;
  contract::Outcome const whole = solve(a, random_vector(a.rows(), 56), host);
  Setting gpu = on_gpus(host, "auto", run);
  gpu.solve.limits = limits;
  gpu.solve.run.gpu_transport = GpuTransport::nvshmem;
  return std::make_unique<PeersCase>(transport, a, gpu, whole);
}

// The first wait of a solve may last while ranks meet, which takes seconds. The kernel's barriers are counted
// from when it was bound, so each hang has a new one; elsewhere looks are counted, and nobody is silent
// before the second.
void hang(Transport& transport, RunKind run) {
  constexpr double deadline_s = 0.2, barrier_s = 60;
  constexpr int blocks = 16;
  bool const in_kernel = run == RunKind::persistent;
  System const a = System::problem(problem("poisson7", 12, 12, 12));
  auto const methods = methods_of(run);
  std::vector<std::unique_ptr<PeersCase>> cases;
  for (Method method : methods)
    cases.push_back(make_case(transport, a, run, method, {barrier_s, deadline_s}));
  if (in_kernel) cases.clear();  // what they had is there for the next ones
  std::size_t k = 0;
  for (Hang const& one : random_hangs(wanted_hangs(), transport.group().size(), blocks, in_kernel ? 1 : 2,
                                      in_kernel ? 40 : 5)) {
    std::size_t const which = k++ % methods.size();
    if (in_kernel) {
      make_case(transport, a, run, methods[which], {deadline_s, deadline_s})
          ->lose(one.victim, one.silence, deadline_s);
    } else {
      cases[which]->lose(one.victim, one.silence, deadline_s);
    }
  }
}

int as_rank(std::string const& run) {
  try {
    auto const transport = open_processes_transport();
    hang(*transport, run_of(run));
    transport->group().barrier();
    return testing::UnitTest::GetInstance()->Failed() ? 1 : 0;  // expectations outside a test count there
  } catch (std::exception const& e) {
    std::printf("%s\n", e.what());
    std::fflush(stdout);
    _exit(4);  // a lost peer would keep an orderly end waiting
  }
}

class GpuNvshmem : public GpuWith<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, GpuNvshmem, testing::Values("persistent", "graph", "stream"),
                         [](auto const& one) { return one.param; });

TEST_P(GpuNvshmem, ManyHangs) {
  int const ranks = std::min(most_ranks_here, gpu::library().devices());
  if (ranks < fewest_ranks) GTEST_SKIP() << "several GPUs";
  for (gpu::TransportFacts const& facts : gpu::library().transports())
    if (facts.name == "nvshmem" && !facts.problem.empty()) GTEST_SKIP() << facts.problem;
  Launch start;
  start.ranks = ranks;
  start.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "--as-rank", GetParam()};
  EXPECT_EQ(launch(start), 0) << "the lines above say what was not kept";
}

}  // namespace
}  // namespace hostless::test

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  if (count == 3 && std::string(words[1]) == "--as-rank") return hostless::test::as_rank(words[2]);
  return RUN_ALL_TESTS();
}
