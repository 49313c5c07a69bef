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

/// What threads have formed, block row by block row, and who.
struct Formed {
  std::vector<int> times, by;  // by: the thread, -1 before the sweep begins
  int thread = -1, in_shares = 0;
  explicit Formed(int rows)
      : times(static_cast<std::size_t>(rows), 0), by(static_cast<std::size_t>(rows), -1) {}
  auto former(int* counter = nullptr) {
    return [this, counter](std::int64_t first, int count) {
      ASSERT_GT(count, 0);
      ASSERT_LE(count, Tiling::accumulators);
      for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(first + count); ++row) {
        ++times[row];
        by[row] = thread;
      }
      if (counter != nullptr) *counter += count;
    };
  }
};

TEST(FormedAhead, EveryRowOnceAndBeforeItIsRead) {
  for (Case const& c : {Case{4000, 1, 16, 1}, Case{4000, 40, 16, 2}, Case{4000, 400, 16, 3},
                        Case{4000, 4000, 16, 3}, Case{4000, 40, 40, 5}, Case{40, 5, 64, 2},
                        Case{600, 30, 2, 3}, Case{9000, 300, 2, 2}, Case{9000, 2000, 4, 2}}) {
    SCOPED_TRACE(
        fmt::format("{} rows, {} apart, {} slices, {} threads", c.rows, c.reach, c.slices, c.threads));
    Oracle const a = banded(c.rows, c.reach, 7u);
    Tiling const t = tiling_of(a, 1, c.slices);
    LocalMatrix const matrix(a.rows(), t);
    SweepOrder const& order = matrix.order();
    std::vector<host::FormedAhead> thread;
    for (int one = 0; one < c.threads; ++one) thread.emplace_back(matrix, order, one, c.threads);
    Formed formed(c.rows);
    for (auto& one : thread) one.form_early(formed.former());
    int for_slots = 0, in_shares = 0;
    auto const rows_read = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        for (auto const& [column, value] : a.row[static_cast<std::size_t>(row)]) {
          if (column >= c.rows) continue;
          auto const read = static_cast<std::size_t>(column);
          ASSERT_EQ(formed.times[read], 1) << "row " << row << " reads " << column;
          ASSERT_TRUE(formed.by[read] == -1 || formed.by[read] == formed.thread)
              << "row " << row << " reads " << column;
        }
      }
    };
    for (int one = 0; one < c.threads; ++one) {
      host::FormedAhead& ahead = thread[static_cast<std::size_t>(one)];
      formed.thread = one;
      for (auto const* list : {&order.interior, &order.boundary}) {
        for (int const s : SweepOrder::piece_of(*list, one, c.threads)) {
          for (std::int64_t slot = t.first(s); slot < t.first(s + 1); slot += Tiling::accumulators) {
            ahead.form_for_slot(formed.former(&for_slots));
            rows_read(slot, std::min(slot + Tiling::accumulators, t.first(s + 1)));
            for (int left = 3; left > 0; --left) ahead.form_share(left, formed.former(&in_shares));
          }
        }
      }
    }
    for (auto& one : thread) one.form_all(formed.former());
    for (int row = 0; row < c.rows; ++row) EXPECT_EQ(formed.times[static_cast<std::size_t>(row)], 1) << row;
    // Most of them between products, where there are some before it is read and others do not read it.
    if (c.rows / c.threads > 4 * c.reach && c.rows > 8 * c.threads * Tiling::accumulators) {
      EXPECT_GT(in_shares, for_slots);
    }
    if (c.reach < c.rows / c.slices && c.slices >= 8 * c.threads) {
      EXPECT_GT(for_slots + in_shares, c.rows / 2);
    }
  }
}

TEST(FormedAhead, ASweepMayBeginAgainAndFormAllAtOnce) {
  Oracle const a = banded(2000, 50, 3u);
  LocalMatrix const matrix(a.rows(), tiling_of(a, 1, 4));
  host::FormedAhead ahead(matrix, matrix.order(), 0, 1);
  for (int again = 0; again < 2; ++again) {
    Formed formed(2000);
    ahead.form_early(formed.former());
    if (again == 0) ahead.form_for_slot(formed.former());
    ahead.form_all(formed.former());
    for (int const times : formed.times) EXPECT_EQ(times, 1);
    ahead.form_share(1, formed.former());
    for (int const times : formed.times) EXPECT_EQ(times, 1);
  }
}

}  // namespace
}  // namespace hostless::test
