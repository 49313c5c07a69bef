#include "mirrors.hpp"

#include <algorithm>
#include <cstring>

namespace hostless {

Mirrors::Mirrors(Tiling const& tiling, std::int64_t window_bytes)
    : block_(tiling.block),
      leaves_(tiling.leaves),
      window_(window_bytes / (8 * tiling.block * tiling.block)) {
  if (!active()) return;
  first_upper_.reserve(static_cast<std::size_t>(leaves_) + 1);
  position_.reserve(static_cast<std::size_t>(leaves_));
  first_upper_.push_back(0);
}

Mirrors::Found Mirrors::add(std::int64_t leaf, std::int64_t stored, std::int64_t slice_first,
                            LocalPanel const& panel, std::int64_t row,
                            std::vector<std::int32_t> const& columns) {
  std::int64_t const square = std::int64_t{block_} * block_;
  leaf_blocks(panel, row, block_, columns, values_);
  auto const lower = std::lower_bound(columns.begin(), columns.end(), leaf) - columns.begin();
  std::int64_t far = lower;
  auto const found_before = static_cast<std::ptrdiff_t>(found_.size());
  while (far > 0) {
    std::int64_t const at =
        image(leaf, columns[far - 1], hash(values_.data() + (far - 1) * square, true), stored);
    if (at < 0 || at - slice_first < INT32_MIN || at - slice_first > INT32_MAX) break;
    found_.push_back(static_cast<std::int32_t>(at - slice_first));
    --far;
  }
  std::reverse(found_.begin() + found_before, found_.end());

  auto const size = static_cast<std::int64_t>(columns.size());
  std::int64_t const upper = lower + (lower < size && columns[lower] == leaf ? 1 : 0);
  position_.push_back(stored + upper - (lower - far));
  for (std::int64_t k = upper; k < size && columns[k] < leaves_; ++k) {
    upper_column_.push_back(columns[k]);
    upper_hash_.push_back(hash(values_.data() + k * square, false));
  }
  first_upper_.push_back(static_cast<std::int64_t>(upper_column_.size()));
  return Found{static_cast<std::uint32_t>(far), static_cast<std::uint32_t>(lower - far)};
}

std::int64_t Mirrors::image(std::int64_t leaf, std::int32_t column, std::uint64_t transposed,
                            std::int64_t stored) const {
  auto const first = upper_column_.begin() + first_upper_[column],
             last = upper_column_.begin() + first_upper_[column + 1];
  auto const at = std::lower_bound(first, last, leaf);
  if (at == last || *at != leaf || upper_hash_[at - upper_column_.begin()] != transposed) return -1;
  std::int64_t const position = position_[column] + (at - first);
  return stored - position <= window_ ? position : -1;
}

std::uint64_t Mirrors::hash(double const* block, bool transposed) const {
  std::uint64_t mixed = 0x9e3779b97f4a7c15u;
  for (int c = 0; c < block_; ++c) {
    for (int j = 0; j < block_; ++j) {
      std::uint64_t bits;
      std::memcpy(&bits, block + (transposed ? j * block_ + c : c * block_ + j), sizeof bits);
      mixed = (mixed ^ bits) * 0xff51afd7ed558ccdu;
      mixed ^= mixed >> 32;
    }
  }
  return mixed;
}

void Mirrors::finish(Shape& shape) {
  if (found_.empty()) {
    shape.mirrored = {};
    return;
  }
  found_.insert(found_.end(), mirror_padding, 0);
  found_.shrink_to_fit();
  shape.mirror = std::move(found_);
}

}  // namespace hostless
