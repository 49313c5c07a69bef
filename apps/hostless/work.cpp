#include "work.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "numbers.hpp"

namespace hostless {

void add_gpus(CLI::App& command, int& gpus, bool& oversubscribe) {
  command
      .add_option("--gpus", gpus,
                  "GPUs to run on; several: as many ranks, threads of this process. 0: the processor")
      ->capture_default_str()
      ->check(whole_number(0));
  command.add_flag("--oversubscribe", oversubscribe, "Several ranks may share a GPU: to test, slow");
}

void WorkOptions::add(CLI::App& command) {
  ranks.add(command);
  add_gpus(command, gpus, oversubscribe);
  command
      .add_option("--generate-on", generate_on,
                  "host, or gpu: the GPU makes the entries of the generated matrix, which the host never has")
      ->capture_default_str()
      ->check(one_of({"host", "gpu"}));
  command.add_option("--lanes", threads, "Threads a rank, for --run persistent (default 2)")
      ->check(whole_number(1, most_workers));
  command.add_option("--preconditioner", preconditioner, "none, jacobi, block-jacobi or chebyshev")
      ->capture_default_str();
  command
      .add_option(
          "--matrix-precision", matrix_precision,
          "fp64, or fp32: iterations multiply with the rounded matrix, true residuals with the exact one "
          "(method cg)")
      ->capture_default_str();
  command
      .add_option(
          "--reduction", reduction,
          "ordered (the same bits on every transport) or fast (the library's all-reduce; on a GPU sums in "
          "whatever order is quickest)")
      ->capture_default_str();
}

SolveOptions WorkOptions::solve_options(RunKind kind) const {
  SolveOptions s;
  s.run.kind = kind;
  s.run.gpus = gpus;
  s.run.oversubscribe = oversubscribe;
  s.run.gpu_transport = gpu_transport_from(gpu_transport.c_str());
  s.run.threads = threads > 0 ? threads : kind == RunKind::persistent && gpus == 0 ? 2 : 1;
  s.preconditioner = preconditioner_from(preconditioner.c_str());
  s.matrix_precision = matrix_precision_from(matrix_precision.c_str());
  s.reduction = reduction_from(reduction.c_str());
  s.check_symmetry = false;
  return s;
}

// What mpirun starts, on how many nodes, the solver sees.
void share_gpus(RankOptions& ranks, RunOptions const& run) {
  if (run.gpus > 1 && ranks.ranks == 0 && !started_by_mpi()) ranks.ranks = run.gpus;
  if (started_by_mpi() || ranks.transport == "mpi") return;
  int const all = std::max(ranks.ranks, 1);
  check_gpus(run, all);
  if (all < run.gpus)
    throw Error(ErrorCode::usage, fmt::format("{} ranks on {} GPUs (some would have nothing to do). Use "
                                              "--gpus {}.",
                                              all, run.gpus, all));
}

MatrixOptions WorkOptions::matrix_options(InputOptions const& input, LayoutOptions const& layout) const {
  bool const on_gpu = generate_on == "gpu";
  if (on_gpu && !input.generated())
    throw Error(ErrorCode::usage, fmt::format("--generate-on gpu with the matrix {} (a file is read by the "
                                              "host). Drop it, or use --generate or --preset.",
                                              input.file));
  if (on_gpu && gpus == 0)
    throw Error(ErrorCode::usage,
                "--generate-on gpu without a GPU (nothing would make the matrix). Use --gpus 1.");
  MatrixOptions options = layout.parse(input.seed, gpus);
  options.generate_on_gpu = on_gpu;
  options.host_layout =
      gpus == 0 || matrix_precision != "fp64";  // which says where a value does not fit fp32
  return options;
}

}  // namespace hostless
