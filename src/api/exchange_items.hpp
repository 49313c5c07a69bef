#pragma once
// What the exchanges of the C interface are made of: items and fields as C has them, plans of them.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "api/guarded.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "hostless/plan/reverse.hpp"
#include "hostless/plan/routes.hpp"

/// Of one of the two directions.
struct hostless_exchange {
  std::unique_ptr<hostless::Exchange> fill;
  std::unique_ptr<hostless::ReverseExchange> sum;
  bool is_under_way = false;  ///< as the caller knows it: nothing has said yet that the last one is complete
  bool is_awaited = false;    ///< the last one has not been waited for
  bool lost() const { return fill ? fill->lost() : sum->lost(); }
};

namespace hostless::c_interface {

/// Which function is called: all ranks call the same.
enum class Call : std::int32_t { fill, sum, gpu_fill, gpu_sum };

/// What plans of either direction are made from.
struct PlannedItems {
  std::vector<Pattern> patterns;
  NodeMap nodes;
  Route route = Route::direct;
  WaitLimits limits = WaitLimits::from_environment();
  bool has_ghosts = false;
};

/// What this rank reads and writes of a field.
struct Use {
  bool owned, ghosts;
};

/// What a call was given, before it is looked at.
struct Given {
  hostless_transport* transport;
  hostless_items const* items;
  void const* fields;
  int field_count;
  void const* handle;  ///< where one is to go
};

/// Looks at what a call was given, and at what the others were. Collective.
/// Errors  usage  on all ranks: NULL where nothing may be, numbers that are none, other calls on other ranks
PlannedItems planned_items(Given const& given, Call call);

ExchangePlan plan_of(PlannedItems const& planned, Rank rank);
ReversePlan reverse_plan_of(PlannedItems const& planned, Rank rank);

Field field_of(hostless_field const& field, int number, Use use);
SumField field_of(hostless_sum_field const& field, int number, Use use);

/// Fields as C++ has them, and the plan that `make` makes. Collective.
template <class CField, class Make>
auto fields_and_plan(PlannedItems const& planned, Group& group, std::pair<CField const*, int> fields,
                     Make const& make) {
  std::pair<std::vector<decltype(field_of(*fields.first, 0, Use{}))>, decltype(make(planned, 0))> made;
  group.together([&] {
    Use const use{!planned.patterns[static_cast<std::size_t>(group.rank())].item.empty(), planned.has_ghosts};
    for (int f = 0; f < fields.second; ++f) made.first.push_back(field_of(fields.first[f], f, use));
    made.second = make(planned, group.rank());
  });
  return made;
}

}  // namespace hostless::c_interface
