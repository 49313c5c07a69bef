#pragma once
// One of the two stream endpoints of a composite, and what is brought to it and from it.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {

/// Queues a copy between memory of this rank's GPU and of its host.
void queue_copy(StreamQueue& queue, void* to, void const* from, std::int64_t bytes);

/// An endpoint with its parts of rounds that are packed and unpacked elsewhere, by the offsets of whole rounds.
class CompositeLeg {
 public:
  CompositeLeg(StreamTransport const& of, StreamSetup const& setup)
      : rounds_(setup.rounds), endpoint_(of.make(setup)) {}
  StreamEndpoint& endpoint() const { return *endpoint_; }
  /// from: where the whole round is packed. to: where it lands, where it does.
  void send(StreamQueue& queue, int round, std::byte const* from, std::byte* to) const;
  /// Awaits the round; its parts are then at `to`.
  void land(StreamQueue& queue, int round, std::byte* to) const;

 private:
  std::vector<StreamRound> rounds_;
  std::unique_ptr<StreamEndpoint> endpoint_;
};

}  // namespace hostless::gpu
