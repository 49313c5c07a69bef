// What a handler of signals finds of files that are not finished. What the rest does, tests/cli/test_files.py
// sees.
#include "base/whole_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace hostless {
namespace {

namespace fs = std::filesystem;

TEST(WholeFile, UnfinishedOnesAreRemovedByAHandler) {
  fs::path const folder = fs::path(testing::TempDir()) / ("whole-" + std::to_string(getpid()));
  fs::create_directory(folder);
  {
    TemporaryFile first((folder / "a").string());
    TemporaryFile second((folder / "b").string());
    second.file().finish();
    second.take_name();
    EXPECT_TRUE(fs::exists(first.path()));
    remove_unfinished_files();
    EXPECT_FALSE(fs::exists(first.path()));
    EXPECT_TRUE(fs::exists(folder / "b"));
  }
  for (int k = 0; k < 40; ++k) {  // more one after the other than there can be at a time
    TemporaryFile const file((folder / "c").string());
    remove_unfinished_files();
    EXPECT_FALSE(fs::exists(file.path())) << k;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace hostless
