#pragma once
// Where a library or the host carries between ranks: which part of a sweep goes on beside the exchange.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "run/gpu/launch.hpp"

namespace hostless::gpu {

struct PartedPairs {
  std::vector<std::int32_t> pair;  ///< all of them, interior ones first, each part rising
  int interior = 0;                ///< pairs of slices that read nothing of other ranks
};

/// border: slices that read what other ranks send, rising.
inline PartedPairs part_pairs(std::vector<std::int32_t> const& border, int pairs) {
  std::vector<bool> reads(static_cast<std::size_t>(pairs));
  for (std::int32_t slice : border) reads[static_cast<std::size_t>(slice / slices_of_block)] = true;
  PartedPairs parted;
  parted.pair.resize(static_cast<std::size_t>(pairs));
  std::iota(parted.pair.begin(), parted.pair.end(), 0);
  auto const others = std::stable_partition(parted.pair.begin(), parted.pair.end(), [&](std::int32_t pair) {
    return !reads[static_cast<std::size_t>(pair)];
  });
  parted.interior = static_cast<int>(others - parted.pair.begin());
  return parted;
}

/// What HOSTLESS_GPU_OVERLAP says: "0" never, "1" wherever there is an interior, else where it pays.
enum class Parting : std::uint8_t { never, always, where_it_pays };

inline Parting parting_wanted(char const* text) {
  if (text != nullptr && text[0] == '0' && text[1] == 0) return Parting::never;
  if (text != nullptr && text[0] == '1' && text[1] == 0) return Parting::always;
  return Parting::where_it_pays;
}

}  // namespace hostless::gpu
