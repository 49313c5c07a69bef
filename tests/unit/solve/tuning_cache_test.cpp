// What was measured is found again, and a cache that is damaged or cannot be written hurts nobody.
#include "solve/gpu_solver/tuning_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hostless::gpu {
namespace {

class TuningCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "hostless-cache-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::size_t lines() const {
    std::ifstream file(cache().file());
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }
  TuningCache cache() const { return TuningCache(folder_ + "/inner"); }

  std::string folder_;
  std::vector<Timing> const two_ = {{"persistent", 37.4}, {"graph", 62.2}};
};

TEST_F(TuningCacheTest, FindsWhatItKept) {
  EXPECT_FALSE(cache().find("a \"key\"\n"));
  EXPECT_EQ(cache().keep("a \"key\"\n", two_), "");
  EXPECT_EQ(cache().find("a \"key\"\n"), two_);
  EXPECT_FALSE(cache().find("another"));
}

TEST_F(TuningCacheTest, ReplacesAnEntryOfTheSameKey) {
  cache().keep("a", two_);
  cache().keep("b", two_);
  std::vector<Timing> const newer = {{"graph", 1.5}};
  cache().keep("a", newer);
  EXPECT_EQ(cache().find("a"), newer);
  EXPECT_EQ(cache().find("b"), two_);
  EXPECT_EQ(lines(), 2u);
}

TEST_F(TuningCacheTest, ForgetsTheOldest) {
  std::filesystem::create_directories(folder_ + "/inner");
  std::ofstream file(cache().file());
  for (std::size_t k = 0; k < TuningCache::most_entries; ++k)
    file << R"({"key":"k)" << k << R"(","us":{"graph":2.0}})" << '\n';
  file.close();
  EXPECT_TRUE(cache().find("k0"));
  EXPECT_EQ(cache().keep("last", two_), "");
  EXPECT_EQ(lines(), TuningCache::most_entries);
  EXPECT_FALSE(cache().find("k0"));
  EXPECT_TRUE(cache().find("k1"));
  EXPECT_TRUE(cache().find("last"));
}

TEST_F(TuningCacheTest, LeavesOutDamagedLines) {
  cache().keep("good", two_);
  std::ofstream(cache().file(), std::ios::app)
      << "{\"key\":\"cut\",\"us\":{\"gra\n"
      << "[]\n\n{\"key\":1,\"us\":{\"graph\":1}}\n{\"key\":\"none\",\"us\":{}}\n"
      << "{\"key\":\"word\",\"us\":{\"graph\":\"x\"}}\n{\"key\":\"less\",\"us\":{\"graph\":-1}}\n"
      << "{\"key\":\"huge\",\"us\":{\"graph\":1e999}}\n";
  for (char const* key : {"cut", "none", "word", "less", "huge"}) EXPECT_FALSE(cache().find(key)) << key;
  EXPECT_EQ(cache().find("good"), two_);
  EXPECT_EQ(cache().keep("new", two_), "");
  EXPECT_EQ(lines(), 2u);
}

TEST_F(TuningCacheTest, SaysWhyNothingIsKept) {
  std::ofstream(folder_ + "/file") << "x";
  TuningCache const below_a_file(folder_ + "/file");
  EXPECT_EQ(below_a_file.keep("a", two_), below_a_file.file() + " cannot be written");
  EXPECT_FALSE(below_a_file.find("a"));
  TuningCache const nowhere("");
  EXPECT_EQ(nowhere.keep("a", two_), "no cache folder: set HOSTLESS_CACHE_DIR");
  EXPECT_FALSE(nowhere.find("a"));
  EXPECT_EQ(nowhere.file(), "");
  std::filesystem::create_directories(cache().file());  // a folder has its name
  EXPECT_EQ(cache().keep("a", two_), cache().file() + " cannot be written");
  std::size_t left = 0;
  for (auto const& entry : std::filesystem::directory_iterator(folder_ + "/inner")) left += entry.exists();
  EXPECT_EQ(left, 1u);  // no temporary file stays
}

TEST_F(TuningCacheTest, LiesWhereTheEnvironmentSays) {
  setenv("HOME", "/me", 1);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOSTLESS_CACHE_DIR");
  EXPECT_EQ(TuningCache::default_folder(), "/me/.cache/hostless");
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(TuningCache::default_folder(), "/caches/hostless");
  setenv("HOSTLESS_CACHE_DIR", "/here", 1);
  EXPECT_EQ(TuningCache::default_folder(), "/here");
  for (char const* name : {"HOSTLESS_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
  EXPECT_EQ(TuningCache::default_folder(), "");
}

}  // namespace
}  // namespace hostless::gpu
