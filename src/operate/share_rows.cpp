// Layouts of rows that lie in a GPU's memory: from what was counted there.
#include <algorithm>
#include <span>
#include <utility>

#include "operate/device_layout.hpp"
#include "operate/pattern_scan.hpp"

namespace hostless {
namespace {

DeviceCount count(ShareCount const& found, Tiling const& tiling) {
  DeviceCount counted;
  counted.offset = found.offset;
  counted.few_diagonals = found.offset.size() <= most_diagonals;
  counted.entries = found.entries;
  counted.farthest = found.farthest;
  count_groups(tiling, counted, [&](std::int64_t block_row, std::span<std::int32_t> width) {
    std::copy_n(found.width.begin() + block_row, width.size(), width.begin());
    return std::pair{found.least[counted.group.size()], found.most[counted.group.size()]};
  });
  return counted;
}

}  // namespace

DeviceRows make_device_rows(CallerShare share, ShareCount const& found, Tiling const& tiling,
                            DeviceRequest request) {
  DeviceCount const counted = count(found, tiling);
  bool const halves = request.halves && is_symmetric_set(counted.offset);
  DeviceRows made;
  made.tiling = tiling;
  made.ghosts_below = share.block_rows_below * tiling.block;
  made.ghosts_above =
      (static_cast<std::int64_t>(share.ghost_block_row.size()) - share.block_rows_below) * tiling.block;
  made.farthest = counted.farthest;
  made.share = std::make_shared<CallerShare const>(std::move(share));
  choose_layout(made, counted, request, halves);
  DeviceSizes const sizes = lay_out(made, counted, halves);
  made.made_there = {sizes.value, sizes.narrow, sizes.wide, is_csr(made.format) ? tiling.rows() + 1 : 0};
  return made;
}

}  // namespace hostless
