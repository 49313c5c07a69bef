#include "problems/adjacency.hpp"

#include <algorithm>

#include "problems/random.hpp"

namespace hostless::problems {
namespace {

using Edge = std::pair<std::int32_t, std::int32_t>;

/// The bits of a number below 2^20 at every second code.
std::uint64_t spread(std::int64_t number) {
  std::uint64_t out = 0;
  for (int bit = 0; bit < 20; ++bit) out |= (static_cast<std::uint64_t>(number) >> bit & 1) << (2 * bit);
  return out;
}

}  // namespace

Adjacency adjacency_of(std::int32_t nodes, std::span<Edge const> edges) {
  Adjacency all(static_cast<std::size_t>(nodes));
  for (auto const& [one, other] : edges) {
    if (one == other) continue;
    all[static_cast<std::size_t>(one)].push_back(other);
    all[static_cast<std::size_t>(other)].push_back(one);
  }
  for (auto& neighbours : all) {
    std::sort(neighbours.begin(), neighbours.end());
    neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
  }
  return all;
}

Adjacency cube_connected_cycles(int dimensions) {
  std::int32_t const corners = 1 << dimensions;
  std::vector<Edge> edges;
  for (std::int32_t corner = 0; corner < corners; ++corner)
    for (std::int32_t d = 0; d < dimensions; ++d) {
      std::int32_t const node = corner * dimensions + d;
      edges.emplace_back(node, corner * dimensions + (d + 1) % dimensions);
      edges.emplace_back(node, (corner ^ (1 << d)) * dimensions + d);
    }
  return adjacency_of(corners * dimensions, edges);
}

Adjacency de_bruijn(int bits) {
  std::int32_t const words = 1 << bits;
  std::vector<Edge> edges;
  for (std::int32_t word = 0; word < words; ++word)
    for (std::int32_t bit : {0, 1}) edges.emplace_back(word, (2 * word + bit) % words);
  return adjacency_of(words, edges);
}

Adjacency slit_plate(std::int32_t width, std::int32_t height, std::int32_t slit) {
  std::int32_t const middle = height / 2;
  // Of a triangle that lies below or above its node.
  auto const node = [&](std::int32_t x, std::int32_t y, bool from_above) {
    if (y == middle && x < slit && from_above) return (y + 1) * width + x;
    return y * width + x + (y > middle ? slit : 0);
  };
  std::vector<Edge> edges;
  for (std::int32_t y = 0; y + 1 < height; ++y)
    for (std::int32_t x = 0; x + 1 < width; ++x) {
      std::int32_t const lower = node(x, y, true), lower_next = node(x + 1, y, true);
      std::int32_t const upper = node(x, y + 1, false), upper_next = node(x + 1, y + 1, false);
      for (Edge const& edge : {Edge{lower, lower_next},
                               {lower, upper},
                               {lower, upper_next},
                               {upper, upper_next},
                               {lower_next, upper_next}})
        edges.push_back(edge);
    }
  return adjacency_of(width * height + slit, edges);
}

std::vector<PlanePoint> random_points(std::int32_t count, std::uint64_t seed) {
  Counter const random(seed, Stream::points);
  std::vector<PlanePoint> points;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(count); ++k)
    points.push_back({static_cast<std::int64_t>(random.bits(2 * k) >> 44),
                      static_cast<std::int64_t>(random.bits(2 * k + 1) >> 44)});
  auto const code = [](PlanePoint const& p) { return spread(p.x) | spread(p.y) << 1; };
  std::sort(points.begin(), points.end(),
            [&](PlanePoint const& a, PlanePoint const& b) { return code(a) < code(b); });
  return points;
}

}  // namespace hostless::problems
