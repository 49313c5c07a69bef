#include "diagonal_images.hpp"

#include <algorithm>
#include <cstdlib>

#include "hostless/operate/storage_count.hpp"
#include "hostless/operate/tiling.hpp"

namespace hostless {

struct DiagonalImages::Group {
  Shape const& shape;
  SellGroup const& start;
  std::vector<Diagonal> const& diagonals;
  std::uint32_t lanes;
};

/// What one group of the other triangle holds of a diagonal.
struct DiagonalImages::Piece {
  bool found = false;
  bool exact = false;            // and has no other entry in these lanes
  std::int32_t value_index = 0;  // of lane 0
};

namespace {

std::uint32_t below(std::int64_t lane) { return lane >= group_block_rows ? UINT32_MAX : (1u << lane) - 1u; }

/// Bit i of the result is bit i + by of `lanes`.
std::uint32_t moved(std::uint32_t lanes, std::int64_t by) {
  return by < 0 ? lanes << -by : by < group_block_rows ? lanes >> by : 0u;
}

}  // namespace

std::int64_t DiagonalImages::lay_out(Shape const& shape, SellGroup const& start, int count,
                                     std::vector<Diagonal>& diagonals) const {
  Group const group{shape, start, diagonals, below(count)};
  std::int32_t stored = 0;
  auto const store = [&](Diagonal& d) {
    d.low = d.high = group_block_rows * stored++;
    d.whole = touches_only_what_it_may(d);
  };
  auto const upper = std::find_if(diagonals.begin(), diagonals.end(),
                                  [&](auto const& d) { return d.first >= first_row_.back(); });
  std::for_each(upper, diagonals.end(), store);  // these first: the others may be their images
  std::for_each(diagonals.begin(), upper, [&](Diagonal& d) {
    std::int32_t const column = d.first + __builtin_ctz(d.mask);  // of its first entry
    std::optional<Diagonal> found;
    if (column >= 0) {  // ghosts have no rows here
      found = image(group, d, std::max(d.first, 0));
      if (!found) found = image(group, d, column);
    }
    if (found) {
      d = *found;
    } else {
      store(d);
    }
  });
  return stored;
}

std::optional<Diagonal> DiagonalImages::image(Group const& group, Diagonal const& d,
                                              std::int64_t start) const {
  if (first_row_.back() - d.first > reach_) return std::nullopt;
  // Entry (row, column) is looked up as (column, row): the columns of the lanes are rows of other groups.
  auto const low = static_cast<std::size_t>(std::upper_bound(first_row_.begin(), first_row_.end(), start) -
                                            first_row_.begin() - 1);
  auto const lanes_before = [&](std::size_t g) {
    std::int64_t const lanes = g < first_row_.size() ? first_row_[g] - d.first : group_block_rows;
    return std::min<std::int64_t>(lanes, group_block_rows);
  };
  std::int64_t const split = lanes_before(low + 1);
  std::uint32_t const two_groups = below(lanes_before(low + 2));
  if ((d.mask & ~two_groups) != 0) return std::nullopt;
  Piece const left = piece(group, low, d, group.lanes & below(split));
  Piece const right = piece(group, low + 1, d, group.lanes & ~below(split));
  if (!left.found || !right.found) return std::nullopt;
  Diagonal found = d;
  found.low = left.value_index;
  found.high = right.value_index;
  found.split = static_cast<std::int16_t>(split);
  found.mirrored = 1;
  // Lanes whose columns lie before `start` would find values of another diagonal.
  found.whole = touches_only_what_it_may(d) && d.first == start && (group.lanes & ~two_groups) == 0 &&
                left.exact && right.exact;
  return found;
}

DiagonalImages::Piece DiagonalImages::piece(Group const& group, std::size_t from, Diagonal const& d,
                                            std::uint32_t lanes) const {
  if (lanes == 0) return Piece{true, true, 0};
  bool const own = from + 1 == first_row_.size();
  SellGroup const& start = own ? group.start : group.shape.group[from];
  std::int64_t size = own ? static_cast<std::int64_t>(group.diagonals.size()) : start.width;
  if (!own && start.kind == SellGroup::Kind::listed) size = 0;
  Diagonal const* first = group.diagonals.data();
  if (!own) first = size == 0 ? nullptr : group.shape.diagonal.data() + start.column;
  std::int64_t const column = first_row_[from] + first_row_.back() - d.first;
  Diagonal const* at =
      std::lower_bound(first, first + size, column,
                       [](Diagonal const& one, std::int64_t wanted) { return one.first < wanted; });
  Piece piece;
  piece.found = (d.mask & lanes) == 0;  // then nothing is needed of it
  if (at == first + size || at->first != column) return piece;
  std::int64_t const shift = d.first - first_row_[from];
  std::int64_t const value_index = start.value + at->low + shift - group.start.value;
  if (value_index < INT32_MIN) return piece;
  std::uint32_t const there = moved(at->mask, shift);
  piece.found = (d.mask & lanes & ~there) == 0;
  piece.exact = ((d.mask ^ there) & lanes) == 0;
  piece.value_index = static_cast<std::int32_t>(value_index);
  return piece;
}

namespace {

/// Rows of the groups in which a diagonal has entries. It has none in runs of rows, where the lattice ends along an
/// axis: those of a run that fill no group are stored all the same, on average one less than a group has.
double stored_rows(std::array<std::int64_t, 3> const& extent, Direction const& direction) {
  std::array<std::int64_t, 3> const cells = {extent[1] * extent[2], extent[2], 1};  // between neighbours
  double rows = static_cast<double>(extent[0] * cells[0]), runs = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::int64_t const run = std::abs(direction[axis]) * cells[axis];
    rows -= runs * static_cast<double>(std::max<std::int64_t>(0, run - (group_block_rows - 1)));
    runs *= static_cast<double>(extent[axis] - std::abs(direction[axis]));
  }
  return rows;
}

double entries_of(std::array<std::int64_t, 3> const& extent, Direction const& direction) {
  double entries = 1;
  for (std::size_t axis = 0; axis < 3; ++axis)
    entries *= static_cast<double>(std::max<std::int64_t>(0, extent[axis] - std::abs(direction[axis])));
  return entries;
}

/// The last one of a slice need not be full.
double groups_of(std::int64_t rows, int slices) {
  Tiling const tiling{.block_rows = rows, .slices = slices};
  std::int64_t groups = 0;
  for (int s = 0; s < slices; ++s)
    groups += (tiling.first(s + 1) - tiling.first(s) + group_block_rows - 1) / group_block_rows;
  return static_cast<double>(groups);
}

}  // namespace

double lattice_sweep_bytes(std::array<std::int64_t, 3> const& extent, std::span<Direction const> couplings,
                           double entries, int slices) {
  auto const rows = static_cast<double>(extent[0] * extent[1] * extent[2]);
  double const groups = groups_of(extent[0] * extent[1] * extent[2], slices);
  double beside = entries - rows;  // of ghosts, when those between cells are taken off
  double stored = rows, indexed = rows;
  for (Direction const& d : couplings) {
    double const inside = entries_of(extent, d);
    if (inside == 0) continue;
    beside -= inside;
    double const its = stored_rows(extent, d);
    std::int64_t const distance = (d[0] * extent[1] + d[1]) * extent[2] + d[2];
    if (distance > 0 || -distance > DiagonalImages::automatic_reach) stored += its;
    indexed += its;
  }
  beside = std::max(beside, 0.0);
  double const lanes = groups * group_block_rows / rows;  // of a row
  double const diagonals = lanes * (indexed + beside) / group_block_rows;
  return 8 * lanes * (stored + beside) + static_cast<double>(sizeof(Diagonal)) * diagonals +
         static_cast<double>(sizeof(SellGroup)) * groups;
}

}  // namespace hostless
