// What each route sends between nodes for the patterns of Temuçin et al. 2024: Moore neighbourhoods, counted by hand,
// and random sparse graphs, counted from the graph.
#include <gtest/gtest.h>

#include <random>

#include "plan_cases.hpp"

namespace hostless {
namespace {

using testing::at;
using testing::Reads;

struct Crossings {
  std::int64_t messages = 0, items = 0;
  auto operator<=>(Crossings const&) const = default;
};

Crossings between_nodes(Route route, Reads const& reads, NodeMap const& nodes) {
  Crossings all;
  for (ExchangePlan const& plan : make_plans(route, reads.patterns(), nodes))
    for (Stage const& stage : plan.stages)
      for (Message const& message : stage.out)
        if (message.locality == Locality::network) all.items += message.items, ++all.messages;
  return all;
}

/// Nodes of four GPUs with two dies each, as in the paper.
NodeMap gpu_nodes(int ranks) {
  NodeMap nodes = NodeMap::blocks(ranks, 8);
  for (Rank r = 0; r < ranks; ++r) nodes.device[at(r)] = r % 8 / 2;
  return nodes;
}

/// A torus of `rows` nodes, eight ranks a node in a ring; all within distance one read two items of a rank.
Reads moore(int rows) {
  Reads reads(std::vector<std::int64_t>(at(8 * rows), 2));
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < 8; ++x) {
      std::set<Rank> readers;
      for (int dy : {rows - 1, 0, 1})
        for (int dx : {7, 0, 1})
          if (Rank const reader = (y + dy) % rows * 8 + (x + dx) % 8; reader != 8 * y + x)
            readers.insert(reader);
      for (std::int32_t item : {0, 1}) reads.add(8 * y + x, item, readers);
    }
  return reads;
}

// Of each rank's items three ranks read on each of two other nodes, on two of its GPUs.
TEST(PaperPatterns, MooreNeighbourhoodsOfTwoDimensions) {
  for (int const rows : {4, 16}) {
    Reads const reads = moore(rows);
    NodeMap const nodes = gpu_nodes(8 * rows);
    std::int64_t const ranks = 8 * rows;
    EXPECT_EQ(between_nodes(Route::direct, reads, nodes), (Crossings{6 * ranks, 12 * ranks}));
    EXPECT_EQ(between_nodes(Route::two_step, reads, nodes), (Crossings{2 * ranks, 4 * ranks}));
    EXPECT_EQ(between_nodes(Route::three_step, reads, nodes), (Crossings{2 * rows, 4 * ranks}));
    EXPECT_EQ(between_nodes(Route::split, reads, nodes), (Crossings{2 * rows, 4 * ranks}));
    EXPECT_EQ(between_nodes(Route::leader, reads, nodes),
              (Crossings{4 * ranks, 4 * ranks}));  // an item a GPU
  }
}

/// Edges, and pairs of a rank and another node that it sends to.
struct Counted {
  Reads reads;
  std::int64_t edges = 0, nodes = 0;
};

Counted random_sparse_graph(int ranks, double density, NodeMap const& nodes) {
  std::mt19937 random(static_cast<unsigned>(ranks));
  Counted drawn{Reads(std::vector<std::int64_t>(at(ranks), 1))};
  for (Rank s = 0; s < ranks; ++s) {
    std::set<int> entered;
    for (Rank t = 0; t < ranks; ++t) {
      bool const edge = static_cast<double>(random() % 1000) < 1000 * density;
      if (s == t || !edge) continue;
      drawn.reads.add(s, 0, {t});
      if (nodes.same_node(s, t)) continue;
      ++drawn.edges;
      entered.insert(nodes.node[at(t)]);
    }
    drawn.nodes += std::ssize(entered);
  }
  return drawn;
}

TEST(PaperPatterns, RandomSparseGraphsEnterANodeOnce) {
  std::int64_t saved = 0;
  for (int const ranks : {8, 32, 128})
    for (double const density : {0.05, 0.2, 0.6}) {
      NodeMap const nodes = gpu_nodes(ranks);
      Counted const drawn = random_sparse_graph(ranks, density, nodes);
      EXPECT_EQ(between_nodes(Route::direct, drawn.reads, nodes), (Crossings{drawn.edges, drawn.edges}));
      for (Route const route : {Route::two_step, Route::leader}) {
        EXPECT_EQ(between_nodes(route, drawn.reads, nodes), (Crossings{drawn.nodes, drawn.nodes}))
            << name(route) << ", " << ranks << " ranks, density " << density;
      }
      EXPECT_EQ(between_nodes(Route::split, drawn.reads, nodes).items, drawn.nodes);
      EXPECT_EQ(between_nodes(Route::three_step, drawn.reads, nodes).items, drawn.nodes);
      saved += drawn.edges - drawn.nodes;
    }
  EXPECT_GT(saved, 0);
}

}  // namespace
}  // namespace hostless
