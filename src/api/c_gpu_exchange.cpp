// Exchanges over memory of GPUs in the C interface: both directions are one class already.
#include <fmt/format.h>

#include "api/exchange_items.hpp"
#include "hostless/exchange/gpu_exchange.hpp"

using namespace hostless::c_interface;

struct hostless_gpu_exchange {
  hostless::GpuExchange exchange;
};

namespace {

hostless::GpuExchangeOptions options_from(hostless_gpu_exchange_options const* given,
                                          PlannedItems const& planned) {
  hostless::GpuExchangeOptions options;
  options.limits = planned.limits;
  if (given == nullptr) return options;
  check_size(*given, "options");
  if (given->device < -1)
    misused(fmt::format("options.device: {} (GPUs are counted from 0 on). Use -1 for that of the fields.",
                        given->device));
  if (given->transport != nullptr) options.transport = hostless::gpu_transport_from(given->transport);
  options.device = given->device;
  return options;
}

template <class CField, class Make>
void create(Given const& given, CField const* fields, hostless_gpu_exchange_options const* options,
            hostless_gpu_exchange** exchange, Make const& make) {
  constexpr bool adds = std::is_same_v<CField, hostless_sum_field>;
  PlannedItems const planned = planned_items(given, adds ? Call::gpu_sum : Call::gpu_fill);
  hostless::Transport& transport = *given.transport->transport;
  auto const made = fields_and_plan(planned, transport.group(), std::pair(fields, given.field_count), make);
  hostless::GpuExchangeOptions chosen;
  transport.group().together([&] { chosen = options_from(options, planned); });
  *exchange = new hostless_gpu_exchange{{transport, made.second, made.first, chosen}};
}

void require_whole(hostless_gpu_exchange const& exchange) {
  if (exchange.exchange.lost())
    throw hostless::Error(hostless::ErrorCode::peer_lost, "a rank was lost in an exchange between GPUs.");
}

/// `work` on the exchange of a handle that is one.
template <class Work>
int with(hostless_gpu_exchange* exchange, Work const& work) {
  return guarded([&] {
    need(exchange, "exchange is NULL.");
    work(exchange->exchange);
    require_whole(*exchange);
  });
}

}  // namespace

extern "C" {

int hostless_gpu_exchange_create(hostless_transport* transport, hostless_items const* items,
                                 hostless_field const* fields, int field_count,
                                 hostless_gpu_exchange_options const* options,
                                 hostless_gpu_exchange** exchange) {
  return guarded([&] {
    clear(exchange);
    need(transport, "transport is NULL.");
    create({transport, items, fields, field_count, exchange}, fields, options, exchange, plan_of);
  });
}

int hostless_gpu_exchange_create_sum(hostless_transport* transport, hostless_items const* items,
                                     hostless_sum_field const* fields, int field_count,
                                     hostless_gpu_exchange_options const* options,
                                     hostless_gpu_exchange** exchange) {
  return guarded([&] {
    clear(exchange);
    need(transport, "transport is NULL.");
    create({transport, items, fields, field_count, exchange}, fields, options, exchange, reverse_plan_of);
  });
}

int hostless_gpu_exchange_enqueue(hostless_gpu_exchange* exchange, void* stream) {
  return with(exchange, [&](hostless::GpuExchange& of) { of.enqueue(stream); });
}

int hostless_gpu_exchange_start(hostless_gpu_exchange* exchange, void* stream) {
  return with(exchange, [&](hostless::GpuExchange& of) { of.start(stream); });
}

int hostless_gpu_exchange_finish(hostless_gpu_exchange* exchange, void* stream) {
  return with(exchange, [&](hostless::GpuExchange& of) { of.finish(stream); });
}

int hostless_gpu_exchange_test(hostless_gpu_exchange* exchange, int* complete) {
  return with(exchange, [&](hostless::GpuExchange& of) {
    need(complete, "complete is NULL.");
    *complete = of.test() ? 1 : 0;
  });
}

int hostless_gpu_exchange_wait(hostless_gpu_exchange* exchange) {
  return with(exchange, [&](hostless::GpuExchange& of) { static_cast<void>(of.wait()); });
}

int hostless_gpu_exchange_may_be_recorded(hostless_gpu_exchange const* exchange) {
  return exchange != nullptr && exchange->exchange.may_be_recorded() ? 1 : 0;
}

int hostless_gpu_exchange_device(hostless_gpu_exchange const* exchange) {
  return exchange != nullptr ? exchange->exchange.device() : -1;
}

void hostless_gpu_exchange_free(hostless_gpu_exchange* exchange) { delete exchange; }

}  // extern "C"
