#pragma once

#include <cstdint>
#include <vector>

namespace hostless {
namespace problems {
struct Recipe;
}

/// The one way to split n things into parts: part k is [piece(k), piece(k + 1)).
constexpr std::int64_t piece(std::int64_t k, std::int64_t parts, std::int64_t n) {
  return static_cast<std::int64_t>(static_cast<__int128>(n) * k / parts);
}

/// Contiguous shares of rows start at multiples of 12, so that every block size (2, 3, 4, 6) stays whole.
constexpr std::int64_t row_alignment = 12;

/// First row of `rank`'s contiguous share of n rows; share_first(n, size, size) == n.
constexpr std::int64_t share_first(std::int64_t rows, int size, int rank) {
  if (rank >= size) return rows;
  return piece(rank, size, (rows + row_alignment - 1) / row_alignment) * row_alignment < rows
             ? piece(rank, size, (rows + row_alignment - 1) / row_alignment) * row_alignment
             : rows;
}

/// Some consecutive rows in compressed form, with global columns.
struct RowPanel {
  std::vector<std::int64_t> offset;  ///< [rows + 1], offset[0] == 0
  std::vector<std::int64_t> column;  ///< [offset.back()] global, strictly rising inside a row
  std::vector<double> value;         ///< [offset.back()]
  void clear() {
    offset.assign(1, 0);
    column.clear();
    value.clear();
  }
};

/// Rows of a square sparse matrix that one rank can produce, panel by panel and as often as asked.
///
/// The matrix is never held twice: the builder asks for small panels, once to learn the pattern and once to
/// fill the final layout. A file reader, a generator and a user's arrays all look like this.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// Rows of the whole matrix (equal to its columns), the same on every rank.
  virtual std::int64_t global_rows() const = 0;
  /// This rank produces rows [first_row, last_row); the ranges of all ranks follow each other in rank order.
  virtual std::int64_t first_row() const = 0;
  virtual std::int64_t last_row() const = 0;
  /// Replaces `out` by rows [first, first + count), which lie inside this rank's range. Same values every
  /// time.
  virtual void panel(std::int64_t first, std::int64_t count, RowPanel& out) const = 0;
  /// The offsets and columns of these rows; what it leaves in `out.value` says nothing. By default panel().
  virtual void pattern(std::int64_t first, std::int64_t count, RowPanel& out) const {
    panel(first, count, out);
  }
  /// Several threads may call panel() and pattern() at a time. By default they may not.
  virtual bool is_concurrent() const { return false; }
  /// Of generated rows that a GPU can make by itself; null: only the host can make these.
  virtual problems::Recipe const* recipe() const { return nullptr; }
};

}  // namespace hostless
