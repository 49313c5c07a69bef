#pragma once
// Who owns which rows, and how they are numbered: made once a pattern, collectively, from rows that stream
// by.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hostless/base/rows.hpp"
#include "hostless/operate/block_statistics.hpp"
#include "hostless/operate/local_rows.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/solve/matrix.hpp"
#include "hostless/transport/group.hpp"
#include "solve/matrix/row_scan.hpp"

namespace hostless {

/// Of a plan whose largest share has `block_rows`: `wanted`, or with 0 as many as are worth their sums.
int choose_slices(std::int64_t block_rows, int wanted);

/// Of the contiguous partition: above as many ghosts, as a share of a rank's own rows, METIS deals rows out.
constexpr double most_ghosts = 0.15;

/// The numbering of one rank's share: owned block rows (blocks of `block` rows) in local order, then ghost
/// block rows by (owner, its local order). Kept for as long as the pattern lives, so that new values need no
/// new plan.
class Assembly {
 public:
  /// Collective. `look` is called once; the pattern of `source` is read for a partition that is not
  /// contiguous, twice.
  Assembly(Group& group, RowSource const& source, MatrixOptions const& options, Look const& look);

  std::int64_t global_rows() const { return global_rows_; }
  std::int64_t source_first() const { return source_first_; }
  std::int64_t source_last() const { return source_last_; }
  std::int64_t owned() const { return block_rows_ * block_; }
  std::int64_t ghosts() const { return static_cast<std::int64_t>(ghost_block_row_.size()) * block_; }
  std::int64_t ghosts_below() const { return block_rows_below_ * block_; }
  /// Rows stay where they are and follow each other: ghost_block_rows() rise then.
  bool is_natural() const { return natural_; }
  std::vector<std::int64_t> const& ghost_block_rows() const { return ghost_block_row_; }
  std::int64_t block_rows_below() const { return block_rows_below_; }
  std::int64_t global_entries() const { return statistics_.entries; }
  int block() const { return block_; }
  std::string const& why_block() const { return why_block_; }
  std::string const& lost_blocks() const { return lost_blocks_; }
  std::string const& why_partition() const { return why_partition_; }
  Tiling const& tiling() const { return tiling_; }
  /// Of all ranks: what a route is made from.
  std::vector<Pattern> const& patterns() const { return patterns_; }
  /// Global row of an owned row.
  std::int64_t global_row(std::int64_t local) const {
    if (natural_) return source_first_ + local;
    return owned_block_row_[static_cast<std::size_t>(local / block_)] * block_ + local % block_;
  }

  /// Rows in local order and numbering, read from a source with the pattern this assembly was made from.
  /// Collective; refers to `source` and this object for as long as it is used.
  std::unique_ptr<LocalRows> rows_of(Group& group, RowSource const& source) const;

  /// Vectors between the source's distribution ([source_first, source_last)) and local order. Collective
  /// unless the partition is contiguous, where it is a copy.
  void to_local(Group& group, std::span<double const> source, std::span<double> local) const;
  void from_local(Group& group, std::span<double const> local, std::span<double> source) const;

 private:
  void gather_statistics(Group& group, Look const& look);
  void choose_block_row(Group& group, int wanted);
  void require_same_parts(Group& group, std::string const& path) const;
  void choose_partition(Group& group, RowSource const& source, MatrixOptions const& options);
  void partition_by_metis(Group& group, RowSource const& source, int seed);
  void number_owned(Group& group, RowSource const& source);
  void number_ghosts(Group& group, RowSource const& source);
  std::vector<std::int64_t> learn_needs(Group& group, RowSource const& source) const;
  void build_patterns(Group& group, std::vector<std::vector<std::int32_t>> const& asked);
  void choose_tiling(Group& group, MatrixOptions const& options);
  int owner_of(std::int64_t block_row) const;
  /// Local block row number (ghosts after owned) of a global block row that this rank knows, else -1.
  std::int32_t local_block_row(std::int64_t block_row) const;
  /// The local column of a global one; of one that is not in the pattern a column that there is not.
  std::int32_t local_column(std::int64_t column) const;
  template <class Visit>
  void for_each_block_row_column(RowSource const& source, Visit const& visit) const;

  friend class MigratedRows;
  friend class NaturalRows;

  int rank_ = 0, ranks_ = 1;
  std::int64_t global_rows_ = 0, source_first_ = 0, source_last_ = 0;
  int block_ = 1;
  std::int64_t block_rows_ = 0;
  std::int64_t block_rows_below_ = 0;  // ghosts of lower ranks
  bool natural_ = true;
  BlockStatistics statistics_;
  std::int64_t cuts_ = row_alignment;  // all shares start at multiples of it
  std::string why_block_, lost_blocks_, why_partition_;
  std::vector<std::int64_t>
      outside_;                      // block rows that this range reads of others, until ghosts are numbered
  std::vector<std::int64_t> range_;  // [ranks + 1] first block row of every rank's source range
  std::vector<std::int32_t> part_;   // owner of every global block row, unless natural
  std::vector<std::int64_t> owned_block_row_;  // global block row of every local block row, unless natural
  std::vector<std::int32_t> known_block_row_;  // local number of every global block row or -1, unless natural
  std::vector<std::int64_t> ghost_block_row_;  // global block row of every ghost block row, by (owner, item)
  std::vector<std::vector<std::int32_t>>
      to_owner_;  // source block rows (from source_first) that go to each rank
  std::vector<std::vector<std::int32_t>>
      arriving_;  // local block rows, in the order in which each rank sends them
  std::vector<Pattern> patterns_;
  Tiling tiling_;
};

}  // namespace hostless
