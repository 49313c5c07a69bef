#include "bench/halo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>

#include "base/counted.hpp"
#include "bench/known.hpp"
#include "bench/known_items.hpp"
#include "hostless/exchange/exchange.hpp"

namespace hostless::bench {

void check_halo(Halo const& what, int ranks) {
  if (what.fields < 1 || what.item_bytes < 1)
    throw Error(ErrorCode::usage,
                fmt::format("{} with items of {} (nothing would move). Use 1 "
                            "or more.",
                            counted(what.fields, "field"), counted(what.item_bytes, "byte")));
  if (what.plan.ranks != ranks || static_cast<int>(what.patterns.size()) != ranks)
    throw Error(ErrorCode::usage, fmt::format("plans of {}, with patterns of {}, among {} (each rank "
                                              "has one of each). Start as many ranks.",
                                              counted(what.plan.ranks, "rank"), what.patterns.size(), ranks));
}

namespace {

// Every list of every pattern, in one order.
template <class Use>
void each_list(std::vector<Pattern>& patterns, Use const& use) {
  for (Pattern& pattern : patterns) {
    std::vector<std::int64_t> owned = {pattern.owned};
    use(owned);
    pattern.owned = owned.at(0);
    use(pattern.item);
    use(pattern.first);
    use(pattern.receiver);
    use(pattern.position);
  }
}

/// Barriers and maxima by sums of an exchange, whose deadlines are those of steps: a group's are those of set-up, sixty
/// times as long.
class BarrierBySums {
 public:
  BarrierBySums(Exchange& exchange, Group const& group)
      : exchange_(exchange), rank_(group.rank()), ranks_(group.size()) {}
  void barrier() {
    double const nothing[] = {0.0};
    sum(nothing);
  }
  double max(double mine) {
    double most = mine;
    for (int first = 0; first < ranks_; first += Exchange::widest_sum) {  // each rank's in a place of its own
      std::array<double, Exchange::widest_sum> values{};
      if (rank_ >= first && rank_ < first + Exchange::widest_sum)
        values[static_cast<std::size_t>(rank_ - first)] = mine;
      most = std::max(most, sum(values));
    }
    return most;
  }

 private:
  /// The largest of the totals.
  double sum(std::span<double const> values) {
    std::array<double, Exchange::widest_sum> totals{};
    auto const mine = std::span(totals).first(values.size());
    exchange_.begin_sum(values);
    if (!exchange_.finish_sum(mine)) lose("between two repeats");
    return *std::max_element(mine.begin(), mine.end());
  }
  Exchange& exchange_;
  int rank_, ranks_;
};

void exchange_once(Exchange& exchange) {
  exchange.start();
  if (!exchange.wait()) lose("in an exchange");
}

}  // namespace

std::vector<GhostHome> homes_of_ghosts(std::vector<Pattern> const& patterns, Rank rank) {
  std::vector<GhostHome> homes;
  for (std::size_t source = 0; source < patterns.size(); ++source) {
    Pattern const& pattern = patterns[source];
    for (std::size_t k = 0; k < pattern.item.size(); ++k)
      for (std::int64_t at = pattern.first[k]; at < pattern.first[k + 1]; ++at)
        if (pattern.receiver[static_cast<std::size_t>(at)] == rank)
          homes.push_back({static_cast<Rank>(source), pattern.item[k]});
  }
  auto const& position = patterns[static_cast<std::size_t>(rank)].position;
  if (position.empty()) return homes;
  std::vector<GhostHome> in_order(homes.size());
  for (std::size_t k = 0; k < homes.size(); ++k) in_order[static_cast<std::size_t>(position[k])] = homes[k];
  return in_order;
}

void share_patterns(Group& group, std::vector<Pattern>& patterns) {
  Bytes packed;
  group.together([&] {
    if (group.rank() != 0) return;
    each_list(patterns, [&](auto& list) {
      auto const length = static_cast<std::uint64_t>(list.size());
      auto const head = std::as_bytes(std::span(&length, 1)), bytes = std::as_bytes(std::span(list));
      packed.insert(packed.end(), head.begin(), head.end());
      packed.insert(packed.end(), bytes.begin(), bytes.end());
    });
  });
  packed = group.broadcast(packed, 0);
  group.together([&] {
    patterns.resize(static_cast<std::size_t>(group.size()));
    std::byte const* at = packed.data();
    each_list(patterns, [&](auto& list) {
      std::uint64_t length = 0;
      std::memcpy(&length, at, sizeof length);
      at += sizeof length;
      list.resize(length);
      if (length > 0) std::memcpy(list.data(), at, length * sizeof list[0]);
      at += length * sizeof list[0];
    });
  });
}

ExchangePlan plan_without_sums(Halo const& what, ReuseGuarantee& by) {
  by = what.made_with.reuse_guarantee;
  if (by != ReuseGuarantee::reduction) return what.plan;
  PlanOptions options = what.made_with;
  options.reuse_guarantee = by = ReuseGuarantee::answer;
  return make_plan(what.plan.route, what.patterns, what.plan.nodes, what.plan.rank, options);
}

HaloTiming halo(Transport& transport, Halo const& what, Protocol const& protocol) {
  Group& group = transport.group();
  ExchangePlan alone_plan = what.plan;
  std::unique_ptr<KnownItems> with_sums, alone;
  HaloTiming timing;
  group.together([&] {
    check_halo(what, group.size());
    alone_plan = plan_without_sums(what, timing.alone_by);
    with_sums = std::make_unique<KnownItems>(what, what.plan);
    alone = std::make_unique<KnownItems>(what, alone_plan);
  });
  Exchange summing(transport, what.plan, with_sums->fields(),
                   {protocol.limits, with_sums->owner(), Reduction::ordered});
  BarrierBySums ranks(summing, group);
  KnownSums sums(group.rank(), group.size(), 1);
  auto const both = [&] {
    exchange_once(summing);
    sums.step(summing);
  };
  timing.step = time_steps(ranks, protocol, both);
  prove(*with_sums, both);
  timing.sum_alone = time_steps(ranks, protocol, [&] { sums.step(summing); });
  Exchange exchange(transport, alone_plan, alone->fields(), {protocol.limits, alone->owner(), std::nullopt});
  auto const step = [&] { exchange_once(exchange); };
  timing.alone = time_steps(ranks, protocol, step);
  prove(*alone, step);
  return timing;
}

}  // namespace hostless::bench
