// What a context is made of; texts with one: tests/contract/context_contract_test.cpp.
#include "run/context.hpp"

#include <gtest/gtest.h>

#include "hostless/base/error.hpp"
#include "run/field_numbering.hpp"

namespace hostless::host {
namespace {

TEST(Context, RefusesRowsThatDoNotFit) {
  Tiling const two{2, 1, 1};
  EXPECT_THROW(RectangularMatrix({{0, 1}, {0}, {1.0}}, two, {3, 0, 0}), Error);          // a row too few
  EXPECT_THROW(RectangularMatrix({{0, 1, 2}, {0, 3}, {1, 1}}, two, {3, 0, 0}), Error);   // column 3 of 3
  EXPECT_THROW(RectangularMatrix({{0, 2, 2}, {1, 1}, {1, 1}}, two, {3, 0, 0}), Error);   // not rising
  EXPECT_THROW(RectangularMatrix({{0, 1, 2}, {-2, 0}, {1, 1}}, two, {3, 1, 1}), Error);  // one ghost below
  RectangularMatrix const fits({{0, 2, 3}, {-1, 3, 0}, {1, 2, 3}}, two, {3, 2, 1});
  EXPECT_EQ(fits.ghost_reads().ghost, (std::vector<std::int32_t>{0, 1}));
  double const x[] = {10, 1, 0, 0, 100};
  double y[2];
  fits.multiply(0, 0, 2, x + 1, y, nullptr);
  EXPECT_EQ(y[0], 210);
  EXPECT_EQ(y[1], 3);
  EXPECT_THROW(stages_of_slices(ExchangePlan{}, fits.ghost_reads()), Error);  // a field without ghosts
}

// Five entries in two shares: ghosts lie by number around the owned ones.
TEST(LocalNumbering, PutsGhostsAroundOwnedEntries) {
  run_on_threads(2, [](Group& group) {
    FieldNumbering const all(group, group.rank() == 0 ? 2 : 3);
    EXPECT_EQ(all.count(), 5);
    EXPECT_EQ(all.owner(1), 0);
    EXPECT_EQ(all.owner(2), 1);
    LocalNumbering const local(
        all, group.rank() == 0 ? std::vector<std::int64_t>{4, 0, 2, 4} : std::vector<std::int64_t>{1, 3});
    if (group.rank() == 0) {
      EXPECT_EQ(local.columns().ghosts_below, 0);
      EXPECT_EQ(local.columns().ghosts, 2);
      EXPECT_EQ(local.column(1), 1);
      EXPECT_EQ(local.column(2), 2);
      EXPECT_EQ(local.column(4), 3);
    } else {
      EXPECT_EQ(local.columns().ghosts_below, 1);
      EXPECT_EQ(local.column(1), -1);
      EXPECT_EQ(local.column(4), 2);
    }
    ExchangePlan const plan = local.plan(group, Route::direct, NodeMap::blocks(2, 2));
    EXPECT_EQ(plan.ghosts, local.columns().ghosts);
    EXPECT_EQ(plan.ghosts_below, local.columns().ghosts_below);
  });
}

}  // namespace
}  // namespace hostless::host
