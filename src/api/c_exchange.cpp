// Exchanges in the C interface: both directions behind one handle.
#include <type_traits>

#include "api/exchange_items.hpp"

using namespace hostless::c_interface;

namespace {

/// A handle of one direction: `member` of it, over the plan of `make`.
template <class CField, class Made, class Make>
void create(Given const& given, CField const* fields, hostless_exchange** exchange,
            std::unique_ptr<Made> hostless_exchange::*member, Make const& make) {
  constexpr bool adds = std::is_same_v<Made, hostless::ReverseExchange>;
  PlannedItems const planned = planned_items(given, adds ? Call::sum : Call::fill);
  hostless::Transport& transport = *given.transport->transport;
  auto const made = fields_and_plan(planned, transport.group(), std::pair(fields, given.field_count), make);
  hostless::ExchangeOptions options;
  options.limits = planned.limits;
  auto handle = std::make_unique<hostless_exchange>();
  (*handle).*member = std::make_unique<Made>(transport, made.second, made.first, options);
  *exchange = handle.release();
}

void require_whole(hostless_exchange const& exchange) {
  if (exchange.lost())
    throw hostless::Error(hostless::ErrorCode::peer_lost, "a rank was lost in an exchange of ghosts.");
}

// By what this rank has called, not by what has come: that is so on some ranks only.
void require_ended(hostless_exchange const& exchange) {
  if (exchange.is_under_way)
    throw hostless::Error(
        hostless::ErrorCode::usage,
        "an exchange is started while the last one is under way (its ghosts are being written). Wait "
        "for it first, or test until it is complete.");
}
void require_started(hostless_exchange const& exchange) {
  if (!exchange.is_awaited)
    throw hostless::Error(
        hostless::ErrorCode::usage,
        "an exchange is waited for that was not started (nothing would come). Start it on all ranks first.");
}

}  // namespace

extern "C" {

int hostless_exchange_create(hostless_transport* transport, hostless_items const* items,
                             hostless_field const* fields, int field_count, hostless_exchange** exchange) {
  return guarded([&] {
    clear(exchange);
    need(transport, "transport is NULL.");
    create({transport, items, fields, field_count, exchange}, fields, exchange, &hostless_exchange::fill,
           plan_of);
  });
}

int hostless_exchange_create_sum(hostless_transport* transport, hostless_items const* items,
                                 hostless_sum_field const* fields, int field_count,
                                 hostless_exchange** exchange) {
  return guarded([&] {
    clear(exchange);
    need(transport, "transport is NULL.");
    create({transport, items, fields, field_count, exchange}, fields, exchange, &hostless_exchange::sum,
           reverse_plan_of);
  });
}

int hostless_exchange_start(hostless_exchange* exchange) {
  return guarded([&] {
    need(exchange, "exchange is NULL.");
    require_whole(*exchange);
    require_ended(*exchange);
    exchange->fill ? exchange->fill->start() : exchange->sum->start();
    exchange->is_under_way = exchange->is_awaited = true;
    require_whole(*exchange);
  });
}

int hostless_exchange_test(hostless_exchange* exchange, int* complete) {
  return guarded([&] {
    need(exchange, "exchange is NULL.");
    need(complete, "complete is NULL.");
    *complete = (exchange->fill ? exchange->fill->test() : exchange->sum->test()) ? 1 : 0;
    if (*complete == 1) exchange->is_under_way = false;
    require_whole(*exchange);
  });
}

int hostless_exchange_wait(hostless_exchange* exchange) {
  return guarded([&] {
    need(exchange, "exchange is NULL.");
    require_whole(*exchange);
    require_started(*exchange);
    static_cast<void>(exchange->fill ? exchange->fill->wait() : exchange->sum->wait());
    exchange->is_under_way = exchange->is_awaited = false;
    require_whole(*exchange);
  });
}

void hostless_exchange_free(hostless_exchange* exchange) { delete exchange; }

}  // extern "C"
