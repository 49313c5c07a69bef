#include "api/exchange_items.hpp"

#include <fmt/format.h>

#include <span>
#include <string>

#include "hostless/exchange/patterns.hpp"
#include "hostless/machine/nodes.hpp"

namespace hostless::c_interface {
namespace {

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
  Call call = Call::fill;
  bool automatic = true;
  Route route = Route::direct;
  int ranks_per_node = 0;
};

char const* name_of_call(Agreed const& agreed) {
  switch (agreed.call) {
    case Call::fill:
      return "hostless_exchange_create";
    case Call::sum:
      return "hostless_exchange_create_sum";
    case Call::gpu_fill:
      return "hostless_gpu_exchange_create";
    case Call::gpu_sum:
      break;
  }
  return "hostless_gpu_exchange_create_sum";
}
char const* name_of_route(Agreed const& agreed) {
  return agreed.automatic ? "that of the nodes (NULL, auto)" : name(agreed.route);
}

void require_agreement(Group& group, Agreed const& mine) {
  auto const all = group.all_gather(mine);
  for (int r = 1; r < group.size(); ++r) {
    Agreed const &first = all[0], &other = all[static_cast<std::size_t>(r)];
    auto const refuse = [&](std::string const& what) {
      misused(fmt::format("ranks 0 and {} {} (all make one plan together). Pass the same on all ranks.", r,
                          what));
    };
    if (first.call != other.call)
      refuse(fmt::format("call {} and {}", name_of_call(first), name_of_call(other)));
    if (first.ranks_per_node != other.ranks_per_node)
      refuse(fmt::format("pass items.ranks_per_node {} and {}", first.ranks_per_node, other.ranks_per_node));
    if (first.automatic != other.automatic || first.route != other.route)
      refuse(fmt::format("pass items.route {} and {}", name_of_route(first), name_of_route(other)));
  }
}

}  // namespace

PlannedItems planned_items(Given const& given, Call call) {
  hostless_items const* const items = given.items;
  Group& group = given.transport->transport->group();
  PlannedItems planned;
  Agreed mine{call};
  std::span<std::int64_t const> owned, ghosts;
  group.together([&] {  // a rank that fails alone would leave the others waiting
    need(given.handle, "exchange is NULL.");
    need(items, "items is NULL.");
    check_size(*items, "items");
    if (given.field_count < 0)
      misused(fmt::format("field_count: {} (there cannot be fewer than none). Count the fields.",
                          given.field_count));
    if (given.field_count > 0) need(given.fields, "fields is NULL.");
    if (items->ranks_per_node < 0)
      misused(fmt::format("items.ranks_per_node: {} (a node has a rank). Use 0 to find nodes.",
                          items->ranks_per_node));
    if (!(items->limit_s >= 0))
      misused(fmt::format("items.limit_s: {} (it is a time). Use 0 for that of a solve.", items->limit_s));
    owned = numbers(items->owned, items->owned_count, "owned", "owned_count");
    ghosts = numbers(items->ghosts, items->ghost_count, "ghosts", "ghost_count");
    planned.has_ghosts = items->ghost_count > 0;
    mine.automatic = is_automatic(items->route);
    if (!mine.automatic) mine.route = route_from(items->route);
    mine.ranks_per_node = items->ranks_per_node;
    if (items->limit_s > 0) planned.limits = {items->limit_s, items->limit_s};
  });
  require_agreement(group, mine);
  planned.patterns = patterns_of_ghosts(group, owned, ghosts);
  planned.nodes = find_nodes(group, items->ranks_per_node);
  planned.route = mine.automatic ? automatic_route(planned.nodes) : mine.route;
  return planned;
}

ExchangePlan plan_of(PlannedItems const& planned, Rank rank) {
  return make_plan(planned.route, planned.patterns, planned.nodes, rank,
                   {.reuse_guarantee = ReuseGuarantee::answer, .apart = true});
}

ReversePlan reverse_plan_of(PlannedItems const& planned, Rank rank) {
  return make_reverse_plan(planned.route, planned.patterns, planned.nodes, rank);
}

Field field_of(hostless_field const& field, int number, Use use) {
  if (use.owned && field.owned == nullptr)
    misused(fmt::format("fields[{}].owned is NULL, and other ranks read its items.", number));
  if (use.ghosts && field.ghosts == nullptr)
    misused(fmt::format("fields[{}].ghosts is NULL, and items.ghosts is not.", number));
  return Field::apart(field.owned, field.ghosts, field.item_bytes);
}

SumField field_of(hostless_sum_field const& field, int number, Use) {
  if (field.element < HOSTLESS_F32 || field.element > HOSTLESS_I64)
    misused(fmt::format("fields[{}].element: {} is none of HOSTLESS_F32, _F64, _I32 and _I64.", number,
                        field.element));
  return {field.ghosts, field.owned, static_cast<Element>(field.element), field.values};
}

static_assert(static_cast<int>(Element::i64) == HOSTLESS_I64);

}  // namespace hostless::c_interface
