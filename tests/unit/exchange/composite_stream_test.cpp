// Sums and rounds of two stream endpoints as one, on the runtime of the tests: loopback inside nodes and between them.
#include "transport/composite/composite_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>
#include <set>

#include "device/queue.hpp"
#include "hostless/transport/transport.hpp"
#include "transport/composite/composite_lists.hpp"

namespace hostless::gpu {

StreamTransport loopback_stream();

namespace {

constexpr std::int64_t bytes_a_rank = 40;
std::size_t at(int k) { return static_cast<std::size_t>(k); }

struct World {
  std::vector<int> node;
  std::vector<std::uint8_t> speaks;
};
World drawn(unsigned seed) {
  std::mt19937 random(seed);
  World world;
  int const ranks = 1 + static_cast<int>(random() % 8), nodes = 1 + static_cast<int>(random() % 4);
  for (int r = 0; r < ranks; ++r) {
    world.node.push_back(static_cast<int>(random()) % nodes);
    world.speaks.push_back(random() % 3 != 0);
  }
  return world;
}
std::vector<World> worlds() {
  std::vector<World> all = {{{0}, {0}},
                            {{0, 0, 1, 1}, {1, 0, 0, 1}},
                            {{0, 1, 0, 1}, {0, 0, 0, 0}},
                            {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 1, 1, 1, 1, 1, 1, 1}},
                            {{0, 0, 0, 1, 1, 1, 2, 2}, {1, 1, 1, 1, 0, 1, 0, 0}},
                            {{3, 3, 1, 1, 3, 0}, {0, 1, 1, 1, 1, 1}}};
  for (unsigned seed = 0; seed < 60; ++seed) all.push_back(drawn(seed));
  return all;
}
std::string text_of(World const& world) {
  std::string text = "nodes";
  for (std::size_t r = 0; r < world.node.size(); ++r)
    text += " " + std::to_string(world.node[r]) + (world.speaks[r] != 0 ? "!" : "");
  return text;
}

// Every node hears of every other one by one message between them, whose ends are ranks that may speak; and every rank has
// each other node's list from exactly one place.
TEST(CompositeLists, OneMessageGoesBetweenTwoNodes) {
  for (World const& world : worlds()) {
    SCOPED_TRACE(text_of(world));
    CompositeNodes const nodes = composite_nodes(world.node);
    CompositeLists const lists(nodes, world.speaks, bytes_a_rank);
    auto const count = nodes.ranks.size();
    std::set<std::pair<int, int>> messages;
    auto const node_of = [&](int rank) -> std::vector<int> const& {
      return nodes.ranks[at(nodes.node[at(rank)])];
    };
    int const ranks = static_cast<int>(world.node.size());
    for (int rank = 0; rank < ranks; ++rank) {
      StreamRound const round = lists.between(rank);
      EXPECT_EQ(round.out.size(), round.in.size());
      EXPECT_LE(round.in_bytes, round.most_in_bytes);
      for (StreamPart const& part : round.out) {
        int const to = lists.members()[at(part.rank)];
        int const from_node = nodes.node[at(rank)], to_node = nodes.node[at(to)];
        EXPECT_NE(from_node, to_node);
        EXPECT_TRUE(messages.insert({from_node, to_node}).second);
        StreamRound const there = lists.between(to);
        EXPECT_TRUE(std::any_of(there.in.begin(), there.in.end(), [&](StreamPart const& in) {
          return lists.members()[at(in.rank)] == rank && in.first == part.there && in.bytes == part.bytes;
        }));
      }
      // What another rank of the node hands on comes where it says.
      for (StreamPart const& part : lists.inside(rank).out) {
        int const to = node_of(rank)[at(part.rank)];
        StreamRound const there = lists.inside(to);
        EXPECT_LE(there.in_bytes, there.most_in_bytes);
        EXPECT_TRUE(std::any_of(there.in.begin(), there.in.end(), [&](StreamPart const& in) {
          return in.rank == nodes.local[at(rank)] && in.first == part.there && in.bytes == part.bytes;
        }));
      }
      // All that comes to a rank is what the other nodes have said.
      auto const others = bytes_a_rank * (ranks - static_cast<std::int64_t>(node_of(rank).size()));
      EXPECT_EQ(round.in_bytes + lists.inside(rank).in_bytes, count == 1 ? 0 : others);
    }
    EXPECT_EQ(messages.size(), count * (count - 1));
    auto const may_speak = [&](int rank) { return world.speaks[at(rank)] != 0; };
    for (int const rank : lists.members())
      EXPECT_TRUE(may_speak(rank) || std::none_of(node_of(rank).begin(), node_of(rank).end(), may_speak));
  }
}

void gather_some(Transport& transport, World const& world, std::vector<std::string>& wrong,
                 std::mutex& guard) {
  Group& group = transport.group();
  StreamSetup setup;
  setup.rank = group.rank();
  setup.ranks = group.size();
  setup.node.assign(world.node.begin(), world.node.end());
  setup.speaks = world.speaks;
  setup.first_s = setup.deadline_s = 600;
  auto const endpoint = make_composite_stream(setup, loopback_stream(), loopback_stream());
  auto const all = group.all_gather(endpoint->contact_on(0));
  endpoint->know(all);
  endpoint->connect(all[0].unique_id, nullptr);
  DirectQueue queue(nullptr);
  auto const value = [](int rank, int number, int k) { return 1000.0 * number + 10 * rank + k + 0.25; };
  for (int number = 0; number < 12; ++number) {
    int const count = 1 + number % 5;
    std::vector<double> said(at(count));
    for (int k = 0; k < count; ++k) said[at(k)] = value(group.rank(), number, k);
    double const* const heard = endpoint->gather(queue, said.data(), count);
    for (int v = 0; v < count * group.size(); ++v)
      if (heard[v] != value(v / count, number, v % count)) {
        std::lock_guard const lock(guard);
        wrong.push_back("rank " + std::to_string(group.rank()) + ", sum " + std::to_string(number) +
                        ", value " + std::to_string(v) + " of " + text_of(world));
        return;
      }
  }
}

TEST(CompositeStream, GathersOfEveryNodeMap) {
  for (World const& world : worlds()) {
    std::mutex guard;
    std::vector<std::string> wrong;
    run_with_threads_transport(static_cast<int>(world.node.size()),
                               [&](Transport& transport) { gather_some(transport, world, wrong, guard); });
    ASSERT_EQ(wrong, std::vector<std::string>{});
  }
}

StreamTransport of_nobody() {
  StreamTransport none = loopback_stream();
  none.make = [](StreamSetup const&) -> std::unique_ptr<StreamEndpoint> {
    ADD_FAILURE() << "nobody is on another node";
    return nullptr;
  };
  return none;
}
TEST(CompositeStream, OfOneNodeHasNothingBetween) {
  StreamSetup setup;
  setup.node = {0};
  setup.speaks = {0};
  auto const endpoint = make_composite_stream(setup, loopback_stream(), of_nobody());
  EXPECT_EQ(endpoint->describe(), "loopback (pinned memory, late and in another order) inside 1 node");
}

// Ranks that a library connects have a GPU each: who shares one and has messages to other nodes is told.
TEST(CompositeStream, RanksOfALibraryOnOneGpuAreRefused) {
  StreamSetup setup;
  setup.ranks = 4;
  setup.node = {0, 0, 1, 1};
  auto const refusal = [&](std::vector<std::uint8_t> const& speaks, std::vector<int> const& device) {
    setup.speaks = speaks;
    auto const endpoint =
        make_composite_stream(setup, loopback_stream(), loopback_stream(), BetweenRanks::have_a_gpu_each);
    std::vector<StreamContact> all(4);
    for (std::size_t r = 0; r < 4; ++r) all[r].device = device[r];
    try {
      endpoint->know(all);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({1, 0, 0, 1}, {0, 0, 1, 1}), "");
  EXPECT_EQ(refusal({1, 1, 1, 1}, {0, 1, 2, 3}), "");
  std::string const said = refusal({1, 1, 0, 1}, {0, 0, 1, 1});
  EXPECT_NE(said.find("ranks 0 and 1 on one GPU"), std::string::npos) << said;
  EXPECT_NE(said.find("three_step with nodes that name the ranks' GPUs"), std::string::npos) << said;
}

/// Ranks of a library that have met already, at a place that is each one's own to name.
class Met final : public StreamEndpoint {
 public:
  Met(StreamSetup const& setup, char id) : StreamEndpoint(setup) { id_.name[0] = id; }
  std::byte* outgoing(int) override { return nullptr; }
  std::byte const* incoming(int) override { return nullptr; }
  void send(StreamQueue&, int, std::byte*) override {}
  double const* gather(StreamQueue&, double const*, int) override { return nullptr; }
  bool is_recorded() const override { return true; }
  UniqueId unique_id() override { return id_; }
  void connect(UniqueId const&, std::byte*) override {}
  bool is_connected() const override { return true; }
  std::string describe() const override { return "met"; }
  std::int64_t bytes() const override { return 0; }
  bool guards_hold() const override { return true; }

 private:
  bool waits_on_gpu() const override { return true; }
  UniqueId id_;
};

// Ranks that no library connects name no place, and keep nobody from being connected still.
TEST(CompositeStream, RanksThatSpeakHaveMetWhateverTheOthersSay) {
  static char id;
  StreamTransport between = loopback_stream();
  between.make = [](StreamSetup const& setup) -> std::unique_ptr<StreamEndpoint> {
    return std::make_unique<Met>(setup, id);
  };
  StreamSetup setup;
  setup.ranks = 4;
  setup.node = {0, 0, 1, 1};
  auto const met = [&](std::vector<std::uint8_t> const& speaks, std::string const& ids) {
    setup.speaks = speaks;
    std::vector<StreamContact> all;
    for (setup.rank = 0; setup.rank < 4; ++setup.rank) {
      id = ids[at(setup.rank)];
      all.push_back(make_composite_stream(setup, loopback_stream(), between)->contact_on(setup.rank));
    }
    return have_met(all);
  };
  std::string const nowhere(1, '\0');
  EXPECT_TRUE(met({1, 1, 1, 1}, "aaaa"));
  EXPECT_FALSE(met({1, 1, 1, 1}, "aaba"));
  EXPECT_TRUE(met({1, 0, 0, 1}, "axxa"));
  EXPECT_TRUE(met({0, 1, 1, 0}, "xaax"));
  EXPECT_FALSE(met({0, 1, 1, 0}, "xaby"));
  EXPECT_FALSE(met({0, 1, 1, 0}, "x" + nowhere + "ax"));
  EXPECT_FALSE(met({0, 1, 1, 0}, "xa" + nowhere + "x"));
  EXPECT_FALSE(met({1, 0, 0, 1}, nowhere + "xx" + nowhere));
}

}  // namespace
}  // namespace hostless::gpu
