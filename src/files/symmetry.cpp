#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/setup_watch.hpp"
#include "files/owners.hpp"
#include "hostless/files/stored_rows.hpp"

namespace hostless {
namespace {

struct Question {
  std::int64_t row, column;
  double value;
  double diagonal;  // of the row
};

// Of some entries: the lowest that is refused, and of the others the one furthest from its mirror.
class Findings {
 public:
  explicit Findings(double tolerance) : tolerance_(tolerance) {}
  void take(std::optional<Asymmetry> const& other) {
    if (!other) return;
    if (!(other->share <= tolerance_)) {
      if (!refused_ || where(*other) < where(*refused_)) refused_ = other;
    } else if (!furthest_ || other->share > furthest_->share ||
               (other->share == furthest_->share && where(*other) < where(*furthest_))) {
      furthest_ = other;
    }
  }
  bool refuses() const { return refused_.has_value(); }
  bool differs() const { return furthest_.has_value(); }
  MirrorsCompared of_all(Group& group) const {
    struct Mine {
      bool refuses, differs;
      Asymmetry refused, furthest;
    };
    Findings all(tolerance_);
    for (Mine const& one :
         group.all_gather(Mine{refused_.has_value(), furthest_.has_value(), refused_.value_or(Asymmetry{}),
                               furthest_.value_or(Asymmetry{})})) {
      if (one.refuses) all.take(one.refused);
      if (one.differs) all.take(one.furthest);
    }
    return {all.refused_, all.furthest_};
  }

 private:
  static std::pair<std::int64_t, std::int64_t> where(Asymmetry const& d) { return {d.row, d.column}; }
  double tolerance_;
  std::optional<Asymmetry> refused_, furthest_;
};

// Walks over this rank's entries on one side of the diagonal, a batch at a time.
class Walk {
 public:
  Walk(StoredRows const& rows, bool upper) : rows_(rows), upper_(upper), row_(rows.first_row()) {
    if (row_ < rows_.last_row()) at_ = rows_.row_begin(row_);
  }
  bool over() const { return row_ >= rows_.last_row(); }
  // Calls ask(question) until `most` were asked or none is left.
  template <class Ask>
  void some(std::int64_t most, Ask&& ask) {
    while (!over() && most > 0) {
      for (; at_ < rows_.row_begin(row_ + 1) && most > 0; ++at_) {
        std::int64_t const column = rows_.column_at(at_);
        if (upper_ ? column > row_ : column < row_) {
          ask(Question{row_, column, rows_.value_at(at_), diagonal_of(row_)});
          --most;
        }
      }
      if (at_ >= rows_.row_begin(row_ + 1)) ++row_;
    }
  }

 private:
  double diagonal_of(std::int64_t row) {
    if (row != diagonal_row_) diagonal_ = rows_.find(row, row).value_or(0.0), diagonal_row_ = row;
    return diagonal_;
  }
  StoredRows const& rows_;
  bool upper_;
  std::int64_t row_, at_ = 0;
  std::int64_t diagonal_row_ = -1;
  double diagonal_ = 0;
};

std::optional<Asymmetry> answer(StoredRows const& rows, Question const& q) {
  std::optional<double> const stored = rows.find(q.column, q.row);
  double const mirror = stored.value_or(0.0);  // what is not stored is zero
  if (mirror == q.value) return std::nullopt;
  double const diagonals =
      std::sqrt(std::fabs(q.diagonal)) * std::sqrt(std::fabs(rows.find(q.column, q.column).value_or(0.0)));
  double const size = std::max({std::fabs(q.value), std::fabs(mirror), diagonals, least_mirror_size});
  return Asymmetry{q.row, q.column, q.value, !stored, mirror, std::fabs(q.value - mirror) / size};
}

void check_side(Group& group, StoredRows const& rows, bool upper, Findings& found) {
  constexpr std::int64_t batch = 16 << 10;
  files::Owners const owners(rows.global_rows(), group.size());
  std::vector<std::vector<Question>> to(static_cast<std::size_t>(group.size()));
  Walk walk(rows, upper);
  while (group.any(!walk.over())) {
    if (group.size() == 1) setup_step();  // several would have to agree to end
    for (auto& t : to) t.clear();
    walk.some(batch, [&](Question const& q) {
      int const owner = owners.of(q.column);
      if (owner == group.rank()) {
        found.take(answer(rows, q));
      } else {
        to[static_cast<std::size_t>(owner)].push_back(q);
      }
    });
    if (group.size() == 1) continue;
    for (auto const& from : group.exchange_values(to)) {
      for (Question const& q : from) found.take(answer(rows, q));
    }
  }
}

}  // namespace

std::string asymmetry_text(Asymmetry const& found, bool transposed) {
  std::int64_t const row = (transposed ? found.column : found.row) + 1;
  std::int64_t const column = (transposed ? found.row : found.column) + 1;
  return fmt::format("entry ({}, {}) is {} but ({}, {}) {}", row, column, found.value, column, row,
                     found.missing ? "is missing" : fmt::format("is {}", found.mirror));
}

MirrorsCompared check_symmetry(Group& group, StoredRows const& rows, double tolerance) {
  std::array<std::int64_t, 2> side{};
  for (std::int64_t row = rows.first_row(); row < rows.last_row(); ++row) {
    for (std::int64_t k = rows.row_begin(row); k < rows.row_begin(row + 1); ++k) {
      if (rows.column_at(k) != row && rows.value_at(k) != 0) ++side[rows.column_at(k) > row ? 0 : 1];
    }
  }
  std::int64_t const upper = group.sum(side[0]), lower = group.sum(side[1]);
  // When every entry above the diagonal has its mirror and there are as many below, those have theirs. Zeros
  // have none to have.
  Findings found(tolerance);
  check_side(group, rows, true, found);
  bool const is_refused = group.any(found.refuses()), differs = group.any(found.differs());
  if (!is_refused && (upper != lower || differs)) check_side(group, rows, false, found);
  return found.of_all(group);
}

}  // namespace hostless
