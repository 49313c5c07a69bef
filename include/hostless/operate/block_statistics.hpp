#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "hostless/base/rows.hpp"

namespace hostless {

/// Counts from which the block size of a matrix is chosen, gathered while its rows stream by.
///
/// Plain sums: statistics of ranks are merged by adding every field (`+=`, or an all-reduce of the integers).
struct BlockStatistics {
  static constexpr std::array<int, 4> sizes = {2, 3, 4, 6};
  std::int64_t rows = 0;
  std::int64_t entries = 0;
  std::array<std::int64_t, 4> blocks =
      {};  ///< blocks[k]: aligned sizes[k] x sizes[k] blocks that hold an entry

  /// Counts the rows of `panel`, whose first row is `first_row` of the whole matrix. A block row that is cut
  /// there, or where the panel ends, counts in both panels: cut at multiples of 12 (row_alignment) inside a
  /// rank's rows. Cost  about 4 passes over the columns
  void add(RowPanel const& panel, std::int64_t first_row = 0);
  BlockStatistics& operator+=(BlockStatistics const& other);
};

/// The block size of 2, 3, 4, 6 whose storage streams the fewest bytes, or 1 when none saves at least 5 % of
/// the bytes of CSR or none divides the number of rows and `cuts`, of which every rank's first row is a
/// multiple. Equal statistics give the equal answer on every rank.
int choose_block(BlockStatistics const& statistics, std::int64_t cuts = row_alignment);
/// One line for people: the bytes of CSR and of every block size, and which won.
std::string explain_block(BlockStatistics const& statistics, std::int64_t cuts = row_alignment);
/// The block size that other cuts would have had chosen, where it saves at least 5 % of the bytes of what these
/// leave to choose from; else 0.
int cut_block(BlockStatistics const& statistics, std::int64_t cuts);

}  // namespace hostless
