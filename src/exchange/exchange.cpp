#include "hostless/exchange/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "exchange/field_checks.hpp"
#include "exchange/refusal.hpp"
#include "exchange/stage_walk.hpp"

namespace hostless {
namespace {

/// What the transport may write to later than the exchange lives.
struct Kept {
  std::vector<std::unique_ptr<std::byte[]>> staging;
  std::shared_ptr<void> owner;
};

/// What must be equal on all ranks, so that all refuse together.
struct Bound {
  std::uint64_t plan = 0;
  std::int64_t sums = none;
  static constexpr std::int64_t none = -1;  ///< else a Reduction
};

char const* name(Reduction reduction) { return reduction == Reduction::fast ? "fast" : "ordered"; }

void require_options(ExchangeOptions const& options) {
  require_limits(options.limits);
  if (options.sums && *options.sums != Reduction::ordered && *options.sums != Reduction::fast)
    refuse_options(fmt::format("options.sums: {} is no Reduction", static_cast<int>(*options.sums)));
  if (options.sum_width < 1 || options.sum_width > RankSums::most)
    refuse_options(fmt::format("options.sum_width: {} (1 to {} values travel together)", options.sum_width,
                               RankSums::most));
}

void require_served(Transport& transport, ExchangePlan const& plan, bool has_sums) {
  Group& group = transport.group();
  if (plan.ranks != group.size() || plan.rank != group.rank())
    throw Error(
        ErrorCode::usage,
        fmt::format("the plan is of rank {} of {}, this is rank {} of {} (the plan cannot be executed). "
                    "Pass each rank the plan that was made for it.",
                    plan.rank, plan.ranks, group.rank(), group.size()));
  Capabilities const can = transport.capabilities();
  if (can.host == Support::absent)
    throw Error(ErrorCode::usage,
                fmt::format("the {} transport carries nothing for the host. Use another.", can.transport));
  if (has_sums && can.gather == Support::absent)
    throw Error(ErrorCode::usage,
                fmt::format("the {} transport cannot gather (ordered sums need it).", can.transport));
  if (std::string const text = refusal(plan, has_sums); !text.empty())
    throw Error(
        ErrorCode::usage,
        fmt::format("rank {}: {} (the plan cannot be executed). Make the plans of all ranks anew, for "
                    "what this exchange does.",
                    plan.rank, text));
}

void require_agreement(Group& group, ExchangePlan const& plan, std::span<Field const> fields,
                       std::optional<Reduction> const& sums) {
  auto const refuse = [](int rank, std::string const& what) {
    throw Error(ErrorCode::usage, fmt::format("ranks 0 and {} {}", rank, what));
  };
  auto const all =
      group.all_gather(Bound{plan.fingerprint, sums ? static_cast<std::int64_t>(*sums) : Bound::none});
  for (int r = 1; r < group.size(); ++r)
    if (all[static_cast<std::size_t>(r)].plan != all[0].plan)
      refuse(r,
             "bind plans with different fingerprints (they do not fit together). Pass all ranks the plans of "
             "one set.");
  require_same_sizes(group, fields);
  for (int r = 1; r < group.size(); ++r) {
    std::int64_t const first = all[0].sums, other = all[static_cast<std::size_t>(r)].sums;
    if (first == other) continue;
    if (first == Bound::none || other == Bound::none)
      refuse(r, "do not both ask for sums (all take part in one). Ask on all ranks.");
    refuse(r,
           fmt::format("ask for other sums, {} and {} (all take part in one). Ask for the same on all ranks.",
                       name(static_cast<Reduction>(first)), name(static_cast<Reduction>(other))));
  }
}

}  // namespace

Exchange::Exchange(Transport& transport, ExchangePlan const& plan, std::vector<Field> const& fields,
                   ExchangeOptions const& options)
    : limits_(options.limits), moves_(plan.items_sent() + plan.items_received() > 0) {
  Group& group = transport.group();
  LoweredPlan lowered;
  auto const kept = std::make_shared<Kept>();
  group.together([&] {
    require_options(options);
    require_served(transport, plan, options.sums.has_value());
    bool const keeps = options.owner != nullptr || !transport.capabilities().late_access;
    lowered = lower_plan(plan, fields, keeps);
    kept->staging = std::move(lowered.staging);
    kept->owner = options.owner;
  });
  require_agreement(group, plan, fields, options.sums);
  Binding binding;
  binding.memory = kept;
  binding.out = lowered.out;
  binding.in = lowered.in;
  binding.gather_width = 1;
  if (options.sums) {
    // The gather is the fast way where there is no sum of the transport's own.
    bool const fast =
        *options.sums == Reduction::fast && transport.capabilities().all_reduce != Support::absent;
    sums_.emplace(group.size(), fast ? Reduction::fast : Reduction::ordered, options.sum_width);
    binding.gather_width = sums_->gather_width();
  }
  walk_ = std::make_unique<StageWalk>(std::move(lowered));
  endpoint_ = transport.bind(binding);
}

Exchange::Exchange(Transport& transport, ExchangePlan const& plan, double* vector, Reduction reduction,
                   WaitLimits limits, std::shared_ptr<void> owner)
    : Exchange(transport, plan, {Field::around(vector, sizeof(double))},
               {limits, std::move(owner), reduction}) {}

Exchange::~Exchange() = default;

void Exchange::start() {
  bool const is_over = test();
  if (lost_) return;
  if (!is_over) refuse_start();
  complete_ = false;
  silence_.begin(std::exchange(is_started_, true) ? limits_.later_s : limits_.first_s);
  walk_->start(*endpoint_);
  advance();
}

void Exchange::advance() {
  if (sums_ && sums_->under_way()) sums_->poll(*endpoint_);
  if (!complete_ && !lost_) complete_ = walk_->advance(*endpoint_);
}

bool Exchange::test() {
  advance();
  if (!complete_ && !lost_) look();
  return complete_;
}

void Exchange::look() {
  if (!silence_.look() || (!endpoint_->peer_left() && !silence_.is_too_long())) return;
  advance();  // it may have sent all before it left
  if (!complete_) leave();
}

bool Exchange::unpacked(std::vector<StageId> const& needs) const {
  return std::all_of(needs.begin(), needs.end(), [&](StageId id) { return walk_->done(id); });
}

void Exchange::refuse_sums() {
  throw Error(ErrorCode::usage,
              "a sum of an exchange that was bound without sums. Ask for them in ExchangeOptions::sums.");
}

void Exchange::begin_sum(std::span<double const> mine) {
  RankSums& sums = this->sums();
  if (lost_)
    return;  // formed without ghosts, perhaps: a rank that comes late must not find this sum complete
  sums.begin(*endpoint_, mine);
}

bool Exchange::finish_sum(std::span<double> totals) {
  RankSums& sums = this->sums();
  if (lost_) return false;
  sums.require_begun(totals.size());
  if (!wait([&] { return sums.poll(*endpoint_); })) return false;
  sums.finish(totals);
  return true;
}

void Exchange::leave() noexcept {
  lost_ = true;
  endpoint_->leave();
}

}  // namespace hostless
