#pragma once
// How one GPU's part of a grid is dealt out to two kernels that run at the same time: one steps the rows that
// lie at the part's ends and exchanges halos, the other steps the rows between. Integers alone.

#include <algorithm>
#include <cstdint>
#include <string>

#include "hostless/base/host_device.hpp"
#include "stencil/gpu/cached.hpp"
#include "stencil/gpu/parts/part_rows.hpp"
#include "stencil/gpu/plain.hpp"

namespace hostless::gpu {

/// Rows of the first axis, or none.
struct RowRange {
  std::int64_t low = 0, high = 0;
  HOSTLESS_HOST_DEVICE std::int64_t rows() const { return high > low ? high - low : 0; }
};

struct SplitRows {
  RowRange
      border[2];  ///< at the low end and at the high one; those that other parts see, and more where none is
  RowRange inner;

  /// stepped: what of the part's arrays is stepped at all. radius: along the first axis. At an end beyond which
  /// no part is, the border is what is stepped first, as deep as a halo would be.
  static SplitRows of(PartRows const& part, RowRange stepped, std::int64_t radius) {
    std::int64_t const low = part.below, high = part.below + part.own;
    stepped = {std::max(stepped.low, low), std::min(stepped.high, high)};
    stepped.high = std::max(stepped.low, stepped.high);
    SplitRows split;
    RowRange &first = split.border[0], &last = split.border[1];
    first = part.below > 0 ? RowRange{low, low + radius}
                           : RowRange{stepped.low, std::min(stepped.low + radius, stepped.high)};
    last = part.above > 0 ? RowRange{high - radius, high}
                          : RowRange{std::max(stepped.high - radius, stepped.low), stepped.high};
    // rows of both are those of the end that another part sees
    if (part.below == 0 && part.above > 0)
      first.high = std::max(first.low, std::min(first.high, last.low));
    else if (first.rows() > 0)
      last.low = std::max(last.low, first.high);
    last.high = std::max(last.low, last.high);
    std::int64_t const inner_low = first.rows() > 0 ? first.high : stepped.low;
    std::int64_t const inner_high = last.rows() > 0 ? last.low : stepped.high;
    split.inner = {std::max(inner_low, stepped.low), std::min(inner_high, stepped.high)};
    split.inner.high = std::max(split.inner.low, split.inner.high);
    return split;
  }
};

/// What a part has of a GPU. A multiprocessor holds `inner` blocks of the one kernel or `border` of the other, at
/// most as many of these as of those; so a border block takes the room of `slots` inner ones.
struct SplitRoom {
  int inner = 1, border = 1;
  int multiprocessors = 1;
  int slots() const { return (inner + border - 1) / border; }
};

/// Blocks of both kernels, which all are there at once wherever the GPU puts them, in any order: a border block
/// finds no multiprocessor with so many slots free only where at least inner - slots() + 1 are taken on each.
struct SplitBlocks {
  int border = 1, inner = 1;
  /// As many for the border as it has of the rows (Ismayilov et al. 2023, section 4.1.2), and one for either end.
  static SplitBlocks of(SplitRows const& rows, SplitRoom const& room) {
    std::int64_t const border = rows.border[0].rows() + rows.border[1].rows();
    std::int64_t const whole = std::max<std::int64_t>(border + rows.inner.rows(), 1);
    std::int64_t const all = std::int64_t{room.inner} * room.multiprocessors, slots = room.slots();
    std::int64_t const free = (room.inner - slots + 1) * room.multiprocessors;
    std::int64_t const most = std::max<std::int64_t>((free - 1) / slots, 1);
    std::int64_t const wanted = (all / slots * border + whole / 2) / whole;
    SplitBlocks blocks;
    blocks.border = static_cast<int>(std::clamp(wanted, std::min<std::int64_t>(2, most), most));
    blocks.inner = static_cast<int>(std::max<std::int64_t>(free - slots * blocks.border, 1));
    return blocks;
  }
  bool fit(SplitRoom const& room) const {
    int const slots = room.slots();
    return inner + slots * border <= (room.inner - slots + 1) * room.multiprocessors;
  }
};

struct SplitPlan {
  SplitRows rows;
  SplitBlocks blocks;
  int border_threads = 1;
  CachedBoxes boxes;  ///< of cells that stay in shared memory

  /// For people.
  std::string describe(bool is_cached) const {
    auto const text = [](auto number) { return std::to_string(number); };
    std::string told = "a thread a cell";
    if (is_cached)
      told = text(boxes.high[0] - boxes.low[0]) + " of " + text(rows.inner.rows()) +
             " inner rows in shared memory in " + text(boxes.count[0]) + " x " + text(boxes.count[1]) +
             " x " + text(boxes.count[2]) + " boxes";
    return told + ", " + text(blocks.inner) + " blocks beside " + text(blocks.border) +
           " of a kernel for border rows, joined each step";
  }
};

/// A step ends when all blocks of both kernels have arrived: each counts its own, and polls both numbers.
struct KernelJoin {
  BlockBarrier own;
  BlockBarrier other;  ///< which this kernel only reads
  std::uint32_t other_blocks = 1;
};

}  // namespace hostless::gpu
