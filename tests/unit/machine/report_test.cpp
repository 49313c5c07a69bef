#include "hostless/machine/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace hostless {
namespace {

MachineReport example() {
  MachineReport report;
  report.topology.host = "node \"7\"";  // quotes: the JSON must escape them
  report.topology.processor = "Some Processor";
  report.topology.sockets = 2;
  report.topology.numa_nodes = 4;
  report.topology.cores = 64;
  report.topology.hardware_threads = 128;
  report.topology.usable_threads = 16;
  report.topology.memory_bytes = std::int64_t{3} << 40;
  report.topology.caches = {{1, 32768, 64}, {3, 33554432, 8}};
  report.instruction_set = "v3";
  report.bandwidth_threads = 16;
  report.read_bandwidth = 2.5e11;
  report.triad_bandwidth = 1.5e11;
  return report;
}

TEST(MachineReport, JsonHoldsEveryValue) {
  auto const json = nlohmann::json::parse(to_json(example()));
  EXPECT_EQ(json.at("version"), MachineReport::current_version);
  EXPECT_EQ(json.at("host"), "node \"7\"");
  EXPECT_EQ(json.at("processor"), "Some Processor");
  EXPECT_EQ(json.at("sockets"), 2);
  EXPECT_EQ(json.at("numa_nodes"), 4);
  EXPECT_EQ(json.at("cores"), 64);
  EXPECT_EQ(json.at("hardware_threads"), 128);
  EXPECT_EQ(json.at("usable_threads"), 16);
  EXPECT_EQ(json.at("memory_bytes"), std::int64_t{3} << 40);
  EXPECT_EQ(json.at("caches").at(1).at("level"), 3);
  EXPECT_EQ(json.at("caches").at(1).at("bytes"), 33554432);
  EXPECT_EQ(json.at("caches").at(1).at("count"), 8);
  EXPECT_EQ(json.at("instruction_set"), "v3");
  EXPECT_EQ(json.at("bandwidth_threads"), 16);
  EXPECT_EQ(json.at("read_bandwidth_bytes_per_s"), 2.5e11);
  EXPECT_EQ(json.at("triad_bandwidth_bytes_per_s"), 1.5e11);
}

TEST(MachineReport, TextIsForPeople) {
  std::string const text = to_text(example());
  EXPECT_NE(text.find("64 (128 hardware threads, 16 usable; 2 sockets, 4 NUMA nodes)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("3072.0 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("L3    8 x 32768 KiB"), std::string::npos) << text;
  EXPECT_NE(text.find("read 250.0 GB/s, triad 150.0 GB/s"), std::string::npos) << text;
  MachineReport hidden = example();
  hidden.topology.processor.clear();
  EXPECT_NE(to_text(hidden).find("processor   unknown"), std::string::npos);
}

TEST(MachineReport, OfThisMachineIsMeasured) {
  MachineReport const report = report_machine(0.05);
  EXPECT_EQ(report.bandwidth_threads, report.topology.usable_threads);
  EXPECT_GT(report.read_bandwidth, 0.0);
  EXPECT_GT(report.triad_bandwidth, 0.0);
  EXPECT_FALSE(report.instruction_set.empty());
}

}  // namespace
}  // namespace hostless
