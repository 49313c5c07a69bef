#include "run/field_numbering.hpp"

#include <algorithm>
#include <numeric>

#include "hostless/exchange/patterns.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless::host {

FieldNumbering::FieldNumbering(Group& group, std::int64_t owned) : rank_(group.rank()), first_{0} {
  for (std::int64_t const one : group.all_gather(owned)) first_.push_back(first_.back() + one);
}

int FieldNumbering::owner(std::int64_t number) const {
  auto const after = std::upper_bound(first_.begin(), first_.end(), number);
  return static_cast<int>(after - first_.begin()) - 1;
}

LocalNumbering::LocalNumbering(FieldNumbering const& all, std::vector<std::int64_t> read)
    : first_(all.first()), owned_(all.owned()), ghosts_(std::move(read)) {
  std::erase_if(ghosts_, [&](std::int64_t number) { return all.owns(number); });
  std::sort(ghosts_.begin(), ghosts_.end());
  ghosts_.erase(std::unique(ghosts_.begin(), ghosts_.end()), ghosts_.end());
  below_ = std::lower_bound(ghosts_.begin(), ghosts_.end(), first_) - ghosts_.begin();
}

std::int32_t LocalNumbering::column(std::int64_t number) const {
  std::int64_t const own = number - first_;
  if (own >= 0 && own < owned_) return static_cast<std::int32_t>(own);
  auto const at = std::lower_bound(ghosts_.begin(), ghosts_.end(), number) - ghosts_.begin();
  return static_cast<std::int32_t>(vector_offset_of(owned_ + at, owned_, below_));
}

ExchangePlan LocalNumbering::plan(Group& group, Route route, NodeMap const& nodes) const {
  std::vector<std::int64_t> mine(static_cast<std::size_t>(owned_));
  std::iota(mine.begin(), mine.end(), first_);
  std::vector<Pattern> patterns = patterns_of_ghosts(group, mine, ghosts_);
  ExchangePlan plan;
  group.together([&] {
    for (Pattern& pattern : patterns) pattern.position.clear();  // ghosts rise by rank and item as it is
    PlanOptions options;
    options.reuse_guarantee = ReuseGuarantee::answer;
    plan = make_plan(route, patterns, nodes, group.rank(), options);
  });
  return plan;
}

}  // namespace hostless::host
