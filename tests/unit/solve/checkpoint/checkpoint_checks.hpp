#pragma once
// What the tests of checkpoints share.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>

#include "systems.hpp"

namespace hostless::test {

/// A folder of a test, which goes with it.
class Folder {
 public:
  Folder() {
    // Thousands of flushed files: in memory where there is such a folder.
    std::filesystem::path const memory = "/dev/shm";
    auto const parent = access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    std::string text = (parent / "hostless-checkpoint-XXXXXX").string();
    if (mkdtemp(text.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = text;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(char const* name) const { return (path_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

/// Five iterations of two ranks, whose last checkpoint is "c".
class Saved : public testing::Test {
 protected:
  void SetUp() override {
    setting.ranks = 2;
    setting.solve.checkpoint_file = folder.file("c");
    setting.solve.checkpoint_every = 2;
    setting.solve.max_iterations = 5;
    solve_on_threads(a, b, setting);
    resumed.ranks = 2;
    resumed.solve.resume_file = folder.file("c");
  }
  System const a = System::problem(problem("poisson2d", 5, 4, 1));
  std::vector<double> const b = random_vector(20, 4);
  Folder folder;
  Setting setting, resumed;
};

/// Two solves that ended alike, to the bit.
inline void expect_same(Ending const& got, Ending const& whole, std::string const& what) {
  EXPECT_EQ(got.result.status, whole.result.status) << what;
  EXPECT_EQ(got.result.iterations, whole.result.iterations) << what;
  EXPECT_EQ(got.result.restarts, whole.result.restarts) << what;
  EXPECT_EQ(got.result.true_residual, whole.result.true_residual) << what;
  EXPECT_TRUE(same_bits({got.result.condition_estimate}, {whole.result.condition_estimate})) << what;
  EXPECT_TRUE(same_bits(got.result.residual_history, whole.result.residual_history)) << what;
  EXPECT_TRUE(same_bits(got.x, whole.x)) << what;
}

}  // namespace hostless::test
