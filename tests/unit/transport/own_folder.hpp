#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace hostless {

/// An empty folder, while it lives.
class Folder {
 public:
  Folder() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path = testing::TempDir() + "hostless-test-XXXXXX";
};

}  // namespace hostless
