// Several ranks, each on a GPU of its own or sharing one: equal plans end with the bits of the host run on as
// many threads, whatever happens on the way. A rank that falls silent is found by all others.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "bound_case.hpp"
#include "gpu_cells.hpp"

namespace hostless::test {
namespace {

namespace fs = std::filesystem;

// ------------------------------------------------------------------------------------------ equal bits
// text, problem, slices, run, route, format, ranks
contract::Point sizes() { return {static_cast<int>(texts().size()), 3, 4, 3, 5, 3, most_ranks}; }

GpuCell cell_at(contract::Point const& p) {
  // poisson7 and elasticity-hex8 in contiguous shares, the circuit as METIS cuts it.
  static constexpr std::array<std::array<int, 2>, 3> problems = {{{1, 0}, {0, 0}, {2, 1}}};
  auto const at = [&](std::size_t axis) { return static_cast<std::size_t>(p[axis]); };
  Text const text = texts()[at(0)];
  GpuCell cell;
  cell.plan = {problems[at(1)][0], problems[at(1)][1], p[2], static_cast<int>(text.method),
               static_cast<int>(text.preconditioner)};
  cell.route = p[4];
  cell.format = formats[at(5)];
  cell.ranks = 1 + p[6];
  auto const runs = cell.ranks == 1 ? gpu_runs() : runs_of_ranks(text.method, text.preconditioner);
  cell.run = runs[at(3) % runs.size()];
  return cell;
}

// The slices go round in the full product: they decide how blocks share the rows, not what ranks say.
std::vector<contract::Point> points() {
  if (std::getenv("HOSTLESS_FULL_PRODUCT") == nullptr) return contract::cover_pairs(sizes());
  std::vector<contract::Point> all = contract::all_points(sizes(), {6, 1, 4, 5, 0, 3});
  for (std::size_t k = 0; k < all.size(); ++k) all[k][2] = static_cast<int>(k % 4);
  return all;
}

class GpuPeersContract : public Gpu {};

TEST_F(GpuPeersContract, EqualPlansGiveEqualBits) {
  std::array<std::vector<GpuCell>, most_ranks> by_ranks;
  for (contract::Point const& p : points()) by_ranks[static_cast<std::size_t>(p[6])].push_back(cell_at(p));
  GpuFindings found;
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    auto const& cells = by_ranks[static_cast<std::size_t>(ranks - 1)];
    ASSERT_GT(cells.size(), 2u) << ranks << " ranks";
    solve_cells(ranks, cells, found);
  }
  std::printf("GPU peers: %d GPUs, %d cells, %d differ; %d cells converge\n", gpus_of(most_ranks),
              found.solved, found.differ.load(), found.converged);
  EXPECT_GT(found.converged, 0);
  EXPECT_LT(found.converged, found.solved) << "all cells end the same way: choose another tolerance or limit";
}

// ----------------------------------------------------------------------------------- the life of solvers
class GpuPeers : public testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    need_gpu();
    file_ = fs::temp_directory_path() / ("hostless-peers-" + std::to_string(getpid()) + ".checkpoint");
  }
  void TearDown() override { fs::remove(file_); }
  // Few enough slices that all ranks' blocks fit on one GPU side by side.
  static Setting setting(int ranks, std::int64_t iterations) {
    Setting p;
    p.ranks = ranks;
    p.matrix.partition = MatrixOptions::Partition::contiguous;
    p.matrix.slices = 32;
    p.solve.method = GetParam();
    p.solve.rtol = 0;
    p.solve.max_iterations = iterations;
    return p;
  }
  fs::path file_;
};
INSTANTIATE_TEST_SUITE_P(All, GpuPeers, testing::ValuesIn(all_methods()), [](auto const& one) {
  return "method_" + std::to_string(static_cast<int>(one.param));
});

TEST_P(GpuPeers, SmallMatrix) {
  System const a = System::problem(problem("poisson7", 6, 7, 8));
  auto const b = random_vector(a.rows(), 51);
  Setting const host = setting(2, 4);
  contract::Outcome const expected = solve(a, b, host);
  for (RunKind run : runs_of_ranks(GetParam()))
    EXPECT_EQ(solve(a, b, on_gpus(host, "auto", run)).difference(expected), "") << name(run);
}

// Kernels that return every few milliseconds, all at the same barrier.
TEST_P(GpuPeers, PausesChangeNoBit) {
  if (!spans_ranks(GetParam(), PreconditionerKind::none))
    GTEST_SKIP() << "this method has no persistent kernel for ranks";
  System const a = System::path(20'000);
  auto const b = random_vector(a.rows(), 52);
  for (int ranks : {2, 3}) {
    contract::Outcome const expected = solve(a, b, setting(ranks, 6000));
    Setting p = on_gpus(setting(ranks, 6000));
    p.solve.run.longest_launch_s = 0.004;
    Ending const ended = solve_on_threads(a, b, random_vector(a.rows(), 99), p);
    EXPECT_EQ(outcome_of(ended).difference(expected), "") << ranks << " ranks";
    for (Result const& one : ended.by_rank) EXPECT_GT(one.launches, 3) << "nothing was paused";
  }
}

TEST_P(GpuPeers, GoOnFromCheckpointsAnywhere) {
  System const a = System::problem(problem("poisson7", 10, 11, 12));
  auto const b = random_vector(a.rows(), 53);
  for (PreconditionerKind kind : gpu_preconditioners(GetParam())) {
    auto const at = [&](bool gpu, std::int64_t iterations) {
      Setting p = setting(2, iterations);
      p.solve.preconditioner = kind;
      return gpu ? on_gpus(p) : p;
    };
    contract::Outcome const expected = solve(a, b, at(false, 30)), half = solve(a, b, at(false, 16));
    for (auto const& [first, second] : {std::pair{true, true}, {true, false}, {false, true}}) {
      Setting writer = at(first, 16);
      writer.solve.checkpoint_file = file_.string();
      writer.solve.checkpoint_every = 5;
      Ending const written = solve_on_threads(a, b, random_vector(a.rows(), 99), writer);
      // processors write one of the last iteration too
      EXPECT_EQ(written.result.checkpoints, first ? 3 : 4);
      EXPECT_EQ(outcome_of(written).difference(half), "") << "pauses for checkpoints";
      Setting reader = at(second, 30);
      reader.solve.resume_file = file_.string();
      Ending const whole = solve_on_threads(a, b, reader);
      EXPECT_EQ(whole.result.resumed_at, first ? 15 : 16);
      EXPECT_EQ(outcome_of(whole).difference(expected), "")
          << name(kind) << (first ? ", GPUs" : ", host") << (second ? " to GPUs" : " to host");
    }
  }
}

TEST_P(GpuPeers, NewValues) {
  constexpr int ranks = 2;
  System const a = System::problem(problem("poisson7", 9, 10, 11));
  auto const b = random_vector(a.rows(), 54), x0 = random_vector(a.rows(), 99);
  for (PreconditionerKind kind : gpu_preconditioners(GetParam())) {
    Setting host = setting(ranks, 12);
    host.solve.preconditioner = kind;
    Setting const gpu = on_gpus(host);
    std::vector<System> systems;
    std::vector<contract::Outcome> expected;
    for (double factor : {1.0, 0.3, 7.0}) {
      systems.push_back(with_other_values(a, factor));
      expected.push_back(solve(systems.back(), b, host));
    }
    run_with_threads_transport(ranks, [&](Transport& transport) {
      int const rank = transport.group().rank();
      Share const mine = share_of(a, ranks, rank, false);
      Matrix matrix =
          Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value, gpu.matrix);
      Solver solver(matrix, gpu.solve);
      for (std::size_t k = 0; k < systems.size(); ++k) {
        Share const now = share_of(systems[k], ranks, rank, false);
        matrix.update_values(now.offset, now.column, now.value);
        std::vector<double> const b_here(b.begin() + now.first, b.begin() + now.last);
        contract::Outcome here = expected[k];
        here.x.assign(expected[k].x.begin() + now.first, expected[k].x.begin() + now.last);
        EXPECT_EQ(solve(solver, b_here, {x0.begin() + now.first, x0.begin() + now.last}).difference(here), "")
            << name(kind) << " values " << k << " rank " << rank;
      }
    });
  }
}

// One rank alone sees that somebody asks: all end at the same iteration (solve_on_threads compares them).
TEST_P(GpuPeers, OneRankIsAskedToStop) {
  System const a = System::path(40'000);
  auto const b = random_vector(a.rows(), 55);
  for (int ranks : {2, most_ranks}) {
    for (RunKind run : runs_of_ranks(GetParam())) {
      Setting const host = setting(ranks, 10 * a.rows());
      expect_all_stop(a, b, host, on_gpus(host, "auto", run));
    }
  }
}

// ------------------------------------------------------------------------------------- routes of several steps
/// Two nodes of two ranks, whose kernels pass on what goes between them.
Setting over_nodes(Setting setting, Route route) {
  setting.matrix.route = route;
  setting.matrix.ranks_per_node = 2;
  return setting;
}

// Rows in registers, in windows of shared memory and in memory; few ghosts and nearly all rows of others.
TEST_P(GpuPeers, RoutesChangeNoBitInsideTheKernel) {
  if (!spans_ranks(GetParam(), PreconditionerKind::none))
    GTEST_SKIP() << "this method has no persistent kernel for ranks";
  std::vector<System> systems;
  systems.push_back(System::problem(problem("poisson7", 12, 13, 14)));
  systems.push_back(System::problem(problem("elasticity-hex8", 6, 5, 7)));
  systems.push_back(System::problem(problem("circuit", 60, 60, 1)));
  for (std::size_t k = 0; k < systems.size(); ++k) {
    System const& a = systems[k];
    auto const b = random_vector(a.rows(), 57);
    for (PreconditionerKind kind : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
      Setting host = setting(4, 50);
      host.solve.preconditioner = kind;
      if (k == 2) host.matrix.partition = MatrixOptions::Partition::metis;
      contract::Outcome const expected = solve(a, b, host);
      for (Route route : all_routes) {
        Setting gpu = on_gpus(over_nodes(host, route), "auto", RunKind::persistent);
        gpu.solve.run.longest_launch_s = 0.005;  // what is passed on goes on after pauses, too
        Ending const ended = solve_on_threads(a, b, random_vector(a.rows(), 99), gpu);
        EXPECT_EQ(outcome_of(ended).difference(expected), "")
            << name(route) << ", system " << k << ", preconditioner " << name(kind);
      }
    }
  }
}

// Who waits for a word that somebody lost would have passed on finds out like everybody.
TEST_P(GpuPeers, LostRanksAreFoundByThoseThatPassOn) {
  if (!spans_ranks(GetParam(), PreconditionerKind::none))
    GTEST_SKIP() << "this method has no persistent kernel for ranks";
  constexpr double deadline_s = 0.3;
  System const a = System::problem(problem("circuit", 40, 40, 1));
  Setting const host = setting(4, 10);
  contract::Outcome const whole = solve(a, random_vector(a.rows(), 56), host);
  for (Route route : {Route::two_step, Route::three_step, Route::split, Route::leader}) {
    Setting const gpu = lossy(on_gpus(over_nodes(host, route)), deadline_s);
    run_with_threads_transport(4, [&](Transport& transport) {
      PeersCase here(transport, a, gpu, whole);
      for (int victim = 0; victim < 4; ++victim)
        for (int block : {0, 1, host.matrix.slices / 2 - 1})
          for (std::uint32_t barrier : {1u, 6u}) here.lose(victim, {block, barrier}, deadline_s);
    });
  }
}

// -------------------------------------------------------------------------------------------- lost ranks
// Each in turn is lost, at its first, a middle or its last block; the same solvers go on.
TEST_P(GpuPeers, LostRanksAreFoundByAll) {
  if (!spans_ranks(GetParam(), PreconditionerKind::none))
    GTEST_SKIP() << "this method has no persistent kernel for ranks";
  constexpr double deadline_s = 0.3;
  System const a = System::problem(problem("poisson7", 12, 12, 12));
  for (int ranks : {2, most_ranks}) {
    Setting const host = setting(ranks, 10);
    contract::Outcome const whole = solve(a, random_vector(a.rows(), 56), host);
    Setting const gpu = lossy(on_gpus(host), deadline_s);
    run_with_threads_transport(ranks, [&](Transport& transport) {
      PeersCase here(transport, a, gpu, whole);
      for (int victim = 0; victim < ranks; ++victim)
        for (int block : {0, 1, host.matrix.slices / 2 - 1}) here.lose(victim, {block, 1}, deadline_s);
    });
  }
}

// In every run a hundred hangs in one process, at random barriers.
class LossPeers : public GpuWith<RunKind> {};
INSTANTIATE_TEST_SUITE_P(All, LossPeers,
                         testing::Values(RunKind::persistent, RunKind::graph, RunKind::stream),
                         [](auto const& one) { return std::string(name(one.param)); });

TEST_P(LossPeers, HundredHangs) {
  constexpr double deadline_s = 0.25;          // nearly all of its time
  constexpr int blocks = 16, iterations = 40;  // at least a barrier each: all hangs come
  System const a = System::problem(problem("poisson7", 12, 12, 12));
  std::vector<Method> methods;
  for (Method method : all_methods())
    if (GetParam() != RunKind::persistent || spans_ranks(method, PreconditionerKind::none))
      methods.push_back(method);
  for (int ranks : {2, 3}) {
    std::vector<Setting> settings;
    std::vector<contract::Outcome> whole;
    for (Method method : methods) {
      Setting host;
      host.ranks = ranks;
      host.matrix.partition = MatrixOptions::Partition::contiguous;
      host.matrix.slices = 2 * blocks;
      host.solve.method = method;
      host.solve.rtol = 0;
      host.solve.max_iterations = iterations;
      whole.push_back(solve(a, random_vector(a.rows(), 56), host));
      settings.push_back(lossy(on_gpus(host, "auto", GetParam()), deadline_s));
    }
    auto const hangs = random_hangs(50, ranks, blocks, 1, iterations);
    run_with_threads_transport(ranks, [&](Transport& transport) {
      for (std::size_t k = 0; k < hangs.size(); ++k) {
        std::size_t const which = k % methods.size();
        PeersCase(transport, a, settings[which], whole[which])
            .lose(hangs[k].victim, hangs[k].silence, deadline_s);
      }
    });
  }
}

}  // namespace
}  // namespace hostless::test
