#include "hostless/plan/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/counted.hpp"

namespace hostless {
namespace {

// Local columns and the offsets of pieces have 32 bits.
constexpr std::int64_t most_items = std::numeric_limits<std::int32_t>::max();
// Routes have a handful; ids are compared each with each.
constexpr std::size_t most_stages = 256;

bool is_rank(Rank rank, int ranks) { return rank >= 0 && rank < ranks; }

std::string pattern_flaw(Pattern const& pattern, int ranks) {
  if (pattern.owned < 0 || pattern.owned > most_items)
    return fmt::format("owned: {} is not in [0, {}]", pattern.owned, most_items);
  if (pattern.first.size() != pattern.item.size() + 1)
    return fmt::format("first: {} for {}, must be one more",
                       counted(pattern.first.size(), "entry", "entries"),
                       counted(pattern.item.size(), "item"));
  if (pattern.first.front() != 0) return fmt::format("first[0]: {} is not 0", pattern.first.front());
  if (pattern.first.back() != static_cast<std::int64_t>(pattern.receiver.size()))
    return fmt::format("first[{}]: {} is not the number of receivers, {}", pattern.item.size(),
                       pattern.first.back(), pattern.receiver.size());
  for (std::size_t k = 0; k < pattern.item.size(); ++k) {
    std::int64_t const low = k == 0 ? -1 : pattern.item[k - 1];
    if (pattern.item[k] <= low || pattern.item[k] >= pattern.owned)
      return fmt::format("item[{}]: {} must be above {} and below the {} owned items", k, pattern.item[k],
                         low, pattern.owned);
    if (pattern.first[k + 1] < pattern.first[k] || pattern.first[k + 1] > pattern.first.back())
      return fmt::format("first[{}]: {} does not rise towards {}", k + 1, pattern.first[k + 1],
                         pattern.first.back());
    for (std::int64_t j = pattern.first[k]; j < pattern.first[k + 1]; ++j) {
      Rank const receiver = pattern.receiver[static_cast<std::size_t>(j)];
      Rank const before = j == pattern.first[k] ? -1 : pattern.receiver[static_cast<std::size_t>(j - 1)];
      if (receiver <= before || !is_rank(receiver, ranks))
        return fmt::format("receiver[{}]: {} must be above {} and below the {} ranks", j, receiver, before,
                           ranks);
    }
  }
  return {};
}

std::string pieces_flaw(Pieces const& pieces, ExchangePlan const& plan) {
  if (pieces.buffer < 0 || pieces.buffer >= static_cast<BufferId>(plan.buffers.size()))
    return fmt::format("buffer: {} does not exist", pieces.buffer);
  std::int64_t const size = plan.buffers[static_cast<std::size_t>(pieces.buffer)].items;
  if (pieces.first < 0 || pieces.first > size)
    return fmt::format("first: {} is not in the buffer's [0, {}]", pieces.first, size);
  if (!pieces.index.empty() && (pieces.count != 0 || pieces.rows != 1 || pieces.stride != 0))
    return fmt::format("index: a list of items beside a box of {} of {}, {} apart",
                       counted(pieces.rows, "row"), counted(pieces.count, "item"), pieces.stride);
  if (pieces.index.empty()) {
    if (pieces.count < 0 || pieces.rows < 1)
      return fmt::format("count: a box of {} of {}", counted(pieces.rows, "row"),
                         counted(pieces.count, "item"));
    if (pieces.rows == 1 && pieces.stride != 0)
      return fmt::format("stride: {} between the rows of a box of one row (0 is meant)", pieces.stride);
    if (pieces.rows > 1 && pieces.stride < pieces.count)
      return fmt::format("stride: {} makes rows of {} overlap", pieces.stride, counted(pieces.count, "item"));
    if (pieces.first + std::int64_t{pieces.rows - 1} * pieces.stride + pieces.count > size)
      return fmt::format("count: the box ends behind the buffer's {}", counted(size, "item"));
  }
  for (std::size_t k = 0; k < pieces.index.size(); ++k) {
    std::int64_t const offset = pieces.first + pieces.index[k];
    if (offset < 0 || offset >= size)
      return fmt::format("index[{}]: item {} is not in the buffer's [0, {})", k, offset, size);
  }
  return {};
}

std::string move_flaw(Move const& move, ExchangePlan const& plan) {
  // An actor of its own (split + DD of paper 004) needs buffers shared between ranks: not in this version.
  if (move.actor != plan.rank) return fmt::format("actor: {} is not rank {}", move.actor, plan.rank);
  if (std::string text = pieces_flaw(move.from, plan); !text.empty()) return "from." + text;
  if (std::string text = pieces_flaw(move.to, plan); !text.empty()) return "to." + text;
  if (move.from.items() != move.to.items())
    return fmt::format("to: takes {} of {}", counted(move.to.items(), "item"), move.from.items());
  return {};
}

std::string message_flaw(Message const& message, ExchangePlan const& plan, bool outgoing) {
  if (message.id < 0) return fmt::format("id: {} is negative", message.id);
  if (!is_rank(message.source, plan.ranks)) return fmt::format("source: {} is no rank", message.source);
  if (!is_rank(message.target, plan.ranks)) return fmt::format("target: {} is no rank", message.target);
  if (message.source == message.target)
    return fmt::format("target: rank {} sends to itself, which must be a move", message.target);
  Rank const here = outgoing ? message.source : message.target;
  if (here != plan.rank)
    return fmt::format("{}: {} is not this plan's rank {}", outgoing ? "source" : "target", here, plan.rank);
  BufferId const buffer = outgoing ? message.from : message.to;
  std::int64_t const first = outgoing ? message.from_first : message.to_first;
  if (buffer < 0 || buffer >= static_cast<BufferId>(plan.buffers.size()))
    return fmt::format("{}: buffer {} does not exist", outgoing ? "from" : "to", buffer);
  std::int64_t const size = plan.buffers[static_cast<std::size_t>(buffer)].items;
  if (message.items < 0 || message.items > size || first < 0 || first > size - message.items)
    return fmt::format("items: {} from {} on do not fit into the {} of buffer {}",
                       counted(message.items, "item"), first, size, buffer);
  Locality const locality = locality_between(plan.nodes, message.source, message.target);
  if (message.locality != locality)
    return fmt::format(
        "locality: {} (`reach` in a plan file), but ranks {} and {} are {} apart by nodes.node, nodes.socket "
        "and "
        "nodes.device",
        name(message.locality), message.source, message.target, name(locality));
  if (message.reuse_guarantee > ReuseGuarantee::promise)
    return fmt::format("reuse_guarantee: {} is none", static_cast<int>(message.reuse_guarantee));
  if (message.answer < -1) return fmt::format("answer: {} is no message", message.answer);
  if (message.trigger < 0) return fmt::format("trigger: {} is negative", message.trigger);
  return {};
}

std::string stage_flaw(Stage const& stage, ExchangePlan const& plan) {
  for (std::size_t k = 0; k < stage.after.size(); ++k) {
    auto const same = [&](Stage const& other) { return other.id == stage.after[k]; };
    if (std::none_of(plan.stages.begin(), plan.stages.end(), same))
      return fmt::format("after[{}]: stage {} does not exist", k, stage.after[k]);
  }
  for (auto const& [label, moves] : {std::pair{"pack", &stage.pack}, std::pair{"unpack", &stage.unpack}})
    for (std::size_t k = 0; k < moves->size(); ++k)
      if (std::string text = move_flaw((*moves)[k], plan); !text.empty())
        return fmt::format("{}[{}].{}", label, k, text);
  for (std::size_t k = 0; k < stage.out.size(); ++k)
    if (std::string text = message_flaw(stage.out[k], plan, true); !text.empty())
      return fmt::format("out[{}].{}", k, text);
  for (std::size_t k = 0; k < stage.in.size(); ++k)
    if (std::string text = message_flaw(stage.in[k], plan, false); !text.empty())
      return fmt::format("in[{}].{}", k, text);
  return {};
}

std::string buffers_flaw(ExchangePlan const& plan) {
  if (plan.buffers.empty()) return "buffers: buffer 0, the bound vector, is missing";
  for (std::size_t k = 0; k < plan.buffers.size(); ++k) {
    Buffer const& buffer = plan.buffers[k];
    if (buffer.id != static_cast<BufferId>(k))
      return fmt::format("buffers[{}].id: {} is not {}", k, buffer.id, k);
    if (buffer.home != plan.rank)
      return fmt::format("buffers[{}].home: {} is not rank {}", k, buffer.home, plan.rank);
    if (buffer.items < 0 || buffer.items > most_items)
      return fmt::format("buffers[{}].items: {} is not in [0, {}]", k, buffer.items, most_items);
    if (buffer.epochs < 1 || buffer.epochs > 2)
      return fmt::format("buffers[{}].epochs: {} is neither 1 nor 2", k, buffer.epochs);
  }
  if (plan.receive == 0 && plan.buffers[0].items != plan.owned + plan.ghosts)
    return fmt::format("buffers[0].items: {} is not {} and {}", plan.buffers[0].items,
                       counted(plan.owned, "owned item"), counted(plan.ghosts, "ghost"));
  if (plan.receive == 0) return {};
  if (plan.buffers[0].items != plan.owned)
    return fmt::format("buffers[0].items: {} is not {}", plan.buffers[0].items,
                       counted(plan.owned, "owned item"));
  if (plan.buffers.size() < 2) return "buffers: buffer 1, that of the ghosts, is missing";
  if (plan.buffers[1].items != plan.ghosts)
    return fmt::format("buffers[1].items: {} is not {}", plan.buffers[1].items,
                       counted(plan.ghosts, "ghost"));
  return {};
}

/// Where ghosts are said to lie: each of them once, among as many as other ranks send.
std::string positions_flaw(std::vector<Pattern> const& patterns) {
  auto const given = [](Pattern const& pattern) { return !pattern.position.empty(); };
  if (std::none_of(patterns.begin(), patterns.end(), given)) return {};
  std::vector<std::size_t> ghosts(patterns.size(), 0);
  for (Pattern const& pattern : patterns)
    for (Rank const receiver : pattern.receiver) ++ghosts[static_cast<std::size_t>(receiver)];
  for (std::size_t r = 0; r < patterns.size(); ++r) {
    auto const& position = patterns[r].position;
    if (position.empty()) continue;
    if (position.size() != ghosts[r])
      return fmt::format("patterns[{}].position: {} for {}", r, counted(position.size(), "entry", "entries"),
                         counted(ghosts[r], "ghost"));
    std::vector<char> taken(ghosts[r], 0);
    for (std::size_t g = 0; g < position.size(); ++g) {
      if (position[g] < 0 || static_cast<std::size_t>(position[g]) >= ghosts[r])
        return fmt::format("patterns[{}].position[{}]: {} is not below the {} ghosts", r, g, position[g],
                           ghosts[r]);
      if (taken[static_cast<std::size_t>(position[g])]++ != 0)
        return fmt::format("patterns[{}].position[{}]: {} is there twice", r, g, position[g]);
    }
  }
  return {};
}

}  // namespace

std::string flaw(NodeMap const& nodes) {
  std::size_t const ranks = nodes.node.size();
  if (ranks == 0) return "node: there are no ranks";
  if (nodes.socket.size() != ranks || nodes.device.size() != ranks)
    return fmt::format("socket: {}, {} and {}, must be one of each a rank", counted(ranks, "node"),
                       counted(nodes.socket.size(), "socket"), counted(nodes.device.size(), "device"));
  std::vector<char> used(ranks, 0);
  int highest = -1;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (nodes.node[r] < 0 || static_cast<std::size_t>(nodes.node[r]) >= ranks)
      return fmt::format("node[{}]: {} is not in [0, {})", r, nodes.node[r], ranks);
    if (nodes.socket[r] < 0) return fmt::format("socket[{}]: {} is negative", r, nodes.socket[r]);
    if (nodes.device[r] < -1) return fmt::format("device[{}]: {} is below -1", r, nodes.device[r]);
    used[static_cast<std::size_t>(nodes.node[r])] = 1;
    highest = std::max(highest, nodes.node[r]);
  }
  for (int n = 0; n <= highest; ++n)
    if (!used[static_cast<std::size_t>(n)])
      return fmt::format("node: no rank is on node {} of {}", n, highest + 1);
  return {};
}

std::string flaw(std::vector<Pattern> const& patterns) {
  for (std::size_t r = 0; r < patterns.size(); ++r)
    if (std::string text = pattern_flaw(patterns[r], static_cast<int>(patterns.size())); !text.empty())
      return fmt::format("patterns[{}].{}", r, text);
  return positions_flaw(patterns);
}

std::string flaw(ExchangePlan const& plan) {
  if (plan.version != ExchangePlan::current_version)
    return fmt::format("version: {} is not {}", plan.version, ExchangePlan::current_version);
  if (std::string text = flaw(plan.nodes); !text.empty()) return "nodes." + text;
  if (plan.ranks != plan.nodes.ranks())
    return fmt::format("ranks: {} on a node map of {}", counted(plan.ranks, "rank"), plan.nodes.ranks());
  if (!is_rank(plan.rank, plan.ranks))
    return fmt::format("rank: {} is not in [0, {})", plan.rank, plan.ranks);
  if (plan.owned < 0 || plan.owned > most_items || plan.ghosts < 0 || plan.ghosts > most_items - plan.owned)
    return fmt::format("owned: {} and {} are not in [0, {}] together", counted(plan.owned, "owned item"),
                       counted(plan.ghosts, "ghost"), most_items);
  if (plan.receive != 0 && plan.receive != 1)
    return fmt::format("receive: buffer {} is neither 0 nor 1", plan.receive);
  std::int64_t const most_below = plan.receive == 0 ? plan.ghosts : 0;
  if (plan.ghosts_below < 0 || plan.ghosts_below > most_below)
    return fmt::format("ghosts_below: {} is not in [0, {}]", plan.ghosts_below, most_below);
  if (std::string text = buffers_flaw(plan); !text.empty()) return text;
  if (plan.stages.size() > most_stages)
    return fmt::format("stages: {} are more than {}", plan.stages.size(), most_stages);
  for (std::size_t k = 0; k < plan.stages.size(); ++k) {
    if (plan.stages[k].id < 0 || plan.stages[k].id > Stage::largest_id)
      return fmt::format("stages[{}].id: {} is not in [0, {}]", k, plan.stages[k].id, Stage::largest_id);
    for (std::size_t j = 0; j < k; ++j)
      if (plan.stages[j].id == plan.stages[k].id)
        return fmt::format("stages[{}].id: {} is used twice", k, plan.stages[k].id);
    if (std::string text = stage_flaw(plan.stages[k], plan); !text.empty())
      return fmt::format("stages[{}].{}", k, text);
  }
  return {};
}

}  // namespace hostless
