#pragma once
// What the subcommands of `hostless bench` share.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/timing.hpp"
#include "commands.hpp"
#include "hostless/solve/provenance.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

void add_bench_solve(CLI::App& bench, Arguments const& arguments, std::function<int()>& work);
void add_bench_papers(CLI::App& bench, Arguments const& arguments, std::function<int()>& work);
void add_bench_stencil(CLI::App& bench, Arguments const& arguments, std::function<int()>& work);
void add_bench_life(CLI::App& bench, Arguments const& arguments, std::function<int()>& work);
void add_bench_neighbor(CLI::App& bench, Arguments const& arguments, std::function<int()>& work);
void add_bench_messages(CLI::App& bench, Arguments const& arguments, std::function<int()>& work);

/// How often something is done, and where the figures go.
struct MeasureOptions {
  bench::Protocol protocol;
  std::string json;

  void add(CLI::App& command);
  bool prints_table() const { return json != "-"; }
};

/// The head of every report of `bench`, and of one that is of a transport.
nlohmann::ordered_json bench_head(char const* what, Provenance const& provenance);
nlohmann::ordered_json bench_report(char const* what, Provenance provenance, Transport& transport);

}  // namespace hostless
