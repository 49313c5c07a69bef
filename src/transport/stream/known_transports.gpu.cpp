// What is known of transports inside a GPU library: of those that it has.
#include "transport/stream/stream_transports.hpp"

namespace hostless {

std::vector<GpuTransportFacts> const& gpu_transports() {
  static std::vector<GpuTransportFacts> const all = [] {
    std::vector<GpuTransportFacts> facts;
    for (gpu::StreamTransport const& one : gpu::stream_transports()) facts.push_back(one.facts);
    return facts;
  }();
  return all;
}

}  // namespace hostless
