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

  /// Counts the rows of `panel`, whose first row is a multiple of 12 (row_alignment) of the whole matrix.
  /// Only the last panel of the matrix may end elsewhere than at a multiple of 12. Cost  about 4 passes over
  /// the columns
  void add(RowPanel const& panel);
  BlockStatistics& operator+=(BlockStatistics const& other);
};

/// The block size of 2, 3, 4, 6 whose storage streams the fewest bytes, or 1 when none saves at least 5 % of
/// the bytes of CSR or none divides the number of rows. Equal statistics give the equal answer on every rank.
int choose_block(BlockStatistics const& statistics);
/// One line for people: the bytes of CSR and of every block size, and which won.
std::string explain_block(BlockStatistics const& statistics);

}  // namespace hostless
