#pragma once
// Y = A B with A sparse and B dense, rows of both in contiguous blocks over ranks (Temuçin et al. 2024, section VI.D):
// what a product costs whose rows of B come from the neighbours, as whole blocks or as the rows that are needed.

#include <cstdint>
#include <vector>

#include "bench/neighbor/neighbors.hpp"
#include "hostless/base/rows.hpp"

namespace hostless::bench {

/// The rows of a matrix that a rank multiplies with: rows [piece(rank, ranks, n), piece(rank + 1, ranks, n)).
struct RowBlock {
  std::int64_t global_rows = 0, first = 0;
  RowPanel rows;
  std::int64_t count() const { return static_cast<std::int64_t>(rows.offset.size()) - 1; }
};

/// Its part of a matrix that ranks have in shares of any lengths. Collective.
RowBlock block_of_rows(Group& group, RowSource const& source);

/// Who has rows of B that a rank needs, and who needs its own. Collective.
Neighbors neighbors_of(Group& group, RowBlock const& block);

struct RowProduct : NeighborWays {
  RowBlock block;
  Neighbors mine;  ///< neighbors_of it
  std::int64_t columns = 1;
};

/// Errors  usage  those of row_product
void check_product(RowProduct const& what, int ranks);

/// Ways take turns as those of neighbor_allgather do; a call gathers and multiplies. Before and behind the timed
/// ones B has values that follow from row, column and round, and every value of Y is held against the product
/// that a rank forms by itself from these: equal bits, as both add up in the order of A's row.
///
/// Collective; the same on every rank but for `block` and `mine`.
/// Errors  usage        no columns; more ranks than rows; a way of the library without one, or with more values
///                      than it counts
///         environment  a value of Y is another one
///         peer_lost    a rank fell silent past its deadline
std::vector<NeighborTiming> row_product(Transport& transport, RowProduct const& what,
                                        Protocol const& protocol);

}  // namespace hostless::bench
