#include "exchange/gpu/gpu_messages.hpp"

namespace hostless {

GpuMessages::GpuMessages(Transport& transport, ExchangePlan const& plan, PeerCopies const& copies,
                         Options const& options) {
  Group& group = transport.group();
  GpuTransportFacts const& facts = facts_of(options.transport);
  bool const by_host = facts.actor == GpuTransportFacts::Actor::host;
  bool const is_staged = by_host && facts.needs_transport == nullptr;
  if (is_staged) {
    rounds_ = {staged_round(copies, plan)};
  } else {
    rounds_ = message_rounds(copies, group);
  }
  stream_rounds_ =
      hostless::stream_rounds(rounds_, static_cast<std::int64_t>(options.item_bytes), options.in_place);
  if (is_staged) {
    staged_ = std::make_unique<StagedMessages>(transport, plan, rounds_[0], options.item_bytes,
                                               options.limits, options.has_sums);
  } else if (by_host) {
    between_gpus_ = std::make_unique<RoundMessages>(transport, stream_rounds_, options.limits);
    group.together(
        [&] { between_gpus_->name_library(takes_device_memory(options.transport, options.vendor)); });
  }
}

gpu::HostMessaging const* GpuMessages::host() const {
  return staged_ ? &staged_->calls() : between_gpus_ ? &between_gpus_->calls() : nullptr;
}

void GpuMessages::bind(std::vector<gpu::StreamBuffers> const& buffers) {
  if (between_gpus_) between_gpus_->bind(buffers);
  if (staged_) staged_->bind(buffers[0]);
}

void GpuMessages::renew() {
  if (staged_) staged_->renew();
}

void GpuMessages::leave() noexcept {
  if (between_gpus_) between_gpus_->leave();
  if (staged_) staged_->leave();
}

}  // namespace hostless
