#include "hostless/model/machine_model.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

char const* const whole =
    R"({"format": "hostless-machine", "version": 1, "name": "toy", "description": "two sockets",
"sources": {"here": "made up"}, "nodes": 4,
"node": {"sockets": 2, "cores_per_socket": 8, "gpus_per_socket": 2, "dies_per_gpu": 2, "network_cards": 1, "source": "here"},
"links": [{"from": "gpu0", "to": "gpu1", "kind": "fabric", "links": 4, "hops": 1, "bytes_per_s": 2e11, "source": "here"}],
"messages": [{"locality": "off_node", "memory": "host", "source": "here", "queue_search_s": 2e-9, "pieces": [
  {"protocol": "short", "transfer": "inlined", "up_to_bytes": 128, "alpha_s": 1.5e-6, "beta_s_per_byte": 1e-9},
  {"protocol": "eager", "transfer": "buffered", "up_to_bytes": 8192, "alpha_s": 2e-6, "beta_s_per_byte": 4e-10},
  {"protocol": "rendezvous", "transfer": "direct", "up_to_bytes": null, "alpha_s": 7e-6, "beta_s_per_byte": 8e-11}]},
 {"locality": "on_node", "memory": "gpu", "pieces": "no data", "source": "here"}],
"injection": [{"memory": "host", "sharpness": 3.5, "source": "here", "limits": [{"up_to_bytes": null, "per": "node", "s_per_byte": 4e-11}]}],
"copies": [{"direction": "host_to_device", "processes": 1, "alpha_s": 1.3e-5, "beta_s_per_byte": 2e-11, "source": "here"}],
"triggers": {"kernel_launch_s": 4e-6, "source": "here"}})";

std::string problem_of(std::string const& text) {
  try {
    parse_machine(text, "toy.json");
  } catch (Error const& problem) {
    EXPECT_EQ(problem.exit_code(), 3);
    return problem.what();
  }
  return "accepted";
}

std::string changed(std::string const& from, std::string const& to) {
  std::string text = whole;
  std::size_t const at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MachineModel, ReadsEveryValue) {
  MachineModel const m = parse_machine(whole, "toy.json");
  EXPECT_EQ(m.name, "toy");
  EXPECT_EQ(m.nodes, 4);
  EXPECT_EQ(m.node.cores(), 16);
  EXPECT_EQ(m.node.gpus(), 4);
  ASSERT_EQ(m.links.size(), 1U);
  EXPECT_EQ(m.links[0].bytes_per_s, 2e11);
  MessageCosts const* const host = m.costs.find(MessageSpan::off_node, MemoryKind::host);
  ASSERT_NE(host, nullptr);
  EXPECT_EQ(host->queue_search, 2e-9);
  EXPECT_EQ(host->piece(128).protocol, Protocol::short_message);
  EXPECT_EQ(host->piece(129).protocol, Protocol::eager);
  EXPECT_EQ(host->piece(1e12).line.beta, 8e-11);
  EXPECT_EQ(m.costs.find(MessageSpan::on_node, MemoryKind::gpu), nullptr) << "there is no data";
  EXPECT_EQ(m.costs.find(MemoryKind::host)->sharpness, 3.5);
  EXPECT_EQ(m.costs.find(CopyDirection::host_to_device, 1)->line.alpha, 1.3e-5);
  EXPECT_EQ(m.triggers->kernel_launch, 4e-6);
  EXPECT_FALSE(m.triggers->graph_node);
}

// What is changed, into what, the line on which that is, and words of the message.
struct Malformed {
  char const *from, *to;
  int line;
  char const* words;
};

TEST(MachineModel, RefusesWithFileLineAndValue) {
  Malformed const all[] = {
      {R"("version": 1)", R"("version": 2)", 1, "version: 2 is not in [1, 1]"},
      {R"("version": 1)", R"("version": "1")", 1, R"("1" where a whole number must be)"},
      {"hostless-machine", "another", 1, R"("another" is none of hostless-machine)"},
      {R"("nodes": 4)", R"("nodes": 0)", 2, "nodes: 0 is not in [1, 16777216]"},
      {R"("nodes": 4)", R"("nodes": 4, "nodes": 5)", 2, "'nodes' is there twice"},
      {R"("nodes": 4)", R"("nods": 4)", 2, "'nods' is unknown here. Did you mean 'nodes'?"},
      {R"("nodes": 4,)", "", 1, "'nodes' is missing"},
      {R"("sockets": 2)", R"("sockets": 2.5)", 3, "2.5 where a whole number must be"},
      {R"("dies_per_gpu": 2)", R"("dies_per_gpu": 3)", 3, "3 does not divide the 2 of a socket"},
      {R"("source": "here"},
"links")",
       R"("source": "there"},
"links")",
       3, "'there' is none of the file's sources"},
      {R"("to": "gpu1")", R"("to": "gpu4")", 4, "'gpu4' is none of the node's 4 gpu"},
      {R"("to": "gpu1")", R"("to": "gpu0")", 4, "'gpu0' is linked with itself"},
      {R"("bytes_per_s": 2e11)", R"("bytes_per_s": 5e-12)", 4,
       "5e-12 cannot be bytes a second, as 2.4e10: it is not in [1e+06, 1e+15]"},
      {R"("locality": "off_node")", R"("locality": "off-rack")", 5,
       R"("off-rack" is none of on_socket, on_node, off_node)"},
      {"2e-9", "-2e-9", 5, "cannot be seconds"},
      {"2e-9", "0.002", 5, "0.002 cannot be seconds of a search, as 3e-09: it is not in [1e-10, 0.0001]"},
      {R"("name": "toy")", R"("name": "  ")", 1, R"("  " where a text must be)"},
      {R"("up_to_bytes": 8192)", R"("up_to_bytes": 64)", 7,
       "64 is not above 128, where the piece before ends"},
      {R"("alpha_s": 2e-6)", R"("alpha_s": 5e5)", 7, "500000.0 cannot be seconds"},
      {R"("alpha_s": 2e-6)", R"("alpha_s": 0.37)", 7,
       "0.37 cannot be seconds, as 1.4e-06: it is not in [1e-10, 0.1]"},  // microseconds
      {R"("beta_s_per_byte": 4e-10)", R"("beta_s_per_byte": 2.5e9)", 7,
       "cannot be seconds a byte, as 4.2e-11: it is not in [1e-15, 1e-06]"},
      {R"("beta_s_per_byte": 4e-10)", R"("beta_s_per_byte": null)", 7, "null where a number must be"},
      {R"("protocol": "eager")", R"("protocol": "rendezvous")", 8, ""},
      {R"("protocol": "rendezvous")", R"("protocol": "short")", 8, "'short' after 'eager'"},
      {R"("up_to_bytes": null, "alpha_s": 7e-6)", R"("up_to_bytes": 1e6, "alpha_s": 7e-6)", 8,
       "1000000.0 where null must be"},
      {R"("alpha_s": 7e-6, "beta_s_per_byte": 8e-11)", R"("alpha_s": 0, "beta_s_per_byte": 0)", 8,
       "a message that takes no time"},
      {R"("locality": "on_node", "memory": "gpu")", R"("locality": "off_node", "memory": "host")", 9,
       "off_node messages of host memory are there twice"},
      {R"("s_per_byte": 4e-11)", R"("s_per_byte": 2.4e10)", 10, "it is not in [1e-15, 1e-06]"},
      {R"("sharpness": 3.5)", R"("sharpness": 0.5)", 10, "0.5 cannot be an exponent"},
      {R"("per": "node")", R"("per": "rack")", 10, "is none of node, socket"},
      {R"("processes": 1)", R"("processes": 0)", 11, "0 is not in [1, 1024]"},
      {R"("kernel_launch_s": 4e-6)", R"("kernel_launch_s": 250000)", 12, "250000 cannot be seconds"},
      {R"("source": "here"}})", R"("source": "here"})", 12, "not JSON, or cut short: it ends inside a value"},
      {R"("nodes": 4)", R"("nodes": NaN)", 2, "at column 42: 'NaN' (JSON has finite numbers alone)"},
      {R"("nodes": 4)", R"("nodes": 4 // four)", 2, "at column 44: '//' (JSON has no comments)"},
      {R"("source": "here"}})", R"("source": "here"}} {})", 12, "'{' behind the end of the document"},
      {R"("name": "toy")", R"("name": "to\u001b[31my")", 1, "has control characters"},
  };
  for (Malformed const& m : all) {
    std::string const problem = problem_of(changed(m.from, m.to));
    if (*m.words == '\0') {  // a protocol may have several pieces
      EXPECT_EQ(problem, "accepted") << m.to;
      continue;
    }
    EXPECT_EQ(problem.find(fmt::format("toy.json:{}: ", m.line)), 0U) << m.to << "\n" << problem;
    EXPECT_NE(problem.find(m.words), std::string::npos) << m.to << "\n" << problem;
    EXPECT_EQ(problem.find('\n'), std::string::npos) << problem;
  }
}

TEST(MachineModel, ShippedOnesAreReadAndWrittenWithTheSameValues) {
  auto const names = shipped_machines();
  for (char const* name : {"dgx-h200", "frontier", "hgx-a100", "lassen", "lumi", "marenostrum5", "mi250-node",
                           "summit", "tuolumne"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  for (std::string const& name : names) {
    MachineModel const machine = load_machine(name);
    EXPECT_EQ(machine.name, name);
    std::string const text = to_json(machine);
    EXPECT_EQ(to_json(parse_machine(text, "again")), text) << name;
  }
}

TEST(MachineModel, PublishedTablesOfLassenAreThoseOfThePaper) {
  MachineModel const lassen = load_machine("lassen");
  CostTables const& tables = lassen.for_closed_forms();
  EXPECT_EQ(tables.find(MessageSpan::off_node, MemoryKind::host)->piece(64).line.alpha, 1.89e-6);
  EXPECT_EQ(tables.find(MessageSpan::on_node, MemoryKind::gpu)->piece(1e6).line.beta, 2.39e-11);
  EXPECT_EQ(tables.find(MessageSpan::off_node, MemoryKind::gpu)->pieces.size(), 2U)
      << "no short messages of GPUs";
  EXPECT_EQ(tables.find(MemoryKind::host)->limits[0].seconds_per_byte, 4.19e-11);
  EXPECT_EQ(lassen.costs.find(CopyDirection::host_to_device, 4)->line.beta, 5.52e-10)
      << "no data of four processes but these";
}

TEST(MachineModel, NamesThatNobodyKnows) {
  try {
    load_machine("lasen");
    FAIL();
  } catch (Error const& problem) {
    EXPECT_EQ(problem.exit_code(), 2);
    EXPECT_NE(std::string(problem.what()).find("Did you mean 'lassen'?"), std::string::npos)
        << problem.what();
  }
  EXPECT_THROW(load_machine("./no-such-file.json"), Error);
}

}  // namespace
}  // namespace hostless
