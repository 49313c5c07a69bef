// Neighbourhood collectives in the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/datatype.hpp"
#include "api/exchange_items.hpp"
#include "hostless/exchange/neighborhood.hpp"
#include "hostless/neighbor.h"

using namespace hostless::c_interface;

struct hostless_neighborhood {
  hostless_transport* transport;
  hostless::Neighborhood graph;
  hostless::WaitLimits limits;
};

namespace {

std::size_t bytes_of(int type, char const* what) { return hostless::bytes_of(datatype_of(type, what)); }

/// Blocks as C++ has them: those of a caller, in 64 bits.
struct Blocks {
  std::size_t item_bytes = 1, memory_bytes = 0;
  std::vector<std::int64_t> counts, displacements;
};

void note_memory(Blocks& blocks, void const* memory, char const* what) {
  std::int64_t next = 0, end = 0;
  for (std::size_t k = 0; k < blocks.counts.size(); ++k) {
    next += blocks.counts[k];
    if (blocks.counts[k] > 0)
      end = std::max(end, blocks.displacements.empty() ? next : blocks.displacements[k] + blocks.counts[k]);
  }
  blocks.memory_bytes = static_cast<std::size_t>(end) * blocks.item_bytes;
  if (blocks.memory_bytes > 0 && memory == nullptr) misused(fmt::format("{} is NULL.", what));
}

/// Of the v-variants.
struct GivenCounts {
  int const *counts, *displacements;
  int type;
};

Blocks blocks_of(std::string const& side, void const* memory, GivenCounts const& given,
                 std::size_t neighbours) {
  Blocks blocks;
  blocks.item_bytes = bytes_of(given.type, (side + "_type").c_str());
  if (neighbours > 0) need(given.counts, (side + "_counts is NULL.").c_str());
  for (std::size_t k = 0; k < neighbours; ++k) {
    blocks.counts.push_back(given.counts[k]);
    if (given.displacements != nullptr) blocks.displacements.push_back(given.displacements[k]);
  }
  note_memory(blocks, memory, side.c_str());
  return blocks;
}

Blocks equal_blocks(std::string const& side, void const* memory, int count, int type,
                    std::size_t neighbours) {
  Blocks blocks;
  blocks.item_bytes = bytes_of(type, (side + "_type").c_str());
  if (count < 0)
    misused(fmt::format("{}_count: {} (there cannot be fewer than none). Count the items.", side, count));
  blocks.counts.assign(neighbours, count);
  note_memory(blocks, memory, side.c_str());
  return blocks;
}

std::span<std::byte const> bytes_at(void const* memory, Blocks const& blocks) {
  return {static_cast<std::byte const*>(memory), blocks.memory_bytes};
}
std::span<std::byte> bytes_at(void* memory, Blocks const& blocks) {
  return {static_cast<std::byte*>(memory), blocks.memory_bytes};
}
hostless::ReceivedBlocks received(void* memory, Blocks const& blocks) {
  return {bytes_at(memory, blocks), blocks.counts, blocks.displacements, blocks.item_bytes};
}

/// A handle of what `plan` plans from the blocks that `look` finds.
template <class Look, class Plan>
int init(hostless_neighborhood const* neighborhood, hostless_exchange** exchange, Look const& look,
         Plan const& plan) {
  return guarded([&] {
    clear(exchange);
    need(neighborhood, "neighborhood is NULL.");
    hostless::Transport& transport = *neighborhood->transport->transport;
    Blocks send, receive;
    transport.group().together([&] {  // a rank that fails alone would leave the others waiting
      need(exchange, "exchange is NULL.");
      look(send, receive);
    });
    hostless::NeighborCollective const planned = plan(send, receive);
    hostless::ExchangeOptions options;
    options.limits = neighborhood->limits;
    auto handle = std::make_unique<hostless_exchange>();
    handle->fill =
        std::make_unique<hostless::Exchange>(transport, planned.plan, std::vector{planned.field}, options);
    *exchange = handle.release();
  });
}

hostless::NeighborhoodOptions options_from(hostless_neighborhood_options const& given) {
  check_size(given, "options");
  if (!(given.limit_s >= 0))
    misused(fmt::format("options.limit_s: {} (it is a time). Use 0 for that of a solve.", given.limit_s));
  hostless::NeighborhoodOptions options;
  if (!is_automatic(given.route)) options.route = hostless::route_from(given.route);
  options.ranks_per_node = given.ranks_per_node;
  return options;
}

std::span<int const> ranks_at(int const* list, int count, char const* what, char const* name_of_count) {
  if (count < 0)
    misused(
        fmt::format("{}: {} (there cannot be fewer than none). Count the neighbours.", name_of_count, count));
  if (count > 0) need(list, fmt::format("{} is NULL, and {} is {}.", what, name_of_count, count).c_str());
  return {list, static_cast<std::size_t>(count)};
}

}  // namespace

extern "C" {

int hostless_neighborhood_create(hostless_transport* transport, int indegree, int const sources[],
                                 int outdegree, int const destinations[],
                                 hostless_neighborhood_options const* options,
                                 hostless_neighborhood** neighborhood) {
  return guarded([&] {
    clear(neighborhood);
    need(transport, "transport is NULL.");
    hostless::NeighborhoodOptions chosen;
    hostless::WaitLimits limits = hostless::WaitLimits::from_environment();
    std::span<int const> in, out;
    transport->transport->group().together([&] {
      need(neighborhood, "neighborhood is NULL.");
      in = ranks_at(sources, indegree, "sources", "indegree");
      out = ranks_at(destinations, outdegree, "destinations", "outdegree");
      if (options == nullptr) return;
      chosen = options_from(*options);
      if (options->limit_s > 0) limits = {options->limit_s, options->limit_s};
    });
    *neighborhood = new hostless_neighborhood{
        transport, hostless::Neighborhood(*transport->transport, in, out, chosen), limits};
  });
}

void hostless_neighborhood_free(hostless_neighborhood* neighborhood) { delete neighborhood; }

int hostless_neighbor_allgather_init(void const* send, int send_count, int send_type, void* receive,
                                     int receive_count, int receive_type,
                                     hostless_neighborhood const* neighborhood,
                                     hostless_exchange** exchange) {
  return init(
      neighborhood, exchange,
      [&](Blocks& from, Blocks& to) {
        from = equal_blocks("send", send, send_count, send_type, 1);
        to = equal_blocks("receive", receive, receive_count, receive_type,
                          neighborhood->graph.sources().size());
      },
      [&](Blocks const& from, Blocks const& to) {
        return neighborhood->graph.allgather(bytes_at(send, from), bytes_at(receive, to));
      });
}

int hostless_neighbor_allgatherv_init(void const* send, int send_count, int send_type, void* receive,
                                      int const receive_counts[], int const displacements[], int receive_type,
                                      hostless_neighborhood const* neighborhood,
                                      hostless_exchange** exchange) {
  return init(
      neighborhood, exchange,
      [&](Blocks& from, Blocks& to) {
        from = equal_blocks("send", send, send_count, send_type, 1);
        to = blocks_of("receive", receive, {receive_counts, displacements, receive_type},
                       neighborhood->graph.sources().size());
      },
      [&](Blocks const& from, Blocks const& to) {
        return neighborhood->graph.allgatherv(bytes_at(send, from), received(receive, to));
      });
}

int hostless_neighbor_alltoall_init(void const* send, int send_count, int send_type, void* receive,
                                    int receive_count, int receive_type,
                                    hostless_neighborhood const* neighborhood, hostless_exchange** exchange) {
  return init(
      neighborhood, exchange,
      [&](Blocks& from, Blocks& to) {
        from = equal_blocks("send", send, send_count, send_type, neighborhood->graph.destinations().size());
        to = equal_blocks("receive", receive, receive_count, receive_type,
                          neighborhood->graph.sources().size());
      },
      [&](Blocks const& from, Blocks const& to) {
        return neighborhood->graph.alltoall(bytes_at(send, from), bytes_at(receive, to));
      });
}

int hostless_neighbor_alltoallv_init(void const* send, int const send_counts[],
                                     int const send_displacements[], int send_type, void* receive,
                                     int const receive_counts[], int const receive_displacements[],
                                     int receive_type, hostless_neighborhood const* neighborhood,
                                     hostless_exchange** exchange) {
  return init(
      neighborhood, exchange,
      [&](Blocks& from, Blocks& to) {
        from = blocks_of("send", send, {send_counts, send_displacements, send_type},
                         neighborhood->graph.destinations().size());
        to = blocks_of("receive", receive, {receive_counts, receive_displacements, receive_type},
                       neighborhood->graph.sources().size());
      },
      [&](Blocks const& from, Blocks const& to) {
        return neighborhood->graph.alltoallv(
            {bytes_at(send, from), from.counts, from.displacements, from.item_bytes}, received(receive, to));
      });
}

}  // extern "C"
