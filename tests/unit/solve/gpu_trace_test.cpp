// The trace of several ranks is one file; where it cannot be written all of them hear of it.
#include "solve/gpu_solver/gpu_trace.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hostless/base/error.hpp"

namespace hostless::gpu {
namespace {

Trace trace_of(int rank) {
  Trace trace;
  trace.blocks = 1;
  trace.hertz = 1e6;
  TraceEntry entry{};
  entry.begin = 10;
  entry.arrived = 11;
  entry.together = 12;
  entry.met = 13;
  entry.end = 14;
  entry.iteration = rank;
  trace.entries = {entry};
  return trace;
}

TEST(GpuTrace, OfAllRanksIsOneFile) {
  auto const path = std::filesystem::temp_directory_path() / ("hostless-trace-" + std::to_string(getpid()));
  run_on_threads(3, [&](Group& group) { write_trace(group, path, trace_of(group.rank()), true); });
  std::ifstream file(path);
  auto const json = nlohmann::json::parse(file);
  EXPECT_EQ(json["traceEvents"].size(), 3 * 4);
  EXPECT_EQ(json["traceEvents"][8]["pid"], 2);
  EXPECT_EQ(json["traceEvents"][8]["args"]["iteration"], 2);
  std::filesystem::remove(path);
}

TEST(GpuTrace, OfPhasesHasWhatComputesBesideWhatTravels) {
  auto const path = std::filesystem::temp_directory_path() / ("hostless-stamps-" + std::to_string(getpid()));
  Trace trace;
  trace.stamps = {{5000, Mark::computes, 1, 0},  {9000, Mark::computed, 0, 0},  {9000, Mark::departs, 1, 0},
                  {10000, Mark::computes, 1, 0}, {12000, Mark::computed, 1, 1}, {15000, Mark::arrived, 1, 1},
                  {16000, Mark::computes, 0, 1}, {17000, Mark::computed, 0, 1}};
  run_on_threads(1, [&](Group& group) { write_trace(group, path, trace, true); });
  std::ifstream file(path);
  auto const events = nlohmann::json::parse(file)["traceEvents"];
  ASSERT_EQ(events.size(), 3);  // what follows a closed gate does nothing
  EXPECT_EQ(events[1]["name"], "computing");
  EXPECT_EQ(events[1]["ts"], 5);
  EXPECT_EQ(events[1]["dur"], 2);
  EXPECT_EQ(events[2]["name"], "communication");
  EXPECT_EQ(events[2]["tid"], 1);
  EXPECT_EQ(events[2]["dur"], 6);
  std::filesystem::remove(path);
}

TEST(GpuTrace, ThatCannotBeWrittenIsToldOnAllRanks) {
  for (char const* const path : {"/dev/full", "/no/such/folder/trace.json"}) {
    std::atomic<int> told{0};
    run_on_threads(3, [&](Group& group) {
      try {
        write_trace(group, path, trace_of(group.rank()), true);
      } catch (Error const& e) {
        EXPECT_EQ(e.code(), ErrorCode::environment);
        EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
        ++told;
      }
      group.barrier();  // nobody has left
    });
    EXPECT_EQ(told, 3) << path;
  }
}

}  // namespace
}  // namespace hostless::gpu
