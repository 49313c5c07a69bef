// What a persistent kernel keeps on chip, by hand: 132 blocks of 512 accumulators, 214 KiB of shared memory a
// block, 150 of them for fields where not everything is on chip.
#include "solve/gpu/on_chip.hpp"

#include <gtest/gtest.h>

namespace hostless::gpu {
namespace {

constexpr std::int64_t all_bytes = 214 * 1024, most_bytes = 150 * 1024;

Layout layout_of(std::int64_t block_rows, int block, int slots) {
  Layout layout;
  layout.tiling = {block_rows, block};
  layout.tiles = layout.blocks = 132;
  layout.turns = 1;
  layout.slots = slots;
  return layout;
}

DiagonalsView diagonals_of(std::initializer_list<std::int32_t> offsets) {
  DiagonalsView view;
  for (std::int32_t offset : offsets) view.offset[view.count++] = offset;
  return view;
}

OnChip on_chip_of(DiagonalsView const& diagonals, Layout const& layout, FusedUpdate fused_update,
                  int threads_per_row = 1, bool ranks = true, OnChipFields fields = {3, 3}) {
  DeviceFormat const format = diagonals.count > 0 ? DeviceFormat::diagonals : DeviceFormat::sell;
  std::int64_t const farthest = diagonals.count > 0 ? diagonals.offset[diagonals.count - 1] : 1091;
  return plan_on_chip({format, diagonals, farthest, threads_per_row}, layout, fields, ranks, all_bytes,
                      most_bytes, fused_update);
}

// Seven fields as pipelined-cg has, three of which must be on chip: as many are as there is room for.
TEST(OnChip, SomeFieldsOfManyBesideEverythingElse) {
  auto const tri = diagonals_of({-453, -452, -1, 0, 1, 452, 453});
  Layout const layout = layout_of(452 * 452, 1, 4);
  constexpr std::int64_t field = 4 * 512;
  OnChip const some = on_chip_of(tri, layout, FusedUpdate::by_flagged_words, 1, true, {7, 3});
  EXPECT_TRUE(some.all);
  EXPECT_EQ(some.matrix, 7 * field);
  EXPECT_EQ(some.window, field + 2 * 453);
  EXPECT_EQ(some.fields, 7 * field);
  EXPECT_EQ(some.values(), all_bytes / 8);
  EXPECT_GE(some.fields_on_chip, 3 * field);
  EXPECT_FALSE(on_chip_of(tri, layout, FusedUpdate::by_flagged_words, 1, true, {7, 7}).all);
}

// Of several right-hand sides as much as there is room for, and no matrix and no window.
TEST(OnChip, FieldsOfSeveralSides) {
  constexpr std::int64_t slot = 512 * 4;
  OnChip const all = plan_columns_on_chip(layout_of(452 * 452, 1, 4), 3, 4, most_bytes);
  EXPECT_EQ(all.fields, 3 * 4 * slot);
  EXPECT_EQ(all.fields_on_chip, std::min(all.fields, most_bytes / 8));
  OnChip const some = plan_columns_on_chip(layout_of(128 * 128 * 128, 1, 32), 3, 4, most_bytes);
  EXPECT_EQ(some.fields, 3 * 32 * slot);
  EXPECT_EQ(some.values(), most_bytes / 8);
  EXPECT_EQ(plan_columns_on_chip(layout_of(343000, 3, 11), 3, 2, most_bytes).fields, 3 * 11 * 3 * 512 * 2);
  EXPECT_EQ(some.matrix + some.window + some.reach, 0);
  EXPECT_FALSE(some.fuses());
}

// 452 x 452, seven entries a row: 1,548 rows a block, 4 slots.
TEST(OnChip, EverythingOfASmallMatrix) {
  auto const tri = diagonals_of({-453, -452, -1, 0, 1, 452, 453});
  Layout const layout = layout_of(452 * 452, 1, 4);
  OnChip const words = on_chip_of(tri, layout, FusedUpdate::by_flagged_words);
  EXPECT_TRUE(words.all);
  EXPECT_EQ(words.fused_update, FusedUpdate::by_flagged_words);
  EXPECT_EQ(words.reach, 453);
  EXPECT_EQ(words.matrix, 7 * 4 * 512);
  EXPECT_EQ(words.window, 4 * 512 + 2 * 453);
  EXPECT_EQ(words.fields_on_chip, words.fields);
  EXPECT_EQ(words.fields, 3 * 4 * 512);

  OnChip const none = on_chip_of(tri, layout, FusedUpdate::no);  // the matrix is on chip all the same
  EXPECT_TRUE(none.all);
  EXPECT_FALSE(none.fuses());
  EXPECT_EQ(none.window, 0);

  OnChip const memory =
      on_chip_of(tri, layout, FusedUpdate::by_memory);  // another rank has no room for the matrix
  EXPECT_FALSE(memory.all);
  EXPECT_EQ(memory.fused_update, FusedUpdate::by_memory);
  EXPECT_EQ(memory.matrix, 0);
  EXPECT_GE(memory.window, 1548 + 2 * 453);
  EXPECT_LE(memory.values() * 8, most_bytes);
}

// 1259 x 1259, five entries a row: 12,008 rows a block.
TEST(OnChip, WindowOfSingleRows) {
  auto const five = diagonals_of({-1259, -1, 0, 1, 1259});
  Layout const layout = layout_of(1259 * 1259, 1, 24);
  OnChip const on_chip = on_chip_of(five, layout, FusedUpdate::by_flagged_words);
  EXPECT_FALSE(on_chip.all);
  EXPECT_EQ(on_chip.fused_update, FusedUpdate::by_memory);
  EXPECT_EQ(on_chip.reach, 1259);
  EXPECT_GE(on_chip.window, 12008 + 2 * 1259);
  EXPECT_LE(on_chip.values() * 8, most_bytes);
  EXPECT_EQ(on_chip_of(five, layout, FusedUpdate::no).window, 0);  // nothing is formed: nothing is gained
  EXPECT_EQ(on_chip_of(five, layout, FusedUpdate::by_flagged_words, 1, false).window,
            0);  // one rank: it pushes out fields
  Layout const short_rows = layout_of(264 * 1000, 1, 4);
  EXPECT_EQ(on_chip_of(diagonals_of({}), short_rows, FusedUpdate::by_flagged_words, 1, false).window, 0);
  EXPECT_EQ(
      on_chip_of(diagonals_of({-700, 0, 700}), short_rows, FusedUpdate::by_memory, 1, false).fused_update,
      FusedUpdate::by_memory);  // nothing is pushed out
}

// 128 x 128 x 128: neighbours are 16,384 rows away, as many as a block has.
TEST(OnChip, NoWindowWhereNeighboursAreFar) {
  auto const seven = diagonals_of({-16384, -128, -1, 0, 1, 128, 16384});
  OnChip const on_chip = on_chip_of(seven, layout_of(128 * 128 * 128, 1, 32), FusedUpdate::by_flagged_words);
  EXPECT_FALSE(on_chip.fuses());
  EXPECT_EQ(on_chip.window, 0);
  EXPECT_EQ(on_chip.fields_on_chip, most_bytes / 8);
}

// hex8 elasticity, 3 x 3 blocks: the window serves products too.
TEST(OnChip, WindowOfBlocks) {
  Layout const layout = layout_of(521640, 3, 8);
  OnChip const fuses = on_chip_of({}, layout, FusedUpdate::by_flagged_words),
               reads = on_chip_of({}, layout, FusedUpdate::no);
  EXPECT_EQ(fuses.fused_update, FusedUpdate::by_memory);
  EXPECT_FALSE(reads.fuses());
  EXPECT_EQ(fuses.window, reads.window);
  EXPECT_GT(fuses.window, 0);
  EXPECT_EQ(fuses.reach, 3 * 1091);
  EXPECT_EQ(on_chip_of({}, layout, FusedUpdate::by_flagged_words, 4).window,
            0);  // threads that share rows read memory
}

TEST(OnChip, OneWindowForOneRound) {
  Layout layout = layout_of(521640, 3, 8);
  layout.turns = 2;
  EXPECT_EQ(on_chip_of({}, layout, FusedUpdate::by_flagged_words).window, 0);
}

}  // namespace
}  // namespace hostless::gpu
