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
    case Route::split:
      return "split";
    case Route::leader:
      return "leader";
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

char const* name(Locality locality) {
  switch (locality) {
    case Locality::device:
      return "device";
    case Locality::socket:
      return "socket";
    case Locality::node:
      return "node";
    case Locality::network:
      return "network";
  }
  return "unknown reach";
}

char const* name(ReuseGuarantee reuse_guarantee) {
  switch (reuse_guarantee) {
    case ReuseGuarantee::reduction:
      return "reduction";
    case ReuseGuarantee::answer:
      return "answer";
    case ReuseGuarantee::credit:
      return "credit";
    case ReuseGuarantee::promise:
      return "promise";
  }
  return "unknown reason";
}

Locality locality_between(NodeMap const& nodes, Rank a, Rank b) {
  if (!nodes.same_node(a, b)) return Locality::network;
  if (nodes.device[at(a)] >= 0 && nodes.device[at(a)] == nodes.device[at(b)]) return Locality::device;
  return nodes.socket[at(a)] == nodes.socket[at(b)] ? Locality::socket : Locality::node;
}

Route route_from(char const* text) {
  for (Route route : all_routes)
    if (std::strcmp(text, name(route)) == 0) return route;
  if (std::strcmp(text, "auto") == 0)
    throw Error(ErrorCode::usage, "route 'auto' is none by itself (the nodes decide). Call automatic_route.");
  throw Error(ErrorCode::usage,
              fmt::format("unknown route '{}' (no such way to move a halo).{} Use direct, two_step, "
                          "three_step, split, leader "
                          "or auto",
                          text, did_you_mean(text, {"direct", "two_step", "three_step", "split", "leader"})));
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
