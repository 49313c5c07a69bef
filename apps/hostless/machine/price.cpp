#include "hostless/model/price.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "machine/machine_commands.hpp"
#include "numbers.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

struct PriceRequest {
  std::string machine, json;
  MessagePattern pattern;
};

nlohmann::ordered_json json_of(MachineModel const& machine, MessagePattern const& pattern,
                               MessagePrice const& price) {
  return {{"version", 1},
          {"machine", machine.name},
          {"locality", name(pattern.span)},
          {"memory", name(pattern.memory)},
          {"bytes", pattern.bytes},
          {"messages", pattern.messages},
          {"active_ranks", pattern.active_ranks},
          {"seconds", price.seconds},
          {"parts",
           {{"first_s", price.first},
            {"following_s", price.following},
            {"queue_search_s", price.queue},
            {"injection_s", price.injection}}},
          {"bound_by", price.injection_bound ? "injection" : "ranks"},
          {"protocol", name(price.protocol)},
          {"transfer", name(price.transfer)},
          {"sources", price.sources},
          {"notes", price.notes}};
}

int print_price(PriceRequest const& o) {
  MachineModel const machine = load_machine(o.machine);
  MessagePrice const found = price(machine, o.pattern);
  if (!o.json.empty()) write_text(o.json, json_text(json_of(machine, o.pattern, found)));
  if (o.json == "-") return 0;
  print("{}: {} of {:.0f} bytes by each of {} a node, {}, {} memory\n", machine.name,
        counted(o.pattern.messages, "message"), o.pattern.bytes, counted(o.pattern.active_ranks, "rank"),
        name(o.pattern.span), name(o.pattern.memory));
  print("  {:.4g} us, bound by {} ({}, {})\n", 1e6 * found.seconds,
        found.injection_bound ? "injection" : "the ranks", name(found.protocol), name(found.transfer));
  print("  one message {:.4g} us, what follows {:.4g} us, queue search {:.4g} us, injection {:.4g} us\n",
        1e6 * found.first, 1e6 * found.following, 1e6 * found.queue, 1e6 * found.injection);
  for (std::string const& source : found.sources) print("  source: {}\n", source);
  for (std::string const& note : found.notes) print("  note: {}\n", note);
  return 0;
}

// With '-' or '_' between the words.
template <class Values>
CLI::Option* add_choice(CLI::App& c, std::string const& option, Values const& values,
                        std::function<void(std::size_t)> const& take, std::string const& help) {
  std::vector<std::string> words;
  for (auto value : values) {
    words.emplace_back(name(value));
    std::replace(words.back().begin(), words.back().end(), '_', '-');
  }
  auto const chosen = [=](std::string text) {
    std::replace(text.begin(), text.end(), '_', '-');
    auto const found = std::find(words.begin(), words.end(), text);
    if (found == words.end())
      throw CLI::ValidationError(option, fmt::format("'{}' is none of {}", text, fmt::join(words, ", ")));
    take(static_cast<std::size_t>(found - words.begin()));
  };
  return c.add_option_function<std::string>(option, chosen,
                                            fmt::format("{}: {}", help, fmt::join(words, ", ")));
}

}  // namespace

void add_machine_price(CLI::App& machine, std::function<int()>& work) {
  auto o = std::make_shared<PriceRequest>();
  CLI::App* c = machine.add_subcommand("price", "What messages cost: seconds until all of them have arrived");
  c->add_option("--machine", o->machine, "A name of `machine list`, or a file")->required();
  add_choice(
      *c, "--locality", all_spans, [o](std::size_t k) { o->pattern.span = all_spans[k]; },
      "Where the two ends are")
      ->required();
  add_choice(
      *c, "--memory", all_memory_kinds, [o](std::size_t k) { o->pattern.memory = all_memory_kinds[k]; },
      "Whose memory")
      ->required();
  constexpr std::int64_t most_bytes = 1'000'000'000'000'000;
  c->add_option_function<std::string>(
       "--bytes", [o](std::string const& text) { o->pattern.bytes = std::stod(text); }, "Of each message")
      ->required()
      ->check(whole_number<std::int64_t>(0, most_bytes))
      ->type_name("INT");
  c->add_option("--messages", o->pattern.messages, "That each active rank sends")
      ->capture_default_str()
      ->check(whole_number(1));
  c->add_option("--active-ranks", o->pattern.active_ranks, "Of a node, each with a partner of its own")
      ->capture_default_str()
      ->check(whole_number(1));
  c->add_option("--json", o->json, "Write it as JSON; - for standard output")
      ->expected(0, 1)
      ->default_str("-");
  c->callback([o, &work] { work = [o] { return print_price(*o); }; });
}

}  // namespace hostless
