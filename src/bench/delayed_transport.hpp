#pragma once
// A network's latency, emulated between ranks that are threads of this process.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::bench {

/// A transport whose messages and sums arrive `latency_s` after they were sent, by the clock that all threads
/// share, however late somebody looks: so what a rank computes meanwhile lies beside it. Bytes take no longer
/// than they do. Set-up is not delayed.
class DelayedTransport final : public Transport {
 public:
  /// inner  the threads transport of this rank, which lives as long
  /// Errors  usage  ranks that are processes: they have no clock in common
  DelayedTransport(Transport& inner, double latency_s);
  Capabilities capabilities() const override {
    Capabilities can = inner_.capabilities();
    can.threads_as_ranks = false;  // memory that ranks share would know no latency
    return can;
  }
  Group& group() override { return inner_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override;

 private:
  Transport& inner_;
  Clock::duration latency_;
};

}  // namespace hostless::bench
