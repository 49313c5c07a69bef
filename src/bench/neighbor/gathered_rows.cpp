#include "bench/neighbor/gathered_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hostless/exchange/patterns.hpp"
#include "hostless/machine/nodes.hpp"

namespace hostless::bench {
int owner_of(std::int64_t row, int ranks, std::int64_t rows) {
  auto rank = static_cast<int>(static_cast<__int128>(row) * ranks / rows);
  while (piece(rank + 1, ranks, rows) <= row) ++rank;
  while (piece(rank, ranks, rows) > row) --rank;
  return rank;
}

std::vector<std::int64_t> foreign_columns(RowBlock const& block) {
  std::vector<std::int64_t> columns;
  for (std::int64_t const column : block.rows.column)
    if (column < block.first || column >= block.first + block.count()) columns.push_back(column);
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

double dense_value(std::int64_t row, std::int64_t column, std::uint64_t round) {
  constexpr std::uint64_t prime = 1'000'003;
  auto const part = [](std::uint64_t number, std::uint64_t factor) {
    return number % prime * factor % prime;
  };
  return static_cast<double>(1 + (part(static_cast<std::uint64_t>(row), 1) +
                                  part(static_cast<std::uint64_t>(column), 7919) + part(round, 104729)) %
                                     prime);
}

double product_value(RowBlock const& block, std::int64_t row, std::int64_t column, std::uint64_t round) {
  double sum = 0;
  for (auto k = block.rows.offset[unsigned_of(row)]; k < block.rows.offset[unsigned_of(row + 1)]; ++k)
    sum += block.rows.value[unsigned_of(k)] * dense_value(block.rows.column[unsigned_of(k)], column, round);
  return sum;
}

bool is_value(double found, double expected) {
  return found == expected || (std::isnan(found) && std::isnan(expected));
}

GatheredRows::GatheredRows(RowProduct const& what, int ranks, bool needed_rows)
    : what_(&what), needs_rows_(needed_rows) {
  if (!needed_rows) {
    list_blocks(ranks);
    return;
  }
  needed_ = foreign_columns(what.block);
  others_ = static_cast<std::int64_t>(needed_.size());
  find_entries([&](std::int64_t column) {
    return std::lower_bound(needed_.begin(), needed_.end(), column) - needed_.begin();
  });
}

// Rows come as the paper has them come: the whole block of every rank that has one that is needed.
void GatheredRows::list_blocks(int ranks) {
  std::int64_t const all = what_->block.global_rows;
  std::vector<std::int64_t> before(unsigned_of(ranks));
  for (int const source : what_->mine.sources) {
    std::int64_t const first = piece(source, ranks, all);
    before[unsigned_of(source)] = others_ - first;
    displacements_.push_back(others_);
    counts_.push_back(piece(source + 1, ranks, all) - first);
    others_ += counts_.back();
  }
  find_entries(
      [&](std::int64_t column) { return before[unsigned_of(owner_of(column, ranks, all))] + column; });
  for (auto* list : {&values_, &values_before_})
    list->reserve(counts_.size() + 1);  // MPI wants an address of a list without entries, too
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    values_.push_back(static_cast<int>(counts_[k] * what_->columns));
    values_before_.push_back(static_cast<int>(displacements_[k] * what_->columns));
  }
}

void GatheredRows::require_counted() const {
  std::int64_t most = own_values();
  for (std::size_t k = 0; k < counts_.size(); ++k)
    most = std::max(most, std::max(counts_[k], displacements_[k]) * what_->columns);
  if (most > std::numeric_limits<int>::max())
    throw Error(
        ErrorCode::usage,
        fmt::format("{} values of B in a rank's block, or in front of it (MPI counts up to {}). Use fewer "
                    "columns, or leave that way out.",
                    most, std::numeric_limits<int>::max()));
}

template <class RowOf>
void GatheredRows::find_entries(RowOf const& row_of) {
  RowBlock const& block = what_->block;
  for (std::int64_t const column : block.rows.column) {
    std::int64_t const inside = column - block.first;
    bool const is_own = inside >= 0 && inside < block.count();
    first_.push_back((is_own ? inside : block.count() + row_of(column)) * what_->columns);
  }
}

NeighborCollective GatheredRows::plan(Transport& transport, double* b, NeighborWay const& way,
                                      int ranks_per_node) const {
  double* const others = b + own_values();
  std::size_t const row_bytes = unsigned_of(what_->columns) * sizeof(double);
  if (!needs_rows_) {
    Neighborhood const neighborhood(transport, what_->mine.sources, what_->mine.destinations,
                                    {way.route, ranks_per_node});
    return neighborhood.allgatherv(std::as_bytes(std::span(b, unsigned_of(own_values()))),
                                   {std::as_writable_bytes(std::span(others, unsigned_of(other_values()))),
                                    counts_, displacements_, row_bytes});
  }
  Group& group = transport.group();
  NodeMap const nodes = find_nodes(group, ranks_per_node);
  PlanOptions options;
  options.reuse_guarantee = ReuseGuarantee::answer;
  options.apart = true;
  std::vector<std::int64_t> owned;
  for (std::int64_t row = 0; row < what_->block.count(); ++row) owned.push_back(what_->block.first + row);
  auto const patterns = patterns_of_ghosts(group, owned, needed_);
  return {make_plan(way.route.value_or(automatic_route(nodes)), patterns, nodes, group.rank(), options),
          Field::apart(b, others, row_bytes)};
}

}  // namespace hostless::bench
