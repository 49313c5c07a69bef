// Paths between GPUs, as `hostless doctor --prove` proves them: only where there are two.
#include "gpu_place.hpp"

namespace hostless::test {
namespace {

class GpuPaths : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    if (gpu::library().devices() < 2) GTEST_SKIP() << "one GPU: there is no path";
  }
};

// Wide physical limits: no link is faster than memory, none slower than a disk.
void expect_physical(gpu::PathFacts const& path) {
  EXPECT_GT(path.word_s, 1e-7);
  EXPECT_LT(path.word_s, 1e-3);
  EXPECT_GT(path.bytes_per_s, 1e8);
  EXPECT_LT(path.bytes_per_s, 1e13);
}

TEST_F(GpuPaths, EachTwoBothWaysAndAgain) {
  int const devices = gpu::library().devices();
  for (int round = 0; round < 2; ++round) {  // memory of others is open the second time
    auto const paths = gpu::library().prove_paths();
    ASSERT_EQ(paths.size(), static_cast<std::size_t>(devices * (devices - 1)));
    auto at = paths.begin();
    for (int from = 0; from < devices; ++from) {
      for (int to = 0; to < devices; ++to) {
        if (from == to) continue;
        EXPECT_EQ(at->from, from);
        EXPECT_EQ(at->to, to);
        if (at->problem.empty()) expect_physical(*at);
        ++at;
      }
    }
  }
}

TEST_F(GpuPaths, SolvesGoWhereTheyAreProven) {
  System const a = System::path(4000);
  std::vector<double> const b(static_cast<std::size_t>(a.rows()), 1.0);
  Place place;
  place.ranks = 2;
  place = on_gpus(place);
  place.solve.max_iterations = 20;
  std::string problem;
  for (gpu::PathFacts const& path : gpu::library().prove_paths())
    if (path.from < 2 && path.to < 2) problem += path.problem;
  if (problem.empty()) {
    EXPECT_EQ(solve_on_threads(a, b, place).result.status, Status::iteration_limit);
  } else {
    EXPECT_THROW(solve_on_threads(a, b, place), Error) << problem;
  }
}

TEST(GpuPath, OneGpuHasNone) {
  need_gpu();
  if (testing::Test::IsSkipped()) return;
  if (gpu::library().devices() > 1) GTEST_SKIP() << "several GPUs";
  EXPECT_TRUE(gpu::library().prove_paths().empty());
}

}  // namespace
}  // namespace hostless::test
