#include "hostless/plan/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

void count(Traffic& traffic, Message const& message, NodeMap const& nodes) {
  if (message.items == 0) {
    ++traffic.credits;
  } else if (nodes.same_node(message.source, message.target)) {
    ++traffic.messages_inside;
    traffic.items_inside += message.items;
  } else {
    ++traffic.messages_between;
    traffic.items_between += message.items;
  }
}

RankSummary summarise_rank(ExchangePlan const& plan) {
  RankSummary summary;
  summary.rank = plan.rank;
  summary.node = plan.nodes.node[static_cast<std::size_t>(plan.rank)];
  summary.owned = plan.owned;
  summary.ghosts = plan.ghosts;
  for (Buffer const& buffer : plan.buffers)
    if (buffer.id >= plan.first_staging()) summary.staging_items += buffer.items;
  for (Stage const& stage : plan.stages) {
    for (Message const& message : stage.out) count(summary.sent, message, plan.nodes);
    for (Message const& message : stage.in) count(summary.received, message, plan.nodes);
    for (Move const& move : stage.pack) summary.items_moved += move.from.items();
    for (Move const& move : stage.unpack) summary.items_moved += move.from.items();
  }
  return summary;
}

template <class Join>
void join(RankSummary& into, RankSummary const& from, Join&& with) {
  for (auto field :
       {&RankSummary::owned, &RankSummary::ghosts, &RankSummary::items_moved, &RankSummary::staging_items})
    into.*field = with(into.*field, from.*field);
  for (auto side : {&RankSummary::sent, &RankSummary::received})
    for (auto field : {&Traffic::messages_inside, &Traffic::items_inside, &Traffic::messages_between,
                       &Traffic::items_between, &Traffic::credits})
      into.*side.*field = with(into.*side.*field, from.*side.*field);
}

std::string line(std::string const& label, std::string const& node, RankSummary const& rank, int bytes) {
  return fmt::format("{:>6} {:>5} {:>11} {:>10} {:>9} {:>14} {:>9} {:>14} {:>9} {:>14} {:>9} {:>14} {:>14}\n",
                     label, node, rank.owned, rank.ghosts, rank.sent.messages_inside,
                     rank.sent.items_inside * bytes, rank.sent.messages_between,
                     rank.sent.items_between * bytes, rank.received.messages_inside,
                     rank.received.items_inside * bytes, rank.received.messages_between,
                     rank.received.items_between * bytes, rank.items_moved * bytes);
}

Json json_of(Traffic const& traffic, int bytes) {
  return {{"messages_inside_nodes", traffic.messages_inside},
          {"bytes_inside_nodes", traffic.items_inside * bytes},
          {"messages_between_nodes", traffic.messages_between},
          {"bytes_between_nodes", traffic.items_between * bytes},
          {"credits", traffic.credits}};
}

Json json_of(RankSummary const& rank, int bytes) {
  return {{"owned", rank.owned},
          {"ghosts", rank.ghosts},
          {"sent", json_of(rank.sent, bytes)},
          {"received", json_of(rank.received, bytes)},
          {"bytes_moved_locally", rank.items_moved * bytes},
          {"staging_bytes", rank.staging_items * bytes}};
}

// A list for each number: a quarter of the text that an object for each pair would be.
Json json_of(std::vector<PairTraffic> const& pairs, int bytes) {
  Json json = {{"source", Json::array()},
               {"target", Json::array()},
               {"messages", Json::array()},
               {"bytes", Json::array()}};
  for (PairTraffic const& pair : pairs) {
    json["source"].push_back(pair.source);
    json["target"].push_back(pair.target);
    json["messages"].push_back(pair.messages);
    json["bytes"].push_back(pair.items * bytes);
  }
  return json;
}

}  // namespace

std::vector<PairTraffic> pairs_sent(ExchangePlan const& plan) {
  std::map<Rank, PairTraffic> to;
  for (Stage const& stage : plan.stages) {
    for (Message const& message : stage.out) {
      if (message.items == 0) continue;
      PairTraffic& pair =
          to.try_emplace(message.target, PairTraffic{plan.rank, message.target}).first->second;
      ++pair.messages;
      pair.items += message.items;
    }
  }
  std::vector<PairTraffic> pairs;
  for (auto const& [target, pair] : to) pairs.push_back(pair);
  return pairs;
}

PlanSummary summarise(std::vector<ExchangePlan> const& plans, int item_bytes) {
  if (plans.empty() || item_bytes < 1)
    throw Error(ErrorCode::usage, fmt::format("cannot summarise {} of items of {} (there is nothing to "
                                              "count). Pass the plans of all ranks and the bytes of an item",
                                              counted(plans.size(), "plan"), counted(item_bytes, "byte")));
  PlanSummary summary;
  summary.route = plans.front().route;
  summary.fingerprint = plans.front().fingerprint;
  summary.ranks = static_cast<int>(plans.size());
  summary.nodes = plans.front().nodes.nodes();
  summary.stages = static_cast<int>(plans.front().stages.size());
  summary.item_bytes = item_bytes;
  for (ExchangePlan const& plan : plans) {
    summary.rank.push_back(summarise_rank(plan));
    auto const pairs = pairs_sent(plan);
    summary.pairs.insert(summary.pairs.end(), pairs.begin(), pairs.end());
    join(summary.total, summary.rank.back(), [](std::int64_t a, std::int64_t b) { return a + b; });
    join(summary.most, summary.rank.back(), [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  return summary;
}

std::string to_json(std::vector<PairTraffic> const& pairs, int item_bytes) {
  return json_of(pairs, item_bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string table(PlanSummary const& summary) {
  std::string text =
      fmt::format("route {}, {} on {}, {}, {} an item, fingerprint {:016x}\n", name(summary.route),
                  counted(summary.ranks, "rank"), counted(summary.nodes, "node"),
                  counted(summary.stages, "stage"), counted(summary.item_bytes, "byte"), summary.fingerprint);
  text += fmt::format("{:>35} {:>24} {:>24} {:>24} {:>24} {:>14}\n", "", "sent inside nodes",
                      "sent between nodes", "received inside nodes", "received between nodes", "copied");
  text += fmt::format("{:>6} {:>5} {:>11} {:>10}", "rank", "node", "owned", "ghosts");
  for (int side = 0; side < 4; ++side) text += fmt::format(" {:>9} {:>14}", "messages", "bytes");
  text += fmt::format(" {:>14}\n", "bytes");
  for (RankSummary const& rank : summary.rank)
    text += line(fmt::to_string(rank.rank), fmt::to_string(rank.node), rank, summary.item_bytes);
  text += line("total", "", summary.total, summary.item_bytes);
  text += line("most", "", summary.most, summary.item_bytes);
  if (summary.total.sent.credits > 0)
    text += fmt::format("and {} empty messages (credits), at most {} from one rank\n",
                        summary.total.sent.credits, summary.most.sent.credits);
  return text;
}

std::string to_json(PlanSummary const& summary) {
  Json json = {{"version", 1},
               {"route", name(summary.route)},
               {"fingerprint", fmt::format("{:016x}", summary.fingerprint)},
               {"ranks", summary.ranks},
               {"nodes", summary.nodes},
               {"stages", summary.stages},
               {"item_bytes", summary.item_bytes},
               {"total", json_of(summary.total, summary.item_bytes)},
               {"most", json_of(summary.most, summary.item_bytes)},
               {"per_rank", Json::array()}};
  for (RankSummary const& rank : summary.rank) {
    Json entry = {{"rank", rank.rank}, {"node", rank.node}};
    entry.update(json_of(rank, summary.item_bytes));
    json["per_rank"].push_back(std::move(entry));
  }
  json["pairs"] = json_of(summary.pairs, summary.item_bytes);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hostless
