#pragma once
// Rows of a dense matrix that a product gathers, in memory of the host or of a GPU: which come, where they lie, and
// what is in them.

#include <cstdint>
#include <vector>

#include "bench/neighbor/row_products.hpp"
#include "hostless/exchange/neighborhood.hpp"

namespace hostless::bench {

/// The rank whose block a row is in.
int owner_of(std::int64_t row, int ranks, std::int64_t rows);
/// Of a count or a place, never below 0.
inline std::size_t unsigned_of(std::int64_t number) { return static_cast<std::size_t>(number); }

/// The columns of a block that other ranks own, rising.
std::vector<std::int64_t> foreign_columns(RowBlock const& block);

/// A value of B in a round: whole, so that products with whole numbers are exact. And what Y has in row `row` of a
/// block (counted from its first), which adds up in the order of A's row.
double dense_value(std::int64_t row, std::int64_t column, std::uint64_t round);
double product_value(RowBlock const& block, std::int64_t row, std::int64_t column, std::uint64_t round);
/// Sums that overflow on both sides are equal.
bool is_value(double found, double expected);

/// Of one rank: B lies as [own rows | rows of others], these as whole blocks of those ranks that have one which is
/// needed, or as the rows that are needed.
class GatheredRows {
 public:
  /// what  outlives it
  GatheredRows(RowProduct const& what, int ranks, bool needed_rows);
  std::int64_t own_values() const { return what_->block.count() * what_->columns; }
  std::int64_t other_values() const { return others_ * what_->columns; }
  /// [entries of A] where the row of B that an entry takes begins, in values.
  std::vector<std::int64_t> const& first_of_entry() const { return first_; }
  /// Of blocks: how many rows come of the k-th source, and how many before them.
  std::int64_t rows_of(std::size_t k) const { return counts_[k]; }
  std::int64_t rows_before(std::size_t k) const { return displacements_[k]; }
  /// Of blocks. Errors  usage  one of them has more values, or more in front of it, than MPI counts
  void require_counted() const;
  /// [sources] as values, where that says nothing.
  std::vector<int> const& counts() const { return values_; }
  std::vector<int> const& displacements() const { return values_before_; }
  /// b  [own | others]. Collective. Errors: those of Neighborhood, or of plans
  NeighborCollective plan(Transport& transport, double* b, NeighborWay const& way, int ranks_per_node) const;

 private:
  void list_blocks(int ranks);
  template <class RowOf>
  void find_entries(RowOf const& row_of);

  RowProduct const* what_;
  bool needs_rows_;
  std::int64_t others_ = 0;
  std::vector<std::int64_t> counts_, displacements_;  // of blocks, in rows
  std::vector<int> values_, values_before_;
  std::vector<std::int64_t> needed_, first_;
};

}  // namespace hostless::bench
