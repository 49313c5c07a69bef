#include "hostless/model/plan_price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "hostless/base/error.hpp"
#include "model/names.hpp"
#include "model/price_parts.hpp"
#include "plan/index.hpp"

namespace hostless {
namespace {

constexpr std::size_t outside = static_cast<std::size_t>(MessageSpan::off_node);

void add_once(std::vector<std::string>& all, std::string text) {
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

// Where a rank is: ranks of a node fill its sockets one after the other.
struct Sockets {
  std::vector<int> node, socket;  // [ranks] sockets are counted over all nodes
  int nodes = 0, sockets = 0, most_on_node = 0;

  Sockets(NodeMap const& map, NodeShape const& shape, MemoryKind memory)
      : node(map.node), nodes(map.nodes()) {
    int const room = memory == MemoryKind::host ? shape.cores_per_socket : std::max(1, shape.gpus_per_socket);
    std::vector<int> there(at(nodes), 0);
    for (int const n : node)
      socket.push_back(n * shape.sockets + std::min(there[at(n)]++ / room, shape.sockets - 1));
    sockets = nodes * shape.sockets;
    most_on_node = *std::max_element(there.begin(), there.end());
  }
  MessageSpan span(Rank a, Rank b) const {
    if (node[at(a)] != node[at(b)]) return MessageSpan::off_node;
    return socket[at(a)] == socket[at(b)] ? MessageSpan::on_socket : MessageSpan::on_node;
  }
};

// The messages that a rank sends in a step, or those that it receives.
struct Side {
  std::array<double, 3> behind{};  // seconds by span, as if all followed others
  double ahead = 0;                // what the first one takes more
  std::size_t ahead_span = 0;
  double queue = 0;  // of each message, added up
  std::int64_t messages = 0;
  double own_injection = 0;

  PriceTerms terms(bool search) const {
    PriceTerms terms;
    terms.messages = behind;
    terms.messages[ahead_span] += ahead;
    if (search && messages > 1) terms.queue = queue * static_cast<double>(messages - 1) / 2;
    return terms;
  }
};

struct Cards {
  std::vector<double> node, socket;  // seconds of what passes their limits
};

struct Step {
  std::vector<CountedMessage const*> messages;
  std::vector<Side> out, in;
  Cards sent, received;
};

// How a rank became ready in a step: after this rank began it, in so much time.
struct Cause {
  Rank rank = -1;
  PriceTerms terms;
};

class Play {
 public:
  Play(MachineModel const& machine, ExchangeCounts const& counts, DataPath path, double item_bytes)
      : machine_(machine),
        counts_(counts),
        path_(path),
        item_bytes_(item_bytes),
        memory_(path == DataPath::device ? MemoryKind::gpu : MemoryKind::host),
        where_(counts.nodes, machine.node, path == DataPath::host ? MemoryKind::host : MemoryKind::gpu),
        cards_(machine.costs.find(memory_)) {}

  ExchangePrice run() {
    price_.ready.assign(at(ranks()), 0.0);
    if (path_ == DataPath::staged) copy(CopyDirection::device_to_host, counts_.leaving);
    auto const before = price_.ready;
    std::vector<std::vector<Cause>> causes;
    for (auto const& messages : steps()) causes.push_back(advance(messages));
    if (path_ == DataPath::staged) copy(CopyDirection::host_to_device, counts_.ghosts);
    price_.last =
        static_cast<Rank>(std::max_element(price_.ready.begin(), price_.ready.end()) - price_.ready.begin());
    price_.seconds = price_.ready[at(price_.last)];
    walk_back(causes, before);
    count();
    note_ranks();
    price_.sources = in_words(machine_, std::move(price_.sources));
    return std::move(price_);
  }

 private:
  int ranks() const { return counts_.nodes.ranks(); }

  // The messages of stages that can run at the same time, in order.
  std::vector<std::vector<CountedMessage const*>> steps() const {
    std::vector<std::vector<CountedMessage const*>> all;
    std::vector<std::size_t> depth;
    for (CountedStage const& stage : counts_.stages) {
      std::size_t mine = 0;
      for (int before : stage.after) mine = std::max(mine, depth[at(before)] + 1);
      depth.push_back(mine);
      if (all.size() <= mine) all.resize(mine + 1);
      for (CountedMessage const& message : stage.messages) all[mine].push_back(&message);
    }
    return all;
  }

  double copy_seconds(CopyDirection direction, std::int64_t items) {
    if (items == 0) return 0;
    CopyCosts const* const costs = machine_.costs.find(direction, 1);
    if (costs == nullptr)
      throw Error(ErrorCode::bad_input,
                  fmt::format("no data of copies {} (staged exchanges cannot be priced). Add them to a copy "
                              "of its file, or {}.",
                              name(direction), name_another_machine(machine_.costs)));
    add_once(price_.sources, costs->source);
    return costs->line.at(static_cast<double>(items) * item_bytes_);
  }

  void copy(CopyDirection direction, std::vector<std::int64_t> const& items) {
    for (Rank r = 0; r < ranks(); ++r) price_.ready[at(r)] += copy_seconds(direction, items[at(r)]);
  }

  void add(Side& side, MessageCosts const& costs, std::size_t span, double bytes) const {
    double const following = following_seconds(machine_.costs, costs, bytes);
    double const ahead = costs.piece(bytes).line.at(bytes) - following;
    side.behind[span] += following;
    if (side.messages++ == 0 || ahead > side.ahead) side.ahead = ahead, side.ahead_span = span;
    side.queue += costs.queue_search;
  }

  void inject(Cards& cards, Side& side, Rank rank, double bytes) const {
    if (cards_ == nullptr) return;
    InjectionLimit const& limit = piece_of(cards_->limits, bytes);
    double const seconds = bytes * limit.seconds_per_byte;
    side.own_injection += seconds;
    (limit.per_socket ? cards.socket[at(where_.socket[at(rank)])] : cards.node[at(where_.node[at(rank)])]) +=
        seconds;
  }

  Step step_of(std::vector<CountedMessage const*> const& messages) {
    std::size_t const all = at(ranks());
    Cards const none{std::vector<double>(at(where_.nodes), 0.0),
                     std::vector<double>(at(where_.sockets), 0.0)};
    Step step{messages, std::vector<Side>(all), std::vector<Side>(all), none, none};
    for (CountedMessage const* message : messages) {
      MessageSpan const span = where_.span(message->source, message->target);
      MessageCosts const* const costs = machine_.costs.find(span, memory_);
      if (costs == nullptr) throw_no_data(machine_.costs, span, memory_);
      double const bytes = static_cast<double>(message->items) * item_bytes_;
      Side &out = step.out[at(message->source)], &in = step.in[at(message->target)];
      auto const which = static_cast<std::size_t>(span);
      add(out, *costs, which, bytes);
      add(in, *costs, which, bytes);
      add_once(price_.sources, costs->source);
      if (out.messages > 1 && costs->following.empty())
        add_once(price_.notes,
                 "several messages of a rank were not measured: they follow each other as their transfer "
                 "lets them");
      if (span == MessageSpan::off_node) {
        inject(step.sent, out, message->source, bytes);
        inject(step.received, in, message->target, bytes);
      } else {
        add_once(price_.notes, "several active ranks inside a node were not measured: priced as if alone");
      }
    }
    return step;
  }

  PriceTerms terms(Side const& side, Cards const& cards, Rank rank, bool search) const {
    PriceTerms terms = side.terms(search);
    if (side.own_injection <= 0) return terms;
    double const alone = terms.sum();
    double const all = cards.node[at(where_.node[at(rank)])] + cards.socket[at(where_.socket[at(rank)])];
    terms.injection =
        join_injection(alone, all, std::min(side.own_injection, alone), cards_->sharpness) - alone;
    return terms;
  }

  // Plays one step; who made each rank ready.
  std::vector<Cause> advance(std::vector<CountedMessage const*> const& messages) {
    Step const step = step_of(messages);
    std::vector<double> const begin = price_.ready;
    std::vector<Cause> causes(at(ranks()));
    std::vector<PriceTerms> sends(at(ranks()));
    std::vector<Rank> latest(at(ranks()));  // of a rank and all who send to it: who begins last
    std::iota(latest.begin(), latest.end(), 0);
    for (CountedMessage const* m : step.messages)
      if (begin[at(m->source)] > begin[at(latest[at(m->target)])]) latest[at(m->target)] = m->source;
    auto const raise = [&](Rank rank, Rank from, PriceTerms const& terms) {
      double const ready = begin[at(from)] + terms.sum();
      if (ready <= price_.ready[at(rank)]) return;
      price_.ready[at(rank)] = ready;
      causes[at(rank)] = {from, terms};
    };
    for (Rank r = 0; r < ranks(); ++r) {
      if (step.out[at(r)].messages > 0)
        sends[at(r)] = terms(step.out[at(r)], step.sent, r, false), raise(r, r, sends[at(r)]);
      if (step.in[at(r)].messages > 0) raise(r, latest[at(r)], terms(step.in[at(r)], step.received, r, true));
    }
    for (CountedMessage const* m : step.messages) raise(m->target, m->source, sends[at(m->source)]);
    return causes;
  }

  // Adds up the terms on the way to the rank that is ready last.
  void walk_back(std::vector<std::vector<Cause>> const& causes, std::vector<double> const& before) {
    Rank rank = price_.last;
    if (path_ == DataPath::staged)
      price_.terms.copies += copy_seconds(CopyDirection::host_to_device, counts_.ghosts[at(rank)]);
    for (auto step = causes.rbegin(); step != causes.rend(); ++step) {
      Cause const& cause = (*step)[at(rank)];
      if (cause.rank >= 0) {
        for (std::size_t k = 0; k < 3; ++k) price_.terms.messages[k] += cause.terms.messages[k];
        price_.terms.queue += cause.terms.queue;
        price_.terms.injection += cause.terms.injection;
        rank = cause.rank;
      }
      price_.path.push_back(rank);
    }
    std::reverse(price_.path.begin(), price_.path.end());
    price_.terms.copies += before[at(rank)];
  }

  void count() {
    std::vector<std::array<SpanTraffic, 3>> of_rank(at(ranks()));
    std::vector<double> of_node(at(where_.nodes), 0.0);
    for (CountedStage const& stage : counts_.stages)
      for (CountedMessage const& message : stage.messages) {
        auto const span = static_cast<std::size_t>(where_.span(message.source, message.target));
        double const bytes = static_cast<double>(message.items) * item_bytes_;
        for (SpanTraffic* traffic : {&price_.total[span], &of_rank[at(message.source)][span]})
          ++traffic->messages, traffic->bytes += bytes;
        if (span == outside) of_node[at(where_.node[at(message.source)])] += bytes;
      }
    for (auto const& spans : of_rank)
      for (std::size_t k = 0; k < 3; ++k) {
        price_.most[k].messages = std::max(price_.most[k].messages, spans[k].messages);
        price_.most[k].bytes = std::max(price_.most[k].bytes, spans[k].bytes);
      }
    price_.node_bytes = *std::max_element(of_node.begin(), of_node.end());
  }

  void note_ranks() {
    bool const host = path_ == DataPath::host;
    int const there = host ? machine_.node.cores() : machine_.node.gpus();
    if (where_.most_on_node > there)
      add_once(price_.notes, fmt::format("{} ranks on nodes of {} {}", where_.most_on_node, there,
                                         host ? "cores" : "GPUs"));
    if (price_.total[outside].messages == 0) return;
    if (cards_ != nullptr)
      add_once(price_.sources, cards_->source);
    else if (where_.most_on_node > 1)
      add_once(price_.notes, fmt::format("no injection limit of {} memory is known: ranks do not slow "
                                         "each other",
                                         name(memory_)));
  }

  MachineModel const& machine_;
  ExchangeCounts const& counts_;
  DataPath path_;
  double item_bytes_;
  MemoryKind memory_;
  Sockets where_;
  InjectionCosts const* cards_;
  ExchangePrice price_;
};

}  // namespace

char const* name(DataPath path) {
  constexpr std::array names = {"host", "device", "staged"};
  return names[static_cast<std::size_t>(path)];
}

std::vector<DataPath> paths_of(MemoryKind memory) {
  if (memory == MemoryKind::host) return {DataPath::host};
  return {DataPath::device, DataPath::staged};
}

double PriceTerms::sum() const {
  return copies + std::accumulate(messages.begin(), messages.end(), 0.0) + queue + injection;
}

ExchangePrice price(MachineModel const& machine, ExchangeCounts const& counts, DataPath path,
                    double item_bytes) {
  if (!(item_bytes >= 0) || std::isinf(item_bytes))
    throw Error(ErrorCode::usage,
                fmt::format("items of {} bytes (there is nothing to price). Give 0 or more.", item_bytes));
  try {
    return Play(machine, counts, path, item_bytes).run();
  } catch (Error const& problem) {
    if (problem.code() != ErrorCode::bad_input) throw;
    throw Error(problem.code(), fmt::format("{}: {}", machine.name, problem.what()));
  }
}

std::vector<PricedWay> price_ways(MachineModel const& machine, std::vector<ExchangeCounts> const& counts,
                                  MemoryKind memory, double item_bytes) {
  std::vector<PricedWay> ways;
  for (ExchangeCounts const& exchange : counts)
    for (DataPath path : paths_of(memory)) {
      PricedWay& way = ways.emplace_back(PricedWay{exchange.route, path, {}, {}});
      try {
        way.price = price(machine, exchange, path, item_bytes);
      } catch (Error const& problem) {
        if (problem.code() != ErrorCode::bad_input) throw;
        way.problem = problem.what();
      }
    }
  return ways;
}

std::size_t cheapest(std::vector<PricedWay> const& ways) {
  constexpr double alike = 1.02;
  if (ways.empty())
    throw Error(ErrorCode::usage, "no ways of an exchange (there is none to choose). Pass some.");
  double least = std::numeric_limits<double>::infinity();
  for (PricedWay const& way : ways)
    if (way.price) least = std::min(least, way.price->seconds);
  std::optional<std::size_t> best;
  auto const rank = [&](std::size_t k) {
    return std::pair(ways[k].price->total[outside].messages, ways[k].price->seconds);
  };
  for (std::size_t k = 0; k < ways.size(); ++k)
    if (ways[k].price && ways[k].price->seconds <= alike * least && (!best || rank(k) < rank(*best)))
      best = k;
  if (!best) throw Error(ErrorCode::bad_input, ways.front().problem);
  return *best;
}

}  // namespace hostless
