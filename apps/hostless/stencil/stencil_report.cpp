#include "stencil/stencil_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/counted.hpp"
#include "stencil/grid_options.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

char const* type_of(StencilReport const& r) { return r.value_bytes == 4 ? "fp32" : "fp64"; }

Json looks_of(StencilReport const& r) {
  Json history = Json::array();
  for (StencilChange const& change : r.taken.result.history)
    history.push_back({{"step", change.step}, {"norm", change.norm}, {"largest", change.largest}});
  return history;
}

double cells_per_second(StencilReport const& r) {
  return r.step_s() > 0 ? static_cast<double>(r.cells()) / r.step_s() : 0;
}

std::string waiting(StencilReport const& r) {
  StencilResult const& result = r.taken.result;
  if (!r.gpu_of_part.empty() || result.run_s <= 0) return {};
  return fmt::format(", {:.0f} % waiting for halos", 100 * result.exchange_s / result.run_s);
}

}  // namespace

std::int64_t StencilReport::cells() const {
  std::int64_t all = 1;
  for (std::int64_t const extent : size) all *= extent;
  return all;
}

double StencilReport::step_s() const {
  bool const is_known = taken.result.steps > 0 && !taken.lost_among_steps;
  return is_known ? taken.result.run_s / static_cast<double>(taken.result.steps) : 0;
}

std::string to_json(StencilReport const& r) {
  StencilResult const& result = r.taken.result;
  Json json = {{"version", 1},
               {"program", "hostless " HOSTLESS_VERSION},
               {"provenance", Json::parse(to_json(r.provenance))},
               {"problem", r.stencil->name},
               {"size", r.size},
               {"type", type_of(r)},
               {"boundary", r.boundary}};
  json["parameters"] = Json::object();
  for (std::size_t k = 0; k < r.parameters.size(); ++k)
    json["parameters"][r.stencil->parameters[k]] = r.parameters[k];
  json["fields"] = r.stencil->fields;
  json["initial"] = r.initial;
  json["transport"] = r.transport;
  json["ranks"] = r.ranks;
  json["ranks_along"] = r.ranks_along;
  json["route"] = r.route;
  json["gpus"] = std::set<int>(r.gpu_of_part.begin(), r.gpu_of_part.end()).size();
  if (!r.gpu_of_part.empty()) {
    json["gpu_of_part"] = r.gpu_of_part;
    json["gpu"] = r.gpu;
    json["gpu_run"] = r.gpu_run;
  }
  json["depth"] = r.depth;
  json["block_steps"] = r.block_steps;
  json["shares_cells"] = r.shares_cells;
  json["resumed_at"] = r.resumed_at;
  json["steps"] = r.resumed_at + result.steps;
  json["status"] = name(result.status);
  json["message"] = result.message;
  json["seconds"] = result.run_s;
  json["exchange_seconds"] = result.exchange_s;
  json["microseconds_per_step"] = 1e6 * r.step_s();
  json["cells_per_second"] = cells_per_second(r);
  json["history"] = looks_of(r);
  json["checkpoints"] = r.taken.checkpoints;
  if (!r.checkpoint.empty()) json["checkpoint"] = r.checkpoint;
  if (!r.output.empty()) json["output"] = r.output;
  return json_text(json);
}

std::string summary(StencilReport const& r) {
  StencilResult const& result = r.taken.result;
  std::string text = fmt::format("{} after {} of {}\n", name(result.status),
                                 counted(r.resumed_at + result.steps, "step"), r.stencil->name);
  if (!result.message.empty()) text += fmt::format("  {}\n", result.message);
  auto const row = [&](char const* what, std::string const& value) {
    text += fmt::format("  {:<11} {}\n", what, value);
  };
  row("grid",
      fmt::format("{} cells, {}, boundary {}", shape_text(r.size), type_of(r), fmt::join(r.boundary, ",")));
  std::vector<std::string> numbers;
  for (std::size_t k = 0; k < r.parameters.size(); ++k)
    numbers.push_back(fmt::format("{}={}", r.stencil->parameters[k], r.parameters[k]));
  if (!numbers.empty()) row("parameters", fmt::format("{}", fmt::join(numbers, " ")));
  row("initial", r.initial);
  if (!r.gpu_of_part.empty()) {
    row("gpu", fmt::format("{}; {}", r.gpu, r.gpu_run));
  } else {
    std::string const halos = r.shares_cells ? "arrays that all share"
                                             : fmt::format("{} between exchanges", counted(r.depth, "step"));
    row("ranks", fmt::format("{} ({}), {}; {}, {} in a pass", r.ranks, fmt::join(r.ranks_along, " x "),
                             r.transport, halos, r.block_steps));
  }
  if (r.taken.lost_among_steps)
    row("time", fmt::format("{:.3f} s until the loss was noticed", result.run_s));
  else if (result.steps > 0)
    row("time", fmt::format("{:.3f} s, {:.2f} us a step, {:.1f} million cells/s{}", result.run_s,
                            1e6 * r.step_s(), 1e-6 * cells_per_second(r), waiting(r)));
  if (r.taken.checkpoints > 0)
    row("checkpoint", fmt::format("{}, written {}", r.checkpoint, counted(r.taken.checkpoints, "time")));
  if (!r.output.empty()) row("written", fmt::format("{}", fmt::join(r.output, ", ")));
  return text;
}

std::string line_of(NamedStencil const& stencil, StencilChange const& change) {
  std::string text = fmt::format("step {}", change.step);
  for (std::size_t f = 0; f < change.norm.size(); ++f)
    text += fmt::format("   {}: change {:.6e}, at most {:.6e} in a cell", stencil.fields[f], change.norm[f],
                        change.largest[f]);
  return text + "\n";
}

}  // namespace hostless
