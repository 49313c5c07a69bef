// Exchanges in the C interface: both directions behind one handle.
#include <algorithm>
#include <cstring>
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

std::span<std::int64_t const> numbers(std::int64_t const* first, std::int64_t count, char const* what) {
  if (count < 0) misused("a count of items is negative.");
  if (count > 0) need(first, what);
  return {first, static_cast<std::size_t>(count)};
}

Planned plan(hostless_transport* transport, hostless_items const* items, void const* fields, int field_count,
             void const* exchange) {
  hostless::Group& group = transport->transport->group();
  Planned planned;
  bool automatic = true;
  std::span<std::int64_t const> owned, ghosts;
  group.together([&] {  // a rank that fails alone would leave the others waiting
    need(exchange, "exchange is NULL.");
    need(items, "items is NULL.");
    if (items->struct_size != sizeof(hostless_items))
      misused("items.struct_size is not that of this version (compile with its header).");
    if (field_count < 0) misused("field_count is negative.");
    if (field_count > 0) need(fields, "fields is NULL.");
    if (items->ranks_per_node < 0) misused("items.ranks_per_node is negative. Use 0 to find nodes.");
    if (!(items->limit_s >= 0)) misused("items.limit_s is no time. Use 0 for that of a solve.");
    owned = numbers(items->owned, items->owned_count, "items.owned is NULL.");
    ghosts = numbers(items->ghosts, items->ghost_count, "items.ghosts is NULL.");
    automatic = items->route == nullptr;
    if (!automatic) planned.route = hostless::route_from(items->route);
    if (items->limit_s > 0) planned.options.limits = {items->limit_s, items->limit_s};
  });
  planned.patterns = hostless::patterns_of_ghosts(group, owned, ghosts);
  planned.nodes = items->ranks_per_node > 0 ? hostless::NodeMap::blocks(group.size(), items->ranks_per_node)
                                            : hostless::find_machines(group);
  if (automatic) planned.route = hostless::automatic_route(planned.nodes);
  return planned;
}

hostless::SumField sum_field(hostless_sum_field const& field) {
  if (field.element < HOSTLESS_F32 || field.element > HOSTLESS_I64)
    misused("fields.element is none of HOSTLESS_F32, _F64, _I32 and _I64.");
  return {field.ghosts, field.owned, static_cast<hostless::Element>(field.element), field.values};
}

/// A handle of one direction: `member` of it, over fields as `field_of` has them and the plan of `make`.
template <class CField, class Made, class FieldOf, class Make>
void create(hostless_transport* transport, hostless_items const* items, CField const* fields, int field_count,
            hostless_exchange** exchange, std::unique_ptr<Made> hostless_exchange::*member, FieldOf field_of,
            Make make) {
  need(transport, "transport is NULL.");
  Planned const planned = plan(transport, items, fields, field_count, exchange);
  hostless::Group& group = transport->transport->group();
  std::vector<decltype(field_of(*fields))> all;
  decltype(make(planned, 0)) made;
  group.together([&] {
    for (int f = 0; f < field_count; ++f) all.push_back(field_of(fields[f]));
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
    create(
        transport, items, fields, field_count, exchange, &hostless_exchange::fill,
        [](hostless_field const& f) { return hostless::Field::apart(f.owned, f.ghosts, f.item_bytes); },
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
