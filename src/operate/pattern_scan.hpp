#pragma once
// What the set-up of a matrix asks of rows that lie in a GPU's memory: the host learns which pattern it is,
// and never reads it.

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "hostless/base/host_device.hpp"
#include "hostless/base/rows.hpp"
#include "hostless/operate/block_statistics.hpp"
#include "hostless/operate/gpu_array.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "hostless/operate/tiling.hpp"
#include "operate/device_rows.hpp"

namespace hostless {

/// Why a row cannot be used, and the numbers that say so.
struct RowFault {
  enum class Kind : std::uint8_t {
    none,
    offsets,  ///< number, before: where the row ends and begins
    column,   ///< number: a column that the matrix does not have
    order     ///< number, before: a column and the one in front of it, which should be smaller
  };
  Kind kind = Kind::none;
  std::int64_t row = 0, number = 0, before = 0;
};

/// What is learned of a rank's rows before anybody knows who owns which.
struct ScannedRows {
  BlockStatistics statistics;
  std::vector<std::int64_t> outside;  ///< columns outside the rank's range, rising
  std::uint64_t pattern = 0;          ///< the same for the same pattern
};

/// Words of rows are added up: the sum says which pattern they have, in whatever order they come. column(k):
/// that of an entry of the row, for k in [begin, end).
template <class Column>
HOSTLESS_HOST_DEVICE std::uint64_t pattern_word(std::int64_t row, std::int64_t begin, std::int64_t end,
                                                Column const& column) {
  std::uint64_t const of_row = mixed(static_cast<std::uint64_t>(row) + 0x9e3779b97f4a7c15u);
  std::uint64_t word = of_row;
  for (std::int64_t k = begin; k < end; ++k) word += mixed(of_row + static_cast<std::uint64_t>(column(k)));
  return word;
}

/// Consecutive rows of a caller's matrix that one rank owns, and what their columns are called there.
struct CallerShare {
  GpuRows rows;
  std::int64_t first_row = 0;
  std::vector<std::int64_t>
      ghost_block_row;  ///< global numbers, rising: those below the share, then those above
  std::int64_t block_rows_below = 0;
};

/// What a layout of a share is decided from. Columns are local ones (LocalPanel) of block rows.
struct ShareCount {
  std::int64_t entries = 0;
  std::int64_t farthest = 0;              ///< block rows between a row and its columns
  std::vector<std::int32_t> width;        ///< [block_rows] blocks of each
  std::vector<std::int32_t> least, most;  ///< [groups of tile_block_rows] columns; least > most: none
  /// Distances between rows and columns, rising; more than most_diagonals: some of them.
  std::vector<std::int32_t> offset;
  GhostReads reads;  ///< by which slices
};

/// All arrays of a call lie on one GPU. Calls return when it is done with them; several threads may call.
/// Errors  environment  not enough memory there
class PatternScan {
 public:
  virtual ~PatternScan() = default;
  /// The first of the rows [first, last) that cannot be used. Reads no column outside the arrays.
  virtual RowFault find_fault(GpuRows const& rows, std::int64_t first, std::int64_t last) const = 0;
  /// Of rows without a fault. in_blocks: count blocks, too; `first` is a multiple of row_alignment then.
  /// Cost  a pass over the pattern, four more in blocks; a bit a row of the whole matrix for what is outside
  virtual ScannedRows scan(GpuRows const& rows, std::int64_t first, std::int64_t last,
                           bool in_blocks) const = 0;
  /// Cost  a pass over the pattern; 4 bytes a block row come to the host, and a bit for every slice and ghost
  ///       block row
  virtual ShareCount count(CallerShare const& share, Tiling const& tiling) const = 0;
  /// Those rows' offsets and columns for what only the host can do, in `offset` as the caller has them.
  virtual RowPanel pattern(GpuRows const& rows, std::int64_t first, std::int64_t last) const = 0;
};

/// The first group of tile_block_rows block rows of each slice, and how many there are. [slices + 1]
inline std::vector<std::int32_t> first_groups(Tiling const& tiling) {
  std::vector<std::int32_t> first{0};
  for (int s = 0; s < tiling.slices; ++s) {
    std::int64_t const block_rows = tiling.first(s + 1) - tiling.first(s);
    first.push_back(first.back() +
                    static_cast<std::int32_t>((block_rows + tile_block_rows - 1) / tile_block_rows));
  }
  return first;
}

constexpr std::int64_t words_of_bits(std::int64_t bits) { return (bits + 31) / 32; }
/// Calls use(number) for the bits that are set, rising.
template <class Use>
void for_each_bit(std::span<std::uint32_t const> words, Use const& use) {
  for (std::size_t w = 0; w < words.size(); ++w)
    for (std::uint32_t rest = words[w]; rest != 0; rest &= rest - 1)
      use(static_cast<std::int64_t>(w) * 32 + __builtin_ctz(rest));
}
/// From a bit for every slice and ghost block row, those of a slice in whole words.
inline GhostReads reads_of(std::span<std::uint32_t const> bits, int slices, std::int64_t ghost_block_rows,
                           int block) {
  GhostReads reads;
  reads.first.push_back(0);
  auto const words = static_cast<std::size_t>(words_of_bits(ghost_block_rows));
  for (int s = 0; s < slices; ++s) {
    for_each_bit(bits.subspan(static_cast<std::size_t>(s) * words, words), [&](std::int64_t block_row) {
      for (int j = 0; j < block; ++j) reads.ghost.push_back(static_cast<std::int32_t>(block_row * block + j));
    });
    reads.first.push_back(static_cast<std::int64_t>(reads.ghost.size()));
  }
  return reads;
}

}  // namespace hostless
