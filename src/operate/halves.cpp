#include "halves.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace hostless {
namespace {

/// With fewer blocks left out than one in ten, the work beside them costs more than the bytes saved.
constexpr std::int64_t most_per_left_out = 10;
/// For blocks of 3 the ring then has at most 1 MB.
constexpr std::int64_t automatic_near = 32768 - Tiling::accumulators;

}  // namespace

Halves::Halves(Tiling const& tiling, FormatRequest request) : tiling_(tiling), reach_(request.half_reach) {
  if (reach_ == FormatRequest::automatic) reach_ = automatic_near;
  if (active()) block_row_.reserve(static_cast<std::size_t>(tiling.block_rows) + 1);
}

void Halves::add(std::int64_t block_row, LocalPanel const& panel, std::int64_t row,
                 std::vector<std::int32_t> const& columns) {
  std::int64_t const square = std::int64_t{tiling_.block} * tiling_.block;
  block_row_blocks(panel, row, tiling_.block, columns, values_);
  auto const lower = std::lower_bound(columns.begin(), columns.end(), block_row) - columns.begin();
  auto const size = static_cast<std::int64_t>(columns.size());
  BlockRow here;
  here.upper = static_cast<std::int64_t>(upper_column_.size());
  here.candidate = static_cast<std::int64_t>(candidate_.size());
  here.lower = static_cast<std::int32_t>(lower);
  here.diagonal = lower < size && columns[lower] == block_row ? 1 : 0;
  block_row_.push_back(here);
  bool const waits =
      lower > 0 && columns.front() < 0;  // for ghosts, which come before all it could leave out
  for (std::int64_t k = lower - 1; !waits && k >= 0 && block_row - columns[k] <= reach_; --k) {
    std::int64_t const at = image(block_row, columns[k], hash(values_.data() + k * square, true));
    if (at < 0) break;
    candidate_.push_back(Candidate{columns[k], at});
  }
  std::reverse(candidate_.begin() + here.candidate, candidate_.end());
  for (std::int64_t k = lower + here.diagonal; k < size && columns[k] < tiling_.block_rows; ++k) {
    upper_column_.push_back(columns[k]);
    upper_hash_.push_back(hash(values_.data() + k * square, false));
  }
}

std::int64_t Halves::image(std::int64_t block_row, std::int32_t column, std::uint64_t transposed) const {
  auto const first = upper_column_.begin() + block_row_[column].upper,
             last = upper_column_.begin() + block_row_[column + 1].upper;
  auto const at = std::lower_bound(first, last, block_row);
  if (at == last || *at != block_row || upper_hash_[at - upper_column_.begin()] != transposed) return -1;
  return at - upper_column_.begin();
}

std::uint64_t Halves::hash(double const* block, bool transposed) const {
  std::uint64_t mixed = 0x9e3779b97f4a7c15u;
  for (int c = 0; c < tiling_.block; ++c) {
    for (int j = 0; j < tiling_.block; ++j) {
      std::uint64_t bits;
      std::memcpy(&bits, block + (transposed ? j * tiling_.block + c : c * tiling_.block + j), sizeof bits);
      mixed = (mixed ^ bits) * 0xff51afd7ed558ccdu;
      mixed ^= mixed >> 32;
    }
  }
  return mixed;
}

void Halves::apply(Shape& shape, SweepOrder const& order, std::vector<ColumnRange> const& ranges,
                   FormatRequest::Columns columns) {
  block_row_.push_back(BlockRow{static_cast<std::int64_t>(upper_column_.size()),
                                static_cast<std::int64_t>(candidate_.size()), 0, 0, 0});
  std::int64_t const left_out = choose_runs(order);
  if (left_out == 0 || left_out * most_per_left_out < shape.narrow + shape.wide) return;
  shape.left_out = left_out;
  lay_out_block_rows(shape, ranges, columns);
  lay_out_far_blocks(shape, order);
  narrow_reads(shape);
  shape.ring =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(longest_ + Tiling::accumulators)));
}

std::int64_t Halves::choose_runs(SweepOrder const& order) {
  std::vector<std::int32_t> group(static_cast<std::size_t>(tiling_.block_rows));
  std::int32_t number = 0;
  order.for_each_group([&](std::span<int const> slices) {
    for (int s : slices)
      std::fill(group.begin() + tiling_.first(s), group.begin() + tiling_.first(s + 1), number);
    ++number;
  });
  upper_once_.assign(upper_column_.size(), false);
  std::int64_t left_out = 0;
  for (std::int64_t block_row = 0; block_row < tiling_.block_rows; ++block_row) {
    BlockRow& here = block_row_[block_row];
    for (std::int64_t k = block_row_[block_row + 1].candidate - 1; k >= here.candidate; --k) {
      Candidate const& candidate = candidate_[k];
      if (group[candidate.column] != group[block_row]) break;
      upper_once_[candidate.image] = true;
      longest_ = std::max(longest_, block_row - candidate.column);
      ++here.run;
    }
    left_out += here.run;
  }
  return left_out;
}

void Halves::lay_out_block_rows(Shape& shape, std::vector<ColumnRange> const& ranges,
                                FormatRequest::Columns columns) {
  std::int64_t const square = std::int64_t{tiling_.block} * tiling_.block;
  shape.values = shape.narrow = shape.wide = 0;
  for (int s = 0; s < tiling_.slices; ++s) {
    SliceStart& slice = shape.slice[s];
    slice.value = shape.values;
    slice.wide = columns == FormatRequest::Columns::wide || !ranges[s].within(most_narrow_once);
    slice.base = ranges[s].empty() ? 0 : static_cast<std::int32_t>(ranges[s].least);
    std::int64_t& column = slice.wide ? shape.wide : shape.narrow;
    slice.column = column;
    std::uint32_t* start = shape.start.data() + tiling_.first(s) + s;
    std::uint32_t before = 0, stored = 0;
    for (std::int64_t block_row = tiling_.first(s); block_row < tiling_.first(s + 1); ++block_row, ++start) {
      BlockRow const& here = block_row_[block_row];
      std::uint32_t const all = start[1] - before;
      before = start[1];
      std::int32_t const lower = here.run > 0 ? 0 : here.lower;  // stored in the row itself
      std::int64_t const upper = block_row_[block_row + 1].upper - here.upper;
      shape.once.resize(shape.once.size() + lower + here.diagonal, false);
      for (std::int64_t k = here.upper; k < here.upper + upper; ++k) shape.once.push_back(upper_once_[k]);
      stored += all - static_cast<std::uint32_t>(here.lower - lower);
      shape.once.resize(static_cast<std::size_t>(shape.values / square + stored), false);  // ghosts
      start[1] = stored;
    }
    shape.values += stored * square;
    column += stored;
  }
}

void Halves::lay_out_far_blocks(Shape& shape, SweepOrder const& order) const {
  shape.first_slot.push_back(0);
  for (int s = 0; s < tiling_.slices; ++s) {
    std::int64_t const block_rows = tiling_.first(s + 1) - tiling_.first(s);
    shape.first_slot.push_back(shape.first_slot.back() +
                               (block_rows + Tiling::accumulators - 1) / Tiling::accumulators);
  }
  shape.far_range.resize(static_cast<std::size_t>(shape.first_slot.back()));
  shape.far_start.push_back(0);
  order.for_each_group([&](std::span<int const> slices) {
    std::size_t next_slice = 0;
    std::int64_t next = slices.empty() ? 0 : tiling_.first(slices[0]);
    auto const enter_up_to = [&](std::int64_t last) {
      while (next_slice < slices.size()) {
        for (; next < tiling_.first(slices[next_slice] + 1); ++next) {
          if (next > last) return;
          BlockRow const& block_row = block_row_[next];
          if (block_row.run == 0 || block_row.lower == block_row.run) continue;
          shape.far_block_row.push_back(static_cast<std::int32_t>(next));
          shape.far_start.push_back(shape.far_start.back() + block_row.lower - block_row.run);
        }
        if (++next_slice < slices.size()) next = tiling_.first(slices[next_slice]);
      }
    };
    for (int s : slices) {
      for (std::int64_t slot = shape.first_slot[s]; slot < shape.first_slot[s + 1]; ++slot) {
        std::int64_t const first = tiling_.first(s) + (slot - shape.first_slot[s]) * Tiling::accumulators;
        std::int64_t const last = std::min(first + Tiling::accumulators, tiling_.first(s + 1)) - 1;
        FarRange& range = shape.far_range[slot];
        range.first = static_cast<std::int32_t>(shape.far_block_row.size());
        enter_up_to(last + longest_);
        range.last = static_cast<std::int32_t>(shape.far_block_row.size());
      }
    }
  });
}

void Halves::narrow_reads(Shape& shape) const {
  std::size_t slot = 0;
  for (int s = 0; s < tiling_.slices; ++s) {
    for (std::int64_t first = tiling_.first(s); first < tiling_.first(s + 1);
         first += Tiling::accumulators, ++slot) {
      std::int64_t const last = std::min(first + Tiling::accumulators, tiling_.first(s + 1));
      bool const stores_lower =
          std::any_of(block_row_.begin() + first, block_row_.begin() + last,
                      [](BlockRow const& one) { return one.run == 0 && one.lower > 0; });
      SlotReads& reads = shape.reads[slot];
      auto const low = static_cast<std::int32_t>(first), high = static_cast<std::int32_t>(last);
      reads.first = stores_lower ? std::min(reads.first, low) : low;
      reads.last = std::max(reads.last, high);
    }
  }
}

}  // namespace hostless
