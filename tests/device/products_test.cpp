// Formats whose product is made by kernels of its own, merge and vendor: against the host's ordered products,
// and judged by the residual that long double sees.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "gpu_setting.hpp"
#include "hostless/base/error.hpp"

namespace hostless::test {
namespace {

/// The runs that know these formats; `replay` is graph without WHILE nodes.
struct Launches {
  std::string name;
  RunKind kind;
  bool replay;
};
/// Not under compute-sanitizer: run_suite.sh says why.
bool loops_wanted() {
  char const* const asked = std::getenv("HOSTLESS_GPU_WHILE");
  return asked == nullptr || std::string_view(asked) != "0";
}
bool const has_loops = loops_wanted();  // before any test changes it
std::vector<Launches> launches() {
  std::vector<Launches> all = {{"stream", RunKind::stream, false}, {"replay", RunKind::graph, true}};
  if (has_loops) all.push_back({"graph", RunKind::graph, false});
  return all;
}

Setting apart(Setting setting, std::string const& format, RunKind run) {
  setting = on_gpu(setting, format, run);
  setting.solve.reduction = Reduction::fast;
  return setting;
}

/// Why the vendor's product cannot be had here, or nothing.
std::string why_no_vendor() {
  try {
    System const a = System::path(8);
    solve_on_threads(a, std::vector<double>(8, 1.0), apart(Setting{}, "vendor", RunKind::stream));
    return {};
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::environment);
    EXPECT_NE(std::string(error.what()).find("format vendor"), std::string::npos) << error.what();
    return error.what();
  }
}

/// 2 on the diagonal, the last row and column full: a row over several tiles beside rows of two entries.
System arrow(std::int64_t n) {
  System a;
  double const tip = -1.0 / std::sqrt(static_cast<double>(n));
  for (std::int64_t i = 0; i + 1 < n; ++i) a.row({{i, 2.0}, {n - 1, tip}});
  std::vector<std::pair<std::int64_t, double>> last;
  for (std::int64_t j = 0; j + 1 < n; ++j) last.emplace_back(j, tip);
  last.emplace_back(n - 1, 2.0);
  a.row(last);
  return a;
}

struct Case {
  std::string name;
  System system;
  int block;
};
std::vector<Case> cases() {
  return {{"cube", System::problem(problem("poisson7", 24, 24, 24)), 1},
          {"cube in blocks of 2", System::problem(problem("poisson7", 24, 5, 7)), 2},
          {"elasticity", System::problem(problem("elasticity-hex8", 9, 8, 7)), 3},
          {"circuit", System::problem(problem("circuit", 60, 60, 1)), 1},
          {"arrow", arrow(30'000), 1},
          {"three rows", System::path(3), 1}};
}

class GpuProducts : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    need_gpu();
    if (IsSkipped() || GetParam() != "vendor") return;
    if (std::string const why = why_no_vendor(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override {
    if (has_loops) unsetenv("HOSTLESS_GPU_WHILE");
  }
  Ending solve_by(Launches const& how, System const& a, std::vector<double> const& b,
                  Setting const& setting) {
    if (how.replay) {
      setenv("HOSTLESS_GPU_WHILE", "0", 1);
    } else {
      unsetenv("HOSTLESS_GPU_WHILE");
    }
    return solve_on_threads(a, b, random_vector(a.rows(), 99), apart(setting, GetParam(), how.kind));
  }
};
INSTANTIATE_TEST_SUITE_P(All, GpuProducts, testing::Values("merge", "vendor"),
                         [](auto const& one) { return one.param; });

// Every row counts: after a few iterations another order of sums has moved nothing that can be seen.
TEST_P(GpuProducts, FirstIterationsAreThoseOfTheHost) {
  for (Case const& one : cases()) {
    auto const b = random_vector(one.system.rows(), 51);
    Setting setting;
    setting.matrix.block = one.block;
    setting.solve.rtol = 0;
    setting.solve.max_iterations = 3;
    auto const expected = solve(one.system, b, setting);
    for (Launches const& how : launches()) {
      Ending const ended = solve_by(how, one.system, b, setting);
      auto difference = ended.x;
      for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.x[i];
      EXPECT_LE(norm(difference), 1e-12 * norm(expected.x)) << one.name << ' ' << how.name;
    }
  }
}

TEST_P(GpuProducts, ReachTheirTrueResidual) {
  for (Case const& one : cases()) {
    auto const b = random_vector(one.system.rows(), 52);
    for (Method method : all_methods()) {
      for (PreconditionerKind kind : gpu_preconditioners(method)) {
        Setting setting;
        setting.matrix.block = one.block;
        setting.solve.method = method;
        setting.solve.preconditioner = kind;
        Ending const ordered = solve_on_threads(one.system, b, setting);
        if (kind == PreconditionerKind::jacobi) {
          ASSERT_EQ(ordered.result.status, Status::converged) << one.name;
        }
        if (ordered.result.status != Status::converged)
          continue;  // not every method comes that far with none
        for (Launches const& how : launches()) {
          Ending const ended = solve_by(how, one.system, b, setting);
          std::string const where = one.name + ' ' + name(method) + ' ' + name(kind) + ' ' + how.name;
          EXPECT_EQ(ended.result.status, Status::converged) << where;
          EXPECT_LE(residual_of(one.system, b, ended.x), 1.0001 * setting.solve.rtol * norm(b)) << where;
          EXPECT_LE(ended.result.iterations, 2 + ordered.result.iterations * 3 / 2) << where;
        }
      }
    }
  }
}

// Who multiplies, and how it is launched, is said: a library that cannot be recorded would show here.
TEST_P(GpuProducts, SayWhatTheyDo) {
  System const a = System::problem(problem("poisson7", 12, 12, 12));
  auto const b = random_vector(a.rows(), 53);
  std::string const words = GetParam() == "merge" ? "products by merge path, " : "SPARSE (";
  for (Launches const& how : launches()) {
    Ending const ended = solve_by(how, a, b, Setting{});
    std::string const run = choice(ended.result, "gpu_run");
    EXPECT_NE(run.find(words), std::string::npos) << run;
    EXPECT_EQ(run.find("launched on a stream"), std::string::npos) << run;
    EXPECT_EQ(run.find("HOSTLESS_GPU_WHILE is 0") != std::string::npos, how.replay) << run;
    EXPECT_EQ(choice(ended.result, "gpu_format").rfind(GetParam() + " (", 0), 0u);
  }
  Setting automatic = apart(Setting{}, GetParam(), RunKind::automatic);
  automatic.solve.run.tune = false;  // the reason is the model's, whatever was measured before
  Ending const chosen = solve_on_threads(a, b, automatic);
  EXPECT_NE(choice(chosen.result, "run"), "persistent");
  EXPECT_NE(choice(chosen.result, "run_why").find("kernels of their own"), std::string::npos)
      << choice(chosen.result, "run_why");
}

// Graphs and libraries hold pointers to what was replaced.
TEST_P(GpuProducts, NewValues) {
  System a = System::problem(problem("poisson7", 14, 13, 12));
  auto const b = random_vector(a.rows(), 54);
  for (RunKind run : {RunKind::stream, RunKind::graph}) {
    Setting const setting = apart(Setting{}, GetParam(), run);
    run_with_threads_transport(1, [&](Transport& transport) {
      Matrix matrix = Matrix::from_rows(transport, 0, a.offset, a.column, a.value, setting.matrix);
      Solver solver(matrix, setting.solve);
      for (double factor : {1.0, 3.0, 0.25}) {
        System scaled = a;
        for (double& value : scaled.value) value *= factor;
        for (std::int64_t i = 0; i < a.rows(); ++i) scaled.at(i, i) += factor;
        matrix.update_values(scaled.offset, scaled.column, scaled.value);
        std::vector<double> x(b.size());
        EXPECT_EQ(solver.solve(b, x).status, Status::converged);
        EXPECT_LE(residual_of(scaled, b, x), 1.0001 * setting.solve.rtol * norm(b)) << factor;
      }
    });
  }
}

}  // namespace
}  // namespace hostless::test
