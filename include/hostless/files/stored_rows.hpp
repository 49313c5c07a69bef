#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "hostless/base/rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// How the values of a stored matrix are kept; always exact.
enum class StoredValue : std::uint8_t {
  one,           ///< a pattern: every value is 1 and none is stored
  single_width,  ///< every value of the whole matrix is exactly a float
  double_width,
};

/// What a file's header says of its matrix, before anything is made room for.
struct MatrixSizes {
  std::int64_t rows = 0;
  std::int64_t entries = 0;      ///< at least so many, of both triangles
  std::int64_t entry_bytes = 0;  ///< of each in StoredRows, at least
};
/// Called on all ranks once the header is known; what it throws, the same on every rank, ends the reading.
using SizesKnown = std::function<void(MatrixSizes const&)>;

/// Whether a reader may hand out a matrix with A != A'.
enum class Symmetry : std::uint8_t { required, any };

/// By how much entries of a symmetric matrix may be from their mirrors, as a share of the larger of both and of
/// sqrt|a_ii a_jj|: what assembling in another order leaves.
inline constexpr double symmetry_rounding = 1e-9;

/// Entries below the smallest normal number are compared as if they had that size: their spacing is its, and so is what
/// rounding leaves.
inline constexpr double least_mirror_size = std::numeric_limits<double>::min();

/// Why a matrix is not symmetric: entry (row, column) has no equal mirror.
struct Asymmetry {
  std::int64_t row, column;
  double value;
  bool missing;   ///< nothing is stored at (column, row); else
  double mirror;  ///< what is
  double share;   ///< how far they are apart, as symmetry_rounding has it
};
/// `entry (2, 1) is 3 but (1, 2) is 4`, counted from 1. transposed: rows are columns of what it is said of.
std::string asymmetry_text(Asymmetry const& found, bool transposed = false);

/// This rank's contiguous rows of a matrix, compressed: what a file reader holds and hands out in panels.
///
/// 32-bit columns below 2^31 rows, and floats where they are exact, so that a matrix takes less memory than
/// its text. Freed by its destructor.
///
/// Filled in two passes: `count` every entry, `start`, `put` every entry, `finish`. These are this rank's
/// own; nothing here is collective but `check_symmetry`.
class StoredRows final : public RowSource {
 public:
  /// The rows are share_first's for `rank` of `size`.
  StoredRows(std::int64_t rows, int size, int rank);

  std::int64_t global_rows() const override { return rows_; }
  std::int64_t first_row() const override { return first_; }
  std::int64_t last_row() const override { return last_; }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override;
  void pattern(std::int64_t first, std::int64_t count, RowPanel& out) const override;
  bool is_concurrent() const override { return true; }

  /// Entries of this rank; both triangles.
  std::int64_t entries() const { return offset_.back(); }
  /// Bytes that this rank holds.
  std::int64_t stored_bytes() const;

  struct Position {
    std::int64_t row, column;
  };
  /// Announces one entry of `row`.
  void count(std::int64_t row) {
    ++offset_[static_cast<std::size_t>(row - first_ + 1)];
    fingerprint_ += mixed(row);
  }
  /// Announces `entries` entries of `row`.
  void count(std::int64_t row, std::int64_t entries);
  /// Entries announced so far, before `start`.
  std::int64_t counted() const;
  /// All are announced; allocates for them.
  void start(StoredValue kind);
  /// Stores an entry. False when it was not announced: the source gave other rows the second time.
  bool put(std::int64_t row, std::int64_t column, double value) {
    std::int64_t const at = offset_[static_cast<std::size_t>(row - first_)]++;
    if (at >= offset_.back()) return false;
    store(static_cast<std::size_t>(at), column, value);
    fingerprint_ -= mixed(row);
    return true;
  }
  /// All are stored: sorts every row. False when they were not the entries that were announced.
  bool finish();
  /// Of a reader to which it was said to be symmetric: the entry furthest from its mirror, where some differ
  /// by no more than was allowed.
  std::optional<Asymmetry> const& only_rounded() const { return only_rounded_; }
  void set_only_rounded(std::optional<Asymmetry> const& furthest) { only_rounded_ = furthest; }
  /// The first place that is stored twice, once finished.
  std::optional<Position> duplicate() const;

  /// The value at a place of this rank's rows, if it is stored.
  std::optional<double> find(std::int64_t row, std::int64_t column) const;
  std::int64_t row_begin(std::int64_t row) const { return offset_[static_cast<std::size_t>(row - first_)]; }
  std::int64_t column_at(std::int64_t at) const {
    return !narrow_ ? column64_[static_cast<std::size_t>(at)] : column32_[static_cast<std::size_t>(at)];
  }
  double value_at(std::int64_t at) const {
    if (kind_ == StoredValue::double_width) return double_[static_cast<std::size_t>(at)];
    return kind_ == StoredValue::single_width ? double{float_[static_cast<std::size_t>(at)]} : 1.0;
  }

 private:
  // Sums of mixed rows tell two sets of entries apart without a second array of counts.
  static std::uint64_t mixed(std::int64_t row) {
    std::uint64_t x = static_cast<std::uint64_t>(row) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 27);
  }
  void store(std::size_t at, std::int64_t column, double value) {
    if (narrow_) {
      column32_[at] = static_cast<std::int32_t>(column);
    } else {
      column64_[at] = column;
    }
    if (kind_ == StoredValue::double_width) double_[at] = value;
    if (kind_ == StoredValue::single_width) float_[at] = static_cast<float>(value);
  }
  std::int64_t rows_, first_, last_;
  bool narrow_;
  StoredValue kind_ = StoredValue::double_width;
  std::uint64_t fingerprint_ = 0;
  std::optional<Asymmetry> only_rounded_;
  std::vector<std::int64_t> offset_;  // [rows + 1]; while rows are filled, where each one's next entry goes
  std::vector<std::int32_t> column32_;
  std::vector<std::int64_t> column64_;
  std::vector<float> float_;
  std::vector<double> double_;
};

/// What comparing every entry with its mirror has found.
struct MirrorsCompared {
  /// The lowest (row, column) further from it than allowed, above the diagonal where there is one.
  std::optional<Asymmetry> refused;
  std::optional<Asymmetry> furthest;  ///< of those that differ and are allowed to, the one furthest from it
};

/// Compares every entry with its mirror, which another rank may hold; what is not stored is zero: a zero needs
/// no mirror. tolerance: symmetry_rounding says of what; 0: equal. Collective over group; the same answer on
/// every rank. Cost  one look-up per entry above the diagonal, and where some differ or have no mirror one
/// per entry below it, in batches of bounded size
MirrorsCompared check_symmetry(Group& group, StoredRows const& rows, double tolerance);

}  // namespace hostless
