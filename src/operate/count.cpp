#include <fmt/format.h>

#include <algorithm>

#include "diagonal_images.hpp"
#include "ghost_reads.hpp"
#include "halves.hpp"
#include "hostless/base/error.hpp"
#include "storage.hpp"

namespace hostless {
namespace {

using Columns = FormatRequest::Columns;
using Kind = FormatRequest::Kind;

class Counter {
 public:
  Counter(LocalRows const& rows, Tiling const& tiling, FormatRequest request)
      : tiling_(tiling),
        owned_(rows.owned()),
        ghosts_(rows, tiling, 0, tiling.slices),
        columns_(request.columns),
        threads_(request.threads) {
    auto const wanted = [&](Kind kind) { return request.format == Kind::auto_ || request.format == kind; };
    if (wanted(Kind::csr)) csr_ = begin(Format::csr, owned_ + tiling.slices);
    if (wanted(Kind::bsr) && tiling.block > 1) bsr_ = begin(Format::bsr, tiling.block_rows + tiling.slices);
    if (bsr_ != no) halves_ = Halves(tiling, request);
    if (wanted(Kind::sell)) sell_ = begin(Format::sell, 0);
    if (sell_ != no) {
      shapes_[sell_].first_group.assign(tiling.slices + 1, 0);
      bool const automatic = request.half_reach == FormatRequest::automatic;
      images_ = DiagonalImages(owned_, automatic ? DiagonalImages::automatic_reach : request.half_reach);
    }
    ranges_.resize(shapes_.size());
    sizes_.resize(shapes_.size());
  }

  void begin_slice(int s) {
    for (std::size_t f = 0; f < shapes_.size(); ++f) {
      ranges_[f] = ColumnRange();
      sizes_[f] = 0;
      shapes_[f].slice[s].value = shapes_[f].values;
    }
    if (csr_ != no) shapes_[csr_].start.push_back(0);
    if (bsr_ != no) shapes_[bsr_].start.push_back(0);
  }

  void add(int s, std::int64_t first_block_row, LocalPanel const& panel) {
    counted_.entries += panel.offset.back();
    ghosts_.add(s, first_block_row, panel);
    counted_.owned_reads.push_back(owned_reads(first_block_row, panel));
    if (csr_ != no) add_csr(s, panel);
    if (bsr_ != no) add_bsr(s, first_block_row, panel);
    if (sell_ != no) add_sell(first_block_row, panel);
  }

  void end_slice(int s) {
    for (std::size_t f = 0; f < shapes_.size(); ++f) {
      Shape& shape = shapes_[f];
      ColumnRange const& range = ranges_[f];
      SliceStart& slice = shape.slice[s];
      slice.wide = columns_ == Columns::wide || !range.within(UINT16_MAX);
      slice.base = slice.wide || range.empty() ? 0 : static_cast<std::int32_t>(range.least);
      std::int64_t& columns = slice.wide ? shape.wide : shape.narrow;
      slice.column = columns;
      if (shape.format == Format::sell) lay_out_groups(shape, s, columns);
      if (f == bsr_) bsr_ranges_.push_back(range);
      columns += sizes_[f];
    }
  }

  Counted take() {
    counted_.ghosts = ghosts_.take();
    SweepOrder& order = counted_.order;
    for (int s = 0; s < tiling_.slices; ++s) {
      bool const ghosts = counted_.ghosts.first[s] != counted_.ghosts.first[s + 1];
      (ghosts ? order.boundary : order.interior).push_back(s);
    }
    order.threads = threads_;
    if (halves_.active()) {
      halves_.apply(shapes_[bsr_], order, bsr_ranges_, columns_);
      add_far_reads();
    }
    counted_.candidates = std::move(shapes_);
    return std::move(counted_);
  }

 private:
  static constexpr std::size_t no = SIZE_MAX;

  std::size_t begin(Format format, std::int64_t starts) {
    Shape shape;
    shape.format = format;
    shape.slice.resize(tiling_.slices);
    shape.start.reserve(static_cast<std::size_t>(starts));
    shapes_.push_back(std::move(shape));
    return shapes_.size() - 1;
  }

  /// What the entries of a slot read and its rows themselves; filled-in zeros lie at most a group beside them.
  RowRange owned_reads(std::int64_t first_block_row, LocalPanel const& panel) const {
    ColumnRange all;
    for (std::int32_t const column : panel.column)
      if (column >= 0 && column < owned_) all.add(column);
    std::int64_t const first = first_block_row * tiling_.block;
    all.add(first);
    all.add(first + static_cast<std::int64_t>(panel.offset.size()) - 2);
    std::int64_t const beside = std::int64_t{group_block_rows} * tiling_.block;
    return {std::max<std::int64_t>(all.least - beside, 0), std::min(all.most + 1 + beside, owned_)};
  }

  /// Far blocks are multiplied in slots before those of their block rows, and are not far from these.
  void add_far_reads() {
    Shape const& shape = shapes_[bsr_];
    if (shape.ring == 0) return;
    std::vector<RowRange> const of_rows = counted_.owned_reads;
    for (std::size_t slot = 0; slot < of_rows.size(); ++slot) {
      RowRange& reads = counted_.owned_reads[slot];
      for (std::int32_t f = shape.far_range[slot].first; f < shape.far_range[slot].last; ++f) {
        std::int64_t const block_row = shape.far_block_row[f];
        int const s = tiling_.slice_of(block_row);
        std::int64_t const its = shape.first_slot[s] + (block_row - tiling_.first(s)) / Tiling::accumulators;
        reads.first = std::min(reads.first, of_rows[its].first);
        reads.last = std::max(reads.last, block_row * tiling_.block);
      }
    }
  }

  static std::uint32_t relative(std::int64_t offset, int slice) {
    if (offset > UINT32_MAX) {
      throw Error(ErrorCode::usage,
                  fmt::format("slice {} holds more than 2^32 entries (row starts are 32 bits inside "
                              "a slice). Use more slices",
                              slice));
    }
    return static_cast<std::uint32_t>(offset);
  }

  /// What the next slot's rows read.
  void add_slot(std::size_t f, ColumnRange const& slot) {
    SlotReads reads;
    if (!slot.empty()) {
      reads = {static_cast<std::int32_t>(slot.least), static_cast<std::int32_t>(slot.most + 1)};
      ranges_[f].add(slot.least);
      ranges_[f].add(slot.most);
    }
    shapes_[f].reads.push_back(reads);
  }

  void add_csr(int s, LocalPanel const& panel) {
    Shape& shape = shapes_[csr_];
    for (std::size_t i = 1; i < panel.offset.size(); ++i) {
      shape.start.push_back(relative(sizes_[csr_] + panel.offset[i], s));
    }
    ColumnRange slot;
    for (std::int32_t column : panel.column) slot.add(column);
    add_slot(csr_, slot);
    sizes_[csr_] += panel.offset.back();
    shape.values += panel.offset.back();
  }

  void add_bsr(int s, std::int64_t first_block_row, LocalPanel const& panel) {
    Shape& shape = shapes_[bsr_];
    int const b = tiling_.block;
    std::int64_t const square = std::int64_t{b} * b, slice_start = shape.slice[s].value;
    std::int64_t block_row = first_block_row;
    ColumnRange slot;
    for (std::int64_t row = 0; row + 1 < static_cast<std::int64_t>(panel.offset.size());
         row += b, ++block_row) {
      block_row_columns(panel, row, b, block_row_columns_);
      for (std::int32_t column : block_row_columns_) slot.add(column);
      auto const blocks = static_cast<std::int64_t>(block_row_columns_.size());
      sizes_[bsr_] += blocks;
      shape.values += blocks * square;
      shape.start.push_back(relative((shape.values - slice_start) / square, s));
      if (halves_.active()) halves_.add(block_row, panel, row, block_row_columns_);
    }
    add_slot(bsr_, slot);
  }

  void add_sell(std::int64_t first_block_row, LocalPanel const& panel) {
    std::int64_t const rows = static_cast<std::int64_t>(panel.offset.size()) - 1;
    std::int64_t const group_rows = std::int64_t{group_block_rows} * tiling_.block;
    ColumnRange slot;
    for (std::int64_t row = 0; row < rows; row += group_rows) {
      add_group(first_block_row * tiling_.block, row, std::min(group_rows, rows - row), panel, slot);
    }
    add_slot(sell_, slot);
  }

  void add_group(std::int64_t panel_row, std::int64_t row, std::int64_t count, LocalPanel const& panel,
                 ColumnRange& slot) {
    Shape& shape = shapes_[sell_];
    std::int64_t width = 0;
    for (std::int64_t i = row; i < row + count; ++i) {
      width = std::max(width, panel.offset[i + 1] - panel.offset[i]);
    }
    SellGroup group;
    group.value = shape.values;
    group.column = static_cast<std::int64_t>(shape.diagonal.size());  // of a listed one: lay_out_groups
    group.width = static_cast<std::int32_t>(width);
    std::int64_t const slots = std::int64_t{group_block_rows} * tiling_.block;  // rows of a full group
    images_.next(panel_row + row);
    if (columns_ == Columns::auto_ && tiling_.block == 1 && width > 0) {
      // A listed entry takes 10 bytes or 12; a stored diagonal 8 and an index for all 32 lanes.
      auto const listed = width * slots * 10, each = static_cast<std::int64_t>(sizeof(Diagonal));
      panel_diagonals(panel, row, count, static_cast<std::size_t>(listed / (each + slots * 4)), diagonals_);
      std::int64_t const stored = images_.lay_out(shape, group, static_cast<int>(count), diagonals_);
      if (!diagonals_.empty() &&
          stored * slots * 8 + static_cast<std::int64_t>(diagonals_.size()) * each < listed) {
        bool const whole =
            std::all_of(diagonals_.begin(), diagonals_.end(), [](auto const& d) { return d.whole != 0; });
        group.kind = whole ? SellGroup::Kind::diagonals : SellGroup::Kind::masked;
        group.width = static_cast<std::int32_t>(diagonals_.size());
        shape.diagonal.insert(shape.diagonal.end(), diagonals_.begin(), diagonals_.end());
        shape.values += stored * slots;
        for (Diagonal const& d : diagonals_) shape.left_out += d.mirrored * __builtin_popcount(d.mask);
      }
    }
    if (group.kind == SellGroup::Kind::listed) {
      shape.values += width * slots;
      for (std::int64_t k = panel.offset[row]; k < panel.offset[row + count]; ++k) slot.add(panel.column[k]);
      for (std::int64_t i = row; i < row + count; ++i) {
        if (panel.offset[i + 1] - panel.offset[i] < width) slot.add(panel_row + i);
      }
      if (count < slots && width > 0) slot.add(panel_row + row + count - 1);  // lanes past the slice's end
    }
    shape.group.push_back(group);
  }

  /// Columns of listed groups follow each other in the slice's 16- or 32-bit array.
  void lay_out_groups(Shape& shape, int s, std::int64_t columns) {
    std::int64_t const slots = std::int64_t{group_block_rows} * tiling_.block;
    for (std::size_t g = shape.first_group[s]; g < shape.group.size(); ++g) {
      SellGroup& group = shape.group[g];
      if (group.kind != SellGroup::Kind::listed) continue;
      group.column = columns + sizes_[sell_];
      sizes_[sell_] += group.width * slots;
    }
    shape.first_group[s + 1] = static_cast<std::int64_t>(shape.group.size());
  }

  Tiling tiling_;
  std::int64_t owned_;
  GhostReader ghosts_;
  Columns columns_;
  int threads_;
  Counted counted_;
  std::vector<Shape> shapes_;
  std::size_t csr_ = no, bsr_ = no, sell_ = no;
  std::vector<ColumnRange> ranges_;  // of the slice at hand, one a shape
  std::vector<std::int64_t> sizes_;  // stored columns of the slice at hand, one a shape
  Halves halves_;
  std::vector<ColumnRange> bsr_ranges_;
  std::vector<std::int32_t> block_row_columns_;
  DiagonalImages images_;
  std::vector<Diagonal> diagonals_;
};

}  // namespace

Counted count(LocalRows const& rows, Tiling const& tiling, FormatRequest request) {
  Counter counter(rows, tiling, request);
  int slice = -1;
  auto const open_until = [&](int s) {
    while (slice < s) {
      if (slice >= 0) counter.end_slice(slice);
      if (++slice < tiling.slices) counter.begin_slice(slice);
    }
  };
  for_each_panel(rows, tiling, [&](int s, std::int64_t first_block_row, LocalPanel const& panel) {
    open_until(s);
    counter.add(s, first_block_row, panel);
  });
  open_until(tiling.slices);
  return counter.take();
}

void panel_diagonals(LocalPanel const& panel, std::int64_t row, std::int64_t count, std::size_t most,
                     std::vector<Diagonal>& out) {
  out.clear();
  for (std::int64_t lane = 0; lane < count; ++lane) {
    auto at = out.begin();
    for (std::int64_t k = panel.offset[row + lane]; k < panel.offset[row + lane + 1]; ++k) {
      auto const first = static_cast<std::int32_t>(panel.column[k] - lane);
      at = std::lower_bound(at, out.end(), first,
                            [](Diagonal const& d, std::int32_t f) { return d.first < f; });
      if (at == out.end() || at->first != first) {
        if (out.size() == most) {
          out.clear();
          return;
        }
        Diagonal added;
        added.first = first;
        at = out.insert(at, added);
      }
      at->mask |= 1u << lane;
    }
  }
}

}  // namespace hostless
