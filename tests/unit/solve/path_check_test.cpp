// The judge of paths between GPUs sees what is wrong with them: it is shown good ones and broken ones.
#include "path_check.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace hostless::test {
namespace {

char const* const four = R"( 	GPU0	GPU1	GPU2	GPU3	
 GPU0	X	OK	OK	NS	
 GPU1	OK	X	OK	NS	
 GPU2	OK	OK	X	NS	
 GPU3	NS	NS	NS	X	

Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
)";

std::vector<gpu::PathFacts> good(int devices) {
  std::vector<gpu::PathFacts> all;
  for (int from = 0; from < devices; ++from)
    for (int to = 0; to < devices; ++to)
      if (from != to) all.push_back({from, to, "", 0.7e-6, 356e9});
  return all;
}

std::string no_way(int from, int to) {
  return "GPU " + std::to_string(from) + " cannot reach the memory of GPU " + std::to_string(to);
}

std::string first_complaint(std::vector<gpu::PathFacts> const& paths, LinkTable const& reach = {}) {
  auto const all = path_complaints(paths, 3, reach);
  return all.empty() ? "" : all[0];
}

TEST(PathCheck, ReadsWhatTheDriverPrints) {
  LinkTable const reach = read_reach(four);
  ASSERT_EQ(reach.size(), 4u);
  EXPECT_EQ(reach[0], (std::vector<std::string>{"X", "OK", "OK", "NS"}));
  EXPECT_EQ(reach[3][1], "NS");
  EXPECT_TRUE(read_reach("").empty());
  EXPECT_TRUE(read_reach("nvidia-smi: command not found\n").empty());
}

TEST(PathCheck, GoodPaths) {
  EXPECT_EQ(first_complaint(good(3)), "");
  auto paths = good(4);
  for (auto& path : paths)
    if (path.from == 3 || path.to == 3) path = {path.from, path.to, no_way(path.from, path.to), 0, 0};
  EXPECT_TRUE(path_complaints(paths, 4, read_reach(four)).empty());
  EXPECT_TRUE(path_complaints(paths, 4, {}).empty());
}

TEST(PathCheck, EveryPathBroken) {
  auto paths = good(3);
  for (auto& path : paths)
    path = {path.from, path.to, "5 of 4194304 stored words are not what was stored", 0, 0};
  EXPECT_EQ(path_complaints(paths, 3, {}).size(), 6u);
  for (auto& path : paths) path.problem = no_way(path.from, path.to);
  LinkTable const all_reach(3, std::vector<std::string>(3, "OK"));
  EXPECT_EQ(path_complaints(paths, 3, all_reach).size(), 6u);
}

TEST(PathCheck, OneThingBroken) {
  auto const with = [](auto const& change) {
    auto paths = good(3);
    change(paths[2]);  // from 1 to 0
    return first_complaint(paths);
  };
  using Path = gpu::PathFacts;
  EXPECT_EQ(with([](Path& p) { p.flagged_word_s = 1e-4; }), "GPU 1 to 0: 100.000000 us a word");
  EXPECT_EQ(with([](Path& p) { p.flagged_word_s = 0; }), "GPU 1 to 0: 0.000000 us a word");
  EXPECT_NE(with([](Path& p) { p.bytes_per_s = 1e9; }), "");
  EXPECT_NE(with([](Path& p) { p.bytes_per_s = 5e12; }), "");
  EXPECT_NE(with([](Path& p) { p.bytes_per_s = std::numeric_limits<double>::quiet_NaN(); }), "");
  EXPECT_EQ(with([](Path& p) { p.bytes_per_s = 100e9; }), "GPU 0 to 1: three times as fast as the way back");
  EXPECT_EQ(with([](Path& p) { p.problem = no_way(1, 0); }),
            "GPU 1 to 0: there is a way back: " + no_way(1, 0));
  EXPECT_EQ(with([](Path& p) { std::swap(p.from, p.to); }), "GPU 1 to 0: another path stands in its place");
  EXPECT_EQ(first_complaint({}), "0 paths between 3 GPUs");
}

}  // namespace
}  // namespace hostless::test
