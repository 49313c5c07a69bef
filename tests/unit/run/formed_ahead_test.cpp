// What a thread forms in a sweep, and when: against the entries of each row.
#include "run/formed_ahead.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "matrices.hpp"

namespace hostless::test {
namespace {

/// Rows that read up to `reach` rows before and behind, some of them ghosts.
Oracle banded(int rows, int reach, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> distance(-reach, reach);
  Oracle a;
  a.row.resize(static_cast<std::size_t>(rows));
  for (int i = 0; i < rows; ++i) {
    a.row[static_cast<std::size_t>(i)][i] = 4.0;
    for (int k = 0; k < 4; ++k) {
      int const j = i + distance(random);
      if (j >= 0 && j < rows) a.row[static_cast<std::size_t>(i)][j] = -1.0;
    }
  }
  a.ghosts = 2;
  a.row[0][rows] = a.row[static_cast<std::size_t>(rows / 2)][rows + 1] = -1.0;
  return a;
}

struct Case {
  int rows, reach, slices, threads;
};

TEST(FormedAhead, EverySliceOnceAndBeforeItIsRead) {
  for (Case const& c :
       {Case{4000, 1, 16, 1}, Case{4000, 40, 16, 2}, Case{4000, 400, 16, 3}, Case{4000, 4000, 16, 3},
        Case{4000, 40, 40, 5}, Case{40, 5, 64, 2}, Case{600, 30, 2, 3}}) {
    SCOPED_TRACE(
        fmt::format("{} rows, {} apart, {} slices, {} threads", c.rows, c.reach, c.slices, c.threads));
    Oracle const a = banded(c.rows, c.reach, 7u);
    Tiling const t = tiling_of(a, 1, c.slices);
    LocalMatrix const matrix(a.rows(), t);
    SweepOrder const& order = matrix.order();
    std::vector<host::FormedAhead> thread;
    for (int one = 0; one < c.threads; ++one) thread.emplace_back(matrix, order, one, c.threads);
    auto const slices = static_cast<std::size_t>(c.slices);
    std::vector<int> times(slices, 0), by(slices, -1);  // by: the thread, -1 before the sweep begins
    for (auto& one : thread) one.form_early([&](int s) { ++times[static_cast<std::size_t>(s)]; });
    std::size_t late = 0;
    auto const slice_of = [&](std::int64_t row) {
      std::size_t s = 0;
      while (t.first(static_cast<int>(s) + 1) <= row) ++s;
      return s;
    };
    for (int one = 0; one < c.threads; ++one) {
      for (auto const* list : {&order.interior, &order.boundary}) {
        for (int const s : SweepOrder::piece_of(*list, one, c.threads)) {
          thread[static_cast<std::size_t>(one)].form_for(s, [&](int formed) {
            ++times[static_cast<std::size_t>(formed)];
            by[static_cast<std::size_t>(formed)] = one;
            late += 1;
          });
          for (std::int64_t row = t.first(s); row < t.first(s + 1); ++row) {
            for (auto const& [column, value] : a.row[static_cast<std::size_t>(row)]) {
              if (column >= c.rows) continue;
              std::size_t const read = slice_of(column);
              ASSERT_EQ(times[read], 1) << "row " << row << " reads " << column;
              ASSERT_TRUE(by[read] == -1 || by[read] == one) << "row " << row << " reads " << column;
            }
          }
        }
      }
    }
    for (auto& one : thread) one.form_all([&](int s) { ++times[static_cast<std::size_t>(s)]; });
    for (std::size_t s = 0; s < slices; ++s) EXPECT_EQ(times[s], 1) << "slice " << s;
    if (c.slices >= 8 * c.threads && c.reach < c.rows / c.slices)
      EXPECT_GT(late, slices / 2);  // most of them while their rows are in the caches
  }
}

}  // namespace
}  // namespace hostless::test
