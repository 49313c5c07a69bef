#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hostless/base/rows.hpp"

namespace hostless::files {

/// Which rank holds a row, when rows are split by share_first.
class Owners {
 public:
  Owners(std::int64_t rows, int size) {
    for (int r = 0; r <= size; ++r) first_.push_back(share_first(rows, size, r));
  }
  int of(std::int64_t row) const {
    return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), row) - first_.begin()) - 1;
  }
  std::int64_t first(int rank) const { return first_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::int64_t> first_;  // [size + 1]
};

}  // namespace hostless::files
