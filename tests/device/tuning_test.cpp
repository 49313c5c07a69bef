// `auto` measures once and remembers; the bits are those of every run.
#include <cstdlib>
#include <filesystem>

#include "bound_case.hpp"

namespace hostless::test {
namespace {

class GpuTunes : public Gpu {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "hostless-runs-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    setenv("HOSTLESS_CACHE_DIR", folder_.c_str(), 1);
    Gpu::SetUp();
  }
  void TearDown() override {
    unsetenv("HOSTLESS_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

std::string why(Ending const& ending) { return choice(ending.result, "run_why"); }

TEST_F(GpuTunes, OnceAMatrix) {
  System const a = System::problem(problem("poisson7", 14, 13, 12));
  auto const b = random_vector(a.rows(), 61);
  auto const x0 = random_vector(a.rows(), 62);
  for (Method method : {Method::cg, Method::single_reduction_cg, Method::pipelined_cg}) {
    for (PreconditionerKind kind : gpu_preconditioners(method)) {
      Setting setting = on_gpu(Setting{}, "auto", RunKind::automatic);
      setting.solve.method = method;
      setting.solve.preconditioner = kind;
      Ending const first = solve_on_threads(a, b, x0, setting), second = solve_on_threads(a, b, x0, setting);
      EXPECT_EQ(why(first).rfind("measured: ", 0), 0u) << why(first);
      EXPECT_NE(why(first).find("persistent "), std::string::npos) << why(first);
      EXPECT_NE(why(first).find("graph "), std::string::npos) << why(first);
      EXPECT_EQ(why(second), "measured before (cache): " + why(first).substr(10));
      EXPECT_EQ(choice(first.result, "run"), choice(second.result, "run"));
      EXPECT_EQ(why(first).find(choice(first.result, "run")), 10u)
          << why(first);  // the fastest is named first
      setting.solve.run.tune = false;
      Ending const modelled = solve_on_threads(a, b, x0, setting);
      EXPECT_EQ(why(modelled).rfind("model: ", 0), 0u) << why(modelled);
      for (RunKind run : gpu_runs()) {
        Ending const asked = solve_on_threads(a, b, x0, on_gpu(setting, "auto", run));
        EXPECT_EQ(why(asked), "asked for");
        for (Ending const* other : {&first, &second, &modelled}) {
          EXPECT_EQ(asked.x, other->x);
          EXPECT_EQ(asked.result.residual_history, other->result.residual_history);
        }
      }
    }
  }
}

// A run that was bound after another one is as it would have been alone.
TEST_F(GpuTunes, AndChangesRuns) {
  System const a = System::problem(problem("elasticity-hex8", 7, 6, 5));
  auto const b = random_vector(a.rows(), 63);
  Setting setting = on_gpu(Setting{}, "auto", RunKind::automatic);
  setting.solve.run.tune = false;
  std::vector<double> const zero(b.size());
  with_matrix(a, setting.matrix, [&](Matrix const& matrix) {
    BoundCase bound(matrix, setting.solve, 12);
    auto const expected = bound.run(b, zero);
    for (RunKind run : {RunKind::graph, RunKind::persistent, RunKind::stream, RunKind::persistent}) {
      bound.bound().use_run(run, "the test");
      EXPECT_EQ(bound.bound().run_kind(), run);
      EXPECT_EQ(bound.bound().why_run(), "the test");
      auto const found = bound.run(b, zero);
      EXPECT_EQ(found.x, expected.x) << name(run);
      EXPECT_EQ(found.history, expected.history) << name(run);
    }
  });
}

TEST_F(GpuTunes, NothingWhereTheMethodEndsAtOnce) {
  System const a = System::path(1);
  Ending const ended = solve_on_threads(a, {1.0}, {0.0}, on_gpu(Setting{}, "auto", RunKind::automatic));
  EXPECT_EQ(ended.result.status, Status::converged);
  EXPECT_NE(why(ended).find("not measured: the method ended before"), std::string::npos) << why(ended);
}

}  // namespace
}  // namespace hostless::test
