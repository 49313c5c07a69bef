#pragma once
// The first look at the rows of one rank.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "hostless/base/error.hpp"
#include "hostless/base/rows.hpp"
#include "operate/pattern_scan.hpp"

namespace hostless {

/// Blocks are counted, too. Errors  bad_input  a row that cannot be used
using Look = std::function<ScannedRows()>;

/// Of rows that the host reads. in_blocks: blocks are counted; with_pattern: ScannedRows::pattern, else 0. Cost  one pass over the rows'
/// pattern, by up to `threads` threads
ScannedRows scan_rows(RowSource const& source, bool in_blocks, int threads, bool with_pattern);

/// That the arrays are such as GpuRows has them, as far as their descriptions say. Errors  usage  they are
/// not
void check_gpu_rows(GpuRows const& rows);
/// What is wrong with a row, for people.
Error error_of(RowFault const& fault, std::int64_t rows);

void keep_distinct(std::vector<std::int64_t>& numbers);

/// Different numbers, rising in the end; what is added often is kept once meanwhile too.
class Distinct {
 public:
  void add(std::int64_t number) {
    if (!numbers_.empty() && numbers_.back() == number) return;
    numbers_.push_back(number);
    if (numbers_.size() <= limit_) return;
    keep_distinct(numbers_);
    limit_ = std::max(limit_, 2 * numbers_.size());
  }
  std::vector<std::int64_t> take() {
    keep_distinct(numbers_);
    return std::move(numbers_);
  }

 private:
  std::vector<std::int64_t> numbers_;
  std::size_t limit_ = 1'000'000;
};

/// Rows that are read at a time.
constexpr std::int64_t panel_rows = 128 * row_alignment;

}  // namespace hostless
