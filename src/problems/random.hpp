#pragma once

#include <cmath>
#include <cstdint>

#include "base/hash.hpp"
#include "hostless/base/host_device.hpp"

namespace hostless::problems {

/// What a random number is for. The numbers are part of what a seed means: never renumber, only append.
enum class Stream : std::uint64_t {
  cells = 0,
  horizontal = 1,
  vertical = 2,
  missing = 3,
  grounded = 4,
  ground = 5,
  long_edge = 6,
  shuffle = 7,
  points = 8
};

/// Random numbers that are a function of (seed, stream, index): any rank can ask for any of them at any time.
/// The increment is that of SplitMix64 too (base/hash.hpp).
class Counter {
 public:
  Counter(std::uint64_t seed, Stream stream)
      : key_(mixed(mixed(seed) + (static_cast<std::uint64_t>(stream) + 1) * golden)) {}
  HOSTLESS_HOST_DEVICE std::uint64_t bits(std::uint64_t index) const { return mixed(key_ + index * golden); }
  /// Uniform in [0, 1), a multiple of 2^-53.
  HOSTLESS_HOST_DEVICE double uniform(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }
  /// Mean 0, variance 1, bell-shaped, within [-4.9, 4.9]: the sum of eight 16-bit uniforms. Bounded and made
  /// by exact integer arithmetic on purpose: it is the same on every processor and GPU.
  HOSTLESS_HOST_DEVICE double normal(std::uint64_t index) const {
    std::uint64_t const pairs = halves(bits(2 * index)) + halves(bits(2 * index + 1));
    std::uint64_t const sum = (pairs & 0xffffffffu) + (pairs >> 32);
    double const centred = static_cast<double>(static_cast<std::int64_t>(sum)) - 4.0 * 65535.0;
    return centred * (1.0 / 53509.92);  // sqrt(8 (2^32 - 1) / 12)
  }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
  HOSTLESS_HOST_DEVICE static std::uint64_t halves(std::uint64_t word) {
    return (word & 0x0000ffff0000ffffu) + ((word >> 16) & 0x0000ffff0000ffffu);
  }
  std::uint64_t key_;
};

/// 2^x for |x| < 1000, relative error below 1e-15. Not std::exp2, whose last bit depends on the processor:
/// two ranks on different ones, or a GPU, would then disagree about the coefficient they share, and the
/// matrix would not be symmetric.
HOSTLESS_HOST_DEVICE double power_of_two(double x) {
  constexpr int terms = 14;
  constexpr double inverse_factorial[terms] = {1.0,
                                               1.0,
                                               1.0 / 2.0,
                                               1.0 / 6.0,
                                               1.0 / 24.0,
                                               1.0 / 120.0,
                                               1.0 / 720.0,
                                               1.0 / 5040.0,
                                               1.0 / 40320.0,
                                               1.0 / 362880.0,
                                               1.0 / 3628800.0,
                                               1.0 / 39916800.0,
                                               1.0 / 479001600.0,
                                               1.0 / 6227020800.0};
  constexpr double to_integer = 0x1.8p52;  // adding it rounds to the nearest integer
  double const whole = (x + to_integer) - to_integer;
  // Times ln 2: |t| <= 0.3466, so 14 terms of the series suffice.
  double const t = (x - whole) * 0x1.62e42fefa39efp-1;
  double sum = inverse_factorial[terms - 1];
  for (int k = terms - 2; k >= 0; --k) sum = inverse_factorial[k] + sum * t;
  auto const exponent = static_cast<std::uint64_t>(static_cast<std::int64_t>(whole) + 1023);
  std::uint64_t const bits = exponent << 52;
  double power;
  __builtin_memcpy(&power, &bits, sizeof power);  // std::memcpy is a function of the host
  return sum * power;
}

/// ratio^(g / 4) with g = normal(index): `ratio` lies between the values two standard deviations above and
/// below the median. Exactly 1 for ratio 1.
class LogNormal {
 public:
  LogNormal(Counter counter, double ratio)
      : counter_(counter), scale_(0.25 * std::nearbyint(std::log2(ratio) * 0x1p32) * 0x1p-32) {}
  HOSTLESS_HOST_DEVICE double operator()(std::uint64_t index) const {
    return power_of_two(scale_ * counter_.normal(index));
  }

 private:
  Counter counter_;
  double scale_;
};

}  // namespace hostless::problems
