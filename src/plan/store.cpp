#include "hostless/plan/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "base/counted.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/whole_file.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/shape.hpp"
#include "plan/json_cursor.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;
constexpr char const* format_name = "hostless-plan";

Json json_of(Pieces const& pieces) {
  return {{"buffer", pieces.buffer}, {"first", pieces.first},   {"count", pieces.count},
          {"rows", pieces.rows},     {"stride", pieces.stride}, {"index", pieces.index}};
}

Json json_of(std::vector<Move> const& moves) {
  Json list = Json::array();
  for (Move const& move : moves)
    list.push_back({{"actor", move.actor}, {"from", json_of(move.from)}, {"to", json_of(move.to)}});
  return list;
}

Json json_of(std::vector<Message> const& messages) {
  Json list = Json::array();
  for (Message const& m : messages)
    list.push_back({{"id", m.id},
                    {"source", m.source},
                    {"target", m.target},
                    {"from", m.from},
                    {"to", m.to},
                    {"from_first", m.from_first},
                    {"to_first", m.to_first},
                    {"items", m.items},
                    {"free", name(m.reuse_guarantee)},
                    {"answer", m.answer},
                    {"reach", name(m.locality)},
                    {"trigger", m.trigger}});
  return list;
}

Json json_of(ExchangePlan const& plan) {
  Json json = {{"rank", plan.rank},
               {"owned", plan.owned},
               {"ghosts", plan.ghosts},
               {"receive", plan.receive},
               {"ghosts_below", plan.ghosts_below},
               {"buffers", Json::array()},
               {"stages", Json::array()}};
  for (Buffer const& buffer : plan.buffers)
    json["buffers"].push_back({{"id", buffer.id},
                               {"home", buffer.home},
                               {"space", name(buffer.space)},
                               {"items", buffer.items},
                               {"epochs", buffer.epochs}});
  for (Stage const& stage : plan.stages)
    json["stages"].push_back({{"id", stage.id},
                              {"after", stage.after},
                              {"pack", json_of(stage.pack)},
                              {"out", json_of(stage.out)},
                              {"in", json_of(stage.in)},
                              {"unpack", json_of(stage.unpack)}});
  return json;
}

/// A value of an enumeration by its name.
template <class Enum>
Enum enumerated(JsonCursor const& cursor, std::initializer_list<Enum> values) {
  for (Enum value : values)
    if (cursor.text() == name(value)) return value;
  cursor.complain(fmt::format("'{}' is unknown", cursor.text().substr(0, 40)));
}

ReuseGuarantee reuse_guarantee_at(JsonCursor const& cursor) {
  return enumerated(cursor, {ReuseGuarantee::reduction, ReuseGuarantee::answer, ReuseGuarantee::credit,
                             ReuseGuarantee::promise});
}
Space space_at(JsonCursor const& cursor) {
  return enumerated(cursor, {Space::device, Space::pinned, Space::host});
}

Pieces pieces_at(JsonCursor const& cursor) {
  cursor.require_keys({"buffer", "first", "count", "rows", "stride", "index"});
  Pieces pieces;
  pieces.buffer = cursor.at("buffer").number<BufferId>();
  pieces.first = cursor.at("first").number<std::int64_t>();
  pieces.count = cursor.at("count").number<std::int32_t>();
  pieces.rows = cursor.at("rows").number<std::int32_t>();
  pieces.stride = cursor.at("stride").number<std::int32_t>();
  pieces.index = cursor.at("index").numbers<std::int32_t>();
  return pieces;
}

std::vector<Move> moves_at(JsonCursor const& cursor) {
  std::vector<Move> moves;
  for (std::size_t k = 0; k < cursor.size(); ++k) {
    JsonCursor const here = cursor.at(k);
    here.require_keys({"actor", "from", "to"});
    moves.push_back({here.at("actor").number<Rank>(), pieces_at(here.at("from")), pieces_at(here.at("to"))});
  }
  return moves;
}

std::vector<Message> messages_at(JsonCursor const& cursor) {
  std::vector<Message> messages;
  for (std::size_t k = 0; k < cursor.size(); ++k) {
    JsonCursor const here = cursor.at(k);
    here.require_keys({"id", "source", "target", "from", "to", "from_first", "to_first", "items", "free",
                       "answer", "reach", "trigger"});
    Message message;
    message.id = here.at("id").number<MessageId>();
    message.source = here.at("source").number<Rank>();
    message.target = here.at("target").number<Rank>();
    message.from = here.at("from").number<BufferId>();
    message.to = here.at("to").number<BufferId>();
    message.from_first = here.at("from_first").number<std::int64_t>();
    message.to_first = here.at("to_first").number<std::int64_t>();
    message.items = here.at("items").number<std::int64_t>();
    message.reuse_guarantee = reuse_guarantee_at(here.at("free"));
    message.answer = here.at("answer").number<MessageId>();
    message.locality =
        enumerated(here.at("reach"), {Locality::device, Locality::socket, Locality::node, Locality::network});
    message.trigger = here.at("trigger").number<int>();
    messages.push_back(message);
  }
  return messages;
}

Stage stage_at(JsonCursor const& cursor) {
  cursor.require_keys({"id", "after", "pack", "out", "in", "unpack"});
  Stage stage;
  stage.id = cursor.at("id").number<StageId>();
  stage.after = cursor.at("after").numbers<StageId>();
  stage.pack = moves_at(cursor.at("pack"));
  stage.out = messages_at(cursor.at("out"));
  stage.in = messages_at(cursor.at("in"));
  stage.unpack = moves_at(cursor.at("unpack"));
  return stage;
}

Buffer buffer_at(JsonCursor const& cursor) {
  cursor.require_keys({"id", "home", "space", "items", "epochs"});
  Buffer buffer;
  buffer.id = cursor.at("id").number<BufferId>();
  buffer.home = cursor.at("home").number<Rank>();
  buffer.space = space_at(cursor.at("space"));
  buffer.items = cursor.at("items").number<std::int64_t>();
  buffer.epochs = cursor.at("epochs").number<int>();
  return buffer;
}

/// Plans of other versions hold other things, so nothing else of them is read.
void require_version(JsonCursor const& cursor) {
  constexpr int current = ExchangePlan::current_version;
  int const version = cursor.number<int>();
  if (version != current)
    cursor.complain(fmt::format("{} is of {} hostless, this one reads version {} only", version,
                                version < current ? "an earlier" : "a later", current));
}

/// plan  holds what is common to all ranks
ExchangePlan plan_at(JsonCursor const& cursor, ExchangePlan plan) {
  cursor.require_keys({"rank", "owned", "ghosts", "receive", "ghosts_below", "buffers", "stages"});
  plan.rank = cursor.at("rank").number<Rank>();
  plan.owned = cursor.at("owned").number<std::int64_t>();
  plan.ghosts = cursor.at("ghosts").number<std::int64_t>();
  plan.ghosts_below = cursor.at("ghosts_below").number<std::int64_t>();
  plan.receive = cursor.at("receive").number<BufferId>();
  JsonCursor const buffers = cursor.at("buffers"), stages = cursor.at("stages");
  for (std::size_t k = 0; k < buffers.size(); ++k) plan.buffers.push_back(buffer_at(buffers.at(k)));
  for (std::size_t k = 0; k < stages.size(); ++k) plan.stages.push_back(stage_at(stages.at(k)));
  if (std::string text = flaw(plan); !text.empty()) cursor.complain(text);
  return plan;
}

Pattern pattern_at(JsonCursor const& cursor) {
  cursor.require_keys({"owned", "item", "first", "receiver", "position"});
  Pattern pattern;
  pattern.owned = cursor.at("owned").number<std::int64_t>();
  pattern.item = cursor.at("item").numbers<std::int32_t>();
  pattern.first = cursor.at("first").numbers<std::int64_t>();
  pattern.receiver = cursor.at("receiver").numbers<Rank>();
  pattern.position = cursor.at("position").numbers<std::int32_t>();
  return pattern;
}

NodeMap nodes_at(JsonCursor const& cursor) {
  cursor.require_keys({"node", "socket", "device"});
  NodeMap nodes{cursor.at("node").numbers<int>(), cursor.at("socket").numbers<int>(),
                cursor.at("device").numbers<int>()};
  if (std::string text = flaw(nodes); !text.empty()) cursor.complain(text);
  return nodes;
}

std::uint64_t fingerprint_at(JsonCursor const& cursor) {
  std::string const& text = cursor.text();
  std::uint64_t value = 0;
  auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || problem != std::errc() || end != text.data() + text.size())
    cursor.complain(fmt::format("'{}' is not 16 hexadecimal digits", text.substr(0, 40)));
  return value;
}

PlanOptions options_at(JsonCursor const& cursor, Route route, NodeMap const& nodes) {
  cursor.require_keys({"free", "space", "apart", "message_cap", "by_socket", "dies", "links", "hops"});
  PlanOptions options{reuse_guarantee_at(cursor.at("free")), space_at(cursor.at("space")),
                      cursor.at("apart").integer(0, 1) != 0};
  options.message_cap = cursor.at("message_cap").number<std::int64_t>();
  options.by_socket = cursor.at("by_socket").integer(0, 1) != 0;
  options.dies = {cursor.at("dies").number<int>(), cursor.at("links").numbers<int>(),
                  cursor.at("hops").numbers<int>()};
  if (std::string const text = flaw(route, options, nodes); !text.empty()) cursor.complain(text);
  return options;
}

// What names add to the fingerprint of a file; 0 where there are none.
std::uint64_t mark_of(std::vector<std::vector<std::int32_t>> const& named) {
  if (named.empty()) return 0;
  Hash hash;
  for (std::vector<std::int32_t> const& of_rank : named) hash.add(of_rank);
  return hash.value();
}

// Empty where there is none.
std::string named_flaw(PlanSet const& set) {
  if (set.named.empty()) return {};
  if (set.options.apart) return "named: ghosts apart from the owned items lie as their patterns say";
  if (set.named.size() != set.plans.size())
    return fmt::format("named: {} for {}", counted(set.named.size(), "list"),
                       counted(set.plans.size(), "rank"));
  for (std::size_t r = 0; r < set.named.size(); ++r) {
    std::vector<std::int32_t> sorted = set.named[r];
    std::sort(sorted.begin(), sorted.end());
    bool each_once = std::ssize(sorted) == set.plans[r].ghosts;
    for (std::size_t g = 0; each_once && g < sorted.size(); ++g)
      each_once = sorted[g] == static_cast<std::int32_t>(g);
    if (!each_once)
      return fmt::format("named[{}]: it has not each of the {} ghosts once", r, set.plans[r].ghosts);
  }
  return {};
}

}  // namespace

std::string write_plans(PlanSet const& set) {
  std::size_t const ranks = set.plans.size();
  bool good = ranks > 0 && set.patterns.size() == ranks;
  for (std::size_t r = 0; good && r < ranks; ++r)
    good = set.plans[r].rank == static_cast<Rank>(r) && set.plans[r].route == set.plans[0].route &&
           set.plans[r].fingerprint == set.plans[0].fingerprint &&
           set.plans[r].nodes.node == set.plans[0].nodes.node;
  if (!good)
    throw Error(ErrorCode::usage,
                fmt::format("cannot write {} and {} (a set has one of each a rank, in "
                            "order, of one route). Pass the plans of all ranks",
                            counted(ranks, "plan"), counted(set.patterns.size(), "pattern")));
  if (std::string const problem = named_flaw(set); !problem.empty())
    throw Error(ErrorCode::usage, "cannot write plans whose " + problem);
  ExchangePlan const& any = set.plans.front();
  Json json = {
      {"format", format_name},
      {"version", any.version},
      {"route", name(any.route)},
      {"fingerprint", fmt::format("{:016x}", any.fingerprint ^ mark_of(set.named))},
      {"options",
       {{"free", name(set.options.reuse_guarantee)},
        {"space", name(set.options.space)},
        {"apart", set.options.apart ? 1 : 0},
        {"message_cap", set.options.message_cap},
        {"by_socket", set.options.by_socket ? 1 : 0},
        {"dies", set.options.dies.dies},
        {"links", set.options.dies.links},
        {"hops", set.options.dies.hops}}},
      {"nodes", {{"node", any.nodes.node}, {"socket", any.nodes.socket}, {"device", any.nodes.device}}},
      {"patterns", Json::array()},
      {"plans", Json::array()}};
  for (Pattern const& pattern : set.patterns)
    json["patterns"].push_back({{"owned", pattern.owned},
                                {"item", pattern.item},
                                {"first", pattern.first},
                                {"receiver", pattern.receiver},
                                {"position", pattern.position}});
  for (ExchangePlan const& plan : set.plans) json["plans"].push_back(json_of(plan));
  if (!set.named.empty()) json["named"] = set.named;
  return json.dump() + "\n";
}

PlanSet read_plans(std::string_view text, std::string const& file) {
  nlohmann::json const document = parse_json(text, [&](int line, std::string const& problem) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}:{}: {} (the plan cannot be used). Write the plan again with 'hostless plan'",
                            file, line, problem));
  });
  JsonCursor const root(document, file);
  bool const has_names = document.is_object() && document.contains("named");
  root.require_keys({"format", "version", "route", "fingerprint", "options", "nodes", "patterns", "plans",
                     has_names ? "named" : "plans"});
  if (root.at("format").text() != format_name)
    root.at("format").complain(
        fmt::format("'{}' is not '{}'", root.at("format").text().substr(0, 40), format_name));
  ExchangePlan common;
  require_version(root.at("version"));
  common.route = enumerated(root.at("route"),
                            {Route::direct, Route::two_step, Route::three_step, Route::split, Route::leader});
  common.fingerprint = fingerprint_at(root.at("fingerprint"));
  common.nodes = nodes_at(root.at("nodes"));
  common.ranks = common.nodes.ranks();
  PlanSet set;
  set.options = options_at(root.at("options"), common.route, common.nodes);
  JsonCursor const patterns = root.at("patterns"), plans = root.at("plans");
  // One of each a rank; the node map is copied for every rank, so this stands in front of it.
  if (patterns.size() != common.nodes.node.size())
    patterns.complain(fmt::format("{} for {}", patterns.size(), counted(common.ranks, "rank")));
  if (plans.size() != common.nodes.node.size())
    plans.complain(fmt::format("{} for {}", plans.size(), counted(common.ranks, "rank")));
  for (std::size_t k = 0; k < patterns.size(); ++k) set.patterns.push_back(pattern_at(patterns.at(k)));
  if (std::string problem = flaw(set.patterns); !problem.empty()) root.complain(problem);
  for (std::size_t k = 0; k < plans.size(); ++k) {
    set.plans.push_back(plan_at(plans.at(k), common));
    if (set.plans.back().rank != static_cast<Rank>(k))
      plans.at(k).at("rank").complain("the plans are not in order");
  }
  if (has_names) {
    JsonCursor const named = root.at("named");
    for (std::size_t k = 0; k < named.size(); ++k) set.named.push_back(named.at(k).numbers<std::int32_t>());
    if (std::string const problem = named_flaw(set); set.named.empty() || !problem.empty())
      named.complain(set.named.empty() ? "it is empty" : problem);
    for (ExchangePlan& plan : set.plans) plan.fingerprint ^= mark_of(set.named);
  }
  return set;
}

void save_plans(std::string const& path, PlanSet const& set) { write_whole_file(path, write_plans(set)); }

PlanSet load_plans(std::string const& path) {
  std::string const text = read_whole_file(path, std::numeric_limits<std::int64_t>::max());
  PlanSet set = read_plans(text, path);
  ExchangePlan const& any = set.plans.front();
  std::uint64_t const print = fingerprint(any.route, set.patterns, any.nodes, set.options);
  if (any.fingerprint != print) {
    std::uint64_t const names = mark_of(set.named);
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: $.fingerprint: {:016x} is not {:016x}, that of the patterns and names in the file "
                    "(somebody changed it). Write the plan again, as it was written",
                    path, any.fingerprint ^ names, print ^ names));
  }
  return set;
}

}  // namespace hostless
