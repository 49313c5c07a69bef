#include "solve/gpu/runner.hpp"

#include "solve/gpu/run_graph.hpp"
#include "solve/gpu/run_model.hpp"
#include "solve/gpu/run_persistent.hpp"
#include "solve/gpu/run_stream.hpp"

namespace hostless::gpu {

namespace {

// Of the methods that have a second persistent kernel, and one of several right-hand sides.
template <class... All>
std::string names_that_span_ranks(MethodList<All...>) {
  std::string text;
  ((text += !All::offers.spans_ranks ? "" : (text.empty() ? "" : " and ") + std::string(All::name)), ...);
  return text;
}

}  // namespace

std::string persistent_problem(Problem const& problem, Layout const& layout, Instance const& instance) {
  std::string const columns = std::to_string(problem.columns) + " right-hand sides at once";
  if (problem.columns > wide_columns)
    return "the persistent kernel with " + columns + " (it has registers for " +
           std::to_string(wide_columns) + ")";
  if (problem.columns > 1 && !instance.takes_columns)
    return "the persistent kernel of this method with " + columns + " (this version compiles those of " +
           names_that_span_ranks(Methods{}) + ", without a polynomial)";
  if (multiplied_apart(problem.rows->format))
    return "the persistent kernel with this format (its products are made by kernels of their own)";
  if (layout.turns > most_turns || layout.tiles > most_tiles) {
    return std::to_string(layout.tiling.slices) + " slices in the persistent kernel of a GPU with " +
           std::to_string(layout.blocks) + " multiprocessors (a block works on at most " +
           std::to_string(2 * most_turns) + ", all together on " + std::to_string(2 * most_tiles) + ")";
  }
  if (problem.columns > 1 && layout.turns > most_wide_turns)
    return std::to_string(layout.tiling.slices) + " slices in the persistent kernel with " + columns +
           " of a GPU with " + std::to_string(layout.blocks) + " multiprocessors (a block works on at most " +
           std::to_string(2 * most_wide_turns) + ")";
  if (problem.ranks > 1 && !instance.spans_ranks)
    return "the persistent kernel of this method on several ranks (this version compiles those of " +
           names_that_span_ranks(Methods{}) + ", with an fp64 matrix and without a polynomial)";
  Ranks const ranks = ranks_of(problem.ranks, problem.copies == nullptr ? 1 : problem.copies->rounds.size());
  if ((problem.columns > 1 ? instance.shared_bytes_of_columns(problem.device, problem.columns)
                           : instance.shared_bytes(problem.device, ranks)) < 0)
    return "the persistent kernel needs more shared memory than this GPU has (its blocks meet there)";
  return {};
}

namespace {

ModelMachine machine_of(int device) {
  ModelMachine machine;
  HOSTLESS_DEVICE_PROPERTIES properties{};
  check(HOSTLESS_GPU(GetDeviceProperties)(&properties, device), "asking a GPU what it is");
  int kilohertz = 0, bits = 0;
  auto const ask = [&](auto what, int& to) {
    if (HOSTLESS_GPU(DeviceGetAttribute)(&to, what, device) != HOSTLESS_GPU(Success)) {
      (void)HOSTLESS_GPU(GetLastError)();
      to = 0;
    }
  };
  ask(HOSTLESS_MEMORY_CLOCK_RATE, kilohertz);
  ask(HOSTLESS_MEMORY_BUS_WIDTH, bits);
  machine.bytes_a_s = 2e3 * kilohertz * bits / 8;  // two transfers a cycle
  machine.l2_bytes = properties.l2CacheSize;
  machine.multiprocessors = properties.multiProcessorCount;
  return machine;
}

ModelWork work_of(Problem const& problem, Layout const& layout, Instance const& instance,
                  bool persistent_fits) {
  DeviceRows const& rows = *problem.rows;
  bool const shared_rows =
      problem.free_order && rows.format == DeviceFormat::csr && rows.tiling.threads_per_row == 1;
  int const threads_per_row =
      shared_rows ? free_threads_per_row(static_cast<std::int64_t>(rows.value.size()), rows.tiling.rows())
                  : rows.tiling.threads_per_row;
  OnChip on_chip;
  if (persistent_fits) {
    on_chip = find_on_chip({rows.format, rows.diagonals, rows.farthest, threads_per_row}, layout, instance,
                           problem.device, problem.columns);
  }
  ModelWork work;
  work.phases = phases_of(problem.text, problem.polynomial.degree, on_chip.fuses());
  work.matrix_bytes = static_cast<double>(problem.matrix_bytes);
  work.vector_bytes = static_cast<double>(problem.vector_bytes);
  work.matrix_store = static_cast<double>(rows.bytes_per_sweep());
  work.vector_store = 8.0 * static_cast<double>(problem.owned) * problem.columns;
  work.fields = instance.fields - 1;
  if (on_chip.fields > 0)
    work.on_chip_share = static_cast<double>(on_chip.fields_on_chip) / static_cast<double>(on_chip.fields);
  work.matrix_on_chip = on_chip.all;
  work.blocks = layout.blocks;
  work.replayed = !while_nodes_expected();
  return work;
}

RunChoice choose_automatically(Problem const& problem, Layout const& layout, Instance const& instance) {
  std::string obstacle = persistent_problem(problem, layout, instance);
  if (obstacle.empty() && problem.columns > 2 && problem.rows->tiling.block > 1)
    obstacle =
        "more than two right-hand sides with blocks of rows, which phases were measured to be faster with";
  if (problem.trace_barriers > 0 && obstacle.empty())
    return {RunKind::persistent, "its own clock records a profile without kernels between phases"};
  if (problem.check_interval > 1)
    return {RunKind::stream, "only its host looks at the state, for which a check interval was asked"};
  ModelChoice const choice = choose_by_model(
      predict(machine_of(problem.device), work_of(problem, layout, instance, obstacle.empty())), obstacle);
  return {choice.kind, choice.why};
}

}  // namespace

PartedTiles choose_parts(Problem const& problem, int tiles) {
  // Branches of graphs of several ranks on one GPU get in each other's way for good: one that waits for another rank holds
  // what that one's other branch would begin in (docs/decisions/0037).
  if (problem.sharers > 1 && problem.run != RunKind::stream) return {};
  Parting const wanted = parting_wanted(std::getenv("HOSTLESS_GPU_OVERLAP"));
  PartedTiles parted = part_tiles(problem.border, tiles);
  bool const pays =
      parting_pays(machine_of(problem.device), static_cast<double>(problem.rows->bytes_per_sweep()),
                   parted.interior, tiles - parted.interior);
  bool const parts =
      parted.interior > 0 && (wanted == Parting::always || (wanted == Parting::where_it_pays && pays));
  return parts ? std::move(parted) : PartedTiles{};
}

RunChoice choose_run(Problem const& asked, Layout const& layout, Instance const& instance) {
  if (asked.run == RunKind::automatic) return choose_automatically(asked, layout, instance);
  if (asked.run == RunKind::persistent) {
    std::string const problem = persistent_problem(asked, layout, instance);
    if (!problem.empty())
      throw Error(ErrorCode::usage, problem + ". Use --run stream or graph, or fewer slices.");
  }
  return {asked.run, "asked for"};
}

RunChoice choose_phases(Problem const& problem, Layout const& layout, Instance const& instance,
                        std::string const& reason) {
  ModelChoice const choice =
      choose_by_model(predict(machine_of(problem.device), work_of(problem, layout, instance, false)), reason);
  return {choice.kind, choice.why};
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
