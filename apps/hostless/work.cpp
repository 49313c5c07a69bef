#include "work.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/counted.hpp"
#include "hostless/transport/mpi.hpp"
#include "numbers.hpp"

namespace hostless {

void add_gpus(CLI::App& command, int& gpus, bool& oversubscribe) {
  command.add_option("--gpus", gpus, find_option("gpus")->meaning)
      ->capture_default_str()
      ->check(whole_number(0));
  command.add_flag("--oversubscribe", oversubscribe, find_option("oversubscribe")->meaning);
}

void WorkOptions::add(CLI::App& command) {
  ranks.add(command);
  taken.add(command, OptionGroup::work);
}

SolveOptions WorkOptions::solve_options(RunKind kind) const {
  Choices choices;
  taken.put_into(choices);
  SolveOptions s = choices.solve;
  s.run.kind = kind;
  if (!choices.has_threads && kind == RunKind::persistent && s.run.gpus == 0) s.run.threads = 2;
  s.symmetry_compared = true;
  return s;
}

// What mpirun starts, on how many nodes, the solver sees.
void share_gpus(RankOptions& ranks, RunOptions const& run) {
  if (run.gpus > 1 && ranks.ranks == 0 && !started_by_mpi()) ranks.ranks = run.gpus;
  if (started_by_mpi() || ranks.transport == "mpi" || ranks.transport == "composite") return;
  int const all = std::max(ranks.ranks, 1);
  check_gpus(run, all);
  if (all < run.gpus)
    throw Error(ErrorCode::usage, fmt::format("{} on {} (some would have nothing to do). Use "
                                              "--gpus {}.",
                                              counted(all, "rank"), counted(run.gpus, "GPU"), all));
}

MatrixOptions WorkOptions::matrix_options(InputOptions const& input, LayoutOptions const& layout) const {
  bool const on_gpu = taken.word("generate_on") == "gpu";
  if (on_gpu && !input.generated())
    throw Error(ErrorCode::usage,
                fmt::format("--generate-on gpu with the matrix {} is refused (a file is read by the "
                            "host). Drop it, or use --generate or --preset.",
                            input.file));
  if (on_gpu && gpus() == 0)
    throw Error(ErrorCode::usage,
                "--generate-on gpu without a GPU is refused (nothing would make the matrix). Use --gpus 1.");
  MatrixOptions options = layout.parse(input.seed, gpus());
  options.generate_on_gpu = on_gpu;
  // Which says where a value does not fit fp32.
  options.host_layout = gpus() == 0 || taken.word("matrix_precision") != name(MatrixPrecision::fp64);
  return options;
}

}  // namespace hostless
