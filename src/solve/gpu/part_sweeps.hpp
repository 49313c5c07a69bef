#pragma once
// Where a library or the host carries between ranks: which part of a sweep goes on beside the exchange.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "run/gpu/launch.hpp"

namespace hostless::gpu {

struct PartedTiles {
  std::vector<std::int32_t> tile;  ///< all of them, interior ones first, each part rising
  int interior = 0;                ///< tiles that read nothing of other ranks
};

/// border: slices that read what other ranks send, rising.
inline PartedTiles part_tiles(std::vector<std::int32_t> const& border, int tiles) {
  std::vector<bool> reads(static_cast<std::size_t>(tiles));
  for (std::int32_t slice : border) reads[static_cast<std::size_t>(slice / slices_of_block)] = true;
  PartedTiles parted;
  parted.tile.resize(static_cast<std::size_t>(tiles));
  std::iota(parted.tile.begin(), parted.tile.end(), 0);
  auto const others = std::stable_partition(parted.tile.begin(), parted.tile.end(), [&](std::int32_t tile) {
    return !reads[static_cast<std::size_t>(tile)];
  });
  parted.interior = static_cast<int>(others - parted.tile.begin());
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
