// A field that a sweep fills, stored past the caches: the same bits as stored row by row.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "matrices.hpp"
#include "run/slice.impl.hpp"

namespace hostless::test {
namespace {

struct FillAndSum {
  template <class L, class Sums, class Products, class P, class Q>
  void operator()(State const&, L block_row, Sums const& sum, Products const& a_p, P const& p,
                  Q const& q) const {
    for (int j = 0; j < L::rows; ++j) {
      double const t = a_p(block_row, j);
      q(block_row, j) = t;
      sum.add(0, p(block_row, j) * t);
    }
  }
};

/// q of all columns, rows of others before and behind, and the partial sums.
struct Swept {
  std::vector<double> q, partials;
};

Swept sweep(LocalMatrix const& matrix, int columns, std::int64_t apart, std::vector<double> const& p,
            std::int64_t before, bool past_caches) {
  Tiling const& t = matrix.tiling();
  constexpr std::int64_t widest = 4;
  Swept swept{std::vector<double>(static_cast<std::size_t>(before + columns * apart), -7.0),
              std::vector<double>(static_cast<std::size_t>(columns * t.slices * widest), -7.0)};
  std::vector<double> gathered = p;
  State state{};
  SidesRoom room(&matrix, columns);
  host::Multiplied multiplied;
  multiplied.room = &room;
  multiplied.past_caches = past_caches;
  multiplied.partials_apart = t.slices * widest;
  for (int c = 0; c < columns; ++c)
    multiplied.column[multiplied.count++] = {&state, host::Multiplier{&matrix, nullptr},
                                             gathered.data() + c * apart, c * apart, c};
  room.begin_sweep();
  for (int s = 0; s < t.slices; ++s)
    host::sweep_of_slice<1, 1>(t, s, swept.partials.data() + s * widest, multiplied, host::NothingBetween{},
                               FillAndSum{}, InMemory{gathered.data()},
                               fills(InMemory{swept.q.data() + before}));
  end_of_stores_past_caches();
  return swept;
}

TEST(Filled, StoredPastCachesItHasTheSameBits) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> any(-1, 1);
  for (int const block : {1, 3}) {
    for (int const block_rows : {1, 3, 255, 256, 257, 1001}) {
      Oracle a;
      int const rows = block_rows * block;
      a.row.resize(static_cast<std::size_t>(rows));
      for (int i = 0; i < rows; ++i)
        for (int const j : {i - 5, i - 1, i, i + 1, i + 5})
          if (j >= 0 && j < rows) a.row[static_cast<std::size_t>(i)][j] = any(random);
      Tiling const t = tiling_of(a, block, 3);
      LocalMatrix const matrix(a.rows(), t);
      std::int64_t const apart = block_rows * block + 3;
      for (int const columns : {2, 4, 5}) {
        std::vector<double> p(static_cast<std::size_t>(columns * apart));
        for (double& entry : p) entry = any(random);
        for (std::int64_t const before : {0, 1, 5}) {
          SCOPED_TRACE(fmt::format("blocks of {}, {} block rows, {} columns, {} values before", block,
                                   block_rows, columns, before));
          Swept const one = sweep(matrix, columns, apart, p, before, false),
                      other = sweep(matrix, columns, apart, p, before, true);
          ASSERT_EQ(0, std::memcmp(one.q.data(), other.q.data(), one.q.size() * sizeof(double)));
          ASSERT_EQ(one.partials, other.partials);
          ASSERT_NE(one.q[static_cast<std::size_t>(before)], -7.0);
          ASSERT_EQ(one.q.back(), -7.0);  // behind the last column's rows
        }
      }
    }
  }
}

}  // namespace
}  // namespace hostless::test
