#include "exchange/peer_copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "exchange/origins.hpp"
#include "exchange/refusal.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/shape.hpp"
#include "plan/index.hpp"

namespace hostless {
namespace {

/// What the source of a message tells its target.
struct Notice {
  std::int64_t items = 0;
  MessageId id = 0;
  std::int32_t round = 0;
};

/// What the target of a message tells its source: where one item of it goes.
struct Destination {
  MessageId id = 0;
  std::int32_t item = 0, to = 0, to_staging = 0;
};

class Composer {
 public:
  Composer(ExchangePlan const& plan, Group& group, bool ghosts_apart)
      : plan_(plan), group_(group), ghosts_apart_(ghosts_apart) {}

  PeerCopies run() {
    group_.together([&] { trace(); });
    same_set();
    find_rounds();
    group_.together([&] {
      require_order();
      number_staging();
    });
    copy_inside();
    copy_outside();
    std::size_t const rounds = std::max(group_.max(copies_.rounds.size()), std::size_t{1});
    copies_.rounds.resize(rounds);
    auto const key = [](PeerCopy const& c) { return std::tuple(c.from_staging, c.from, c.target, c.to); };
    for (auto& round : copies_.rounds)
      std::sort(round.begin(), round.end(),
                [&](PeerCopy const& a, PeerCopy const& b) { return key(a) < key(b); });
    return std::move(copies_);
  }

 private:
  [[noreturn]] void refuse(std::string const& what) const {
    throw Error(
        ErrorCode::usage,
        fmt::format("rank {}: {} (the plan cannot be executed by stores). Make the plans of all ranks anew",
                    plan_.rank, what));
  }

  void trace() {
    if (plan_.ranks != group_.size() || plan_.rank != group_.rank())
      refuse(fmt::format("the plan is of rank {} of {}, this is rank {} of {}", plan_.rank, plan_.ranks,
                         group_.rank(), group_.size()));
    if (plan_.ranks > std::numeric_limits<std::int16_t>::max())
      refuse(fmt::format("{} ranks are too many for its copies", plan_.ranks));
    if (std::string const text = flaw(plan_); !text.empty()) refuse(text);
    if (std::string const text = unserved_field(plan_); !text.empty()) refuse(text);
    if (plan_.receive != 0 && !ghosts_apart_)
      refuse("receive: 1, but these stores go to one array with the ghosts around the owned items");
    found_ = origins_of(plan_);
    for (std::size_t a = 0; a < found_.arrivals.size(); ++a)
      if (!arrival_.emplace(found_.arrivals[a].message->id, a).second)
        refuse(fmt::format("message {} is received twice", found_.arrivals[a].message->id));
    for (std::size_t d = 0; d < found_.departures.size(); ++d)
      if (!departure_.emplace(found_.departures[d].message->id, d).second)
        refuse(fmt::format("message {} is sent twice", found_.departures[d].message->id));
    round_of_stage_.assign(plan_.stages.size(), 0);
    round_of_arrival_.assign(found_.arrivals.size(), 0);
  }

  /// Every rank sees all fingerprints, so all refuse together.
  void same_set() {
    auto const prints = group_.all_gather(plan_.fingerprint);
    for (std::size_t r = 1; r < prints.size(); ++r)
      if (prints[r] != prints[0])
        throw Error(ErrorCode::usage,
                    fmt::format("the plans of ranks 0 and {} have different fingerprints (they do not fit "
                                "together). Pass all ranks the plans of one set",
                                r));
  }

  /// Rounds rise until nobody knows better: no path over all ranks is longer than all their stages.
  void find_rounds() {
    auto const most = group_.sum(static_cast<std::int64_t>(plan_.stages.size()));
    bool rising = true;
    for (std::int64_t turn = 0; rising; ++turn) {
      if (turn > most)
        throw Error(
            ErrorCode::usage,
            "stages of several ranks wait for each other in a circle (the plan cannot be executed). Make "
            "the plans of all ranks anew");
      auto const heard = group_.exchange_values(notices());
      group_.together([&] { hear(heard); });
      rising = group_.any(raise_stages());
    }
  }

  std::vector<std::vector<Notice>> notices() const {
    std::vector<std::vector<Notice>> to(at(plan_.ranks));
    for (Departure const& departure : found_.departures)
      to[at(departure.message->target)].push_back(
          {departure.message->items, departure.message->id, round_of_stage_[departure.stage]});
    return to;
  }

  void hear(std::vector<std::vector<Notice>> const& heard) {
    std::size_t count = 0;
    for (std::size_t source = 0; source < heard.size(); ++source)
      for (Notice const& notice : heard[source]) {
        auto const found = arrival_.find(notice.id);
        if (found == arrival_.end())
          refuse(fmt::format("rank {} sends message {}, which is not received", source, notice.id));
        Message const& message = *found_.arrivals[found->second].message;
        if (message.source != static_cast<Rank>(source) || message.items != notice.items)
          refuse(fmt::format("message {} is sent by rank {} with {} items, but {} of rank {} are received",
                             notice.id, source, notice.items, message.items, message.source));
        round_of_arrival_[found->second] = notice.round;
        ++count;
      }
    if (count == found_.arrivals.size()) return;  // ids are unique on both sides
    for (Arrival const& arrival : found_.arrivals) {
      auto const& from = heard[at(arrival.message->source)];
      if (std::none_of(from.begin(), from.end(),
                       [&](Notice const& notice) { return notice.id == arrival.message->id; }))
        refuse(fmt::format("message {} is received, but rank {} does not send it", arrival.message->id,
                           arrival.message->source));
    }
  }

  /// A stage follows the rounds of all that its `after` bring. Empty messages bring nothing to wait for: what
  /// credits prove, barriers do.
  bool raise_stages() {
    bool raised = false;
    for (std::size_t a = 0; a < found_.arrivals.size(); ++a)
      for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
        Arrival const& arrival = found_.arrivals[a];
        if (found_.before[arrival.stage][s] == 0 || arrival.message->items == 0) continue;
        if (round_of_stage_[s] > round_of_arrival_[a]) continue;
        round_of_stage_[s] = round_of_arrival_[a] + 1;
        raised = true;
      }
    return raised;
  }

  void require_order() const {
    for (Departure const& departure : found_.departures)
      for (Origin const& origin : departure.items) {
        if (origin.arrival == Origin::owned) continue;
        Arrival const& from = found_.arrivals[at(origin.arrival)];
        if (found_.before[from.stage][departure.stage] == 0)
          refuse(fmt::format("message {} passes on what message {} brings without waiting for stage {}",
                             departure.message->id, from.message->id, plan_.stages[from.stage].id));
      }
  }

  /// Slots for what is passed on, in the order in which it comes: a message lands in one piece.
  void number_staging() {
    slot_.resize(found_.arrivals.size());
    for (std::size_t a = 0; a < slot_.size(); ++a) slot_[a].assign(at(found_.arrivals[a].message->items), -1);
    for (Departure const& departure : found_.departures)
      for (Origin const& origin : departure.items)
        if (origin.arrival != Origin::owned) slot_[at(origin.arrival)][at(origin.item)] = 0;
    for (auto& slots : slot_)
      for (std::int32_t& slot : slots) {
        if (slot < 0) continue;
        if (copies_.staging == std::numeric_limits<std::int32_t>::max())
          refuse("staging memory has more items than its indices of 32 bits can name");
        slot = static_cast<std::int32_t>(copies_.staging++);
      }
  }

  void add(std::int32_t round, PeerCopy const& copy) {
    if (copies_.rounds.size() <= at(round)) copies_.rounds.resize(at(round) + 1);
    copies_.rounds[at(round)].push_back(copy);
  }

  std::int32_t vector_offset_of_ghost(std::size_t ghost) const {
    auto const number = static_cast<std::int64_t>(ghost);
    return static_cast<std::int32_t>(plan_.receive == 0 ? plan_.vector_offset(plan_.owned + number) : number);
  }

  /// Ghosts that this rank fills itself: its own items, and what it passes on.
  void copy_inside() {
    auto const me = static_cast<std::int16_t>(plan_.rank);
    for (std::size_t g = 0; g < found_.ghosts.size(); ++g) {
      Origin const origin = found_.ghosts[g];
      if (origin.arrival == Origin::unwritten) {
        copies_.gaps.push_back(static_cast<std::int32_t>(g));
        continue;
      }
      if (origin.arrival == Origin::owned) {
        add(0, {origin.item, vector_offset_of_ghost(g), me, false, false});
      } else if (std::int32_t const slot = slot_[at(origin.arrival)][at(origin.item)]; slot >= 0) {
        add(round_of_arrival_[at(origin.arrival)] + 1, {slot, vector_offset_of_ghost(g), me, true, false});
      }
    }
  }

  std::vector<std::vector<Destination>> destinations() const {
    std::vector<std::vector<Destination>> to(at(plan_.ranks));
    auto const tell = [&](std::size_t arrival, std::size_t item, std::int32_t vector_offset, bool staging) {
      Message const& message = *found_.arrivals[arrival].message;
      to[at(message.source)].push_back(
          {message.id, static_cast<std::int32_t>(item), vector_offset, staging ? 1 : 0});
    };
    for (std::size_t a = 0; a < slot_.size(); ++a)
      for (std::size_t k = 0; k < slot_[a].size(); ++k)
        if (slot_[a][k] >= 0) tell(a, k, slot_[a][k], true);
    for (std::size_t g = 0; g < found_.ghosts.size(); ++g) {
      Origin const origin = found_.ghosts[g];
      if (origin.arrival >= 0 && slot_[at(origin.arrival)][at(origin.item)] < 0)
        tell(at(origin.arrival), at(origin.item), vector_offset_of_ghost(g), false);
    }
    return to;
  }

  void copy_outside() {
    auto const heard = group_.exchange_values(destinations());
    for (std::size_t target = 0; target < heard.size(); ++target)
      for (Destination const& there : heard[target]) {
        Departure const& departure = found_.departures[departure_.at(there.id)];
        Origin const origin = departure.items[at(there.item)];
        bool const passed_on = origin.arrival != Origin::owned;
        add(round_of_stage_[departure.stage],
            {passed_on ? slot_[at(origin.arrival)][at(origin.item)] : origin.item, there.to,
             static_cast<std::int16_t>(target), passed_on, there.to_staging != 0});
      }
  }

  ExchangePlan const& plan_;
  Group& group_;
  bool ghosts_apart_;
  Origins found_;
  std::map<MessageId, std::size_t> arrival_, departure_;  // positions in found_
  std::vector<std::int32_t> round_of_stage_, round_of_arrival_;
  std::vector<std::vector<std::int32_t>>
      slot_;  // [arrival][item] index into staging memory, -1: not passed on
  PeerCopies copies_;
};

}  // namespace

PeerCopies peer_copies(ExchangePlan const& plan, Group& group, bool ghosts_apart) {
  return Composer(plan, group, ghosts_apart).run();
}

}  // namespace hostless
