// Several ranks between whose GPUs a library or the host carries: equal plans end with the bits of the host
// run on as many threads. Libraries need a GPU for every rank, NVSHMEM a process for every one as well: here
// one rank alone uses it, every_gpu_transport.py has more. The host carries for ranks that share a GPU, on
// the stream.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bound_case.hpp"
#include "gpu_cells.hpp"
#include "hostless/base/error.hpp"

namespace hostless::test {
namespace {

/// A transport and a run that it serves.
struct ByTransport {
  GpuTransport transport;
  RunKind run;
};
std::vector<ByTransport> all_by_transport() {
  return {{GpuTransport::nccl, RunKind::stream},      {GpuTransport::nccl, RunKind::graph},
          {GpuTransport::nvshmem, RunKind::stream},   {GpuTransport::nvshmem, RunKind::graph},
          {GpuTransport::host, RunKind::graph},       {GpuTransport::host, RunKind::stream},
          {GpuTransport::peer_nccl, RunKind::stream}, {GpuTransport::peer_nccl, RunKind::graph},
          {GpuTransport::peer_host, RunKind::graph},  {GpuTransport::peer_host, RunKind::stream}};
}
std::string name(ByTransport const& c) {
  std::string text = std::string(hostless::name(c.transport)) + "_" + hostless::name(c.run);
  std::replace(text.begin(), text.end(), '+', '_');
  return text;
}
bool is_by_nodes(GpuTransport transport) { return facts_of(transport).by_nodes; }
bool is_by_nccl(GpuTransport transport) {
  return transport == GpuTransport::nccl || transport == GpuTransport::peer_nccl;
}

Setting by_transport(ByTransport const& c, Setting const& host) {
  Setting setting = on_gpus(host, "auto", c.run);
  setting.solve.run.gpu_transport = c.transport;
  if (is_by_nodes(c.transport)) {  // two nodes, each of which has a rank that speaks for it
    setting.matrix.ranks_per_node = (setting.ranks + 1) / 2;
    setting.matrix.route = Route::three_step;
  }
  return setting;
}

/// Why so many ranks cannot be served here, or nothing.
std::string obstacle(ByTransport const& c, int ranks) {
  bool const by_host = c.transport == GpuTransport::host || c.transport == GpuTransport::peer_host;
  if (by_host && c.run == RunKind::stream) return {};
  if (c.transport == GpuTransport::nvshmem && ranks > 1) return "ranks are threads: nvshmem takes processes";
  int const speakers = c.transport == GpuTransport::peer_nccl ? std::min(ranks, 2) : ranks;
  if (gpus_of(ranks) < speakers)
    return std::to_string(ranks) + " ranks on " + std::to_string(gpus_of(ranks)) +
           " GPUs: " + (by_host ? "recorded kernels wait" : "the library takes one a GPU");
  for (gpu::TransportFacts const& facts : gpu::library().transports())
    if (facts.name == (is_by_nccl(c.transport) ? "nccl" : hostless::name(c.transport))) return facts.problem;
  return {};
}

// ------------------------------------------------------------------------------------------ equal bits
class GpuTransportsContract : public Gpu {};

// text, problem, slices, transport, route, format, ranks
TEST_F(GpuTransportsContract, EqualPlansGiveEqualBits) {
  contract::Point sizes = {
      static_cast<int>(texts().size()), 3, 4, static_cast<int>(all_by_transport().size()), 5, 3, most_ranks};
  static constexpr std::array<std::array<int, 2>, 3> problems = {{{1, 0}, {0, 0}, {2, 1}}};
  bool const full = std::getenv("HOSTLESS_FULL_PRODUCT") != nullptr;
  if (full) sizes[2] = sizes[5] = 1;
  std::array<std::vector<GpuCell>, most_ranks> by_ranks;
  int skipped = 0;
  std::string why;
  for (contract::Point p :
       full ? contract::all_points(sizes, {6, 1, 4, 5, 0, 3}) : contract::cover_pairs(sizes)) {
    auto const at = [&](std::size_t axis) { return static_cast<std::size_t>(p[axis]); };
    int const ranks = 1 + p[6];
    ByTransport c = all_by_transport()[at(3)];
    bool const is_for_processes = c.transport == GpuTransport::nvshmem && ranks > 1;
    if (full) {  // slices and formats decide how rows are multiplied, not what is sent: they go round
      if (is_for_processes || (ranks == 1 && p[4] > 0)) continue;  // one rank alone has one route
      p[2] = (p[0] + p[3] + p[6]) % 4;
      p[5] = (p[0] + p[1] + p[4] + p[6]) % 3;
    } else if (is_for_processes) {
      c = all_by_transport().back();
    }
    // Contracts have nodes of two ranks: of three or more on two GPUs only one route has one speak for each.
    constexpr int three_step = 2;
    if (c.transport == GpuTransport::peer_nccl && gpus_of(ranks) < ranks) p[4] = three_step;
    if (std::string const problem = obstacle(c, ranks); !problem.empty()) {
      ++skipped;
      if (why.find(problem) == std::string::npos) why += (why.empty() ? "" : "; ") + problem;
      continue;
    }
    Text const text = texts()[at(0)];
    contract::Plan const plan = {problems[at(1)][0], problems[at(1)][1], p[2], static_cast<int>(text.method),
                                 static_cast<int>(text.preconditioner)};
    by_ranks[at(6)].push_back({plan, c.run, formats[at(5)], p[4], ranks, c.transport});
  }
  GpuFindings found;
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    auto const& cells = by_ranks[static_cast<std::size_t>(ranks - 1)];
    ASSERT_GT(cells.size(), 2u) << ranks << " ranks";
    solve_cells(ranks, cells, found);
  }
  std::printf("GPU transports: %d GPUs, %d cells, %d differ; %d cells converge; %d skipped%s%s\n",
              gpus_of(most_ranks), found.solved, found.differ.load(), found.converged, skipped,
              skipped > 0 ? ": " : "", why.c_str());
  EXPECT_GT(found.converged, 0);
  EXPECT_LT(found.converged, found.solved) << "all cells end the same way: choose another tolerance or limit";
}

// ----------------------------------------------------------------------------------- the life of solvers
class GpuTransports : public GpuWith<ByTransport> {
 protected:
  /// As many of these numbers of ranks as can be served; skips the test, with the reason, if none can.
  std::vector<int> ranks_here(std::vector<int> const& wanted) {
    std::vector<int> ranks;
    std::string why;
    for (int count : wanted) {
      std::string const problem = obstacle(GetParam(), count);
      if (problem.empty()) ranks.push_back(count);
      if (!problem.empty()) why = problem;
    }
    if (!why.empty()) std::printf("left out: %s\n", why.c_str());
    return ranks;
  }
  static Setting setting(int ranks, std::int64_t iterations, Method method = Method::cg) {
    Setting p;
    p.ranks = ranks;
    p.matrix.partition = MatrixOptions::Partition::contiguous;
    p.matrix.slices = 32;
    p.solve.method = method;
    p.solve.rtol = 0;
    p.solve.max_iterations = iterations;
    return p;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GpuTransports, testing::ValuesIn(all_by_transport()),
                         [](auto const& one) { return name(one.param); });

TEST_P(GpuTransports, SmallMatrix) {
  auto const counts = ranks_here({1, 2});
  if (counts.empty()) GTEST_SKIP() << obstacle(GetParam(), 1);
  System const a = System::problem(problem("poisson7", 6, 7, 8));
  auto const b = random_vector(a.rows(), 51);
  for (int ranks : counts)
    for (Method method : all_methods()) {
      Setting const host = setting(ranks, 4, method);
      Ending const ended =
          solve_on_threads(a, b, random_vector(a.rows(), 99), by_transport(GetParam(), host));
      EXPECT_EQ(outcome_of(ended).difference(solve(a, b, host)), "") << ranks << " ranks";
      std::string const said = choice(ended.result, "gpu_transport");
      std::string const by =
          hostless::name(GetParam().transport);  // of nodes: what carries inside them comes first
      EXPECT_EQ(said.rfind(by.substr(0, by.find('+')), 0), 0u) << said;
      EXPECT_EQ(choice(ended.result, "run"), hostless::name(GetParam().run));
    }
}

// Long enough for many looks of the host, and graphs that are replayed.
TEST_P(GpuTransports, ManyIterations) {
  auto const counts = ranks_here({1, 2, 3, most_ranks});
  if (counts.empty()) GTEST_SKIP() << obstacle(GetParam(), 1);
  System const a = System::path(3'000);
  auto const b = random_vector(a.rows(), 52);
  for (int ranks : counts) {
    for (char const* overlap : {"0", "1"}) {  // sweeps in one part, and in two with the exchange beside one
      Environment const forced("HOSTLESS_GPU_OVERLAP", overlap);
      for (Method method : all_methods()) {
        Setting const host = setting(ranks, 409, method);
        Ending const ended =
            solve_on_threads(a, b, random_vector(a.rows(), 99), by_transport(GetParam(), host));
        EXPECT_EQ(outcome_of(ended).difference(solve(a, b, host)), "")
            << ranks << " ranks, overlap " << overlap << ", " << name(method);
        bool const parted = choice(ended.result, "gpu_run").find("beside the exchange") != std::string::npos;
        // graphs of ranks that share a GPU keep to one part
        bool const shares = GetParam().run == RunKind::graph && gpus_of(ranks) < ranks;
        EXPECT_EQ(parted, overlap[0] == '1' && !shares) << choice(ended.result, "gpu_run");
      }
    }
  }
}

// What was recorded holds pointers of the matrix.
TEST_P(GpuTransports, NewValues) {
  auto const counts = ranks_here({2});
  if (counts.empty()) GTEST_SKIP() << obstacle(GetParam(), 2);
  System const a = System::problem(problem("poisson7", 9, 10, 11));
  System const other = with_other_values(a, 0.3);
  auto const b = random_vector(a.rows(), 54), x0 = random_vector(a.rows(), 99);
  Setting const host = setting(2, 30);
  contract::Outcome const expected = solve(other, b, host);
  Setting const gpu = by_transport(GetParam(), host);
  run_with_threads_transport(2, [&](Transport& transport) {
    Share const before = share_of(a, 2, transport.group().rank(), false);
    Share const now = share_of(other, 2, transport.group().rank(), false);
    Matrix matrix =
        Matrix::from_rows(transport, before.first, before.offset, before.column, before.value, gpu.matrix);
    Solver solver(matrix, gpu.solve);
    std::vector<double> const b_here(b.begin() + now.first, b.begin() + now.last);
    std::vector<double> const x_here(x0.begin() + now.first, x0.begin() + now.last);
    EXPECT_NE(solve(solver, b_here, x_here).history, expected.history) << "the values do not matter";
    matrix.update_values(now.offset, now.column, now.value);
    EXPECT_EQ(solve(solver, b_here, x_here).history, expected.history);
  });
}

TEST_P(GpuTransports, OneRankIsAskedToStop) {
  auto const counts = ranks_here({2, most_ranks});
  if (counts.empty()) GTEST_SKIP() << obstacle(GetParam(), 2);
  System const a = System::path(40'000);
  auto const b = random_vector(a.rows(), 55);
  for (int ranks : counts) {
    Setting const host = setting(ranks, 10 * a.rows());
    expect_all_stop(a, b, host, by_transport(GetParam(), host));
  }
}

// The host of each rank in turn stops at its first, second, ... look at its GPU; the same solvers go on.
TEST_P(GpuTransports, LostRanksAreFoundByAll) {
  constexpr double deadline_s = 0.5;
  auto const counts = ranks_here({2, most_ranks});
  if (counts.empty()) GTEST_SKIP() << obstacle(GetParam(), 2);
  System const a = System::path(3'000);
  for (int ranks : counts) {
    Setting const host = setting(ranks, 200);
    contract::Outcome const whole = solve(a, random_vector(a.rows(), 56), host);
    Setting gpu = lossy(by_transport(GetParam(), host), deadline_s);
    if (is_by_nccl(GetParam().transport)) gpu.solve.limits.first_s = 60;  // to connect takes seconds
    for (char const* overlap : {"0", "1"}) {  // "1": lost between the parts of a sweep too
      Environment const forced("HOSTLESS_GPU_OVERLAP", overlap);
      run_with_threads_transport(ranks, [&](Transport& transport) {
        PeersCase here(transport, a, gpu, whole);
        for (int victim = 0; victim < ranks; ++victim)
          for (std::uint32_t look : {2u, 3u, 5u})
            here.lose(victim, {0, look}, deadline_s, is_by_nccl(GetParam().transport) ? deadline_s : 0);
      });
    }
  }
}

// As many as there is time for: a library connects its ranks anew after each.
TEST_P(GpuTransports, ManyHangs) {
  constexpr double deadline_s = 0.2;
  auto const counts = ranks_here({2, 3});
  if (counts.empty()) GTEST_SKIP() << obstacle(GetParam(), 2);
  char const* const wanted = std::getenv("HOSTLESS_HANGS");
  int const all = wanted != nullptr ? std::stoi(wanted) : 10;
  System const a = System::path(3'000);
  for (int ranks : counts) {
    Setting const host = setting(ranks, 200);
    contract::Outcome const whole = solve(a, random_vector(a.rows(), 56), host);
    Setting gpu = lossy(by_transport(GetParam(), host), deadline_s);
    gpu.solve.limits.first_s = 60;  // nobody is silent before his second look; the driver may be
    run_with_threads_transport(ranks, [&](Transport& transport) {
      PeersCase here(transport, a, gpu, whole);
      for (Hang const& hang : random_hangs(all / static_cast<int>(counts.size()), ranks, 1, 2, 5))
        here.lose(hang.victim, hang.silence, deadline_s, is_by_nccl(GetParam().transport) ? deadline_s : 0);
    });
  }
}

}  // namespace
}  // namespace hostless::test
