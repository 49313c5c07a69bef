#pragma once

#include <memory>
#include <vector>

#include "exchange/message_rounds.hpp"
#include "hostless/exchange/exchange.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless {

/// The host's side of an exchange that is staged through its memory: what kernels have put into pinned memory
/// goes through an Exchange over a transport of the host, by any route of the plan.
class StagedMessages {
 public:
  /// Collective over the transport's group. What is passed outlives it. round: staged_round of the plan.
  /// has_sums: an all-rank sum lies between two exchanges, as plans may rely on; without, `gather` is not
  /// called. Cost  memory for owned and ghost items, of which only those that travel are ever touched
  StagedMessages(Transport& transport, ExchangePlan const& plan, MessageRound const& round,
                 std::size_t item_bytes, WaitLimits limits, bool has_sums = true);
  gpu::HostMessaging const& calls() const { return calls_; }
  /// Before the first exchange: where items that are sent lie, and where ghosts go, in the order of the
  /// round.
  void bind(gpu::StreamBuffers buffers) { buffers_ = buffers; }
  /// After a rank was lost. Collective.
  void renew();
  void leave() noexcept { exchange_->leave(); }

 private:
  std::int64_t bytes_of(std::int64_t items) const { return static_cast<std::int64_t>(item_bytes_) * items; }
  void start();
  gpu::MessageState test();
  bool gather(double const* mine, int count, double* all);

  Transport& transport_;
  ExchangePlan const& plan_;
  MessageRound const& round_;
  std::size_t item_bytes_;
  bool has_sums_;
  WaitLimits limits_;
  std::shared_ptr<std::byte[]> items_;  // as the plan's vector, or [owned | ghosts] where they lie apart
  Field field_;
  std::vector<double> totals_;
  std::unique_ptr<Exchange> exchange_;
  gpu::StreamBuffers buffers_;
  bool is_under_way_ = false;
  gpu::HostMessaging calls_;
};

}  // namespace hostless
