#include "hostless/plan/exchange_plan.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "plan/index.hpp"

namespace hostless {

char const* name(Route route) {
  switch (route) {
    case Route::direct:
      return "direct";
    case Route::two_step:
      return "two_step";
    case Route::three_step:
      return "three_step";
  }
  return "unknown route";
}

char const* name(Space space) {
  switch (space) {
    case Space::device:
      return "device";
    case Space::pinned:
      return "pinned";
    case Space::host:
      return "host";
  }
  return "unknown space";
}

char const* name(Reach reach) {
  switch (reach) {
    case Reach::device:
      return "device";
    case Reach::socket:
      return "socket";
    case Reach::node:
      return "node";
    case Reach::network:
      return "network";
  }
  return "unknown reach";
}

char const* name(Free free) {
  switch (free) {
    case Free::reduction:
      return "reduction";
    case Free::answer:
      return "answer";
    case Free::credit:
      return "credit";
    case Free::promise:
      return "promise";
  }
  return "unknown reason";
}

Reach reach_between(NodeMap const& nodes, Rank a, Rank b) {
  if (!nodes.same_node(a, b)) return Reach::network;
  if (nodes.device[at(a)] >= 0 && nodes.device[at(a)] == nodes.device[at(b)]) return Reach::device;
  return nodes.socket[at(a)] == nodes.socket[at(b)] ? Reach::socket : Reach::node;
}

Route route_from(char const* text) {
  for (Route route : {Route::direct, Route::two_step, Route::three_step})
    if (std::strcmp(text, name(route)) == 0) return route;
  throw Error(
      ErrorCode::usage,
      fmt::format(
          "unknown route '{}' (no such way to move a halo).{} Use direct, two_step, three_step or auto", text,
          did_you_mean(text, {"direct", "two_step", "three_step"})));
}

std::int64_t ExchangePlan::items_sent() const {
  std::int64_t items = 0;
  for (Stage const& stage : stages)
    for (Message const& message : stage.out) items += message.items;
  return items;
}

std::int64_t ExchangePlan::items_received() const {
  std::int64_t items = 0;
  for (Stage const& stage : stages)
    for (Message const& message : stage.in) items += message.items;
  return items;
}

}  // namespace hostless
