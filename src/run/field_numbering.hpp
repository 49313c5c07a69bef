#pragma once
// Where the entries of a vector of a context lie: numbered over all ranks, and around the owned ones of each.

#include <cstdint>
#include <span>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/group.hpp"
#include "operate/rectangular.hpp"

namespace hostless::host {

/// Numbers of a vector's entries: rank r owns [first[r], first[r + 1]).
class FieldNumbering {
 public:
  /// Collective.
  FieldNumbering(Group& group, std::int64_t owned);
  std::int64_t first() const { return first_[static_cast<std::size_t>(rank_)]; }
  std::int64_t owned() const { return first_[static_cast<std::size_t>(rank_) + 1] - first(); }
  std::int64_t count() const { return first_.back(); }
  bool owns(std::int64_t number) const { return number >= first() && number < first() + owned(); }
  int owner(std::int64_t number) const;

 private:
  int rank_;
  std::vector<std::int64_t> first_;
};

/// What one rank reads of such a vector, its ghosts around its own entries.
class LocalNumbering {
 public:
  /// read: in any order, repeated or its own too
  LocalNumbering(FieldNumbering const& all, std::vector<std::int64_t> read);
  std::span<std::int64_t const> ghosts() const { return ghosts_; }  ///< rising, hence by rank
  ColumnSpace columns() const { return {owned_, static_cast<std::int64_t>(ghosts_.size()), below_}; }
  /// Seen from the first owned entry. `number` is its own or one of `ghosts`.
  std::int32_t column(std::int64_t number) const;
  /// The plan of an exchange without sums that brings the ghosts. Collective.
  ExchangePlan plan(Group& group, Route route, NodeMap const& nodes) const;

 private:
  std::int64_t first_, owned_, below_ = 0;
  std::vector<std::int64_t> ghosts_;
};

}  // namespace hostless::host
