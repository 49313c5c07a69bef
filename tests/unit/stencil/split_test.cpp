// A part of a grid that two kernels step at a time, without a GPU: which rows each has, how many blocks of both
// there are at once, and what stays in shared memory.
#include "stencil/gpu/parts/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "stencil/gpu/choose_way.hpp"

namespace hostless::test {
namespace {

constexpr GridBoundary boundaries[]{GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic};

std::vector<gpu::StencilPart> dealt(std::int64_t rows, int parts) {
  std::vector<gpu::StencilPart> all;
  for (int k = 0; k < parts; ++k) all.push_back({0, rows * k / parts, rows * (k + 1) / parts, 0, 0});
  return all;
}

TEST(SplitParts, StepEveryRowOnceAndShowWhatOthersSee) {
  for (GridBoundary const boundary : boundaries)
    for (std::int64_t const radius : {1, 2})
      for (int parts = 1; parts <= 4; ++parts)
        for (std::int64_t rows = std::max<std::int64_t>(parts * radius, 2 * radius + 1); rows < 30; ++rows) {
          Grid const grid{{rows, 1, 20}, {boundary, GridBoundary::dirichlet, GridBoundary::dirichlet}};
          std::vector<gpu::StencilPart> const all = dealt(rows, parts);
          for (std::size_t k = 0; k < all.size(); ++k) {
            if (all[k].high - all[k].low < radius) continue;
            gpu::PartRows const part = gpu::PartRows::of(grid, all, k, radius);
            Grid const own = part.as_grid(grid, all.size());
            std::int64_t const fixed = own.boundary[0] == GridBoundary::dirichlet ? radius : 0;
            gpu::RowRange const stepped{fixed, std::max(fixed, part.all() - fixed)};
            gpu::SplitRows const split = gpu::SplitRows::of(part, stepped, radius);
            std::string const what = std::string(name(boundary)) + ", " + std::to_string(rows) +
                                     " rows, part " + std::to_string(k) + " of " + std::to_string(parts);
            std::vector<int> times(static_cast<std::size_t>(part.all())), inner = times;
            for (gpu::RowRange const& range : {split.border[0], split.border[1], split.inner})
              for (std::int64_t row = range.low; row < range.high; ++row)
                ++times.at(static_cast<std::size_t>(row));
            for (std::int64_t row = split.inner.low; row < split.inner.high; ++row)
              ++inner.at(static_cast<std::size_t>(row));
            for (std::int64_t row = 0; row < part.all(); ++row) {
              auto const at = static_cast<std::size_t>(row);
              bool const is_own = row >= part.below && row < part.below + part.own;
              bool const is_stepped = is_own && row >= stepped.low && row < stepped.high;
              bool const is_shown = is_own && ((part.below > 0 && row < part.below + radius) ||
                                               (part.above > 0 && row >= part.below + part.own - radius));
              EXPECT_EQ(times[at] == 1, is_stepped || is_shown) << what << ", row " << row;
              EXPECT_LE(times[at], 1) << what << ", row " << row;
              EXPECT_TRUE(inner[at] == 0 || (is_stepped && !is_shown)) << what << ", row " << row;
              if (inner[at] == 0) continue;
              EXPECT_GE(row, radius) << what << ": an inner row reads nothing beyond an end";
              EXPECT_LT(row, part.all() - radius) << what;
            }
          }
        }
}

// However a GPU deals blocks out to its multiprocessors, and whichever come first.
TEST(SplitBlocks, AreAllThereAtOnce) {
  std::mt19937 random(1);
  for (auto const& [inner, border] : {std::pair{8, 4}, {8, 3}, {8, 8}, {7, 2}, {4, 4}, {1, 1}, {6, 5}})
    for (int const multiprocessors : {2, 3, 33, 132})
      for (std::int64_t const rows : {1, 3, 40, 5000}) {
        gpu::SplitRows split;
        split.border[0] = {0, 1};
        split.border[1] = {rows + 1, rows + 2};
        split.inner = {1, rows + 1};
        gpu::SplitRoom const room{inner, border, multiprocessors};
        gpu::SplitBlocks const blocks = gpu::SplitBlocks::of(split, room);
        ASSERT_TRUE(blocks.fit(room));
        EXPECT_GE(blocks.border, 1);
        EXPECT_GE(blocks.inner, 1);
        for (int times = 0; times < 20; ++times) {
          std::vector<int> free(static_cast<std::size_t>(multiprocessors), inner);
          for (int k = 0; k < blocks.inner; ++k) {
            // first until a multiprocessor has no place for a border block, then the next one; and anywhere
            auto found = std::find_if(free.begin(), free.end(), [&](int f) { return f >= room.slots(); });
            if (times > 0 || found == free.end()) {
              found = free.begin() + static_cast<std::ptrdiff_t>(random() % free.size());
              while (*found == 0)
                if (++found == free.end()) found = free.begin();
            }
            --*found;
          }
          for (int k = 0; k < blocks.border; ++k) {
            auto const found =
                std::find_if(free.begin(), free.end(), [&](int f) { return f >= room.slots(); });
            ASSERT_NE(found, free.end()) << inner << " " << border << " " << multiprocessors << " " << rows;
            *found -= room.slots();
          }
        }
      }
  EXPECT_FALSE((gpu::SplitBlocks{1, 1}.fit({1, 1, 1})));
}

TEST(CachedBoxes, HoldAllThatFitsOnce) {
  int whole = 0, some = 0, none = 0;
  for (std::array<int, 3> const cells : {std::array<int, 3>{254, 1, 256},
                                         {2046, 1, 2048},
                                         {8190, 1, 8192},
                                         {37, 1, 53},
                                         {1, 1, 9},
                                         {254, 256, 256},
                                         {14, 6, 70},
                                         {3, 700, 12}})
    for (int const reach : {1, 2})
      for (std::int64_t const cell_bytes : {4, 8, 16})
        for (std::int64_t const shared :
             {std::int64_t{300}, std::int64_t{64} << 10, std::int64_t{227} << 10}) {
          gpu::CachedRoom const room{{reach, cells[1] > 1 ? reach : 0, reach}, cell_bytes, 130, shared};
          std::array<int, 3> const low{5, 0, 1}, high{5 + cells[0], cells[1], 1 + cells[2]};
          gpu::CachedBoxes const boxes = gpu::choose_boxes(low, high, room);
          if (boxes.boxes() == 0) {
            ++none;
            for (int n1 = 1; n1 <= std::min(cells[1], room.blocks); ++n1)
              for (int n2 = 1; n2 <= std::min(cells[2], room.blocks / n1); ++n2) {
                gpu::CachedBoxes const row{{0, 0, 0}, {1, cells[1], cells[2]}, {1, n1, n2}};
                EXPECT_GT(gpu::cached_shared_bytes(row, room.reach, cell_bytes), shared);
              }
            continue;
          }
          EXPECT_LE(boxes.boxes(), room.blocks);
          EXPECT_LE(gpu::cached_shared_bytes(boxes, room.reach, cell_bytes), shared);
          EXPECT_EQ((std::array<int, 3>{boxes.low[0], boxes.low[1], boxes.low[2]}), low);
          EXPECT_EQ((std::array<int, 2>{boxes.high[1], boxes.high[2]}),
                    (std::array<int, 2>{high[1], high[2]}));
          EXPECT_LE(boxes.high[0], high[0]);
          (boxes.high[0] == high[0] ? whole : some) += 1;
          for (int axis = 0; axis < 3; ++axis)
            for (int k = 0; k < boxes.count[axis]; ++k) {
              EXPECT_GT(boxes.begin(axis, k + 1), boxes.begin(axis, k));
              EXPECT_LE(boxes.begin(axis, k + 1) - boxes.begin(axis, k), boxes.most(axis));
            }
        }
  EXPECT_GT(whole, 30);
  EXPECT_GT(some, 10);
  EXPECT_GT(none, 5);
}

TEST(SplitWays, AreTakenOnlyByName) {
  gpu::StencilDevice const device{"none", 132, 227 << 10};
  StencilKernel const kernel = make_stencil("wave", 3, 8);
  Grid const grid{{40, 9, 96}, {}};
  GpuStencilOptions options;
  auto const chosen = [&] { return gpu::choose_way(grid, kernel, options, {}, device); };
  auto const refusal = [&] {
    try {
      (void)chosen();
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
      return std::string(e.what());
    }
    return std::string("not refused");
  };
  EXPECT_FALSE(chosen().is_split());
  for (int const parts : {1, 2, 3}) {
    options = {};
    options.devices.resize(static_cast<std::size_t>(parts));
    options.halos = GpuHalos::overlap;
    options.run = RunKind::persistent;
    gpu::StencilWay way = chosen();
    EXPECT_TRUE(way.is_split() && way.cells == GpuCells::plain && way.depth() == 1) << parts;
    EXPECT_FALSE(way.steps_beside_halos());
    options = {};
    options.devices.resize(static_cast<std::size_t>(parts));
    options.cells = GpuCells::cached;
    way = chosen();
    EXPECT_TRUE(way.is_split() && way.run == RunKind::persistent && way.depth() == 1) << parts;
    EXPECT_EQ(way.shared_bytes, device.shared_bytes);
    options.halos = GpuHalos::copies;
    EXPECT_NE(refusal().find("halos by copies"), std::string::npos);
  }
  options = {};
  options.devices = {0, 1};
  options.halos = GpuHalos::overlap;
  EXPECT_TRUE(chosen().steps_beside_halos()) << "nobody said persistent";
  options = {};
  options.cells = GpuCells::cached;
  options.run = RunKind::stream;
  EXPECT_NE(refusal().find("cells cached in run stream"), std::string::npos);
  options.run = RunKind::automatic, options.depth = 2;
  EXPECT_NE(refusal().find("after every step"), std::string::npos);
  options.depth = 0;
  options.devices.assign(67, 0);
  EXPECT_NE(refusal().find("67 parts on one GPU"), std::string::npos);
}

}  // namespace
}  // namespace hostless::test
