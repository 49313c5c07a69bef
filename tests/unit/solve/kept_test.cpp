// What a persistent kernel keeps near, by hand: 132 blocks of 512 accumulators, 214 KiB of shared memory a
// block, 150 of them for fields where not everything is near.
#include "solve/gpu/kept.hpp"

#include <gtest/gtest.h>

namespace hostless::gpu {
namespace {

constexpr std::int64_t all_bytes = 214 * 1024, most_bytes = 150 * 1024;

Layout layout_of(std::int64_t block_rows, int block, int slots) {
  Layout layout;
  layout.tiling = {block_rows, block};
  layout.pairs = layout.blocks = 132;
  layout.rounds = 1;
  layout.slots = slots;
  return layout;
}

DiagonalsView diagonals_of(std::initializer_list<std::int32_t> offsets) {
  DiagonalsView view;
  for (std::int32_t offset : offsets) view.offset[view.count++] = offset;
  return view;
}

Kept kept_of(DiagonalsView const& diagonals, Layout const& layout, Forming forming, int threads_per_row = 1,
             bool ranks = true, KeptFields fields = {3, 3}) {
  DeviceFormat const format = diagonals.count > 0 ? DeviceFormat::diagonals : DeviceFormat::sell;
  std::int64_t const farthest = diagonals.count > 0 ? diagonals.offset[diagonals.count - 1] : 1091;
  return plan_kept({format, diagonals, farthest, threads_per_row}, layout, fields, ranks, all_bytes,
                   most_bytes, forming);
}

// Seven fields as pipelined-cg has, three of which must be near: as many are as there is room for.
TEST(Kept, SomeFieldsOfManyBesideEverythingElse) {
  auto const tri = diagonals_of({-453, -452, -1, 0, 1, 452, 453});
  Layout const layout = layout_of(452 * 452, 1, 4);
  constexpr std::int64_t field = 4 * 512;
  Kept const some = kept_of(tri, layout, Forming::by_flagged_words, 1, true, {7, 3});
  EXPECT_TRUE(some.all);
  EXPECT_EQ(some.matrix, 7 * field);
  EXPECT_EQ(some.window, field + 2 * 453);
  EXPECT_EQ(some.fields, 7 * field);
  EXPECT_EQ(some.values(), all_bytes / 8);
  EXPECT_GE(some.kept, 3 * field);
  EXPECT_FALSE(kept_of(tri, layout, Forming::by_flagged_words, 1, true, {7, 7}).all);
}

// 452 x 452, seven entries a row: 1,548 rows a block, 4 slots.
TEST(Kept, EverythingOfASmallMatrix) {
  auto const tri = diagonals_of({-453, -452, -1, 0, 1, 452, 453});
  Layout const layout = layout_of(452 * 452, 1, 4);
  Kept const words = kept_of(tri, layout, Forming::by_flagged_words);
  EXPECT_TRUE(words.all);
  EXPECT_EQ(words.forming, Forming::by_flagged_words);
  EXPECT_EQ(words.reach, 453);
  EXPECT_EQ(words.matrix, 7 * 4 * 512);
  EXPECT_EQ(words.window, 4 * 512 + 2 * 453);
  EXPECT_EQ(words.kept, words.fields);
  EXPECT_EQ(words.fields, 3 * 4 * 512);

  Kept const none = kept_of(tri, layout, Forming::no);  // the matrix is near all the same
  EXPECT_TRUE(none.all);
  EXPECT_FALSE(none.forms());
  EXPECT_EQ(none.window, 0);

  Kept const memory = kept_of(tri, layout, Forming::by_memory);  // another rank has no room for the matrix
  EXPECT_FALSE(memory.all);
  EXPECT_EQ(memory.forming, Forming::by_memory);
  EXPECT_EQ(memory.matrix, 0);
  EXPECT_GE(memory.window, 1548 + 2 * 453);
  EXPECT_LE(memory.values() * 8, most_bytes);
}

// 1259 x 1259, five entries a row: 12,008 rows a block.
TEST(Kept, WindowOfSingleRows) {
  auto const five = diagonals_of({-1259, -1, 0, 1, 1259});
  Layout const layout = layout_of(1259 * 1259, 1, 24);
  Kept const kept = kept_of(five, layout, Forming::by_flagged_words);
  EXPECT_FALSE(kept.all);
  EXPECT_EQ(kept.forming, Forming::by_memory);
  EXPECT_EQ(kept.reach, 1259);
  EXPECT_GE(kept.window, 12008 + 2 * 1259);
  EXPECT_LE(kept.values() * 8, most_bytes);
  EXPECT_EQ(kept_of(five, layout, Forming::no).window, 0);  // nothing is formed: nothing is gained
  EXPECT_EQ(kept_of(five, layout, Forming::by_flagged_words, 1, false).window,
            0);  // one rank: it pushes out fields
  Layout const short_rows = layout_of(264 * 1000, 1, 4);
  EXPECT_EQ(kept_of(diagonals_of({}), short_rows, Forming::by_flagged_words, 1, false).window, 0);
  EXPECT_EQ(kept_of(diagonals_of({-700, 0, 700}), short_rows, Forming::by_memory, 1, false).forming,
            Forming::by_memory);  // nothing is pushed out
}

// 128 x 128 x 128: neighbours are 16,384 rows away, as many as a block has.
TEST(Kept, NoWindowWhereNeighboursAreFar) {
  auto const seven = diagonals_of({-16384, -128, -1, 0, 1, 128, 16384});
  Kept const kept = kept_of(seven, layout_of(128 * 128 * 128, 1, 32), Forming::by_flagged_words);
  EXPECT_FALSE(kept.forms());
  EXPECT_EQ(kept.window, 0);
  EXPECT_EQ(kept.kept, most_bytes / 8);
}

// hex8 elasticity, 3 x 3 blocks: the window serves products too.
TEST(Kept, WindowOfBlocks) {
  Layout const layout = layout_of(521640, 3, 8);
  Kept const forms = kept_of({}, layout, Forming::by_flagged_words), reads = kept_of({}, layout, Forming::no);
  EXPECT_EQ(forms.forming, Forming::by_memory);
  EXPECT_FALSE(reads.forms());
  EXPECT_EQ(forms.window, reads.window);
  EXPECT_GT(forms.window, 0);
  EXPECT_EQ(forms.reach, 3 * 1091);
  EXPECT_EQ(kept_of({}, layout, Forming::by_flagged_words, 4).window,
            0);  // threads that share rows read memory
}

TEST(Kept, OneWindowForOneRound) {
  Layout layout = layout_of(521640, 3, 8);
  layout.rounds = 2;
  EXPECT_EQ(kept_of({}, layout, Forming::by_flagged_words).window, 0);
}

}  // namespace
}  // namespace hostless::gpu
