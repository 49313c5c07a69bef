#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exchange/gpu/round_messages.hpp"
#include "exchange/gpu/staged_messages.hpp"
#include "exchange/stream_rounds.hpp"
#include "hostless/transport/gpu_transport.hpp"

namespace hostless {

/// What the two sides of a GPU transport with a stream face are told of a plan: its rounds, as items and as
/// bytes; and where the host carries, its side of the messages.
class GpuMessages {
 public:
  struct Options {
    GpuTransport transport = GpuTransport::peer;
    std::size_t item_bytes = sizeof(double);
    bool in_place = true;  ///< as stream_rounds
    bool has_sums = true;  ///< as StagedMessages
    WaitLimits limits;
    std::string vendor;  ///< of the GPUs: cuda or hip
  };
  /// Collective over the transport's group. transport and plan outlive it.
  /// Errors  environment  the host is to carry memory of GPUs that its transport does not take
  GpuMessages(Transport& transport, ExchangePlan const& plan, PeerCopies const& copies,
              Options const& options);
  std::vector<MessageRound> const& rounds() const { return rounds_; }
  std::vector<gpu::StreamRound> const& stream_rounds() const { return stream_rounds_; }
  /// Null where the host does not carry.
  gpu::HostMessaging const* host() const;
  /// Of a transport that carries by nodes; else empty.
  std::vector<std::int32_t> const& node() const { return node_; }
  /// As StreamSetup::speaks.
  std::vector<std::uint8_t> const& speaks() const { return speaks_; }
  /// Whether the host goes through the plan by itself: nothing is passed on by GPUs.
  bool is_staged() const { return staged_ != nullptr; }
  /// Where the host carries: of the endpoint. Collective; again after a loss.
  void bind(std::vector<gpu::StreamBuffers> const& buffers);
  /// After a rank was lost. Collective.
  void renew();
  /// Where the host carries: tells the others that this rank does no longer.
  void leave() noexcept;

 private:
  void find_speakers(ExchangePlan const& plan, Group& group);

  std::vector<MessageRound> rounds_;
  std::vector<gpu::StreamRound> stream_rounds_, between_nodes_;
  std::vector<std::int32_t> node_;
  std::vector<std::uint8_t> speaks_;
  std::unique_ptr<RoundMessages> between_gpus_;
  std::unique_ptr<StagedMessages> staged_;
};

}  // namespace hostless
