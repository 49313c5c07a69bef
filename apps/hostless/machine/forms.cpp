// Closed forms of table 6 (Lockhart et al. 2022): of one exchange, and of figure 4.3.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "hostless/model/closed_forms.hpp"
#include "machine/forms_json.hpp"
#include "machine/machine_commands.hpp"
#include "numbers.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {

using Json = nlohmann::ordered_json;

Json json_of(ExchangeSymbols const& x) {
  return {{"s_proc", x.s_proc},
          {"s_node", x.s_node},
          {"s_node_to_node", x.s_node_to_node},
          {"m_proc_to_node", x.m_proc_to_node},
          {"m_node_to_node", x.m_node_to_node},
          {"m_proc", x.m_proc},
          {"m_node", x.m_node},
          {"kept", x.kept}};
}

Json json_of(ClosedForms const& forms, ExchangeSymbols const& symbols) {
  Json all = Json::array();
  for (Reading reading : all_readings)
    for (ClosedForm const& form : forms.table(reading, symbols))
      all.push_back({{"strategy", name(form.strategy)},
                     {"staged", form.staged},
                     {"reading", name(reading)},
                     {"seconds", form.seconds()},
                     {"off_node_s", form.off_node},
                     {"on_node_s", form.on_node},
                     {"copies_s", form.copies}});
  return all;
}

namespace {

struct FormsRequest {
  std::string machine, json;
  int messages = 256, nodes = 16;
  double bytes = 1024, duplicates = 0;
};

void print_table(ClosedForms const& forms, ExchangeSymbols const& symbols) {
  print("{:<14} {:<13} {:>12} {:>12}   {}\n", "", "", "literal", "chosen",
        "chosen: off node, on node, copies");
  auto const literal = forms.table(Reading::literal, symbols), chosen = forms.table(Reading::chosen, symbols);
  for (std::size_t k = 0; k < literal.size(); ++k) {
    ClosedForm const& c = chosen[k];
    print("{:<14} {:<13} {:>9.2f} us {:>9.2f} us   {:.2f} + {:.2f} + {:.2f} us\n", name(c.strategy),
          c.staged ? "staged" : "device-aware", 1e6 * literal[k].seconds(), 1e6 * c.seconds(),
          1e6 * c.off_node, 1e6 * c.on_node, 1e6 * c.copies);
  }
}

int print_forms(FormsRequest const& o) {
  MachineModel const machine = load_machine(o.machine);
  ClosedForms const forms(machine);
  ExchangeSymbols const symbols =
      ExchangeSymbols::even(o.messages, o.bytes, o.nodes, 1 - o.duplicates, machine.node);
  if (!o.json.empty())
    write_text(o.json, json_text({{"version", 1},
                                  {"machine", machine.name},
                                  {"symbols", json_of(symbols)},
                                  {"message_cap_bytes", forms.message_cap()},
                                  {"forms", json_of(forms, symbols)}}));
  if (o.json == "-") return 0;
  print("{}: a node sends {} of {:.0f} bytes to {}, {:.0f} % of the bytes twice\n", machine.name,
        counted(o.messages, "message"), o.bytes, counted(o.nodes, "node"), 100 * o.duplicates);
  print_table(forms, symbols);
  return 0;
}

}  // namespace

void add_machine_forms(CLI::App& machine, std::function<int()>& work) {
  auto o = std::make_shared<FormsRequest>();
  CLI::App* c =
      machine.add_subcommand("forms", "Closed forms of an exchange between nodes with GPUs, in two readings");
  c->add_option("--machine", o->machine, "A name of `machine list`, or a file")->required();
  c->add_option("--messages", o->messages, "That a node sends, evenly from its GPUs")
      ->capture_default_str()
      ->check(whole_number(1));
  c->add_option("--bytes", o->bytes, "Of each message")->capture_default_str()->check(real_number(false));
  c->add_option("--nodes", o->nodes, "That it sends to")->capture_default_str()->check(whole_number(1));
  auto const share = [](std::string& text) -> std::string {
    char* stop = nullptr;
    double const value = std::strtod(text.c_str(), &stop);
    return !text.empty() && *stop == '\0' && value >= 0 && value < 1
               ? ""
               : fmt::format("'{}' (a share from 0 to below 1 is needed)", text);
  };
  c->add_option("--duplicates", o->duplicates,
                "Share of the bytes that node-aware ways send once instead of twice")
      ->capture_default_str()
      ->check(CLI::Validator(share, ""));
  c->add_option("--json", o->json, "Write it as JSON; - for standard output");
  c->callback([o, &work] { work = [o] { return print_forms(*o); }; });
}

}  // namespace hostless
