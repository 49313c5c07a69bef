// Neighbourhood collectives as Python holds them: what the package's _exchange.neighborhood calls, with addresses
// that it has looked at.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <utility>

#include "binding.hpp"
#include "exchanges.hpp"
#include "hostless/exchange/neighborhood.hpp"

namespace hostless::python {
namespace {

/// One side of a collective. Without counts: equal parts of all the memory.
struct BlockWords {
  std::uintptr_t address = 0;
  std::size_t bytes = 0, item_bytes = 1;
  std::vector<std::int64_t> counts, displacements;
};

class RanksNeighborhood {
 public:
  /// Collective.
  RanksNeighborhood(std::shared_ptr<Ranks> ranks, std::vector<Rank> const& sources,
                    std::vector<Rank> const& destinations, PlanWords const& words)
      : ranks_(std::move(ranks)) {
    Ranks::Use const use(*ranks_);
    NeighborhoodOptions options;
    if (words.route != "auto") options.route = route_from(words.route.c_str());
    options.ranks_per_node = words.ranks_per_node;
    graph_ = std::make_unique<Neighborhood>(ranks_->transport(), sources, destinations, options);
  }

  /// What the exchange of a collective is made of. Collective.
  std::pair<std::shared_ptr<PlannedExchange>, FieldWords> plan(std::string const& call,
                                                               BlockWords const& send,
                                                               BlockWords const& receive) const {
    Ranks::Use const use(*ranks_);
    NeighborCollective made = collective(call, send, receive);
    FieldWords field;
    field.owned = send.address;
    field.ghosts = receive.address;
    field.item_bytes = made.field.item_bytes;
    return {std::make_shared<PlannedExchange>(PlannedExchange::of_plan(ranks_, std::move(made.plan))), field};
  }

  char const* route() const { return graph_->route() ? name(*graph_->route()) : "auto"; }

 private:
  NeighborCollective collective(std::string const& call, BlockWords const& send,
                                BlockWords const& receive) const {
    std::span<std::byte const> const from(reinterpret_cast<std::byte const*>(send.address), send.bytes);
    std::span<std::byte> const to(reinterpret_cast<std::byte*>(receive.address), receive.bytes);
    ReceivedBlocks const received{to, receive.counts, receive.displacements, receive.item_bytes};
    if (call == "allgather") return graph_->allgather(from, to);
    if (call == "allgatherv") return graph_->allgatherv(from, received);
    if (call == "alltoall") return graph_->alltoall(from, to);
    return graph_->alltoallv({from, send.counts, send.displacements, send.item_bytes}, received);
  }

  std::shared_ptr<Ranks> ranks_;
  std::unique_ptr<Neighborhood> graph_;
};

}  // namespace

void bind_neighborhoods(nb::module_& module) {
  nb::class_<BlockWords>(module, "BlockWords", "Where the blocks of one side of a collective lie.")
      .def(nb::init<>())
      .def_rw("address", &BlockWords::address)
      .def_rw("bytes", &BlockWords::bytes)
      .def_rw("item_bytes", &BlockWords::item_bytes)
      .def_rw("counts", &BlockWords::counts)
      .def_rw("displacements", &BlockWords::displacements);
  nb::class_<RanksNeighborhood>(module, "RanksNeighborhood", "Who sends to whom.")
      .def("__init__",
           [](RanksNeighborhood* self, std::shared_ptr<Ranks> ranks, std::vector<Rank> const& sources,
              std::vector<Rank> const& destinations, PlanWords const& words) {
             new (self) RanksNeighborhood(std::move(ranks), sources, destinations, words);
           })
      .def("plan", &RanksNeighborhood::plan)
      .def_prop_ro("route", &RanksNeighborhood::route);
}

}  // namespace hostless::python
