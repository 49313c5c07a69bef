#include "operate/device_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

std::int64_t whole_tiles(std::int64_t block_rows) {
  return (block_rows + tile_block_rows - 1) / tile_block_rows;
}

/// Block rows that lie in memory: those of the matrix, and as far as diagonals and idle lanes reach.
struct DiagonalReach {
  std::int64_t before = 0, after = 0;
  explicit DiagonalReach(std::vector<std::int32_t> const& offset) {
    if (!offset.empty()) before = whole_tiles(std::max(0, -offset.front())) * tile_block_rows;
    after = block_rows_past + (offset.empty() ? 0 : std::max(0, offset.back()));
  }
  std::int64_t with(std::int64_t block_rows) const {
    return before + whole_tiles(block_rows + after) * tile_block_rows;
  }
};

struct DeviceBytes {
  std::optional<std::int64_t> diagonals;
  std::int64_t sell = 0, csr = 0;
};
DeviceBytes bytes_of(DeviceCount const& counted, Tiling const& t, bool halves) {
  std::int64_t const square = std::int64_t{t.block} * t.block;
  DeviceBytes bytes;
  if (counted.few_diagonals) {
    auto stored = static_cast<std::int64_t>(counted.offset.size());
    if (halves && is_symmetric_set(counted.offset)) stored = stored / 2 + 1;
    bytes.diagonals = t.block_rows * stored * square * 8;
  }
  bytes.sell =
      counted.blocks * square * 8 + counted.narrow * 2 + counted.wide * 4 +
      static_cast<std::int64_t>(counted.group.size() * sizeof(DeviceGroup) + counted.mask.size() * 4);
  bytes.csr = counted.entries * 12 + (t.rows() + 1) * 8;
  return bytes;
}

// Measured on an H200: rows on diagonals run as their bytes promise, 1.9 to 2.1 times as fast as sliced ELL.
// Blocks on diagonals (hex8 elasticity) do not: the other triangle lies a plane of the grid away, out of the
// cache, so it is read twice, and unaligned: 1.05 times slower than sliced ELL at half the bytes.
DeviceFormat choose(DeviceBytes const& bytes, int block) {
  if (block == 1 && bytes.diagonals && *bytes.diagonals <= bytes.sell) return DeviceFormat::diagonals;
  return DeviceFormat::sell;  // about CSR's bytes at worst, and loads side by side
}

std::int64_t lay_out_diagonals(DeviceRows& to, DeviceCount const& counted, bool halves) {
  DiagonalsView& d = to.diagonals;
  int const square = to.tiling.block * to.tiling.block;
  d = DiagonalsView{};
  d.count = static_cast<int>(counted.offset.size());
  d.mirrored = halves ? d.count / 2 : 0;
  for (int k = 0; k < d.count; ++k) {
    d.offset[k] = counted.offset[k];
    int const stored = k < d.mirrored ? d.count - 1 - k : k;
    d.plane[k] = (stored - d.mirrored) * square;
  }
  d.planes = (d.count - d.mirrored) * square;
  DiagonalReach const reach(counted.offset);
  d.stride = reach.with(to.tiling.block_rows);
  to.origin = to.tiling.block == 1 ? reach.before : reach.before * d.planes;
  return d.stride * d.planes;
}

}  // namespace

void DeviceCount::lay_out_group(int block, std::span<std::int32_t const> width, std::int32_t least,
                                std::int32_t most) {
  DeviceGroup& last = group.back();
  auto const [shortest, longest] = std::minmax_element(width.begin(), width.end());
  last.head = *shortest;
  last.width = *longest;
  last.mask = static_cast<std::int32_t>(mask.size());
  std::int64_t stored = std::int64_t{last.head} * tile_block_rows;
  for (int k = last.head; k < last.width; ++k) {
    std::uint32_t here = 0;
    for (std::size_t lane = 0; lane < width.size(); ++lane)
      if (k < width[lane]) here |= 1u << lane;
    mask.push_back(here);
    stored += __builtin_popcount(here);
  }
  last.value = blocks * block * block;
  last.wide = last.width > 0 && std::int64_t{most} - least > UINT16_MAX ? 1 : 0;
  last.base = last.wide != 0 || last.width == 0 ? 0 : least;
  std::int64_t& columns = last.wide != 0 ? wide : narrow;
  last.column = columns;
  columns += stored;
  blocks += stored;
}

void DeviceCount::add_offset(std::int32_t to) {
  if (!few_diagonals) return;
  auto const at = std::lower_bound(offset.begin(), offset.end(), to);
  if (at != offset.end() && *at == to) return;
  offset.insert(at, to);
  few_diagonals = offset.size() <= most_diagonals;
}

void DeviceCount::append(DeviceCount const& next, int block) {
  for (std::int32_t const to : next.offset) add_offset(to);
  few_diagonals = few_diagonals && next.few_diagonals;
  auto const groups = static_cast<std::int32_t>(group.size());
  auto const masks = static_cast<std::int32_t>(mask.size());
  for (DeviceGroup one : next.group) {
    one.value += blocks * block * block;
    one.column += one.wide != 0 ? wide : narrow;
    one.mask += masks;
    group.push_back(one);
  }
  mask.insert(mask.end(), next.mask.begin(), next.mask.end());
  for (std::size_t s = 1; s < next.first_group.size(); ++s) {
    first_group.push_back(groups + next.first_group[s]);
    first_entry.push_back(entries + next.first_entry[s]);
  }
  blocks += next.blocks;
  narrow += next.narrow;
  wide += next.wide;
  entries += next.entries;
  farthest = std::max(farthest, next.farthest);
}

bool is_symmetric_set(std::vector<std::int32_t> const& offset) {
  for (std::size_t k = 0; k < offset.size(); ++k)
    if (offset[k] != -offset[offset.size() - 1 - k]) return false;
  return offset.size() % 2 == 1;
}

void choose_layout(DeviceRows& made, DeviceCount const& counted, DeviceRequest request, bool halves) {
  int const threads_per_row = made.tiling.threads_per_row;
  if (threads_per_row > 1) {
    if (!request.automatic && request.format != DeviceFormat::csr) {
      throw Error(
          ErrorCode::usage,
          fmt::format(
              "GPU format {} with {} row lanes is refused (it adds a row in one chain). Use auto or csr.",
              name(request.format), threads_per_row));
    }
    request = {false, DeviceFormat::csr, true};
  }
  DeviceBytes const bytes = bytes_of(counted, made.tiling, halves);
  made.format = request.automatic ? choose(bytes, made.tiling.block) : request.format;
  if (made.format == DeviceFormat::diagonals && !bytes.diagonals) {
    throw Error(
        ErrorCode::usage,
        fmt::format("the matrix does not fit format diagonals (it has more than {} of them). Use sell.",
                    most_diagonals));
  }
  made.why = fmt::format(
      "{} ({}sell {:.3f} MB a sweep, csr {:.3f} MB)", name(made.format),
      bytes.diagonals ? fmt::format("diagonals {:.3f} MB, ", static_cast<double>(*bytes.diagonals) * 1e-6)
                      : std::string(),
      static_cast<double>(bytes.sell) * 1e-6, static_cast<double>(bytes.csr) * 1e-6);
}

DeviceSizes lay_out(DeviceRows& made, DeviceCount const& counted, bool halves) {
  switch (made.format) {
    case DeviceFormat::diagonals:
      return {lay_out_diagonals(made, counted, halves), 0, 0};
    case DeviceFormat::sell:
      made.first_group = counted.first_group;
      made.group = counted.group;
      made.mask = counted.mask;
      return {counted.blocks * made.tiling.block * made.tiling.block, counted.narrow, counted.wide};
    case DeviceFormat::csr:
    case DeviceFormat::merge:
    case DeviceFormat::vendor:
      break;
  }
  return {counted.entries, 0, counted.entries};
}

}  // namespace hostless
