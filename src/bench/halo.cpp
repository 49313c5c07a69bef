#include "bench/halo.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <span>

#include "bench/known.hpp"
#include "hostless/exchange/exchange.hpp"

namespace hostless::bench {
namespace {

/// The fields of one plan, and what is in them in each round.
class KnownItems {
 public:
  KnownItems(Halo const& what, ExchangePlan const& plan)
      : plan_(plan), homes_(homes_of_ghosts(what.patterns, plan.rank)), bytes_(what.item_bytes) {
    if (static_cast<std::int64_t>(homes_.size()) != plan.ghosts)
      throw Error(ErrorCode::usage,
                  fmt::format("a plan of {} ghosts with patterns of {} (it was made from others). Pass those "
                              "that it was made from.",
                              plan.ghosts, homes_.size()));
    auto const items = static_cast<std::size_t>(plan.owned + plan.ghosts);
    for (int field = 0; field < what.fields; ++field) memory_->emplace_back(items * bytes_);
  }
  std::shared_ptr<void> owner() const { return memory_; }
  std::vector<Field> fields() {
    std::vector<Field> all;
    for (int field = 0; field < static_cast<int>(memory_->size()); ++field)
      all.push_back(plan_.receive == 0
                        ? Field::around(item_at(field, 0).data(), bytes_)
                        : Field::apart(item_at(field, 0).data(), ghost_at(field, 0).data(), bytes_));
    return all;
  }

  void fill(int round) {
    for (int field = 0; field < static_cast<int>(memory_->size()); ++field)
      for (std::int64_t item = 0; item < plan_.owned; ++item)
        fill_known(item_at(field, item),
                   seed_of({plan_.rank, static_cast<std::int32_t>(item)}, field, round));
  }
  /// Errors  environment  a ghost has other bytes than its owner
  void check(int round) {
    for (int field = 0; field < static_cast<int>(memory_->size()); ++field)
      for (std::int64_t ghost = 0; ghost < plan_.ghosts; ++ghost) {
        GhostHome const home = homes_[static_cast<std::size_t>(ghost)];
        auto const here = ghost_at(field, ghost);
        std::size_t const at = first_unknown(here, seed_of(home, field, round));
        if (at < here.size())
          throw wrong(
              fmt::format("a ghost is not what its owner has: byte {} of ghost {} of rank {}, field "
                          "{}, is not that of item {} of rank {}",
                          at, ghost, plan_.rank, field, home.item, home.rank));
      }
  }

 private:
  // One array of a field's: [ghosts below | owned | ghosts above], or owned and then all ghosts.
  std::span<std::byte> bytes_at(int field, std::int64_t item) {
    return std::span((*memory_)[static_cast<std::size_t>(field)])
        .subspan(static_cast<std::size_t>(item) * bytes_, bytes_ * (item < plan_.owned + plan_.ghosts));
  }
  std::span<std::byte> item_at(int field, std::int64_t item) {
    return bytes_at(field, item + (plan_.receive == 0 ? plan_.ghosts_below : 0));
  }
  std::span<std::byte> ghost_at(int field, std::int64_t ghost) {
    std::int64_t const behind = plan_.owned + ghost;
    return bytes_at(field, plan_.receive == 0 ? plan_.ghosts_below + plan_.vector_offset(behind) : behind);
  }
  static std::uint64_t seed_of(GhostHome home, int field, int round) {
    auto const word = [](int number) {
      return static_cast<std::uint64_t>(static_cast<std::uint32_t>(number));
    };
    return mixed(mixed(word(home.rank) << 32 | word(home.item)) ^ (word(field) << 32 | word(round)));
  }

  ExchangePlan const& plan_;
  std::vector<GhostHome> homes_;
  std::size_t bytes_;
  std::shared_ptr<std::vector<std::vector<std::byte>>> memory_ =
      std::make_shared<std::vector<std::vector<std::byte>>>();  // a late message may come after a loss
};

void check_halo(Halo const& what, int ranks) {
  if (what.fields < 1 || what.item_bytes < 1)
    throw Error(ErrorCode::usage, fmt::format("{} fields with items of {} bytes (nothing would move). Use 1 "
                                              "or more.",
                                              what.fields, what.item_bytes));
  if (what.plan.ranks != ranks || static_cast<int>(what.patterns.size()) != ranks)
    throw Error(ErrorCode::usage, fmt::format("plans of {} ranks, with patterns of {}, among {} (each rank "
                                              "has one of each). Start as many ranks.",
                                              what.plan.ranks, what.patterns.size(), ranks));
}

// One exchange and what follows it, in rounds with bytes of their own.
template <class Step>
void prove(KnownItems& items, Step const& step) {
  for (int round = 1; round <= 4; ++round) {  // both parities of epochs, twice
    items.fill(round);
    step();
    items.check(round);
  }
}

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

HaloTiming halo(Transport& transport, Halo const& what, Protocol const& protocol) {
  Group& group = transport.group();
  ExchangePlan alone_plan = what.plan;
  std::unique_ptr<KnownItems> with_sums, alone;
  HaloTiming timing;
  timing.alone_by = what.made_with.reuse_guarantee;
  group.together([&] {
    check_halo(what, group.size());
    if (what.made_with.reuse_guarantee == ReuseGuarantee::reduction) {
      PlanOptions options = what.made_with;
      options.reuse_guarantee = timing.alone_by = ReuseGuarantee::answer;
      alone_plan = make_plan(what.plan.route, what.patterns, what.plan.nodes, group.rank(), options);
    }
    with_sums = std::make_unique<KnownItems>(what, what.plan);
    alone = std::make_unique<KnownItems>(what, alone_plan);
  });
  {
    Exchange exchange(transport, what.plan, with_sums->fields(),
                      {protocol.limits, with_sums->owner(), Reduction::ordered});
    KnownSums sums(group.rank(), group.size(), 1);
    auto const step = [&] {
      exchange_once(exchange);
      sums.step(exchange);
    };
    timing.step = time_steps(group, protocol, step);
    prove(*with_sums, step);
    timing.sum_alone = time_steps(group, protocol, [&] { sums.step(exchange); });
  }
  Exchange exchange(transport, alone_plan, alone->fields(), {protocol.limits, alone->owner(), std::nullopt});
  auto const step = [&] { exchange_once(exchange); };
  timing.alone = time_steps(group, protocol, step);
  prove(*alone, step);
  return timing;
}

}  // namespace hostless::bench
