// Paths between GPUs, as `hostless doctor --prove` proves them: only where there are two.
#include <cstdio>
#include <memory>

#include "gpu_setting.hpp"
#include "path_check.hpp"

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

/// What the driver says of all GPUs; nothing where it is not NVIDIA's, or some are hidden and the numbers are
/// others.
LinkTable reach_by_driver() {
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) return {};
  std::string printed;
  std::unique_ptr<FILE, int (*)(FILE*)> const pipe(popen("nvidia-smi topo -p2p r 2>/dev/null", "r"), pclose);
  char text[512];
  while (pipe && std::fgets(text, sizeof text, pipe.get()) != nullptr) printed += text;
  return read_reach(printed);
}

TEST_F(GpuPaths, EachTwoBothWaysAndAgain) {
  for (int round = 0; round < 2; ++round)  // memory of others is open the second time
    for (auto const& complaint :
         path_complaints(gpu::library().prove_paths(), gpu::library().devices(), reach_by_driver()))
      ADD_FAILURE() << complaint;
}

TEST_F(GpuPaths, SolvesGoWhereTheyAreProven) {
  System const a = System::path(4000);
  std::vector<double> const b(static_cast<std::size_t>(a.rows()), 1.0);
  Setting setting;
  setting.ranks = 2;
  setting = on_gpus(setting);
  setting.solve.max_iterations = 20;
  std::string problem;
  for (gpu::PathFacts const& path : gpu::library().prove_paths())
    if (path.from < 2 && path.to < 2) problem += path.problem;
  if (problem.empty()) {
    EXPECT_EQ(solve_on_threads(a, b, setting).result.status, Status::iteration_limit);
  } else {
    EXPECT_THROW(solve_on_threads(a, b, setting), Error) << problem;
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
