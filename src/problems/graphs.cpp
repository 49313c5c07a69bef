#include "hostless/problems/graphs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "problems/adjacency.hpp"
#include "problems/sources.hpp"

namespace hostless {
namespace {

using problems::Adjacency;

struct NamedGraph {
  char const* name;
  char const* summary;
  Adjacency (*make)();
};

constexpr std::array<NamedGraph, 4> graphs{{
    {"ccc_G_06", "cube-connected cycles of 6 dimensions", [] { return problems::cube_connected_cycles(6); }},
    {"debr_G_08", "de Bruijn graph of words of 8 bits", [] { return problems::de_bruijn(8); }},
    {"delaunay_n10", "Delaunay triangulation of random points",
     [] { return problems::delaunay(problems::random_points(1024, 1)); }},
    {"crack", "triangles on a plate with a slit", [] { return problems::slit_plate(100, 102, 40); }},
}};

NamedGraph const& graph_of(std::string const& name) {
  auto const found = std::find_if(graphs.begin(), graphs.end(),
                                  [&](NamedGraph const& g) { return std::string_view(g.name) == name; });
  if (found == graphs.end())
    throw Error(ErrorCode::usage,
                fmt::format("There is no graph '{}' (nothing to generate).{} Use one of: {}.", name,
                            did_you_mean(name, graph_names()), fmt::join(graph_names(), ", ")));
  return *found;
}

class GraphRows final : public problems::SharedRows {
 public:
  GraphRows(Adjacency graph, int size, int rank)
      : SharedRows(static_cast<std::int64_t>(graph.size()), size, rank), graph_(std::move(graph)) {}

 private:
  void fill(std::int64_t first, std::int64_t last, RowPanel& out) const override {
    out.clear();
    for (std::int64_t row = first; row < last; ++row) {
      auto const& neighbours = graph_[static_cast<std::size_t>(row)];
      out.column.insert(out.column.end(), neighbours.begin(), neighbours.end());
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
    out.value.assign(out.column.size(), 1.0);
  }

  Adjacency graph_;
};

}  // namespace

std::vector<std::string> graph_names() {
  std::vector<std::string> names;
  for (NamedGraph const& graph : graphs) names.emplace_back(graph.name);
  return names;
}

std::unique_ptr<RowSource> make_graph(std::string const& name, int size, int rank) {
  NamedGraph const& graph = graph_of(name);
  if (size < 1 || rank < 0 || rank >= size)
    throw Error(ErrorCode::usage,
                fmt::format("rank {} of {} (there is no such share of the rows). Give 0 <= rank < size.",
                            rank, size));
  return std::make_unique<GraphRows>(graph.make(), size, rank);
}

std::string describe_graph(std::string const& name) {
  NamedGraph const& found = graph_of(name);
  Adjacency const graph = found.make();
  std::size_t entries = 0;
  for (auto const& neighbours : graph) entries += neighbours.size();
  return fmt::format("{}: adjacency of {}, {} rows, {} entries", name, found.summary, graph.size(), entries);
}

}  // namespace hostless
