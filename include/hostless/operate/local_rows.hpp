#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace hostless {

/// Some consecutive owned rows of one rank in compressed form, with local columns.
///
/// A local column says where x[column] lies, seen from the first owned entry. Owned rows are 0 ..
/// owned - 1; ghosts of lower ranks lie directly before them, ghosts of higher ranks directly behind. So the
/// columns of a contiguous share rise as the global ones do, and their distances to the row are the natural
/// ones, whatever the number of ranks.
struct LocalPanel {
  std::vector<std::int64_t> offset;  ///< [rows + 1], offset[0] == 0
  std::vector<std::int32_t> column;  ///< [offset.back()] local columns in [-ghosts_below, owned +
                                     ///< ghosts_above), strictly rising in a row
  std::vector<double> value;         ///< [offset.back()]
  void clear() {
    offset.assign(1, 0);
    column.clear();
    value.clear();
  }
};

/// The rows of one rank in local order, panel by panel and as often as asked: what a LocalMatrix is built
/// from.
///
/// The storage is filled directly from small panels, so the matrix is never held twice.
class LocalRows {
 public:
  virtual ~LocalRows() = default;
  virtual std::int64_t owned() const = 0;
  /// Of lower and higher ranks together.
  virtual std::int64_t ghosts() const = 0;
  /// Of lower ranks: the first ones, by index, and those at negative local columns.
  virtual std::int64_t ghosts_below() const { return 0; }
  /// Replaces `out` by rows [first_row, first_row + count), inside [0, owned()). The same values every time.
  virtual void panel(std::int64_t first_row, std::int64_t count, LocalPanel& out) const = 0;
  /// Several threads may call panel() at a time. By default they may not.
  virtual bool is_concurrent() const { return false; }
};

/// LocalRows over arrays in memory: tests, and users whose rank-local matrix is already in local numbering.
class LocalRowArrays final : public LocalRows {
 public:
  /// ghosts  those at negative local columns among them
  /// all     the rows [0, owned) as one panel; all.offset has owned + 1 entries
  /// below   ghosts at negative local columns, at most `ghosts`
  LocalRowArrays(std::int64_t ghosts, LocalPanel all, std::int64_t below = 0)
      : ghosts_(ghosts), below_(below), all_(std::move(all)) {}
  std::int64_t owned() const override { return static_cast<std::int64_t>(all_.offset.size()) - 1; }
  std::int64_t ghosts() const override { return ghosts_; }
  std::int64_t ghosts_below() const override { return below_; }
  void panel(std::int64_t first_row, std::int64_t count, LocalPanel& out) const override;
  bool is_concurrent() const override { return true; }
  LocalPanel const& all() const { return all_; }

 private:
  std::int64_t ghosts_, below_;
  LocalPanel all_;
};

}  // namespace hostless
