#include "hostless/plan/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/counted.hpp"
#include "base/setup_watch.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/shape.hpp"
#include "plan/index.hpp"
#include "plan/plans_beside.hpp"
#include "plan/wires.hpp"

namespace hostless {
namespace {

/// Where an item lies on the rank at hand.
struct BufferOffset {
  BufferId buffer = 0;
  std::int64_t offset = 0;
};

/// The items of one buffer, to be found by their name.
class Catalogue {
 public:
  void add(Item const& item, BufferOffset here) { entries_.emplace_back(item, here); }
  void finish() {
    std::sort(entries_.begin(), entries_.end(),
              [](auto const& a, auto const& b) { return a.first < b.first; });
  }
  BufferOffset const* find(Item const& item) const {
    auto const entry = std::lower_bound(entries_.begin(), entries_.end(), item,
                                        [](auto const& a, Item const& b) { return a.first < b; });
    return entry == entries_.end() || entry->first != item ? nullptr : &entry->second;
  }

 private:
  std::vector<std::pair<Item, BufferOffset>> entries_;
};

/// Both ends of a wire; each is filled by the layout of the rank it lies on.
struct Ends {
  BufferOffset from, to;
};

struct Network {
  Route route;
  std::vector<Pattern> const& patterns;
  NodeMap const& nodes;
  PlanOptions const& options;
  std::vector<Wire> all;
  std::vector<std::vector<std::size_t>> out, in;  // wires of each rank
  std::vector<Ends> ends;
  std::map<std::pair<Rank, Rank>, MessageId> between;  // from, to: the first message of that direction

  /// Why the target of a wire may be overwritten, and the message that proves it.
  std::pair<ReuseGuarantee, MessageId> reason(std::size_t w) const {
    if (options.reuse_guarantee == ReuseGuarantee::reduction) return {ReuseGuarantee::reduction, -1};
    auto const back = between.find({all[w].target, all[w].source});
    if (options.reuse_guarantee == ReuseGuarantee::answer && back != between.end())
      return {ReuseGuarantee::answer, back->second};
    return {ReuseGuarantee::credit, static_cast<MessageId>(all.size() + w)};
  }
};

/// Lays out one rank: buffers, places, stages with their moves. Messages get their far ends in `connect`.
class Layout {
 public:
  Layout(Network& network, Rank rank)
      : net_(network), rank_(rank), steps_(steps_of(network.route, network.options.by_socket)) {
    plan_.fingerprint = 0;
    plan_.route = net_.route;
    plan_.ranks = net_.nodes.ranks();
    plan_.rank = rank;
    plan_.nodes = net_.nodes;
    plan_.owned = net_.patterns[at(rank)].owned;
    plan_.receive = net_.options.apart ? 1 : 0;
    list_ghosts();
    plan_.buffers.push_back(buffer(0, plan_.owned + (net_.options.apart ? 0 : plan_.ghosts)));
    if (net_.options.apart) plan_.buffers.push_back(buffer(1, plan_.ghosts));
  }

  ExchangePlan run() {
    bool const credits = net_.options.reuse_guarantee != ReuseGuarantee::reduction;
    bool const in_front = net_.options.reuse_guarantee == ReuseGuarantee::credit;
    if (credits) plan_.stages.emplace_back();
    arrived_.resize(steps_.size());
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      auto const [step, follows] = steps_[k];
      Stage stage;
      stage.id = static_cast<StageId>(plan_.stages.size());
      if (follows >= 0)
        stage.after.push_back(follows + (credits ? 1 : 0));
      else if (in_front)
        stage.after.push_back(0);
      send(k, stage);
      if (step == Step::near) copy_own_ghosts(stage);
      receive(k, stage);
      plan_.stages.push_back(std::move(stage));
    }
    return std::move(plan_);
  }

 private:
  /// In one piece of memory: of one array with ghosts that is where ExchangePlan::vector_offset rises by one.
  bool together(std::vector<BufferOffset> const& offsets) const {
    auto const lies = [&](BufferOffset const& here) {
      return here.buffer == 0 && plan_.receive == 0 ? plan_.vector_offset(here.offset) : here.offset;
    };
    for (std::size_t k = 1; k < offsets.size(); ++k)
      if (offsets[k].buffer != offsets[0].buffer || lies(offsets[k]) != lies(offsets[k - 1]) + 1 ||
          offsets[k].offset != offsets[k - 1].offset + 1)
        return false;
    return true;
  }

  Pieces pieces_of(std::vector<BufferOffset> const& offsets) const {
    Pieces pieces;
    pieces.buffer = offsets.front().buffer;
    if (together(offsets)) {
      pieces.first = offsets.front().offset;
      pieces.count = static_cast<std::int32_t>(offsets.size());
    } else {
      for (BufferOffset const& here : offsets) pieces.index.push_back(static_cast<std::int32_t>(here.offset));
    }
    return pieces;
  }

  Buffer buffer(BufferId id, std::int64_t items) const {
    if (items > std::numeric_limits<std::int32_t>::max())
      throw Error(
          ErrorCode::usage,
          fmt::format("rank {} would hold {} items in one buffer of its plan (offsets have 32 bits). Use "
                      "more ranks or the direct route",
                      rank_, items));
    return {id, rank_, net_.options.space, items,
            net_.options.reuse_guarantee == ReuseGuarantee::credit ? 1 : 2};
  }

  void list_ghosts() {
    auto const& position = net_.patterns[at(rank_)].position;
    for (Rank s = 0; s < net_.nodes.ranks(); ++s) {
      Pattern const& pattern = net_.patterns[at(s)];
      for (std::size_t k = 0; k < pattern.item.size(); ++k) {
        auto const low = pattern.receiver.begin() + pattern.first[k],
                   high = pattern.receiver.begin() + pattern.first[k + 1];
        if (!std::binary_search(low, high, rank_)) continue;
        std::int64_t const ghost = position.empty() ? plan_.ghosts : position[at(plan_.ghosts)];
        ghosts_.add({s, pattern.item[k]}, {plan_.receive, plan_.item_of_ghost(ghost)});
        if (s == rank_) own_.push_back(pattern.item[k]);
        ++plan_.ghosts;
        if (s < rank_ && plan_.receive == 0) ++plan_.ghosts_below;
      }
    }
    ghosts_.finish();
  }

  /// Where an item lies when step k sends it: here from the start, or brought by a step that k follows.
  BufferOffset source_of(std::size_t k, Item const& item) const {
    if (item.source == rank_) return {0, item.item};
    for (int from = steps_[k].second;; from = steps_[at(from)].second)
      if (BufferOffset const* const here = arrived_.at(at(from)).find(item)) return *here;
  }

  void send(std::size_t k, Stage& stage) {
    std::int64_t packed = 0;
    auto const staging = static_cast<BufferId>(plan_.buffers.size());
    for (std::size_t w : net_.out[at(rank_)]) {
      Wire const& wire = net_.all[w];
      if (wire.step != steps_[k].first) continue;
      std::vector<BufferOffset> offsets;
      for (Item const& item : wire.items) offsets.push_back(source_of(k, item));
      if (together(offsets)) {
        net_.ends[w].from = offsets.front();
      } else {
        net_.ends[w].from = {staging, packed};
        pack(offsets, net_.ends[w].from, stage.pack);
        packed += static_cast<std::int64_t>(offsets.size());
      }
      stage.out.push_back(message(w, stage.id));
    }
    if (packed > 0) plan_.buffers.push_back(buffer(staging, packed));
  }

  /// One move for each run of items that lie in one buffer: a gathering rank adds its own to what came.
  void pack(std::vector<BufferOffset> const& offsets, BufferOffset to, std::vector<Move>& moves) const {
    for (std::size_t low = 0, high = 0; low < offsets.size(); low = high) {
      while (high < offsets.size() && offsets[high].buffer == offsets[low].buffer) ++high;
      std::vector<BufferOffset> const run(offsets.begin() + static_cast<std::ptrdiff_t>(low),
                                          offsets.begin() + static_cast<std::ptrdiff_t>(high));
      Pieces target;
      target.buffer = to.buffer;
      target.first = to.offset + static_cast<std::int64_t>(low);
      target.count = static_cast<std::int32_t>(run.size());
      moves.push_back({rank_, pieces_of(run), target});
    }
  }

  void copy_own_ghosts(Stage& stage) const {
    std::vector<BufferOffset> from, to;
    for (std::int32_t item : own_) {
      from.push_back({0, item});
      to.push_back(*ghosts_.find({rank_, item}));
    }
    if (!from.empty()) stage.pack.push_back({rank_, pieces_of(from), pieces_of(to)});
  }

  /// The place of a message whose items are ghosts that lie together; nothing otherwise.
  BufferOffset const* belongs(Wire const& wire) const {
    std::vector<BufferOffset> offsets;
    for (Item const& item : wire.items) {
      BufferOffset const* const ghost = ghosts_.find(item);
      if (ghost == nullptr) return nullptr;
      offsets.push_back(*ghost);
    }
    return together(offsets) ? ghosts_.find(wire.items.front()) : nullptr;
  }

  void receive(std::size_t k, Stage& stage) {
    Step const step = steps_[k].first;
    // A gathered item is never a ghost of the gathering step: `near` brings those of the own node.
    bool const passed_on = step == Step::collect || step == Step::gather;
    std::int64_t landed = 0;
    auto const staging = static_cast<BufferId>(plan_.buffers.size());
    Catalogue arrived;
    for (std::size_t w : net_.in[at(rank_)]) {
      Wire const& wire = net_.all[w];
      if (wire.step != step) continue;
      BufferOffset const* const home = passed_on ? nullptr : belongs(wire);
      net_.ends[w].to = home != nullptr ? *home : BufferOffset{staging, landed};
      if (home == nullptr) {
        if (!passed_on) unpack(wire, net_.ends[w].to, stage.unpack);
        landed += static_cast<std::int64_t>(wire.items.size());
      }
      for (std::size_t i = 0; i < wire.items.size(); ++i)
        arrived.add(wire.items[i],
                    {net_.ends[w].to.buffer, net_.ends[w].to.offset + static_cast<std::int64_t>(i)});
      stage.in.push_back(message(w, stage.id));
    }
    if (landed > 0) plan_.buffers.push_back(buffer(staging, landed));
    arrived.finish();
    bool const followed = std::any_of(steps_.begin(), steps_.end(),
                                      [k](auto const& other) { return other.second == static_cast<int>(k); });
    if (followed) arrived_[k] = std::move(arrived);
  }

  void unpack(Wire const& wire, BufferOffset landing, std::vector<Move>& moves) const {
    std::vector<BufferOffset> from, to;
    for (std::size_t k = 0; k < wire.items.size(); ++k)
      if (BufferOffset const* const ghost = ghosts_.find(wire.items[k])) {
        from.push_back({landing.buffer, landing.offset + static_cast<std::int64_t>(k)});
        to.push_back(*ghost);
      }
    if (!from.empty()) moves.push_back({rank_, pieces_of(from), pieces_of(to)});
  }

  Message message(std::size_t w, StageId stage) const {
    Wire const& wire = net_.all[w];
    Message message;
    message.id = static_cast<MessageId>(w);
    message.source = wire.source;
    message.target = wire.target;
    message.items = static_cast<std::int64_t>(wire.items.size());
    std::tie(message.reuse_guarantee, message.answer) = net_.reason(w);
    message.locality = locality_between(net_.nodes, wire.source, wire.target);
    message.trigger = stage;
    return message;
  }

  Network& net_;
  Rank rank_;
  ExchangePlan plan_;
  std::vector<std::pair<Step, int>> steps_;
  Catalogue ghosts_;
  std::vector<Catalogue> arrived_;  // of each step
  std::vector<std::int32_t> own_;   // items that this rank reads from itself
};

void connect(ExchangePlan& plan, Network const& net) {
  auto set_ends = [&](Message& message) {
    Ends const& ends = net.ends[at(message.id)];
    message.from = ends.from.buffer;
    message.from_first = ends.from.offset;
    message.to = ends.to.buffer;
    message.to_first = ends.to.offset;
  };
  for (Stage& stage : plan.stages) {
    for (Message& message : stage.out) set_ends(message);
    for (Message& message : stage.in) set_ends(message);
  }
}

/// Fills the first stage: for every message that relies on one a credit of the opposite direction, which that
/// message answers.
void add_credits(ExchangePlan& plan) {
  auto credit_for = [](Message const& message) {
    Message credit;
    credit.id = message.answer;
    credit.source = message.target;
    credit.target = message.source;
    credit.reuse_guarantee = ReuseGuarantee::answer;
    credit.answer = message.id;
    credit.locality = message.locality;
    return credit;
  };
  for (std::size_t s = 1; s < plan.stages.size(); ++s) {
    for (Message const& message : plan.stages[s].out)
      if (message.reuse_guarantee == ReuseGuarantee::credit) plan.stages[0].in.push_back(credit_for(message));
    for (Message const& message : plan.stages[s].in)
      if (message.reuse_guarantee == ReuseGuarantee::credit)
        plan.stages[0].out.push_back(credit_for(message));
  }
}

/// A value that is none of its enumeration's, by name.
template <class Enum>
std::string enum_flaw(char const* label, Enum value, Enum last) {
  if (value <= last) return {};
  return fmt::format("{}: {} is none of its values", label, static_cast<int>(value));
}

std::string options_flaw(Route route, PlanOptions const& options) {
  std::string problem = enum_flaw("route", route, Route::leader);
  if (problem.empty())
    problem = enum_flaw("options.reuse_guarantee", options.reuse_guarantee, ReuseGuarantee::promise);
  if (problem.empty()) problem = enum_flaw("options.space", options.space, Space::host);
  if (problem.empty() && options.reuse_guarantee == ReuseGuarantee::promise)
    problem = fmt::format("options.reuse_guarantee: '{}' is no reason that a route can give",
                          name(options.reuse_guarantee));
  return problem;
}

std::string dies_flaw(Route route, DieLinks const& links, NodeMap const& nodes) {
  if (links.dies == 0 && links.links.empty() && links.hops.empty()) return {};
  if (route != Route::leader) return fmt::format("options.dies: of no use to route {}", name(route));
  std::vector<int> ranks(at(nodes.nodes()), 0);
  for (int const node : nodes.node) ++ranks[at(node)];
  int const most = *std::max_element(ranks.begin(), ranks.end());
  if (links.dies < most || links.dies > 1024)
    return fmt::format("options.dies: {} where a node has {}", counted(links.dies, "die"),
                       counted(most, "rank"));
  for (auto const* table : {&links.links, &links.hops}) {
    if (table->size() != at(links.dies) * at(links.dies))
      return fmt::format("options.dies: a table of {} for {}", counted(table->size(), "number"),
                         counted(links.dies, "die"));
    for (int const number : *table)
      if (number < 0 || number > 1000)
        return fmt::format("options.dies: {} links or hops, must be 0 to 1000", number);
  }
  return {};
}

void require_fit(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                 PlanOptions const& options) {
  std::string problem = flaw(nodes);
  if (!problem.empty()) problem = "nodes." + problem;
  if (problem.empty()) problem = options_flaw(route, options);
  if (problem.empty()) problem = flaw(route, options, nodes);
  if (problem.empty() && patterns.size() != nodes.node.size())
    problem =
        fmt::format("{} for {}", counted(patterns.size(), "pattern"), counted(nodes.node.size(), "rank"));
  if (problem.empty()) problem = flaw(patterns);
  for (std::size_t r = 0; problem.empty() && r < patterns.size(); ++r)
    if (!patterns[r].position.empty() && !options.apart)
      problem = fmt::format(
          "patterns[{}].position: ghosts in an order of their own, which one array with the owned items has "
          "no place for",
          r);
  if (!problem.empty())
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot plan an exchange: {} (all ranks must plan from the same, valid data). Correct "
                    "the arguments of make_plan",
                    problem));
}

Network scan(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
             PlanOptions const& options) {
  require_fit(route, patterns, nodes, options);
  Network net{route, patterns, nodes, options, wires(route, patterns, nodes, options), {}, {}, {}, {}};
  net.out.resize(patterns.size());
  net.in.resize(patterns.size());
  for (std::size_t w = 0; w < net.all.size(); ++w) {
    net.out[at(net.all[w].source)].push_back(w);
    net.in[at(net.all[w].target)].push_back(w);
    net.between.emplace(std::pair(net.all[w].source, net.all[w].target), static_cast<MessageId>(w));
  }
  // Not everybody begins with the same neighbour.
  for (Rank r = 0; r < nodes.ranks(); ++r) {
    auto const turn = [&](std::size_t w) {
      return std::pair(net.all[w].step, (net.all[w].target - r + nodes.ranks()) % nodes.ranks());
    };
    std::sort(net.out[at(r)].begin(), net.out[at(r)].end(),
              [&](std::size_t a, std::size_t b) { return turn(a) < turn(b); });
  }
  net.ends.resize(net.all.size());
  return net;
}

void finish(ExchangePlan& plan, Network const& net, std::uint64_t print) {
  connect(plan, net);
  if (net.options.reuse_guarantee != ReuseGuarantee::reduction) add_credits(plan);
  plan.fingerprint = print;
}

}  // namespace

std::vector<std::pair<Step, int>> steps_of(Route route, bool by_socket) {
  switch (route) {
    case Route::direct:
      break;
    case Route::two_step:
      return {{Step::near, -1}, {Step::network, -1}, {Step::redistribute, 1}};
    case Route::three_step:
      if (by_socket)
        return {{Step::near, -1},
                {Step::collect, -1},
                {Step::gather, 1},
                {Step::network, 2},
                {Step::redistribute, 3}};
      [[fallthrough]];
    case Route::split:
      return {{Step::near, -1}, {Step::gather, -1}, {Step::network, 1}, {Step::redistribute, 2}};
    case Route::leader:
      return {{Step::near, -1},
              {Step::network, -1},
              {Step::share, 0},
              {Step::redistribute, 1},
              {Step::hand_on, 3}};
  }
  return {{Step::near, -1}};
}

std::string flaw(Route route, PlanOptions const& options, NodeMap const& nodes) {
  if (options.message_cap < 1)
    return fmt::format("options.message_cap: {}, must be at least 1", counted(options.message_cap, "item"));
  if (options.by_socket && route != Route::three_step)
    return fmt::format("options.by_socket: of no use to route {}", name(route));
  return dies_flaw(route, options.dies, nodes);
}

Route automatic_route(NodeMap const& nodes) { return nodes.nodes() > 1 ? Route::three_step : Route::direct; }

std::vector<ExchangePlan> plans_beside(Route route, std::vector<Pattern> const& patterns,
                                       NodeMap const& nodes, Rank rank, PlanOptions const& options) {
  Network net = scan(route, patterns, nodes, options);
  if (rank < 0 || rank >= nodes.ranks())
    throw Error(ErrorCode::usage, fmt::format("no plan for rank {} (the node map has {}). Pass one of them",
                                              rank, counted(nodes.ranks(), "rank")));
  // The far end of a message is where the partner's layout puts it, so the partners are laid out as well.
  std::set<Rank> partners;
  for (std::size_t w : net.out[at(rank)]) partners.insert(net.all[w].target);
  for (std::size_t w : net.in[at(rank)]) partners.insert(net.all[w].source);
  std::vector<ExchangePlan> plans{Layout(net, rank).run()};
  for (Rank partner : partners) plans.push_back(Layout(net, partner).run());
  std::uint64_t const print = fingerprint(route, patterns, nodes, options);
  for (ExchangePlan& plan : plans) finish(plan, net, print);
  return plans;
}

ExchangePlan make_plan(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes, Rank rank,
                       PlanOptions const& options) {
  return std::move(plans_beside(route, patterns, nodes, rank, options).front());
}

std::vector<ExchangePlan> make_plans(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                                     PlanOptions const& options) {
  Network net = scan(route, patterns, nodes, options);
  std::uint64_t const print = fingerprint(route, patterns, nodes, options);
  std::vector<ExchangePlan> plans;
  for (Rank r = 0; r < nodes.ranks(); ++r) {
    plans.push_back(Layout(net, r).run());
    setup_step(1);
  }
  for (ExchangePlan& plan : plans) finish(plan, net, print);
  return plans;
}

}  // namespace hostless
