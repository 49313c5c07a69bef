#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "hostless/base/error.hpp"
#include "hostless/operate/local_matrix.hpp"

namespace hostless::test {

/// What a call that must be refused says.
inline std::string usage_text(auto&& action) {
  try {
    action();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

/// A sparse matrix as ordered maps: the oracle, and nothing of the code under test.
struct Oracle {
  std::int64_t ghosts = 0, below = 0;  // below: of the ghosts those at negative local columns
  std::vector<std::map<std::int32_t, double>> row;

  LocalRowArrays rows() const {
    LocalPanel all;
    all.clear();
    for (auto const& entries : row) {
      for (auto const& [column, value] : entries) {
        all.column.push_back(column);
        all.value.push_back(value);
      }
      all.offset.push_back(static_cast<std::int64_t>(all.column.size()));
    }
    return LocalRowArrays(ghosts, all, below);
  }
  std::int64_t columns() const { return static_cast<std::int64_t>(row.size()) + ghosts; }
  std::int64_t entries() const {
    std::int64_t sum = 0;
    for (auto const& entries : row) sum += static_cast<std::int64_t>(entries.size());
    return sum;
  }
  /// x: [below | owned | above]
  std::vector<double> multiply(std::vector<double> const& x) const {
    std::vector<double> y;
    for (auto const& entries : row) {
      double sum = 0.0;
      for (auto const& [column, value] : entries) sum = std::fma(value, x[column + below], sum);
      y.push_back(sum);
    }
    return y;
  }
};

/// A row with w accumulators, from the text: product k goes to accumulator k mod w; t[i] = t[2 i] + t[2 i +
/// 1].
inline double with_threads_per_row(std::map<std::int32_t, double> const& entries, int w,
                                   std::vector<double> const& x, std::int64_t below = 0) {
  std::vector<double> t(static_cast<std::size_t>(w), 0.0);
  std::size_t k = 0;
  for (auto const& [column, value] : entries) {
    double& into = t[k++ % t.size()];
    into = std::fma(value, x[column + below], into);
  }
  for (; t.size() > 1; t.resize(t.size() / 2))
    for (std::size_t i = 0; i < t.size() / 2; ++i) t[i] = t[2 * i] + t[2 * i + 1];
  return t[0];
}

inline std::vector<double> random_vector(std::int64_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> x(static_cast<std::size_t>(n));
  for (double& value : x) value = uniform(random);
  return x;
}

/// Rows of 0 to 12 entries at random places, every 7th empty, one of 345 where the matrix is wide enough;
/// where `blocks`, entries come in clusters of b x b with holes.
inline Oracle random_matrix(std::int64_t block_rows, int b, std::int64_t ghost_block_rows, unsigned seed,
                            bool blocks) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-2.0, 2.0);
  Oracle a;
  a.ghosts = ghost_block_rows * b;
  a.row.resize(static_cast<std::size_t>(block_rows * b));
  auto const columns = static_cast<std::int64_t>(a.columns());
  for (std::int64_t block_row = 0; block_row < block_rows; ++block_row) {
    if (block_row % 7 == 3) continue;
    auto const wanted = block_row == block_rows / 2 ? 345 : static_cast<int>(random() % 13);
    for (int k = 0; k < wanted; ++k) {
      auto const column = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(columns));
      for (int j = 0; j < b; ++j) {
        for (int c = 0; c < b; ++c) {
          auto const at = blocks ? column / b * b + c
                                 : static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(columns));
          if (random() % 5 != 0) a.row[block_row * b + j][at] = uniform(random);
        }
      }
    }
  }
  return a;
}

/// 7-point Laplacian-like matrix of nx x ny x nz with its own value in every entry.
inline Oracle seven_point(int nx, int ny, int nz) {
  Oracle a;
  for (int z = 0; z < nz; ++z) {
    for (int y = 0; y < ny; ++y) {
      for (int x = 0; x < nx; ++x) {
        std::int32_t const i = (z * ny + y) * nx + x;
        std::map<std::int32_t, double> row;
        auto const put = [&](bool inside, std::int32_t j) {
          if (inside) row[j] = i == j ? 6.5 : -1.0 - 0.001 * ((i * 31 + j * 17) % 101);
        };
        put(z > 0, i - nx * ny);
        put(y > 0, i - nx);
        put(x > 0, i - 1);
        put(true, i);
        put(x + 1 < nx, i + 1);
        put(y + 1 < ny, i + nx);
        put(z + 1 < nz, i + nx * ny);
        a.row.push_back(row);
      }
    }
  }
  return a;
}

/// A + A^T of the owned part: exactly symmetric.
inline Oracle symmetric(Oracle const& a) {
  Oracle sum = a;
  auto const n = static_cast<std::int32_t>(a.row.size());
  for (std::int32_t i = 0; i < n; ++i) {
    for (auto const& [j, value] : a.row[i]) {
      if (j >= 0 && j < n)
        sum.row[j][i] = sum.row[i][j] = value + (a.row[j].count(i) != 0 ? a.row[j].at(i) : 0.0);
    }
  }
  return sum;
}

/// Rows [first, last) keep their ghosts, the others lose them: some slices read ghosts, others do not.
inline Oracle ghosts_only_in(Oracle a, std::int64_t first, std::int64_t last) {
  auto const n = static_cast<std::int64_t>(a.row.size());
  for (std::int64_t i = 0; i < n; ++i) {
    if (i >= first && i < last) continue;
    a.row[i].erase(a.row[i].lower_bound(static_cast<std::int32_t>(n)), a.row[i].end());
    a.row[i].erase(a.row[i].begin(), a.row[i].lower_bound(0));
  }
  return a;
}

/// The same ghosts by index, but the first `below` of them are of lower ranks: their columns come first.
inline Oracle with_ghosts_below(Oracle const& a, std::int64_t below) {
  Oracle moved;
  moved.ghosts = a.ghosts;
  moved.below = below;
  auto const n = static_cast<std::int64_t>(a.row.size());
  for (auto const& row : a.row) {
    moved.row.emplace_back();
    for (auto const& [column, value] : row) {
      std::int64_t const local_column = column < n           ? column
                                        : column < n + below ? column - n - below
                                                             : column - below;
      moved.row.back()[static_cast<std::int32_t>(local_column)] = value;
    }
  }
  return moved;
}

/// A contiguous share of a matrix without ghosts, rows [first, last) in whole block rows of b rows.
struct Share {
  Oracle a;
  std::vector<std::int32_t> column;  ///< of the whole matrix: what lies at each place, from the lowest on
  std::vector<double> gather(std::vector<double> const& x) const {
    std::vector<double> mine;
    for (std::int32_t const c : column) mine.push_back(x[c]);
    return mine;
  }
};
inline Share share_of(Oracle const& whole, int b, std::int32_t first, std::int32_t last) {
  std::map<std::int32_t, std::int32_t> local_column;  // of a column of the whole
  for (std::int32_t i = first; i < last; ++i) {
    local_column[i] = 0;
    for (auto const& [j, value] : whole.row[i])
      for (int c = 0; c < b; ++c) local_column[j / b * b + c] = 0;
  }
  Share share;
  for (auto const& [j, unused] : local_column) {
    share.column.push_back(j);
    share.a.below += j < first ? 1 : 0;
    share.a.ghosts += j < first || j >= last ? 1 : 0;
  }
  auto next = static_cast<std::int32_t>(-share.a.below);
  for (auto& [j, at] : local_column) at = next++;
  for (std::int32_t i = first; i < last; ++i) {
    share.a.row.emplace_back();
    for (auto const& [j, value] : whole.row[i]) share.a.row.back()[local_column[j]] = value;
  }
  return share;
}

inline std::vector<double> multiply(LocalMatrix const& a, std::vector<double> const& x) {
  std::vector<double> y(static_cast<std::size_t>(a.owned()), -7.0);
  a.multiply(x.data() + a.ghosts_below(), y.data());
  return y;
}

/// Of several right-hand sides at once.
inline std::vector<std::vector<double>> multiply(LocalMatrix const& a,
                                                 std::vector<std::vector<double>> const& x) {
  std::vector<std::vector<double>> y(x.size(), std::vector<double>(static_cast<std::size_t>(a.owned())));
  SidesRoom room(&a, static_cast<int>(x.size()));
  room.begin_sweep();
  Tiling const& t = a.tiling();
  std::vector<double const*> from;
  for (auto const& one : x) from.push_back(one.data() + a.ghosts_below());
  a.order().for_each_group([&](std::span<int const> slices) {
    for (int s : slices) {
      for (std::int64_t first = t.first(s); first < t.first(s + 1); first += Tiling::accumulators) {
        std::vector<double*> to;
        for (auto& one : y) to.push_back(one.data() + first * t.block);
        a.multiply(s, first,
                   static_cast<int>(std::min<std::int64_t>(Tiling::accumulators, t.first(s + 1) - first)),
                   static_cast<int>(x.size()), from.data(), to.data(), room);
      }
    }
  });
  return y;
}

inline std::vector<Isa> instruction_sets() {
  std::vector<Isa> sets;
  for (Isa isa : {Isa::baseline, Isa::v3, Isa::v4}) {
    if (isa <= active_isa()) sets.push_back(isa);
  }
  return sets;
}

inline Tiling tiling_of(Oracle const& a, int block, int slices, int threads_per_row = 1) {
  return Tiling{static_cast<std::int64_t>(a.row.size()) / block, block, slices, threads_per_row};
}

}  // namespace hostless::test
