// Ranks of a node meet in a folder that its lowest rank makes, as processes of one machine do that hostless
// started itself; everything else is asked of the transport between nodes.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/variable.hpp"
#include "hostless/base/environment.hpp"
#include "hostless/transport/composite.hpp"
#include "hostless/transport/point_to_point.hpp"
#include "transport/binding.hpp"
#include "transport/composite/composite_endpoint.hpp"
#include "transport/host_names.hpp"
#include "transport/processes/processes_here.hpp"

namespace hostless {
namespace {

std::string rank_of_node(int rank, int node) {
  return "rank " + std::to_string(rank) + " is on node " + std::to_string(node) + " with rank ";
}

class CompositeTransport final : public Transport {
 public:
  CompositeTransport(std::unique_ptr<Transport> between, int node) : between_(std::move(between)) {
    Group& all = between_->group();
    nodes_ = composite_nodes(all.all_gather(node));
    check_machines(node);
    join_node(node);
  }

  Capabilities capabilities() const override {
    Capabilities c = between_->capabilities();
    c.note = "ranks of a node share memory, between nodes: " + c.transport +
             (c.note.empty() ? "" : " (" + c.note + ")");
    c.transport = "composite";
    c.stream = c.graph_while = Support::absent;
    return c;
  }
  Group& group() override { return between_->group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    check_binding(group(), binding);
    return bind_composite(*between_, *inside_, nodes_, binding);
  }
  std::unique_ptr<PointToPoint> point_to_point() override { return between_->point_to_point(); }

 private:
  int lowest() const {
    auto const mine = nodes_.node[static_cast<std::size_t>(between_->group().rank())];
    return nodes_.ranks[static_cast<std::size_t>(mine)].front();
  }

  void check_machines(int node) {
    Group& all = between_->group();
    auto const hosts = host_names(all);
    all.together([&] {
      if (!between_->capabilities().processes_as_ranks)
        throw Error(ErrorCode::usage,
                    "nodes of ranks that are threads (they share one memory). Use the transport threads.");
      std::string const here = hosts[static_cast<std::size_t>(all.rank())].data(),
                        there = hosts[static_cast<std::size_t>(lowest())].data();
      if (here != there)
        throw Error(ErrorCode::usage, rank_of_node(all.rank(), node) + std::to_string(lowest()) +
                                          ", and they run on " + here + " and " + there +
                                          " (ranks of a node share memory). Declare smaller nodes.");
    });
  }

  void join_node(int node) {
    Group& all = between_->group();
    std::optional<Rendezvous> mine;
    std::string folder;
    all.together([&] {
      if (all.rank() == lowest()) folder = mine.emplace().path();
    });
    auto const* const text = reinterpret_cast<std::byte const*>(folder.data());
    Bytes const told = all.all_gather_bytes({text, text + folder.size()})[static_cast<std::size_t>(lowest())];
    folder.assign(reinterpret_cast<char const*>(told.data()), told.size());
    all.together([&] {
      if (!std::filesystem::is_directory(folder))
        throw Error(ErrorCode::environment,
                    rank_of_node(all.rank(), node) + std::to_string(lowest()) + " and does not see " +
                        folder + " (ranks of a node meet there). Set TMPDIR to a folder that both see.");
    });
    auto const rank = static_cast<std::size_t>(all.rank());
    auto const size = nodes_.ranks[static_cast<std::size_t>(nodes_.node[rank])].size();
    // The end of it is also what tells the lowest rank that the folder can go.
    all.together(
        [&] { inside_ = open_processes_transport(nodes_.local[rank], static_cast<int>(size), folder); });
  }

  std::unique_ptr<Transport> between_;
  CompositeNodes nodes_;
  std::unique_ptr<Transport> inside_;
};

}  // namespace

int node_of_this_rank(Group& group) {
  group.together([] { check_composite_environment(); });
  auto const hosts = host_names(group);
  std::int64_t const declared = count_of("HOSTLESS_COMPOSITE_RANKS_PER_NODE", 0);
  auto const all = group.all_gather(declared);
  if (std::count(all.begin(), all.end(), declared) != static_cast<std::ptrdiff_t>(all.size()))
    throw Error(
        ErrorCode::usage,
        "HOSTLESS_COMPOSITE_RANKS_PER_NODE is not the same on all ranks (it numbers the nodes of all). "
        "Set it everywhere, or nowhere.");
  if (declared > 0) return static_cast<int>(group.rank() / declared);
  auto const same = std::find(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(group.rank())]);
  return static_cast<int>(same - hosts.begin());
}

std::unique_ptr<Transport> open_composite_transport(std::unique_ptr<Transport> between) {
  int const node = node_of_this_rank(between->group());
  return open_composite_transport(std::move(between), node);
}
std::unique_ptr<Transport> open_composite_transport(std::unique_ptr<Transport> between, int node) {
  return std::make_unique<CompositeTransport>(std::move(between), node);
}

}  // namespace hostless
