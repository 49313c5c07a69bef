#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace hostless {

/// Some consecutive owned rows of one rank in compressed form, with local columns.
struct LocalPanel {
  std::vector<std::int64_t> offset;  ///< [rows + 1], offset[0] == 0
  std::vector<std::int32_t>
      column;  ///< [offset.back()] local: [0, owned) owned, then ghosts; strictly rising in a row
  std::vector<double> value;  ///< [offset.back()]
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
  virtual std::int64_t ghosts() const = 0;
  /// Replaces `out` by rows [first_row, first_row + count), inside [0, owned()). The same values every time.
  virtual void panel(std::int64_t first_row, std::int64_t count, LocalPanel& out) const = 0;
};

/// LocalRows over arrays in memory: tests, and users whose rank-local matrix is already in local numbering.
class LocalRowArrays final : public LocalRows {
 public:
  /// all  the rows [0, owned) as one panel; all.offset has owned + 1 entries
  LocalRowArrays(std::int64_t ghosts, LocalPanel all) : ghosts_(ghosts), all_(std::move(all)) {}
  std::int64_t owned() const override { return static_cast<std::int64_t>(all_.offset.size()) - 1; }
  std::int64_t ghosts() const override { return ghosts_; }
  void panel(std::int64_t first_row, std::int64_t count, LocalPanel& out) const override;
  LocalPanel const& all() const { return all_; }

 private:
  std::int64_t ghosts_;
  LocalPanel all_;
};

}  // namespace hostless
