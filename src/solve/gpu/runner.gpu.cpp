#include "solve/gpu/runner.hpp"

#include "solve/gpu/run_graph.hpp"
#include "solve/gpu/run_persistent.hpp"
#include "solve/gpu/run_stream.hpp"

namespace hostless::gpu {
namespace {

// Why the persistent kernel cannot run; empty when it can.
std::string persistent_problem(Problem const& problem, Layout const& layout, Instance const& instance) {
  if (multiplied_apart(problem.rows->format))
    return "the persistent kernel with this format (its products are made by kernels of their own)";
  if (layout.rounds > most_rounds || layout.pairs > most_pairs) {
    return std::to_string(layout.tiling.slices) + " slices in the persistent kernel of a GPU with " +
           std::to_string(layout.blocks) + " multiprocessors (a block works on at most " +
           std::to_string(2 * most_rounds) + ", all together on " + std::to_string(2 * most_pairs) + ")";
  }
  if (instance.shared_bytes(problem.device) < 0)
    return "the persistent kernel needs more shared memory than this GPU has (its blocks meet there)";
  return {};
}

}  // namespace

RunChoice choose_run(Problem const& asked, Layout const& layout, Instance const& instance) {
  RunKind const wanted = asked.run;
  if (wanted == RunKind::stream || wanted == RunKind::graph) return {wanted, "asked for"};
  std::string const problem = persistent_problem(asked, layout, instance);
  if (wanted == RunKind::automatic) {
    if (!problem.empty()) return {RunKind::stream, problem};
    return {RunKind::persistent, "its kernel fits, " + std::to_string(layout.rounds) +
                                     " pairs of slices a multiprocessor: no launch between two phases"};
  }
  if (!problem.empty())
    throw Error(ErrorCode::usage, problem + ". Use --run stream or graph, or fewer slices.");
  return {wanted, "asked for"};
}

std::unique_ptr<Runner> make_runner(RunKind kind, Arguments& arguments, Instance const& instance,
                                    Problem const& problem) {
  switch (kind) {
    case RunKind::stream:
      return std::make_unique<StreamRunner>(arguments, instance, problem);
    case RunKind::graph:
      return std::make_unique<GraphRunner>(arguments, instance, problem.free_order);
    default:
      return std::make_unique<Persistent>(arguments, instance, problem.device);
  }
}

}  // namespace hostless::gpu
