#include "hostless/plan/extents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/counted.hpp"
#include "base/hash.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/shape.hpp"
#include "plan/index.hpp"
#include "plan/pieces.hpp"
#include "plan/wires.hpp"

namespace hostless {
namespace {

constexpr std::int64_t most_units = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(std::string const& what) {
  throw Error(
      ErrorCode::usage,
      fmt::format("cannot give items lengths of their own: {} (all ranks must stretch the same, valid "
                  "plans). Correct the arguments of stretched",
                  what));
}

/// Where both ends of a message lie, each said by the rank that it lies on.
struct BufferUnit {
  BufferId buffer = 0;
  std::int64_t first = 0;
};
struct WireEnds {
  BufferUnit from, to;
};

/// What all ranks share: the messages of the route, and how long their items are.
struct Known {
  std::vector<Wire> wires;
  std::vector<Extents> const& extents;
  std::vector<WireEnds> ends;

  std::int64_t length(Item const& item) const { return extents[at(item.source)].owned[at(item.item)].units; }
  std::int64_t length(Wire const& wire) const {
    std::int64_t units = 0;
    for (Item const& item : wire.items) units += length(item);
    return units;
  }
  bool is_credit(Message const& message) const {
    return message.items == 0 && at(message.id) >= wires.size();
  }
};

class Stretching {
 public:
  Stretching(ExchangePlan const& plan, Known& known)
      : plan_(plan), made_(plan), known_(known), cells_(plan.buffers.size()) {
    Extents const& mine = known.extents[at(plan.rank)];
    cells_[0] = mine.owned;
    cells_[1] = mine.ghosts;
    for (std::size_t b = 2; b < cells_.size(); ++b) cells_[b].resize(at(plan.buffers[b].items));
    for (Stage const& stage : plan.stages) {
      for (Message const& message : stage.out) measure(message, message.from, message.from_first);
      for (Message const& message : stage.in) measure(message, message.to, message.to_first);
    }
    made_.owned = mine.send_units;
    made_.ghosts = mine.receive_units;
    resize(0, mine.send_units);
    resize(1, mine.receive_units);
    for (std::size_t b = 2; b < cells_.size(); ++b) {
      std::int64_t units = 0;
      for (Extent& cell : cells_[b]) cell.first = std::exchange(units, units + cell.units);
      resize(b, units);
    }
  }

  ExchangePlan run() {
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) stretch(plan_.stages[s], made_.stages[s]);
    return std::move(made_);
  }

 private:
  Wire const& wire_of(Message const& message) const {
    if (message.id < 0 || at(message.id) >= known_.wires.size() ||
        known_.wires[at(message.id)].source != message.source ||
        known_.wires[at(message.id)].target != message.target ||
        known_.wires[at(message.id)].items.size() != at(message.items))
      refuse(fmt::format("message {} of rank {} is none of these patterns", message.id, plan_.rank));
    return known_.wires[at(message.id)];
  }

  /// Staging items are those of messages; the caller's have their lengths already.
  void measure(Message const& message, BufferId buffer, std::int64_t first) {
    if (known_.is_credit(message)) return;
    Wire const& wire = wire_of(message);
    for (std::size_t k = 0; k < wire.items.size(); ++k) {
      std::int64_t& units = cells_[at(buffer)][at(first) + k].units;
      std::int64_t const length = known_.length(wire.items[k]);
      if (buffer > 1) units = length;
      require_length(units, wire.items[k], length);
    }
  }

  void require_length(std::int64_t units, Item const& item, std::int64_t length) const {
    if (units != length)
      refuse(fmt::format("item {} of rank {} has {} units, and {} on rank {}", item.item, item.source, length,
                         units, plan_.rank));
  }

  void resize(std::size_t buffer, std::int64_t units) {
    if (units > most_units)
      refuse(
          fmt::format("rank {} would hold {} units in one buffer (offsets have 32 bits)", plan_.rank, units));
    made_.buffers[buffer].items = units;
  }

  BufferId add_buffer(std::int64_t units) {
    auto const id = static_cast<BufferId>(made_.buffers.size());
    made_.buffers.push_back(made_.buffers[0]);  // with its reuse
    made_.buffers.back().id = id;
    resize(at(id), units);
    return id;
  }

  /// Items of a buffer one after the other, where they lie now.
  std::vector<Extent> extents_of(Pieces const& pieces) const {
    std::vector<Extent> found;
    each_item(pieces, [&](std::int64_t item) { found.push_back(cells_[at(pieces.buffer)][at(item)]); });
    return found;
  }
  std::vector<Extent> extents_of(BufferId buffer, std::int64_t first, std::int64_t items) const {
    auto const begin = cells_[at(buffer)].begin() + first;
    return {begin, begin + items};
  }

  static Pieces range(BufferId buffer, std::int64_t first, std::int64_t units) {
    Pieces pieces;
    pieces.buffer = buffer;
    pieces.first = first;
    pieces.count = static_cast<std::int32_t>(units);
    return pieces;
  }

  /// Item k of `from` to item k of `to`: a move for all that lies together on both sides, or one with lists
  /// where that is single units.
  void add_moves(std::pair<BufferId, std::vector<Extent>> const& from,
                 std::pair<BufferId, std::vector<Extent>> const& to, std::vector<Move>& moves) const {
    std::vector<Extent> here, there;
    for (std::size_t k = 0; k < from.second.size(); ++k) {
      Extent const &source = from.second[k], &target = to.second[k];
      if (source.units != target.units)
        refuse(fmt::format("rank {} copies {} units to {}", plan_.rank, source.units, target.units));
      if (!here.empty() && here.back().first + here.back().units == source.first &&
          there.back().first + there.back().units == target.first) {
        here.back().units += source.units;
        there.back().units += target.units;
      } else {
        here.push_back(source);
        there.push_back(target);
      }
    }
    if (here.size() > 1 &&
        std::all_of(here.begin(), here.end(), [](Extent const& e) { return e.units == 1; })) {
      Move move{plan_.rank, range(from.first, 0, 0), range(to.first, 0, 0)};
      for (std::size_t k = 0; k < here.size(); ++k) {
        move.from.index.push_back(static_cast<std::int32_t>(here[k].first));
        move.to.index.push_back(static_cast<std::int32_t>(there[k].first));
      }
      moves.push_back(std::move(move));
      return;
    }
    for (std::size_t k = 0; k < here.size(); ++k)
      moves.push_back({plan_.rank, range(from.first, here[k].first, here[k].units),
                       range(to.first, there[k].first, there[k].units)});
  }

  /// Where items begin that lie one after the other.
  static std::optional<std::int64_t> together(std::vector<Extent> const& items) {
    for (std::size_t k = 1; k < items.size(); ++k)
      if (items[k].first != items[k - 1].first + items[k - 1].units) return {};
    return items.front().first;
  }

  /// One end of a message, and what to copy where its items do not lie together.
  BufferUnit end_of(Message& message, BufferUnit const& base, std::vector<Move>& moves, bool outgoing) {
    auto const items = extents_of(base.buffer, base.first, message.items);
    message.items = known_.length(known_.wires[at(message.id)]);
    if (auto const first = together(items)) return {base.buffer, *first};
    BufferUnit const staging{add_buffer(message.items), 0};
    std::vector<Extent> line = items;
    std::int64_t units = 0;
    for (Extent& cell : line) cell.first = std::exchange(units, units + cell.units);
    if (outgoing)
      add_moves({base.buffer, items}, {staging.buffer, line}, moves);
    else
      add_moves({staging.buffer, line}, {base.buffer, items}, moves);
    return staging;
  }

  void stretch(Stage const& from, Stage& to) {
    for (auto const& [base, made] : {std::pair{&from.pack, &to.pack}, std::pair{&from.unpack, &to.unpack}}) {
      made->clear();
      for (Move const& move : *base)
        add_moves({move.from.buffer, extents_of(move.from)}, {move.to.buffer, extents_of(move.to)}, *made);
    }
    for (Message& message : to.out)
      if (!known_.is_credit(message))
        known_.ends[at(message.id)].from = end_of(message, {message.from, message.from_first}, to.pack, true);
    for (Message& message : to.in)
      if (!known_.is_credit(message))
        known_.ends[at(message.id)].to = end_of(message, {message.to, message.to_first}, to.unpack, false);
  }

  ExchangePlan const& plan_;
  ExchangePlan made_;
  Known& known_;
  std::vector<std::vector<Extent>> cells_;  // [buffer][item]
};

std::string extents_flaw(std::vector<Extent> const& items, std::int64_t units) {
  for (std::size_t k = 0; k < items.size(); ++k)
    if (items[k].first < 0 || items[k].units < 0 || units < items[k].units ||
        items[k].first > units - items[k].units)
      return fmt::format("[{}]: {} units from {} on leave the array's {}", k, items[k].units, items[k].first,
                         units);
  return {};
}

std::string shared_flaw(std::vector<Extent> const& ghosts) {
  std::vector<std::size_t> order(ghosts.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return ghosts[a].first < ghosts[b].first; });
  for (std::size_t k = 1; k < order.size(); ++k)
    if (ghosts[order[k]].first < ghosts[order[k - 1]].first + ghosts[order[k - 1]].units)
      return fmt::format("[{}] and [{}] share units", order[k - 1], order[k]);
  return {};
}

[[noreturn]] void refuse_extents(Rank rank, std::string const& what) {
  refuse(fmt::format("extents[{}].{}", rank, what));
}

void require_owned(Rank rank, Pattern const& pattern, Extents const& mine) {
  if (mine.owned.size() != at(pattern.owned))
    refuse_extents(rank, fmt::format("owned: {} of {}", mine.owned.size(), counted(pattern.owned, "item")));
  if (std::string const text = extents_flaw(mine.owned, mine.send_units); !text.empty())
    refuse_extents(rank, "owned" + text);
  for (std::int32_t const item : pattern.item)
    if (mine.owned[at(item)].units == 0)
      refuse_extents(rank, fmt::format("owned[{}] is empty and read by others", item));
}

void require_ghosts(ExchangePlan const& plan, Extents const& mine) {
  if (mine.ghosts.size() != at(plan.ghosts))
    refuse_extents(plan.rank, fmt::format("ghosts: {} of {}", mine.ghosts.size(), plan.ghosts));
  for (std::string const& text : {extents_flaw(mine.ghosts, mine.receive_units), shared_flaw(mine.ghosts)})
    if (!text.empty()) refuse_extents(plan.rank, "ghosts" + text);
}

void require_plans(std::vector<ExchangePlan> const& plans, std::vector<Pattern> const& patterns,
                   std::vector<Extents> const& extents) {
  if (plans.empty() || extents.size() != patterns.size())
    refuse(fmt::format("{}, {} and {}", counted(plans.size(), "plan"), counted(patterns.size(), "pattern"),
                       counted(extents.size(), "extent")));
  if (std::string const text = flaw(patterns); !text.empty()) refuse(text);
  for (std::size_t r = 0; r < extents.size(); ++r)
    require_owned(static_cast<Rank>(r), patterns[r], extents[r]);
  for (std::size_t k = 0; k < plans.size(); ++k) {
    ExchangePlan const& plan = plans[k];
    if (std::string const text = flaw(plan); !text.empty()) refuse(fmt::format("plans[{}].{}", k, text));
    if (at(plan.ranks) != patterns.size() || plan.route != plans[0].route ||
        plan.owned != patterns[at(plan.rank)].owned)
      refuse(fmt::format("plans[{}] is of other ranks, another route or other patterns", k));
    if (plan.receive != 1) refuse(fmt::format("plans[{}] has its ghosts around its items", k));
    require_ghosts(plan, extents[at(plan.rank)]);
  }
}

std::uint64_t fingerprint_of(ExchangePlan const& plan, std::vector<Extents> const& extents) {
  Hash hash;
  hash.add(static_cast<std::int64_t>(plan.fingerprint));
  for (Extents const& one : extents) {
    hash.add(one.send_units);
    hash.add(one.receive_units);
    for (auto const* list : {&one.owned, &one.ghosts}) {
      hash.add(static_cast<std::int64_t>(list->size()));
      for (Extent const& extent : *list) {
        hash.add(extent.first);
        hash.add(extent.units);
      }
    }
  }
  return hash.value();
}

}  // namespace

std::vector<ExchangePlan> stretched(std::vector<ExchangePlan> const& plans,
                                    std::vector<Pattern> const& patterns, PlanOptions const& options,
                                    std::vector<Extents> const& extents) {
  require_plans(plans, patterns, extents);
  if (plans[0].fingerprint != fingerprint(plans[0].route, patterns, plans[0].nodes, options))
    refuse("the plans were made of other patterns or with other options");
  Known known{wires(plans[0].route, patterns, plans[0].nodes, options), extents, {}};
  known.ends.resize(known.wires.size());
  std::vector<ExchangePlan> made;
  for (ExchangePlan const& plan : plans) made.push_back(Stretching(plan, known).run());
  for (ExchangePlan& plan : made) {
    plan.fingerprint = fingerprint_of(plan, extents);
    for (Stage& stage : plan.stages)
      for (auto* messages : {&stage.out, &stage.in})
        for (Message& message : *messages) {
          if (known.is_credit(message)) continue;
          WireEnds const& ends = known.ends[at(message.id)];
          message.from = ends.from.buffer;
          message.from_first = ends.from.first;
          message.to = ends.to.buffer;
          message.to_first = ends.to.first;
        }
  }
  return made;
}

}  // namespace hostless
