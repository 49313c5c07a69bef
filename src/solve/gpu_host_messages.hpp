#pragma once

#include <memory>
#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "solve/gpu_library.hpp"

namespace hostless::gpu {

/// The host's side of `--gpu-transport host`: what GPUs have copied to it goes through an Exchange of its own
/// over the matrix' transport, by any route of the plan.
class HostMessages {
 public:
  /// Collective over the transport's group. What is passed outlives it.
  /// Cost  memory for owned and ghost items, of which only those that travel are ever touched
  HostMessages(Transport& transport, ExchangePlan const& plan, PeerCopies const& copies, WaitLimits limits);
  HostCalls const& calls() const { return calls_; }
  /// After a rank was lost. Collective.
  void renew();

 private:
  bool exchange(double const* sent, double* ghosts);
  bool gather(double const* mine, int count, double* all);

  Transport& transport_;
  ExchangePlan const& plan_;
  WaitLimits limits_;
  std::shared_ptr<double[]> items_;  // [ghosts below | owned | ghosts above]
  double* owned_ = nullptr;
  std::vector<double> totals_;
  std::unique_ptr<Exchange> exchange_;
  HostCalls calls_;
};

}  // namespace hostless::gpu
