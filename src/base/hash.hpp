#pragma once

#include <cstdint>
#include <vector>

#include "hostless/base/host_device.hpp"

namespace hostless {

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014; constants of Stafford's variant 13): every
/// bit of the number changes about half of those of the result.
HOSTLESS_HOST_DEVICE std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
  return number ^ (number >> 31);
}

/// 64-bit FNV-1a over numbers, low byte first whatever the machine.
class Hash {
 public:
  void add(std::int64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      value_ ^= (static_cast<std::uint64_t>(number) >> (8 * byte)) & 255u;
      value_ *= 1099511628211u;
    }
  }
  template <class T>
  void add(std::vector<T> const& numbers) {
    add(static_cast<std::int64_t>(numbers.size()));
    for (T number : numbers) add(static_cast<std::int64_t>(number));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

}  // namespace hostless
