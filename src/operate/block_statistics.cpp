#include "hostless/operate/block_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace hostless {
namespace {

constexpr double least_gain = 0.95;  // a change of format must save at least 5 % of the bytes

/// Distinct values of column / block in rows [row, last) of the panel: a merge of rising lists.
std::int64_t blocks_of(RowPanel const& panel, std::int64_t row, std::int64_t last, int block) {
  std::int64_t at[6] = {}, end[6] = {};
  int const rows = static_cast<int>(last - row);
  for (int j = 0; j < rows; ++j) {
    at[j] = panel.offset[row + j];
    end[j] = panel.offset[row + j + 1];
  }
  for (std::int64_t found = 0;; ++found) {
    std::int64_t least = INT64_MAX;
    for (int j = 0; j < rows; ++j) {
      if (at[j] < end[j]) least = std::min(least, panel.column[at[j]]);
    }
    if (least == INT64_MAX) return found;
    std::int64_t const past = (least / block + 1) * block;
    for (int j = 0; j < rows; ++j) {
      while (at[j] < end[j] && panel.column[at[j]] < past) ++at[j];
    }
  }
}

std::int64_t csr_bytes(BlockStatistics const& s) { return s.entries * 12 + s.rows * 4; }

std::int64_t bsr_bytes(BlockStatistics const& s, std::size_t k) {
  std::int64_t const b = BlockStatistics::sizes[k];
  return s.blocks[k] * (8 * b * b + 4) + s.rows / b * 4;
}

// Less than `bytes` by enough, and the least of all sizes that the cuts allow; 1: none is.
int best_below(BlockStatistics const& s, std::int64_t bytes, std::int64_t cuts) {
  int best = 1;
  auto least = static_cast<std::int64_t>(least_gain * static_cast<double>(bytes)) + 1;
  for (std::size_t k = 0; k < BlockStatistics::sizes.size(); ++k) {
    int const size = BlockStatistics::sizes[k];
    if (s.rows % size != 0 || cuts % size != 0 || bsr_bytes(s, k) >= least) continue;
    least = bsr_bytes(s, k);
    best = size;
  }
  return best;
}

}  // namespace

void BlockStatistics::add(RowPanel const& panel, std::int64_t first_row) {
  auto const count = static_cast<std::int64_t>(panel.offset.size()) - 1;
  if (count <= 0) return;
  rows += count;
  entries += panel.offset[count];
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    for (std::int64_t row = 0, next = 0; row < count; row = next) {
      next = std::min(((first_row + row) / sizes[k] + 1) * sizes[k] - first_row, count);
      blocks[k] += blocks_of(panel, row, next, sizes[k]);
    }
  }
}

BlockStatistics& BlockStatistics::operator+=(BlockStatistics const& other) {
  rows += other.rows;
  entries += other.entries;
  for (std::size_t k = 0; k < sizes.size(); ++k) blocks[k] += other.blocks[k];
  return *this;
}

int choose_block(BlockStatistics const& statistics, std::int64_t cuts) {
  return best_below(statistics, csr_bytes(statistics), cuts);
}

int cut_block(BlockStatistics const& statistics, std::int64_t cuts) {
  int const mine = choose_block(statistics, cuts);
  auto const at = std::find(BlockStatistics::sizes.begin(), BlockStatistics::sizes.end(), mine);
  std::int64_t const bytes =
      mine == 1 ? csr_bytes(statistics)
                : bsr_bytes(statistics, static_cast<std::size_t>(at - BlockStatistics::sizes.begin()));
  int const other = best_below(statistics, bytes, row_alignment);
  return other > 1 ? other : 0;
}

std::string explain_block(BlockStatistics const& statistics, std::int64_t cuts) {
  std::string text = fmt::format("block {}: CSR {:.1f} MB", choose_block(statistics, cuts),
                                 static_cast<double>(csr_bytes(statistics)) * 1e-6);
  for (std::size_t k = 0; k < BlockStatistics::sizes.size(); ++k) {
    int const b = BlockStatistics::sizes[k];
    if (statistics.rows % b != 0) {
      text += fmt::format(", {}x{} does not divide {} rows", b, b, statistics.rows);
      continue;
    }
    if (cuts % b != 0) {
      text += fmt::format(", {}x{} is cut where ranks' rows start", b, b);
      continue;
    }
    double const slots = static_cast<double>(statistics.blocks[k]) * b * b;
    text += fmt::format(", {}x{} {:.1f} MB ({:.0f} % filled)", b, b,
                        static_cast<double>(bsr_bytes(statistics, k)) * 1e-6,
                        slots > 0 ? 100.0 * static_cast<double>(statistics.entries) / slots : 0.0);
  }
  return text;
}

}  // namespace hostless
