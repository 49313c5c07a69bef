// Products whose rows of B come from neighbours: who they are, what comes, and that a wrong value is found.
#include "bench/neighbor/row_products.hpp"

#include <gtest/gtest.h>

#include "bench/neighbor/gathered_rows.hpp"
#include "hostless/base/rows.hpp"
#include "wrong_transport.hpp"

namespace hostless::bench {
namespace {

/// Row r has entries in columns r / 2 and r, but row 0 has none. All rows are of one rank.
class OnOneRank : public RowSource {
 public:
  OnOneRank(std::int64_t rows, int owner, int rank)
      : rows_(rows), first_(rank > owner ? rows : 0), last_(rank < owner ? 0 : rows) {}
  std::int64_t global_rows() const override { return rows_; }
  std::int64_t first_row() const override { return first_; }
  std::int64_t last_row() const override { return last_; }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    out.clear();
    for (std::int64_t row = first; row < first + count; ++row) {
      for (std::int64_t const column : {row / 2, row}) {
        if (row == 0) continue;
        out.column.push_back(column);
        out.value.push_back(1.0 / static_cast<double>(3 * row + column));
      }
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
  }

 private:
  std::int64_t rows_, first_, last_;
};

std::vector<NeighborWay> every_way() {
  std::vector<NeighborWay> ways;
  for (bool const needed_rows : {false, true}) {
    ways.push_back({false, std::nullopt, "auto", needed_rows});
    for (Route const route : all_routes) ways.push_back({false, route, name(route), needed_rows});
  }
  return ways;
}

RowProduct product_of(Transport& transport, RowSource const& source, std::int64_t columns) {
  RowProduct what;
  what.ways = every_way();
  what.ranks_per_node = 2;
  what.block = block_of_rows(transport.group(), source);
  what.mine = neighbors_of(transport.group(), what.block);
  what.columns = columns;
  return what;
}

TEST(BenchRowProducts, RowsGoToTheBlockThatTheyAreOf) {
  run_with_threads_transport(4, [](Transport& transport) {
    int const rank = transport.group().rank();
    RowBlock const block = block_of_rows(transport.group(), OnOneRank(10, 1, rank));
    std::int64_t const first[] = {0, 2, 5, 7, 10};
    EXPECT_EQ(block.global_rows, 10);
    EXPECT_EQ(block.first, first[rank]);
    ASSERT_EQ(block.count(), first[rank + 1] - first[rank]);
    RowPanel expected;
    OnOneRank(10, 0, 0).panel(block.first, block.count(), expected);
    EXPECT_EQ(block.rows.offset, expected.offset);
    EXPECT_EQ(block.rows.column, expected.column);
    EXPECT_EQ(block.rows.value, expected.value);
  });
}

// Row r needs row r / 2: rank 1 (rows 2 to 4) rank 0's, rank 2 (5, 6) rank 1's, rank 3 (7 to 9) rank 1's. Nobody
// is needed by whom he needs.
TEST(BenchRowProducts, NeighborsAreThoseWithRowsThatAreNeeded) {
  run_with_threads_transport(4, [](Transport& transport) {
    int const rank = transport.group().rank();
    Neighbors const mine =
        neighbors_of(transport.group(), block_of_rows(transport.group(), OnOneRank(10, 3, rank)));
    std::vector<int> const sources[] = {{}, {0}, {1}, {1}}, destinations[] = {{1}, {2, 3}, {}, {}};
    EXPECT_EQ(mine.sources, sources[rank]);
    EXPECT_EQ(mine.destinations, destinations[rank]);
  });
}

TEST(BenchRowProducts, EveryWayIsRightAndCounted) {
  run_with_threads_transport(4, [](Transport& transport) {
    int const rank = transport.group().rank();
    RowProduct const what = product_of(transport, OnOneRank(10, 3, rank), 3);
    Protocol few = brief();
    few.steps = 3;
    auto const timings = row_product(transport, what, few);
    ASSERT_EQ(timings.size(), what.ways.size());
    for (std::size_t k = 0; k < timings.size(); ++k) {
      SCOPED_TRACE(what.ways[k].name);
      expect_times(timings[k].call, few);
      // Blocks of 2, 3 and 3 rows; the rows 1; 2 and 3; 3 and 4.
      EXPECT_EQ(timings[k].gathered, 8 * 3 * (what.ways[k].needed_rows ? 1 + 2 + 2 : 2 + 3 + 3));
      EXPECT_EQ(timings[k].calls, 2 + 2 + 3 * 3);
    }
  });
}

TEST(BenchRowProducts, WhatOverflowsIsNoFault) {
  struct Huge final : OnOneRank {
    using OnOneRank::OnOneRank;
    void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
      OnOneRank::panel(first, count, out);
      for (std::size_t k = 0; k < out.value.size(); ++k) out.value[k] = k % 2 == 0 ? 1e308 : -1e308;
    }
  };
  run_with_threads_transport(2, [](Transport& transport) {
    RowProduct const what = product_of(transport, Huge(10, 0, transport.group().rank()), 2);
    EXPECT_EQ(row_product(transport, what, brief()).size(), what.ways.size());
  });
}

TEST(BenchRowProducts, WrongRowsAreFound) {
  for (Fault const fault : {Fault::late_message, Fault::other_message, Fault::other_middle})
    for (bool const needed_rows : {false, true})
      expect_error(2, ErrorCode::environment, "of the product", fault, [&](Transport& transport) {
        RowProduct what = product_of(transport, OnOneRank(10, 0, transport.group().rank()), 1);
        what.ways = {{false, Route::direct, "direct", needed_rows}};
        row_product(transport, what, brief());
      });
}

TEST(BenchRowProducts, WhatIsNoneIsRefused) {
  for (std::int64_t const columns : {0, 1})
    expect_error(3, ErrorCode::usage, columns == 0 ? "0 columns of B" : "3 ranks for 2 rows", Fault::none,
                 [&](Transport& transport) {
                   int const rank = transport.group().rank();
                   row_product(transport, product_of(transport, OnOneRank(2, 2, rank), columns), brief());
                 });
  expect_error(2, ErrorCode::usage, "without MPI", Fault::none, [](Transport& transport) {
    RowProduct what = product_of(transport, OnOneRank(10, 0, transport.group().rank()), 1);
    what.ways = {{true, std::nullopt, "library"}};
    row_product(transport, what, brief());
  });
}

// MPI counts each block of 5 rows by itself: both together may be more.
TEST(BenchRowProducts, WhatMpiDoesNotCountIsRefused) {
  run_with_threads_transport(2, [](Transport& transport) {
    RowProduct what = product_of(transport, OnOneRank(10, 0, transport.group().rank()), 300'000'000);
    EXPECT_NO_THROW(GatheredRows(what, 2, false).require_counted());
  });
  expect_error(2, ErrorCode::usage, "2500000000 values of B", Fault::none, [](Transport& transport) {
    RowProduct what = product_of(transport, OnOneRank(10, 0, transport.group().rank()), 500'000'000);
    what.ways = {{true, std::nullopt, "library"}};
    row_product(transport, what, brief());
  });
}

}  // namespace
}  // namespace hostless::bench
