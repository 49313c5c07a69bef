// Exchanges in the C interface: both directions behind one handle.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "api/guarded.hpp"
#include "hostless/exchange/patterns.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "hostless/machine/nodes.hpp"
#include "hostless/plan/routes.hpp"

using namespace hostless::c_interface;

struct hostless_exchange {
  std::unique_ptr<hostless::Exchange> fill;
  std::unique_ptr<hostless::ReverseExchange> sum;
  bool lost() const { return fill ? fill->lost() : sum->lost(); }
};

namespace {

/// What plans of either direction are made from.
struct Planned {
  std::vector<hostless::Pattern> patterns;
  hostless::NodeMap nodes;
  hostless::Route route = hostless::Route::direct;
  hostless::ExchangeOptions options;
};

std::span<std::int64_t const> numbers(std::int64_t const* first, std::int64_t count, char const* what,
                                      char const* name_of_count) {
  if (count < 0)
    misused(fmt::format("items.{}: {} (there cannot be fewer than none). Count the items.", name_of_count,
                        count));
  if (count > 0 && first == nullptr)
    misused(fmt::format("items.{} is NULL, and items.{} is {}.", what, name_of_count, count));
  return {first, static_cast<std::size_t>(count)};
}

/// What all ranks must pass alike: else they would call different collectives, or plans that do not fit.
struct Agreed {
  bool adds = false;
  bool automatic = true;
  hostless::Route route = hostless::Route::direct;
  int ranks_per_node = 0;
};

char const* name_of_call(Agreed const& agreed) {
  return agreed.adds ? "hostless_exchange_create_sum" : "hostless_exchange_create";
}
char const* name_of_route(Agreed const& agreed) {
  return agreed.automatic ? "that of the nodes (NULL, auto)" : hostless::name(agreed.route);
}

void require_agreement(hostless::Group& group, Agreed const& mine) {
  auto const all = group.all_gather(mine);
  for (int r = 1; r < group.size(); ++r) {
    Agreed const &first = all[0], &other = all[static_cast<std::size_t>(r)];
    auto const refuse = [&](std::string const& what) {
      misused(fmt::format("ranks 0 and {} {} (all make one plan together). Pass the same on all ranks.", r,
                          what));
    };
    if (first.adds != other.adds)
      refuse(fmt::format("call {} and {}", name_of_call(first), name_of_call(other)));
    if (first.ranks_per_node != other.ranks_per_node)
      refuse(fmt::format("pass items.ranks_per_node {} and {}", first.ranks_per_node, other.ranks_per_node));
    if (first.automatic != other.automatic || first.route != other.route)
      refuse(fmt::format("pass items.route {} and {}", name_of_route(first), name_of_route(other)));
  }
}

Planned plan(hostless_transport* transport, hostless_items const* items, void const* fields, int field_count,
             void const* exchange, bool adds) {
  hostless::Group& group = transport->transport->group();
  Planned planned;
  Agreed mine{adds};
  std::span<std::int64_t const> owned, ghosts;
  group.together([&] {  // a rank that fails alone would leave the others waiting
    need(exchange, "exchange is NULL.");
    need(items, "items is NULL.");
    if (items->struct_size != sizeof(hostless_items))
      misused(fmt::format(
          "items.struct_size: {}, which is not that of this version, {} (compile with its header).",
          items->struct_size, sizeof(hostless_items)));
    if (field_count < 0)
      misused(
          fmt::format("field_count: {} (there cannot be fewer than none). Count the fields.", field_count));
    if (field_count > 0) need(fields, "fields is NULL.");
    if (items->ranks_per_node < 0)
      misused(fmt::format("items.ranks_per_node: {} (a node has a rank). Use 0 to find nodes.",
                          items->ranks_per_node));
    if (!(items->limit_s >= 0))
      misused(fmt::format("items.limit_s: {} (it is a time). Use 0 for that of a solve.", items->limit_s));
    owned = numbers(items->owned, items->owned_count, "owned", "owned_count");
    ghosts = numbers(items->ghosts, items->ghost_count, "ghosts", "ghost_count");
    mine.automatic = is_automatic(items->route);
    if (!mine.automatic) mine.route = hostless::route_from(items->route);
    mine.ranks_per_node = items->ranks_per_node;
    if (items->limit_s > 0) planned.options.limits = {items->limit_s, items->limit_s};
  });
  require_agreement(group, mine);
  planned.patterns = hostless::patterns_of_ghosts(group, owned, ghosts);
  planned.nodes = items->ranks_per_node > 0 ? hostless::NodeMap::blocks(group.size(), items->ranks_per_node)
                                            : hostless::find_machines(group);
  planned.route = mine.automatic ? hostless::automatic_route(planned.nodes) : mine.route;
  return planned;
}

/// What this rank reads and writes of a field.
struct Use {
  bool owned, ghosts;
};

hostless::Field field(hostless_field const& field, int f, Use use) {
  if (use.owned && field.owned == nullptr)
    misused(fmt::format("fields[{}].owned is NULL, and other ranks read its items.", f));
  if (use.ghosts && field.ghosts == nullptr)
    misused(fmt::format("fields[{}].ghosts is NULL, and items.ghosts is not.", f));
  return hostless::Field::apart(field.owned, field.ghosts, field.item_bytes);
}

hostless::SumField sum_field(hostless_sum_field const& field, int f, Use) {
  if (field.element < HOSTLESS_F32 || field.element > HOSTLESS_I64)
    misused(fmt::format("fields[{}].element: {} is none of HOSTLESS_F32, _F64, _I32 and _I64.", f,
                        field.element));
  return {field.ghosts, field.owned, static_cast<hostless::Element>(field.element), field.values};
}

/// A handle of one direction: `member` of it, over fields as `field_of` has them and the plan of `make`.
template <class CField, class Made, class FieldOf, class Make>
void create(hostless_transport* transport, hostless_items const* items, CField const* fields, int field_count,
            hostless_exchange** exchange, std::unique_ptr<Made> hostless_exchange::*member, FieldOf field_of,
            Make make) {
  clear(exchange);
  need(transport, "transport is NULL.");
  bool const adds = std::is_same_v<Made, hostless::ReverseExchange>;
  Planned const planned = plan(transport, items, fields, field_count, exchange, adds);
  hostless::Group& group = transport->transport->group();
  std::vector<decltype(field_of(*fields, 0, Use{}))> all;
  decltype(make(planned, 0)) made;
  group.together([&] {
    Use const use{!planned.patterns[static_cast<std::size_t>(group.rank())].item.empty(),
                  items->ghost_count > 0};
    for (int f = 0; f < field_count; ++f) all.push_back(field_of(fields[f], f, use));
    made = make(planned, group.rank());
  });
  auto handle = std::make_unique<hostless_exchange>();
  (*handle).*member = std::make_unique<Made>(*transport->transport, made, all, planned.options);
  *exchange = handle.release();
}

void require_whole(hostless_exchange const& exchange) {
  if (exchange.lost())
    throw hostless::Error(hostless::ErrorCode::peer_lost, "a rank was lost in an exchange of ghosts.");
}

}  // namespace

static_assert(static_cast<int>(hostless::Element::i64) == HOSTLESS_I64);

extern "C" {

int hostless_exchange_create(hostless_transport* transport, hostless_items const* items,
                             hostless_field const* fields, int field_count, hostless_exchange** exchange) {
  return guarded([&] {
    create(transport, items, fields, field_count, exchange, &hostless_exchange::fill, field,
           [](Planned const& p, int rank) {
             return hostless::make_plan(p.route, p.patterns, p.nodes, rank,
                                        {.reuse_guarantee = hostless::ReuseGuarantee::answer, .apart = true});
           });
  });
}

int hostless_exchange_create_sum(hostless_transport* transport, hostless_items const* items,
                                 hostless_sum_field const* fields, int field_count,
                                 hostless_exchange** exchange) {
  return guarded([&] {
    create(transport, items, fields, field_count, exchange, &hostless_exchange::sum, sum_field,
           [](Planned const& p, int rank) {
             return hostless::make_reverse_plan(p.route, p.patterns, p.nodes, rank);
           });
  });
}

int hostless_exchange_start(hostless_exchange* exchange) {
  return guarded([&] {
    need(exchange, "exchange is NULL.");
    exchange->fill ? exchange->fill->start() : exchange->sum->start();
    require_whole(*exchange);
  });
}

int hostless_exchange_test(hostless_exchange* exchange, int* complete) {
  return guarded([&] {
    need(exchange, "exchange is NULL.");
    need(complete, "complete is NULL.");
    *complete = (exchange->fill ? exchange->fill->test() : exchange->sum->test()) ? 1 : 0;
    require_whole(*exchange);
  });
}

int hostless_exchange_wait(hostless_exchange* exchange) {
  return guarded([&] {
    need(exchange, "exchange is NULL.");
    static_cast<void>(exchange->fill ? exchange->fill->wait() : exchange->sum->wait());
    require_whole(*exchange);
  });
}

void hostless_exchange_free(hostless_exchange* exchange) { delete exchange; }

}  // extern "C"
