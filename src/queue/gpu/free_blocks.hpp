#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace hostless::gpu {

/// Blocks of powers of two of bytes, cut from pieces of memory that somebody else keeps. It never touches them.
class FreeBlocks {
 public:
  static constexpr std::size_t smallest = 512;
  /// Of the block that holds so many bytes.
  static std::size_t size_of(std::size_t bytes) { return std::bit_ceil(std::max(bytes, smallest)); }

  /// Null where none is left of this size_of(): a piece has to be added.
  std::byte* take(std::size_t size) {
    auto& same = of(size);
    if (!same.empty()) {
      std::byte* const block = same.back();
      same.pop_back();
      return block;
    }
    return left_ < size ? nullptr : cut(size);
  }
  void give(std::byte* block, std::size_t size) { of(size).push_back(block); }
  /// bytes: a multiple of smallest. What is left of the piece before it becomes blocks.
  void add(std::byte* piece, std::size_t bytes) {
    while (left_ != 0) {
      std::size_t const size = std::bit_floor(left_);
      give(rest_, size);  // which may throw
      (void)cut(size);
    }
    rest_ = piece, left_ = bytes;
  }

 private:
  std::vector<std::byte*>& of(std::size_t size) {
    return free_[static_cast<std::size_t>(std::countr_zero(size))];
  }
  std::byte* cut(std::size_t size) {
    left_ -= size;
    return std::exchange(rest_, rest_ + size);
  }

  std::byte* rest_ = nullptr;  // of the last piece
  std::size_t left_ = 0;
  std::array<std::vector<std::byte*>, 64> free_;
};

}  // namespace hostless::gpu
