#include "exchange/gpu/gpu_messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hostless/machine/nodes.hpp"

namespace hostless {

GpuMessages::GpuMessages(Transport& transport, ExchangePlan const& plan, PeerCopies const& copies,
                         Options const& options) {
  Group& group = transport.group();
  GpuTransportFacts const& facts = facts_of(options.transport);
  bool const by_host = facts.actor == GpuTransportFacts::Actor::host;
  bool const is_staged = by_host && facts.needs_transport == nullptr && !facts.by_nodes;
  if (is_staged) {
    rounds_ = {staged_round(copies, plan)};
  } else {
    rounds_ = message_rounds(copies, group);
  }
  stream_rounds_ =
      hostless::stream_rounds(rounds_, static_cast<std::int64_t>(options.item_bytes), options.in_place);
  if (facts.by_nodes) find_speakers(plan, group);
  if (is_staged) {
    staged_ = std::make_unique<StagedMessages>(transport, plan, rounds_[0], options.item_bytes,
                                               options.limits, options.has_sums);
  } else if (by_host) {
    between_gpus_ = std::make_unique<RoundMessages>(
        transport, facts.by_nodes ? between_nodes_ : stream_rounds_, options.limits);
    if (facts.needs_transport != nullptr)
      group.together(
          [&] { between_gpus_->name_library(takes_device_memory(options.transport, options.vendor)); });
  }
}

void GpuMessages::find_speakers(ExchangePlan const& plan, Group& group) {
  NodeMap const machines = find_machines(group);
  group.together([&] {
    for (Rank const rank : plan.nodes.ranks_of(plan.nodes.node[static_cast<std::size_t>(plan.rank)]))
      if (!machines.same_node(rank, plan.rank))
        throw Error(
            ErrorCode::usage,
            fmt::format("ranks {} and {} of one node on two machines (ranks of a node use each other's GPU "
                        "memory). Declare smaller nodes.",
                        std::min(rank, plan.rank), std::max(rank, plan.rank)));
  });
  node_.assign(plan.nodes.node.begin(), plan.nodes.node.end());
  between_nodes_ = stream_rounds_;
  bool speaks = false;
  for (gpu::StreamRound& round : between_nodes_)
    for (auto* const parts : {&round.out, &round.in}) {
      std::erase_if(*parts, [&](auto const& part) { return plan.nodes.same_node(part.rank, plan.rank); });
      speaks = speaks || !parts->empty();
    }
  speaks_ = group.all_gather(static_cast<std::uint8_t>(speaks ? 1 : 0));
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
