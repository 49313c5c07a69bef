#pragma once
// What kernels ask of the host program that carries for them: one job after the other, each asked for by one
// word and answered by its number. Plain functions, for kernels and for tests without a GPU.

#include <cstdint>

#include "hostless/base/host_device.hpp"

namespace hostless::gpu {

constexpr int job_bits = 8;

/// Request number `number` (from 1), in one word that is stored at once.
HOSTLESS_HOST_DEVICE std::uint64_t request_of(std::uint64_t number, int job) {
  return number << job_bits | static_cast<std::uint64_t>(job);
}

/// The host's side. Whoever asks awaits the answer before it asks again, so a word that is not the next one
/// is the last one still.
class Requests {
 public:
  static constexpr int none = -1;
  /// The job that `word` asks for, or that there is none to do.
  int asked(std::uint64_t word) const {
    if (word >> job_bits != answered_ + 1) return none;
    return static_cast<int>(word & ((std::uint64_t{1} << job_bits) - 1));
  }
  /// After a job: the answer.
  std::uint64_t answer() { return ++answered_; }
  /// Numbers begin again, on both sides.
  void forget() { answered_ = 0; }

 private:
  std::uint64_t answered_ = 0;
};

}  // namespace hostless::gpu
