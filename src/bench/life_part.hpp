#pragma once
// A rank's part of the torus of Life: which cells, which neighbours, and what it exchanges with each.

#include <array>
#include <cstdint>

#include "bench/life.hpp"
#include "hostless/queue/halo.hpp"

namespace hostless::bench {

/// The number of messages of a rank each way.
constexpr int directions = 8;
constexpr std::array<std::array<int, 2>, directions> towards = {
    {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}}};
constexpr int opposite(int direction) { return directions - 1 - direction; }

struct LifePart {
  std::int64_t low[2], size[2];  ///< rows and columns
  std::array<int, directions> neighbour{};

  /// For a queue.
  HaloGrid grid(Life const& life) const {
    return {{life.ranks_along[0], life.ranks_along[1]}, {true, true}, {size[0], size[1]}};
  }

  LifePart(Life const& life, int rank) {
    int const at[2] = {rank / life.ranks_along[1], rank % life.ranks_along[1]};
    std::int64_t const extent[2] = {life.rows, life.columns};
    for (int a = 0; a < 2; ++a) {
      low[a] = extent[a] * at[a] / life.ranks_along[a];
      size[a] = extent[a] * (at[a] + 1) / life.ranks_along[a] - low[a];
    }
    for (int d = 0; d < directions; ++d) {
      auto const [down, right] = towards[static_cast<std::size_t>(d)];
      int const row = (at[0] + down + life.ranks_along[0]) % life.ranks_along[0];
      int const column = (at[1] + right + life.ranks_along[1]) % life.ranks_along[1];
      neighbour[static_cast<std::size_t>(d)] = row * life.ranks_along[1] + column;
    }
  }
  /// The cells at the border (own) or beyond it, as rows and columns from 0, which is the halo's.
  struct Cells {
    std::int64_t first[2], count[2];
  };
  Cells cells(int direction, bool own) const {
    Cells of{};
    for (std::size_t a = 0; a < 2; ++a) {
      int const way = towards[static_cast<std::size_t>(direction)][a];
      of.first[a] = way == 0 ? 1 : way < 0 ? (own ? 1 : 0) : size[a] + (own ? 0 : 1);
      of.count[a] = way == 0 ? size[a] : 1;
    }
    return of;
  }
  std::size_t length(int direction) const {
    Cells const of = cells(direction, true);
    return static_cast<std::size_t>(of.count[0] * of.count[1]);
  }
  /// Messages to other ranks a step, and their bytes.
  void count(int rank, std::int64_t& messages, std::int64_t& bytes) const {
    messages = bytes = 0;
    for (int d = 0; d < directions; ++d) {
      if (neighbour[static_cast<std::size_t>(d)] == rank) continue;
      ++messages;
      bytes += static_cast<std::int64_t>(length(d));
    }
  }
};

}  // namespace hostless::bench
