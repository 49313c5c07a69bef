#pragma once
// What a GPU library does with a caller's rows, on the host, by the bodies of its kernels.

#include <algorithm>
#include <functional>

#include "operate/gpu/share.impl.hpp"
#include "operate/with_block.hpp"

namespace hostless::test {

class HostPatternScan : public PatternScan {
 public:
  RowFault find_fault(GpuRows const& rows, std::int64_t first, std::int64_t last) const override {
    RowFault fault;
    look(rows, [&] {
      std::int64_t const entries = std::min(rows.columns.size, rows.values.size);
      for (std::int64_t row = first; row < last && fault.kind == RowFault::Kind::none; ++row)
        fault = gpu::fault_of(gpu::numbers_of(rows), entries, row);
    });
    return fault;
  }
  ScannedRows scan(GpuRows const& rows, std::int64_t first, std::int64_t last,
                   bool in_blocks) const override {
    ScannedRows scanned;
    scanned.statistics.rows = last - first;
    look(rows, [&] {
      gpu::RowsOfCaller const a = gpu::numbers_of(rows);
      for (std::int64_t row = first; row < last; ++row)
        scanned.pattern += gpu::pattern_word(a, row, first, last,
                                             [&](std::int64_t column) { scanned.outside.push_back(column); });
      scanned.statistics.entries = a.offset.whole(last) - a.offset.whole(first);
      for (std::size_t k = 0; in_blocks && k < BlockStatistics::sizes.size(); ++k)
        with_block(BlockStatistics::sizes[k], [&](auto size) {
          for (std::int64_t row = first; row < last; row += size())
            scanned.statistics.blocks[k] += gpu::count_blocks<size()>(
                a, row, static_cast<int>(std::min<std::int64_t>(size(), last - row)));
        });
    });
    std::sort(scanned.outside.begin(), scanned.outside.end());
    scanned.outside.erase(std::unique(scanned.outside.begin(), scanned.outside.end()), scanned.outside.end());
    return scanned;
  }
  ShareCount count(CallerShare const& share, Tiling const& tiling) const override {
    ShareCount found;
    gpu::ShareView const from = view_of(share, tiling);
    std::int64_t const words = words_of_bits(from.ghosts);
    std::vector<std::uint32_t> reads(static_cast<std::size_t>(words * tiling.slices));
    auto const first_group = first_groups(tiling);
    found.least.assign(static_cast<std::size_t>(first_group.back()), INT32_MAX);
    found.most.assign(found.least.size(), INT32_MIN);
    auto const add = [&](std::int64_t block_row, auto size) {
      int const slice = tiling.slice_of(block_row);
      auto const group = static_cast<std::size_t>(first_group[static_cast<std::size_t>(slice)] +
                                                  (block_row - tiling.first(slice)) / 32);
      found.width.push_back(0);
      gpu::walk_blocks<size()>(
          from.rows, from.first_row + block_row * size(), size(), [](int, int, std::int64_t) {},
          [&](std::int64_t column) {
            auto const setting =
                static_cast<std::int32_t>(gpu::local_column_in<size()>(from, column, [&](std::int64_t ghost) {
                  reads[static_cast<std::size_t>(slice * words + ghost / 32)] |= 1u << (ghost % 32);
                }));
            ++found.width.back();
            found.least[group] = std::min(found.least[group], setting);
            found.most[group] = std::max(found.most[group], setting);
            auto const offset = static_cast<std::int32_t>(setting - block_row);
            found.farthest = std::max<std::int64_t>(found.farthest, std::abs(offset));
            auto const at = std::lower_bound(found.offset.begin(), found.offset.end(), offset);
            if (found.offset.size() <= most_diagonals && (at == found.offset.end() || *at != offset))
              found.offset.insert(at, offset);
          });
    };
    look(share.rows, [&] {
      for (std::int64_t block_row = 0; block_row < tiling.block_rows; ++block_row)
        with_block(tiling.block, [&](auto size) { add(block_row, size); });
      found.entries =
          from.rows.offset.whole(share.first_row + tiling.rows()) - from.rows.offset.whole(share.first_row);
    });
    found.reads = reads_of(reads, tiling.slices, from.ghosts, tiling.block);
    return found;
  }
  RowPanel pattern(GpuRows const& rows, std::int64_t first, std::int64_t last) const override {
    RowPanel panel;
    look(rows, [&] {
      gpu::RowsOfCaller const a = gpu::numbers_of(rows);
      for (std::int64_t row = first; row <= last; ++row) panel.offset.push_back(a.offset.whole(row));
      for (std::int64_t k = panel.offset.front(); k < panel.offset.back(); ++k)
        panel.column.push_back(a.column.whole(k));
    });
    return panel;
  }

  /// Fills the arrays of a share's layout, which then is as if the host had made it.
  void lay_out(DeviceRows& rows) const {
    rows.value.assign(static_cast<std::size_t>(rows.made_there.value), 0.0);
    rows.narrow.assign(static_cast<std::size_t>(rows.made_there.narrow), 0);
    rows.wide.assign(static_cast<std::size_t>(rows.made_there.wide), 0);
    rows.start.assign(static_cast<std::size_t>(rows.made_there.start), 0);
    gpu::LayoutArrays const to{rows.value.data(), rows.origin,       rows.narrow.data(),
                               rows.wide.data(),  rows.start.data(), rows.made_there.value};
    gpu::ShareView const from = view_of(*rows.share, rows.tiling);
    RowsView const view = rows.view();
    look(rows.share->rows, [&] {
      with_block(rows.tiling.block, [&](auto size) {
        for (std::int64_t k = 0; k < (is_csr(rows.format) ? rows.tiling.rows() : rows.tiling.block_rows);
             ++k) {
          if (is_csr(rows.format)) {
            gpu::write_row<size()>(to, from, k);
          } else {
            gpu::write_block_row<size()>(to, view, from, k);
          }
        }
      });
    });
    rows.made_there = {};
  }

 protected:
  /// Where the arrays can be read only by those who say so.
  virtual void look(GpuRows const&, std::function<void()> const& use) const { use(); }

 private:
  static gpu::ShareView view_of(CallerShare const& share, Tiling const& tiling) {
    return {gpu::numbers_of(share.rows),
            share.first_row,
            tiling.block_rows,
            share.ghost_block_row.data(),
            static_cast<std::int64_t>(share.ghost_block_row.size()),
            share.block_rows_below};
  }
};

}  // namespace hostless::test
