#include <algorithm>
#include <array>

#include "base/setup_watch.hpp"
#include "files/owners.hpp"
#include "hostless/files/stored_rows.hpp"

namespace hostless {
namespace {

struct Question {
  std::int64_t row, column;
  double value;
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
          ask(Question{row_, column, rows_.value_at(at_)});
          --most;
        }
      }
      if (at_ >= rows_.row_begin(row_ + 1)) ++row_;
    }
  }

 private:
  StoredRows const& rows_;
  bool upper_;
  std::int64_t row_, at_ = 0;
};

std::optional<Asymmetry> answer(StoredRows const& rows, Question const& q) {
  std::optional<double> const mirror = rows.find(q.column, q.row);
  if (mirror.value_or(0.0) == q.value) return std::nullopt;  // what is not stored is zero
  return Asymmetry{q.row, q.column, q.value, !mirror, mirror.value_or(0.0)};
}

void keep_lower(std::optional<Asymmetry>& kept, std::optional<Asymmetry> const& other) {
  if (!other) return;
  if (!kept || std::pair(other->row, other->column) < std::pair(kept->row, kept->column)) kept = other;
}

std::optional<Asymmetry> check_side(Group& group, StoredRows const& rows, bool upper) {
  constexpr std::int64_t batch = 16 << 10;
  files::Owners const owners(rows.global_rows(), group.size());
  std::vector<std::vector<Question>> to(static_cast<std::size_t>(group.size()));
  Walk walk(rows, upper);
  std::optional<Asymmetry> found;
  while (group.any(!walk.over())) {
    if (group.size() == 1) setup_step();  // several would have to agree to end
    for (auto& t : to) t.clear();
    walk.some(batch, [&](Question const& q) {
      int const owner = owners.of(q.column);
      if (owner == group.rank()) {
        keep_lower(found, answer(rows, q));
      } else {
        to[static_cast<std::size_t>(owner)].push_back(q);
      }
    });
    if (group.size() == 1) continue;
    for (auto const& from : group.exchange_values(to)) {
      for (Question const& q : from) keep_lower(found, answer(rows, q));
    }
  }
  struct Finding {
    bool any;
    Asymmetry what;
  };
  std::optional<Asymmetry> lowest;
  for (Finding const& f : group.all_gather(Finding{found.has_value(), found.value_or(Asymmetry{})})) {
    if (f.any) keep_lower(lowest, f.what);
  }
  return lowest;
}

}  // namespace

std::optional<Asymmetry> check_symmetry(Group& group, StoredRows const& rows) {
  std::array<std::int64_t, 2> side{};
  for (std::int64_t row = rows.first_row(); row < rows.last_row(); ++row) {
    for (std::int64_t k = rows.row_begin(row); k < rows.row_begin(row + 1); ++k) {
      if (rows.column_at(k) != row && rows.value_at(k) != 0) ++side[rows.column_at(k) > row ? 0 : 1];
    }
  }
  std::int64_t const upper = group.sum(side[0]), lower = group.sum(side[1]);
  // When every entry above the diagonal has its mirror and there are as many below, those have theirs. Zeros
  // have none to have.
  auto found = check_side(group, rows, true);
  if (!found && upper != lower) found = check_side(group, rows, false);
  return found;
}

}  // namespace hostless
