#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hostless::test {

/// Bytes that follow from a number: the same for who sends and who looks. Eight are drawn at a time, since programs of sanitizers
/// take as long for one.
class DrawnBytes {
 public:
  explicit DrawnBytes(std::uint64_t number) : number_(number) {}
  void fill(std::byte* to, std::size_t bytes) const {
    for (std::size_t k = 0; k < bytes; k += 8) {
      std::uint64_t const eight = at(k);
      std::memcpy(to + k, &eight, std::min<std::size_t>(8, bytes - k));
    }
  }
  /// How many others there are.
  long differing(std::byte const* from, std::size_t bytes) const {
    long count = 0;
    for (std::size_t k = 0; k < bytes; k += 8) {
      std::size_t const here = std::min<std::size_t>(8, bytes - k);
      std::uint64_t const right = at(k);
      std::uint64_t seen = right;
      std::memcpy(&seen, from + k, here);
      if (seen == right) continue;
      for (std::size_t b = 0; b < here; ++b)
        count += static_cast<unsigned char>(seen >> 8 * b) != static_cast<unsigned char>(right >> 8 * b);
    }
    return count;
  }

 private:
  std::uint64_t at(std::size_t k) const {
    std::uint64_t draw = number_ * 0x9e3779b97f4a7c15u + k * 2654435761u;
    draw = (draw ^ draw >> 29) * 0xbf58476d1ce4e5b9u;
    return draw ^ draw >> 32;
  }
  std::uint64_t number_;
};

/// Bytes that nobody has sent there.
inline void fill_unsent(std::byte* to, std::size_t bytes) { std::fill_n(to, bytes, std::byte{0xee}); }
inline long differing_unsent(std::byte const* from, std::size_t bytes) {
  return static_cast<long>(bytes) - std::count(from, from + bytes, std::byte{0xee});
}

}  // namespace hostless::test
