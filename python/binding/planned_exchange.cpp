#include <functional>
#include <numeric>
#include <utility>

#include "base/counted.hpp"
#include "exchanges.hpp"
#include "hostless/base/error.hpp"
#include "hostless/exchange/patterns.hpp"
#include "hostless/machine/nodes.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/store.hpp"

namespace hostless::python {

void PlannedExchange::note_order() {
  order_.resize(static_cast<std::size_t>(plan_.ghosts));
  std::iota(order_.begin(), order_.end(), 0);
  if (plan_.receive == 0 && !named_.empty()) order_ = named_[static_cast<std::size_t>(ranks_->rank())];
}

// Of patterns in which ghosts are where the caller has named them.
void PlannedExchange::make(PlanWords const& words) {
  Group& group = ranks_->transport().group();
  nodes_ = find_nodes(group, words.ranks_per_node);
  options_.apart = !words.around;
  if (words.around)
    for (Pattern& pattern : patterns_) named_.push_back(std::exchange(pattern.position, {}));
  group.together([&] {
    route_ = words.route == "auto" ? automatic_route(nodes_) : route_from(words.route.c_str());
    plan_ = make_plan(route_, patterns_, nodes_, group.rank(), options_);
  });
  note_order();
}

PlannedExchange PlannedExchange::of_numbers(std::shared_ptr<Ranks> ranks, std::span<std::int64_t const> owned,
                                            std::span<std::int64_t const> ghosts, PlanWords const& words) {
  PlannedExchange made(std::move(ranks));
  Ranks::Use const use(*made.ranks_);
  made.patterns_ = patterns_of_ghosts(made.ranks_->transport().group(), owned, ghosts);
  made.make(words);
  return made;
}

PlannedExchange PlannedExchange::of_lists(std::shared_ptr<Ranks> ranks, std::int64_t owned, Items const& send,
                                          Items const& receive, PlanWords const& words) {
  PlannedExchange made(std::move(ranks));
  Ranks::Use const use(*made.ranks_);
  made.patterns_ = patterns_of_lists(made.ranks_->transport().group(), owned, send, receive);
  made.make(words);
  return made;
}

PlannedExchange PlannedExchange::of_file(std::shared_ptr<Ranks> ranks, std::string const& path) {
  PlannedExchange made(std::move(ranks));
  Ranks::Use const use(*made.ranks_);
  Group& group = made.ranks_->transport().group();
  std::size_t text_hash = 0;  // of all that is in the file: rank 0 proves it for everybody
  group.together([&] {
    PlanSet set = load_plans(path);
    if (set.plans.size() != static_cast<std::size_t>(group.size()))
      throw Error(ErrorCode::usage, path + " has the plans of " + counted(set.plans.size(), "rank") +
                                        ", and there " + (group.size() == 1 ? "is " : "are ") +
                                        std::to_string(group.size()) + " (each has one). Use as many ranks.");
    if (group.rank() == 0) {
      std::vector<std::string> const complaints = check(set.plans, set.patterns);
      if (!complaints.empty())
        throw Error(ErrorCode::bad_input, path + ": " + complaints.front() +
                                              " (a plan is proven before it is used). Make it anew.");
    }
    text_hash = std::hash<std::string>{}(write_plans(set));
    made.plan_ = set.plans[static_cast<std::size_t>(group.rank())];
    made.patterns_ = std::move(set.patterns);
    made.options_ = set.options;
    made.nodes_ = made.plan_.nodes;
    made.route_ = made.plan_.route;
    made.named_ = std::move(set.named);
  });
  auto const all = group.all_gather(text_hash);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw Error(ErrorCode::usage, "ranks 0 and " + std::to_string(rank) + " have read other plans from " +
                                        path + " (all make one exchange). Give all the same file.");
  made.note_order();
  return made;
}

void PlannedExchange::save(std::string const& path) const {
  Ranks::Use const use(*ranks_);
  Group& group = ranks_->transport().group();
  group.together([&] {
    if (group.rank() != 0) return;
    save_plans(path, {options_, patterns_, make_plans(route_, patterns_, nodes_, options_), named_});
  });
}

ReversePlan PlannedExchange::reverse() const {
  return make_reverse_plan(route_, patterns_, nodes_, ranks_->rank());
}

}  // namespace hostless::python
