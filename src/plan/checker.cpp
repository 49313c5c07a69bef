#include "hostless/plan/checker.hpp"

#include <algorithm>

#include "base/counted.hpp"
#include "hostless/plan/shape.hpp"
#include "plan/index.hpp"
#include "plan/simulation.hpp"

namespace hostless {
namespace {

/// What every later step relies on; a text if it does not hold.
std::string set_flaw(std::vector<ExchangePlan> const& plans, std::vector<Pattern> const& patterns) {
  if (plans.empty() || plans.size() != patterns.size())
    return fmt::format("{} and {}, must be one of each a rank", counted(plans.size(), "plan"),
                       counted(patterns.size(), "pattern"));
  if (std::string text = flaw(patterns); !text.empty()) return text;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    ExchangePlan const& plan = plans[r];
    if (std::string text = flaw(plan); !text.empty()) return fmt::format("plans[{}].{}", r, text);
    if (plan.rank != static_cast<Rank>(r))
      return fmt::format("plans[{}].rank: {} is not {}", r, plan.rank, r);
    if (plan.ranks != static_cast<int>(plans.size()))
      return fmt::format("plans[{}].ranks: {} in a set of {}", r, plan.ranks, counted(plans.size(), "plan"));
    if (plan.fingerprint != plans[0].fingerprint || plan.route != plans[0].route ||
        plan.nodes.node != plans[0].nodes.node || plan.nodes.socket != plans[0].nodes.socket ||
        plan.nodes.device != plans[0].nodes.device)
      return fmt::format("plans[{}].fingerprint: made for another route, node map or pattern than plans[0]",
                         r);
    if (plan.receive != plans[0].receive)
      return fmt::format("plans[{}].receive: {}, of plans[0] {}", r, plan.receive, plans[0].receive);
    if (plan.receive == 0 && !patterns[r].position.empty())
      return fmt::format("plans[{}].receive: 0, but the pattern gives ghosts an order of their own", r);
    if (plan.owned != patterns[r].owned)
      return fmt::format("plans[{}].owned: {}, the pattern owns {}", r, counted(plan.owned, "item"),
                         patterns[r].owned);
  }
  return {};
}

/// The values of the ghosts of each rank, by (source, item).
std::vector<std::vector<Value>> read_values(std::vector<Pattern> const& patterns) {
  std::vector<std::vector<Value>> ghosts(patterns.size());
  for (std::size_t s = 0; s < patterns.size(); ++s)
    for (std::size_t k = 0; k < patterns[s].item.size(); ++k)
      for (std::int64_t j = patterns[s].first[k]; j < patterns[s].first[k + 1]; ++j)
        ghosts[at(patterns[s].receiver[at(j)])].push_back(
            value_of(static_cast<Rank>(s), patterns[s].item[k]));
  return ghosts;
}

/// The values that ghosts must end with, where they lie.
std::vector<std::vector<Value>> expected_ghosts(std::vector<Pattern> const& patterns,
                                                std::vector<std::vector<Value>> const& read) {
  std::vector<std::vector<Value>> ghosts = read;
  for (std::size_t r = 0; r < patterns.size(); ++r)
    for (std::size_t g = 0; g < patterns[r].position.size(); ++g)
      ghosts[r][at(patterns[r].position[g])] = read[r][g];
  return ghosts;
}

/// The simulation holds every item of every buffer: plans may come from files, so their volume is compared
/// with what the patterns ask for. No route needs more than 20 places and moves for one item and receiver.
std::string volume_flaw(std::vector<ExchangePlan> const& plans,
                        std::vector<std::vector<Value>> const& ghosts) {
  std::int64_t asked = 0;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    asked += static_cast<std::int64_t>(ghosts[r].size());
    if (plans[r].ghosts != static_cast<std::int64_t>(ghosts[r].size()))
      return fmt::format("plans[{}].ghosts: {}, the patterns ask for {}", r, plans[r].ghosts,
                         ghosts[r].size());
    auto const own = std::lower_bound(ghosts[r].begin(), ghosts[r].end(), value_of(static_cast<Rank>(r), 0));
    if (plans[r].receive == 0 && plans[r].ghosts_below != own - ghosts[r].begin())
      return fmt::format("plans[{}].ghosts_below: {}, the patterns have {} of lower ranks", r,
                         plans[r].ghosts_below, own - ghosts[r].begin());
  }
  std::int64_t volume = 0;
  std::int64_t const most = 32 * asked;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    for (Buffer const& buffer : plans[r].buffers)
      volume += buffer.id < plans[r].first_staging() ? 0 : buffer.items;
    for (Stage const& stage : plans[r].stages) {
      for (Move const& move : stage.pack) volume += move.from.items();
      for (Move const& move : stage.unpack) volume += move.from.items();
      for (Message const& message : stage.out) volume += message.items;
    }
    if (volume > most)
      return fmt::format("plans[{}]: buffers, moves and messages of {} items and more, for {} items asked", r,
                         volume, asked);
  }
  return {};
}

/// Rule 2, first half: every id on one source and one target.
Wiring pair_messages(std::vector<ExchangePlan> const& plans, Complaints& complaints) {
  Wiring wiring;
  auto put = [&](Side& side, Side const& here, char const* what) {
    if (side.message != nullptr)
      complaints.add(2, here.rank, "message {} is {} twice, in stage {} and on rank {}", here.message->id,
                     what, plans[at(here.rank)].stages[here.stage].id, side.rank);
    side = here;
  };
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (std::size_t s = 0; s < plans[r].stages.size(); ++s) {
      auto const rank = static_cast<Rank>(r);
      for (Message const& message : plans[r].stages[s].out)
        put(wiring[message.id].out, {rank, s, &message}, "sent");
      for (Message const& message : plans[r].stages[s].in)
        put(wiring[message.id].in, {rank, s, &message}, "received");
    }
  for (auto const& [id, wired] : wiring) {
    if (wired.in.message == nullptr)
      complaints.add(2, wired.out.rank, "message {} is sent but received by nobody", id);
    else if (wired.out.message == nullptr)
      complaints.add(2, wired.in.rank, "message {} is received but sent by nobody", id);
  }
  return wiring;
}

/// Rule 2, second half.
void compare_sides(Wiring const& wiring, Complaints& complaints) {
  for (auto const& [id, wired] : wiring) {
    if (wired.out.message == nullptr || wired.in.message == nullptr) continue;
    Message const &out = *wired.out.message, &in = *wired.in.message;
    auto same = [&, number = id](char const* field, auto sent, auto received) {
      if (sent != received)
        complaints.add(2, out.source, "message {} has {} {} where it is sent and {} where it is received",
                       number, field, static_cast<std::int64_t>(sent), static_cast<std::int64_t>(received));
    };
    same("source", out.source, in.source);
    same("target", out.target, in.target);
    same("from", out.from, in.from);
    same("to", out.to, in.to);
    same("from_first", out.from_first, in.from_first);
    same("to_first", out.to_first, in.to_first);
    same("items", out.items, in.items);
    same("free", out.reuse_guarantee, in.reuse_guarantee);
    same("answer", out.answer, in.answer);
    same("reach", out.locality, in.locality);
    same("trigger", out.trigger, in.trigger);
  }
}

/// Rule 3: names one stage that can never end.
void complain_of_circle(std::vector<ExchangePlan> const& plans, std::vector<Happening> const& order,
                        Complaints& complaints) {
  std::vector<std::vector<char>> ended(plans.size());
  for (std::size_t r = 0; r < plans.size(); ++r) ended[r].assign(plans[r].stages.size(), 0);
  for (Happening const& what : order)
    if (what.end) ended[at(what.rank)][what.stage] = 1;
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (std::size_t s = 0; s < ended[r].size(); ++s)
      if (!ended[r][s])
        complaints.add(3, static_cast<Rank>(r),
                       "stage {} can never complete: stages wait for each other in a circle",
                       plans[r].stages[s].id);
}

/// Rule 6.
void prove_reasons(std::vector<ExchangePlan> const& plans, Wiring const& wiring, Complaints& complaints) {
  std::vector<std::vector<std::vector<char>>> before;
  for (ExchangePlan const& plan : plans) before.push_back(complete_before(plan));
  for (auto const& [id, wired] : wiring) {
    Message const& message = *wired.out.message;
    Rank const source = message.source;
    if (message.reuse_guarantee == ReuseGuarantee::promise) continue;
    int const epochs = plans[at(message.target)].buffers[at(message.to)].epochs;
    if (message.reuse_guarantee == ReuseGuarantee::reduction) {
      // An empty message overwrites nothing.
      if (epochs < 2 && message.items > 0)
        complaints.add(6, source, "message {} relies on a reduction, but buffer {} of rank {} has one epoch",
                       id, message.to, message.target);
      continue;
    }
    auto const proof = wiring.find(message.answer);
    if (proof == wiring.end()) {
      complaints.add(6, source, "message {} relies on message {}, which does not exist", id, message.answer);
      continue;
    }
    Message const& answer = *proof->second.out.message;
    if (answer.source != message.target || answer.target != source)
      complaints.add(6, source, "message {} relies on message {}, which is not of the opposite direction", id,
                     message.answer);
    else if (message.reuse_guarantee == ReuseGuarantee::credit && answer.items != 0)
      complaints.add(6, source, "message {} relies on the credit {}, which carries {}", id, message.answer,
                     counted(answer.items, "item"));
    else if (epochs < 2 && message.items > 0 && !before[at(source)][proof->second.in.stage][wired.out.stage])
      complaints.add(
          6, source,
          "message {} relies on message {}, which may arrive after the send, but buffer {} of rank {} has "
          "one epoch",
          id, message.answer, message.to, message.target);
  }
}

}  // namespace

std::vector<std::string> check(std::vector<ExchangePlan> const& plans, std::vector<Pattern> const& patterns) {
  if (std::string text = set_flaw(plans, patterns); !text.empty()) return {"shape: " + text};
  auto const read = read_values(patterns);
  if (std::string text = volume_flaw(plans, read); !text.empty()) return {"shape: " + text};
  auto const ghosts = expected_ghosts(patterns, read);
  Complaints complaints;
  Wiring const wiring = pair_messages(plans, complaints);
  compare_sides(wiring, complaints);
  // Values cannot travel over messages whose sides differ.
  if (complaints.any(2)) return complaints.take();
  std::vector<Happening> const order = order_of(plans, wiring);
  complain_of_circle(plans, order, complaints);
  prove_reasons(plans, wiring, complaints);
  if (complaints.any(3)) return complaints.take();
  Simulation simulation(plans, wiring, ghosts, complaints);
  simulation.run(order);
  simulation.compare_ghosts();
  if (plans.front().route != Route::direct) simulation.count_crossings();
  return complaints.take();
}

}  // namespace hostless
