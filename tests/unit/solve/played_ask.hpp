#pragma once
// What the kernel does that asks the host to carry (transport/stream/hosted_stream.gpu.cpp), where kernels
// are noted and not executed.

#include <cstdint>

#include "fake_runtime.hpp"
#include "transport/stream/requests.hpp"

namespace hostless::test {

/// While it lives, launch number `number` of this runtime (from 1, counted from now) asks.
class PlayedAsk {
 public:
  explicit PlayedAsk(int number) {
    fake_runtime::at_launches([number, seen = 0](void** parameters) mutable {
      if (++seen != number) return;
      auto* const asked = *static_cast<std::uint64_t**>(parameters[2]);
      auto* const word = *static_cast<std::uint64_t**>(parameters[3]);
      *word = gpu::request_of(++*asked, *static_cast<int*>(parameters[1]));
    });
  }
  ~PlayedAsk() { fake_runtime::at_launches(nullptr); }
  PlayedAsk(PlayedAsk const&) = delete;
  PlayedAsk& operator=(PlayedAsk const&) = delete;
};

}  // namespace hostless::test
