#include "bench/neighbor/row_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "bench/known.hpp"
#include "bench/neighbor/neighbor_call.hpp"
#include "hostless/exchange/patterns.hpp"
#include "hostless/machine/nodes.hpp"

namespace hostless::bench {
namespace {

std::size_t unsigned_of(std::int64_t number) { return static_cast<std::size_t>(number); }

/// The rank whose block a row is in.
int owner_of(std::int64_t row, int ranks, std::int64_t rows) {
  auto rank = static_cast<int>(static_cast<__int128>(row) * ranks / rows);
  while (piece(rank + 1, ranks, rows) <= row) ++rank;
  while (piece(rank, ranks, rows) > row) --rank;
  return rank;
}

/// A value of B: whole, so that products with whole numbers are exact.
double value_of(std::int64_t row, std::int64_t column, std::uint64_t round) {
  constexpr std::uint64_t prime = 1'000'003;
  auto const part = [](std::uint64_t number, std::uint64_t factor) {
    return number % prime * factor % prime;
  };
  return static_cast<double>(1 + (part(static_cast<std::uint64_t>(row), 1) +
                                  part(static_cast<std::uint64_t>(column), 7919) + part(round, 104729)) %
                                     prime);
}

/// The columns of a block that other ranks own, rising.
std::vector<std::int64_t> foreign_columns(RowBlock const& block) {
  std::vector<std::int64_t> columns;
  for (std::int64_t const column : block.rows.column)
    if (column < block.first || column >= block.first + block.count()) columns.push_back(column);
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

std::int64_t rows_of_sources(RowProduct const& what, int ranks) {
  std::int64_t rows = 0;
  for (int const source : what.mine.sources)
    rows += piece(source + 1, ranks, what.block.global_rows) - piece(source, ranks, what.block.global_rows);
  return rows;
}

void check_product(RowProduct const& what, int ranks) {
  if (what.columns < 1)
    throw Error(
        ErrorCode::usage,
        fmt::format("{} columns of B (there is nothing to multiply with). Use 1 or more.", what.columns));
  if (what.block.global_rows < ranks)
    throw Error(ErrorCode::usage,
                fmt::format("{} ranks for {} rows (each has at least one). Use fewer ranks.", ranks,
                            what.block.global_rows));
  bool const by_library =
      std::any_of(what.ways.begin(), what.ways.end(), [](NeighborWay const& way) { return way.by_library; });
  std::int64_t const values = (rows_of_sources(what, ranks) + what.block.count()) * what.columns;
  if (by_library && values > std::numeric_limits<int>::max())
    throw Error(ErrorCode::usage,
                fmt::format("{} values of B on a rank (MPI counts up to {}). Use fewer columns, or "
                            "leave that way out.",
                            values, std::numeric_limits<int>::max()));
}

/// What a product gathers rows of B into: [own | those of others].
class Product : public NeighborCall {
 public:
  Product(Transport& transport, RowProduct const& what, std::int64_t others)
      : NeighborCall(transport, what.mine),
        what_(&what),
        memory_(
            std::make_shared<std::vector<double>>(unsigned_of((what.block.count() + others) * what.columns))),
        y_(unsigned_of(what.block.count() * what.columns)) {}

 protected:
  RowBlock const& block() const { return what_->block; }
  std::int64_t columns() const { return what_->columns; }
  std::span<double> own() const { return std::span(*memory_).first(y_.size()); }
  std::span<double> others() const { return std::span(*memory_).subspan(y_.size()); }
  /// row_of(column): which of the rows of others that of a column is.
  template <class RowOf>
  void find_rows(RowOf const& row_of) {
    for (std::int64_t const column : block().rows.column) {
      std::int64_t const inside = column - block().first;
      bool const is_own = inside >= 0 && inside < block().count();
      at_.push_back((is_own ? inside : block().count() + row_of(column)) * columns());
    }
  }

 private:
  std::shared_ptr<void> owner() override { return memory_; }
  std::size_t block_bytes() const override { return own().size_bytes(); }
  std::size_t gathered_bytes() const override { return others().size_bytes(); }

  void compute() override {
    std::fill(y_.begin(), y_.end(), 0.0);
    double const* const b = memory_->data();
    double* y = y_.data();
    for (std::int64_t row = 0; row < block().count(); ++row, y += columns())
      for (auto k = block().rows.offset[unsigned_of(row)]; k < block().rows.offset[unsigned_of(row + 1)];
           ++k) {
        double const a = block().rows.value[unsigned_of(k)];
        double const* const from = b + at_[unsigned_of(k)];
        for (std::int64_t c = 0; c < columns(); ++c) y[c] += a * from[c];
      }
  }

  void fill(std::uint64_t number) override {
    for (std::int64_t row = 0; row < block().count(); ++row)
      for (std::int64_t c = 0; c < columns(); ++c)
        own()[unsigned_of(row * columns() + c)] = value_of(block().first + row, c, number);
    std::fill(others().begin(), others().end(), std::numeric_limits<double>::quiet_NaN());
  }
  void check(std::uint64_t number) override {
    for (std::int64_t row = 0; row < block().count(); ++row)
      for (std::int64_t c = 0; c < columns(); ++c) {
        double expected = 0;
        for (auto k = block().rows.offset[unsigned_of(row)]; k < block().rows.offset[unsigned_of(row + 1)];
             ++k)
          expected +=
              block().rows.value[unsigned_of(k)] * value_of(block().rows.column[unsigned_of(k)], c, number);
        double const found = y_[unsigned_of(row * columns() + c)];
        if (!(found == expected || (std::isnan(found) && std::isnan(expected))))  // entries that overflow
          throw wrong(fmt::format("rank {}: value ({}, {}) of the product is {} and not {}", rank(),
                                  block().first + row, c, found, expected));
      }
  }

  RowProduct const* what_;
  std::shared_ptr<std::vector<double>>
      memory_;  // MPI may still read and write it when a loss has ended the call
  std::vector<double> y_;
  std::vector<std::int64_t> at_;  // of each entry: its row of B, in memory_
};

/// Rows come as the paper has them come: the whole block of every rank that has one that is needed.
class BlockProduct final : public Product {
 public:
  BlockProduct(Transport& transport, RowProduct const& what)
      : Product(transport, what, rows_of_sources(what, transport.group().size())) {
    int const ranks = transport.group().size();
    std::vector<std::int64_t> before(unsigned_of(ranks));
    std::int64_t rows = 0;
    for (int const source : what.mine.sources) {
      std::int64_t const first = piece(source, ranks, block().global_rows);
      before[unsigned_of(source)] = rows - first;
      displacements_.push_back(rows);
      counts_.push_back(piece(source + 1, ranks, block().global_rows) - first);
      rows += counts_.back();
    }
    find_rows([&](std::int64_t column) {
      return before[unsigned_of(owner_of(column, ranks, block().global_rows))] + column;
    });
    for (auto* list : {&values_, &values_before_})
      list->reserve(counts_.size() + 1);  // MPI wants an address of a list without entries, too
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      values_.push_back(static_cast<int>(counts_[k] * columns()));
      values_before_.push_back(static_cast<int>(displacements_[k] * columns()));
    }
  }

 private:
  NeighborCollective plan(NeighborWay const& way, int ranks_per_node) override {
    Neighborhood const neighborhood(transport(), mine().sources, mine().destinations,
                                    {way.route, ranks_per_node});
    return neighborhood.allgatherv(
        std::as_bytes(own()),
        {std::as_writable_bytes(others()), counts_, displacements_, unsigned_of(columns()) * sizeof(double)});
  }
  void by_library(LibraryNeighbors& library) override {
    library.allgatherv(own(), others(), values_, values_before_);
  }

  std::vector<std::int64_t> counts_, displacements_;  // of rows
  std::vector<int> values_, values_before_;
};

/// Each rank gets the rows that it needs, and no others.
class NeededProduct final : public Product {
 public:
  NeededProduct(Transport& transport, RowProduct const& what)
      : NeededProduct(transport, what, foreign_columns(what.block)) {}

 private:
  NeededProduct(Transport& transport, RowProduct const& what, std::vector<std::int64_t> needed)
      : Product(transport, what, static_cast<std::int64_t>(needed.size())), needed_(std::move(needed)) {
    for (std::int64_t row = 0; row < block().count(); ++row) owned_.push_back(block().first + row);
    find_rows([&](std::int64_t column) {
      return std::lower_bound(needed_.begin(), needed_.end(), column) - needed_.begin();
    });
  }
  NeighborCollective plan(NeighborWay const& way, int ranks_per_node) override {
    Group& group = transport().group();
    NodeMap const nodes = find_nodes(group, ranks_per_node);
    PlanOptions options;
    options.reuse_guarantee = ReuseGuarantee::answer;
    options.apart = true;
    auto const patterns = patterns_of_ghosts(group, owned_, needed_);
    return {make_plan(way.route.value_or(automatic_route(nodes)), patterns, nodes, group.rank(), options),
            Field::apart(own().data(), others().data(), unsigned_of(columns()) * sizeof(double))};
  }
  void by_library(LibraryNeighbors&) override {}  // the library's way has whole blocks

  std::vector<std::int64_t> needed_, owned_;
};

}  // namespace

RowBlock block_of_rows(Group& group, RowSource const& source) {
  int const ranks = group.size();
  RowBlock block;
  block.global_rows = source.global_rows();
  block.first = piece(group.rank(), ranks, block.global_rows);
  std::vector<std::vector<std::int64_t>> lengths(unsigned_of(ranks)), columns(unsigned_of(ranks));
  std::vector<std::vector<double>> values(unsigned_of(ranks));
  group.together([&] {
    RowPanel panel;
    for (int to = 0; to < ranks; ++to) {
      std::int64_t const first = std::max(source.first_row(), piece(to, ranks, block.global_rows));
      std::int64_t const end = std::min(source.last_row(), piece(to + 1, ranks, block.global_rows));
      if (first >= end) continue;
      source.panel(first, end - first, panel);
      for (std::size_t k = 1; k < panel.offset.size(); ++k)
        lengths[unsigned_of(to)].push_back(panel.offset[k] - panel.offset[k - 1]);
      columns[unsigned_of(to)] = panel.column;
      values[unsigned_of(to)] = panel.value;
    }
  });
  block.rows.clear();
  for (auto const& part : group.exchange_values(lengths))  // ranks' shares follow each other
    for (std::int64_t const length : part) block.rows.offset.push_back(block.rows.offset.back() + length);
  for (auto const& part : group.exchange_values(columns))
    block.rows.column.insert(block.rows.column.end(), part.begin(), part.end());
  for (auto const& part : group.exchange_values(values))
    block.rows.value.insert(block.rows.value.end(), part.begin(), part.end());
  return block;
}

Neighbors neighbors_of(Group& group, RowBlock const& block) {
  std::vector<std::vector<char>> asked(unsigned_of(group.size()));
  Neighbors mine;
  group.together([&] {
    for (std::int64_t const column : foreign_columns(block)) {
      int const owner = owner_of(column, group.size(), block.global_rows);
      if (mine.sources.empty() || mine.sources.back() != owner) mine.sources.push_back(owner);
    }
    for (int const source : mine.sources) asked[unsigned_of(source)].push_back(1);
  });
  auto const asking = group.exchange_values(asked);
  for (int rank = 0; rank < group.size(); ++rank)
    if (!asking[unsigned_of(rank)].empty()) mine.destinations.push_back(rank);
  return mine;
}

std::vector<NeighborTiming> row_product(Transport& transport, RowProduct const& what,
                                        Protocol const& protocol) {
  Group& group = transport.group();
  group.together([&] { check_product(what, group.size()); });
  auto const make = [&](NeighborWay const& way) -> std::unique_ptr<NeighborCall> {
    if (way.needed_rows) return std::make_unique<NeededProduct>(transport, what);
    return std::make_unique<BlockProduct>(transport, what);
  };
  return time_in_turns(transport, what, make, protocol);
}

}  // namespace hostless::bench
