#include "hostless/plan/store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "plan_cases.hpp"

namespace hostless {
namespace {

using Json = nlohmann::json;

PlanSet some_set(Route route, ReuseGuarantee reuse_guarantee, bool apart = false) {
  PlanSet set;
  set.options = {reuse_guarantee, Space::pinned, apart};
  set.patterns = testing::random_reads(6, 11).patterns();
  if (apart) testing::turn_ghosts_round(set.patterns);
  NodeMap const nodes = testing::random_nodes(6, 2);
  set.options = testing::varied(route, nodes, 5, set.options);
  set.plans = make_plans(route, set.patterns, nodes, set.options);
  return set;
}

std::string problem(std::string const& text) {
  try {
    read_plans(text, "file.json");
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "accepted";
}

TEST(Store, ReadsBackWhatItWrote) {
  for (Route route : all_routes)
    for (ReuseGuarantee reuse_guarantee :
         {ReuseGuarantee::reduction, ReuseGuarantee::credit, ReuseGuarantee::answer}) {
      PlanSet const set = some_set(route, reuse_guarantee, reuse_guarantee == ReuseGuarantee::answer);
      std::string const text = write_plans(set);
      PlanSet const back = read_plans(text, "file.json");
      EXPECT_EQ(write_plans(back), text);
      EXPECT_EQ(check(back.plans, back.patterns), std::vector<std::string>{});
      EXPECT_EQ(back.plans[3].ghosts_below > 0, reuse_guarantee != ReuseGuarantee::answer);
      EXPECT_EQ(back.plans[3].ghosts_below, set.plans[3].ghosts_below);
      EXPECT_EQ(back.plans[3].receive, reuse_guarantee == ReuseGuarantee::answer ? 1 : 0);
      EXPECT_EQ(back.patterns[3].position, set.patterns[3].position);
      EXPECT_EQ(back.plans[3].nodes.socket, set.plans[3].nodes.socket);
      EXPECT_EQ(back.plans[3].fingerprint, set.plans[3].fingerprint);
      EXPECT_EQ(back.options.message_cap, set.options.message_cap);
      EXPECT_EQ(back.options.by_socket, set.options.by_socket);
      EXPECT_EQ(back.options.dies.links, set.options.dies.links);
      EXPECT_EQ(back.options.dies.hops, set.options.dies.hops);
    }
}

// Beside the patterns, which have no such order where ghosts lie around the owned items.
TEST(Store, KeepsHowGhostsWereNamed) {
  PlanSet set = some_set(Route::direct, ReuseGuarantee::answer);
  for (ExchangePlan const& plan : set.plans) {
    set.named.emplace_back();
    for (std::int64_t g = plan.ghosts; g > 0; --g)
      set.named.back().push_back(static_cast<std::int32_t>(g - 1));
  }
  EXPECT_EQ(read_plans(write_plans(set), "file.json").named, set.named);
  Json document = Json::parse(write_plans(set));
  document["named"][2].push_back(0);
  EXPECT_NE(problem(document.dump()).find("$.named: named[2]: it has not each of the "), std::string::npos);
  document["named"] = Json::array();
  EXPECT_NE(problem(document.dump()).find("$.named: it is empty"), std::string::npos);
  document = Json::parse(write_plans(set));
  document["options"]["apart"] = 1;
  EXPECT_NE(problem(document.dump()).find("$.named: named: ghosts apart from the owned items"),
            std::string::npos);
  set.named.pop_back();
  EXPECT_THROW(write_plans(set), Error);
}

TEST(Store, RefusesToWriteHalfASet) {
  PlanSet set = some_set(Route::direct, ReuseGuarantee::reduction);
  set.plans.pop_back();
  EXPECT_THROW(write_plans(set), Error);
  EXPECT_THROW(write_plans({}), Error);
  set = some_set(Route::direct, ReuseGuarantee::reduction);
  set.plans[1].route = Route::two_step;
  EXPECT_THROW(write_plans(set), Error);
}

TEST(Store, TextThatIsNoJsonIsReportedWithItsLine) {
  EXPECT_EQ(problem("").find("file.json:1: not JSON, but empty"), 0u);
  EXPECT_EQ(problem("{}\n\"more\"").find("file.json:2: not JSON, or cut short, at column"), 0u)
      << problem("{}\n\"more\"");
  EXPECT_EQ(problem("{\n\"format\": \"hostless-plan\",\n}").find("file.json:3: not JSON"), 0u);
  EXPECT_EQ(problem(std::string(100000, '[')).find("file.json:1: values nested"), 0u);
  EXPECT_EQ(problem("[1e999]").find("file.json:1: "), 0u);
  std::string const text = write_plans(some_set(Route::direct, ReuseGuarantee::reduction));
  EXPECT_EQ(problem(text.substr(0, text.size() / 2)).find("file.json:1: not JSON, or cut short"), 0u);
}

TEST(Store, EveryComplaintNamesThePath) {
  std::string const good = write_plans(some_set(Route::three_step, ReuseGuarantee::credit));
  ASSERT_EQ(problem(good), "accepted");
  struct {
    char const* pointer;
    Json value;
    char const* text;
  } const all[] = {
      {"/format", "other", "$.format: 'other'"},
      {"/format", 3, "$.format: number where a text"},
      {"/version", 3,
       "$.version: 3 is of an earlier hostless, this one reads version 4 only (the plan cannot be "
       "used). Write the plan again with 'hostless plan'"},
      {"/version", 5, "$.version: 5 is of a later hostless, this one reads version 4 only"},
      {"/version", "1", "$.version: string where a whole number"},
      {"/route", "teleport", "$.route: 'teleport' is unknown"},
      {"/fingerprint", "12", "$.fingerprint: '12' is not 16"},
      {"/fingerprint", "xyzxyzxyzxyzxyzx", "$.fingerprint: "},
      {"/options/free", "hope", "$.options.free: 'hope'"},
      {"/options/space", "moon", "$.options.space: 'moon'"},
      {"/options/apart", 2, "$.options.apart: 2 is not in [0, 1]"},
      {"/options/message_cap", 0, "$.options: options.message_cap: 0 items, must be at least 1"},
      {"/options/by_socket", 2, "$.options.by_socket: 2 is not in [0, 1]"},
      {"/options/dies", 6, "$.options: options.dies: of no use to route three_step"},
      {"/options/hops", Json::array({1}), "$.options: options.dies: of no use to route three_step"},
      {"/patterns/1/position", Json::array({0}), "patterns[1].position: 1 entry for"},
      {"/nodes/node/2", 99, "$.nodes: node[2]: 99"},
      {"/nodes/node", 7, "$.nodes.node: number where a list"},
      {"/patterns", Json::array(), "$.patterns: 0 for 6 ranks"},
      {"/patterns/1", 5, "$.patterns[1]: number where an object"},
      {"/patterns/1/owned", -3, "patterns[1].owned: -3"},
      {"/patterns/1/owned", 18446744073709551615u, "$.patterns[1].owned: 18446744073709551615"},
      {"/patterns/1/first", Json::array(), "patterns[1].first: 0 entries"},
      {"/plans", Json::array(), "$.plans: 0 for 6 ranks"},
      {"/plans/4/rank", 3, "$.plans[4]"},
      {"/plans/4/owned", 1.5, "$.plans[4].owned: number where a whole number"},
      {"/plans/4/ghosts", 4000000000, "$.plans[4]: owned: "},
      {"/plans/4/ghosts_below", -1, "$.plans[4]: ghosts_below: -1 is not in [0, "},
      {"/plans/4/ghosts_below", nullptr, "$.plans[4].ghosts_below: null"},
      {"/plans/4/receive", 2, "$.plans[4]: receive: buffer 2 is neither 0 nor 1"},
      {"/plans/4/receive", "x", "$.plans[4].receive: string"},
      {"/options/apart", nullptr, "$.options.apart: null"},
      {"/plans/4/buffers/0/items", 1, "$.plans[4]: buffers[0].items: 1"},
      {"/plans/4/buffers/0/space", "x", "$.plans[4].buffers[0].space: 'x'"},
      {"/plans/4/stages/1/id", nullptr, "$.plans[4].stages[1].id: null"},
      {"/plans/4/stages/1/extra", 1, "$.plans[4].stages[1]: 'extra' is unknown"},
      {"/plans/4/stages/0/out", Json::array({1}), "$.plans[4].stages[0].out[0]: number"},
      {"/plans/4/stages/0/pack", Json::array({Json::object()}),
       "$.plans[4].stages[0].pack[0]: 'actor' is missing"},
  };
  for (auto const& one : all) {
    Json json = Json::parse(good);
    json[Json::json_pointer(one.pointer)] = one.value;
    std::string const text = problem(json.dump());
    EXPECT_EQ(text.find("file.json: "), 0u) << text;
    EXPECT_NE(text.find(one.text), std::string::npos) << one.pointer << " | " << text;
  }
}

TEST(Store, ASelfConsistentRankOutOfOrderIsRefused) {
  Json json = Json::parse(write_plans(some_set(Route::direct, ReuseGuarantee::reduction)));
  std::swap(json["plans"][0], json["plans"][1]);
  EXPECT_NE(problem(json.dump()).find("$.plans[0].rank: the plans are not in order"), std::string::npos);
}

struct PlanFile : ::testing::Test {
  std::string const path = (std::filesystem::path(::testing::TempDir()) / "hostless_plan.json").string();
  void TearDown() override { std::filesystem::remove(path); }
};

TEST_F(PlanFile, IsSavedAndLoaded) {
  PlanSet const set = some_set(Route::two_step, ReuseGuarantee::reduction);
  save_plans(path, set);
  EXPECT_EQ(write_plans(load_plans(path)), write_plans(set));
}

TEST_F(PlanFile, AChangedPatternIsNoticed) {
  PlanSet set = some_set(Route::two_step, ReuseGuarantee::reduction);
  for (ExchangePlan& plan : set.plans) plan.fingerprint ^= 1;
  save_plans(path, set);
  try {
    load_plans(path);
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(std::string(error.what()).find(path + ": $.fingerprint"), 0u) << error.what();
  }
}

// The order of names is in the fingerprint too, and whether there is one.
TEST_F(PlanFile, ChangedNamesAreNoticed) {
  PlanSet set = some_set(Route::direct, ReuseGuarantee::answer);
  for (ExchangePlan const& plan : set.plans) {
    set.named.emplace_back();
    for (std::int64_t g = 0; g < plan.ghosts; ++g) set.named.back().push_back(static_cast<std::int32_t>(g));
  }
  save_plans(path, set);
  EXPECT_EQ(write_plans(load_plans(path)), write_plans(set));
  EXPECT_EQ(load_plans(path).plans[0].fingerprint, set.plans[0].fingerprint);
  auto const is_refused = [&](Json const& changed) {
    std::ofstream(path) << changed.dump();
    EXPECT_THROW(load_plans(path), Error);
  };
  Json changed = Json::parse(write_plans(set));
  auto most = std::max_element(changed["named"].begin(), changed["named"].end(),
                               [](Json const& a, Json const& b) { return a.size() < b.size(); });
  ASSERT_GT(most->size(), 1u);
  std::swap((*most)[0], (*most)[1]);
  is_refused(changed);
  changed = Json::parse(write_plans(set));
  changed.erase("named");
  is_refused(changed);
}

TEST_F(PlanFile, FilesThatCannotBeOpenedOrWritten) {
  for (auto const& [attempt, code] : std::vector<std::pair<std::function<void()>, ErrorCode>>{
           {[&] { load_plans(path); }, ErrorCode::bad_input},
           {[] {
              save_plans("/nonexistent/folder/file", some_set(Route::direct, ReuseGuarantee::reduction));
            },
            ErrorCode::environment}}) {
    try {
      attempt();
      FAIL();
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), code) << error.what();
    }
  }
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_THROW(save_plans("/dev/full", some_set(Route::direct, ReuseGuarantee::reduction)), Error);
  }
}

// The seeds of the fuzzer stay what they are meant to be: good ones are proven, bad ones refused with their
// reason.
TEST(Corpus, SeedsAreReadOrRefused) {
  int good = 0, bad = 0;
  for (auto const& entry : std::filesystem::directory_iterator(HOSTLESS_PLAN_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::string const text{std::istreambuf_iterator<char>(file), {}};
    if (entry.path().filename().string().rfind("good_", 0) == 0) {
      PlanSet const set = load_plans(entry.path().string());
      EXPECT_EQ(check(set.plans, set.patterns), std::vector<std::string>{}) << entry.path();
      ++good;
    } else {
      bool refused = problem(text) != "accepted";
      if (!refused) {
        PlanSet const set = read_plans(text, "file.json");
        refused = !check(set.plans, set.patterns).empty();
      }
      EXPECT_TRUE(refused) << entry.path();
      ++bad;
    }
  }
  EXPECT_GE(good, 4);
  EXPECT_GE(bad, 4);
}

}  // namespace
}  // namespace hostless
