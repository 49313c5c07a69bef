#pragma once
// What is timed is looked at: bytes and sums that the receiver can make for itself, and how it ends where
// something else came.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "hostless/base/error.hpp"
#include "hostless/exchange/exchange.hpp"

namespace hostless::bench {

[[noreturn]] inline void lose(char const* doing) {
  throw Error(ErrorCode::peer_lost, fmt::format("a rank was lost {} (nothing more can be timed).", doing));
}

inline Error wrong(std::string const& what) {
  return Error(ErrorCode::environment,
               what + " (the transport does not keep its promise). Report it with `hostless doctor`.");
}

/// Bytes that tell `seed` and every place apart.
inline void fill_known(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t const word = mixed(seed + at);
    std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
  }
}

/// The first byte that fill_known would not have put there; their number: none.
inline std::size_t first_unknown(std::span<std::byte const> bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t const word = mixed(seed + at);
    std::size_t const some = std::min(sizeof word, bytes.size() - at);
    if (std::memcmp(&bytes[at], &word, some) == 0) continue;
    std::byte known[sizeof word];
    std::memcpy(known, &word, sizeof word);
    for (std::size_t k = 0; k < some; ++k)
      if (bytes[at + k] != known[k]) return at + k;
  }
  return bytes.size();
}

/// What ranks give to a sum of some values, and what it must be: each its number and one, times that of the
/// value and one.
class KnownSums {
 public:
  KnownSums(int rank, int ranks, int values) : totals_(static_cast<std::size_t>(values)) {
    for (int k = 0; k < values; ++k) {
      mine_.push_back(static_cast<double>((rank + 1) * (k + 1)));
      expected_.push_back(static_cast<double>(std::int64_t{ranks} * (ranks + 1) / 2 * (k + 1)));
    }
  }
  std::span<double const> mine() const { return mine_; }
  std::span<double> totals() { return totals_; }
  /// Errors  environment  a total is not what it must be
  void check() const {
    for (std::size_t k = 0; k < totals_.size(); ++k)
      if (totals_[k] != expected_[k])
        throw wrong(fmt::format("a sum over ranks is {} instead of {}", totals_[k], expected_[k]));
  }
  /// Through an exchange, so many at a time as one sum carries.
  void step(Exchange& exchange) {
    constexpr std::size_t most = Exchange::widest_sum;
    for (std::size_t at = 0; at < mine_.size(); at += most) {
      std::size_t const some = std::min(most, mine_.size() - at);
      exchange.begin_sum(mine().subspan(at, some));
      if (!exchange.finish_sum(totals().subspan(at, some))) lose("in a sum over all ranks");
    }
    check();
  }

 private:
  std::vector<double> mine_, expected_, totals_;
};

}  // namespace hostless::bench
