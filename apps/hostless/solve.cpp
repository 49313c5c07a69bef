#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/counted.hpp"
#include "commands.hpp"
#include "file_names.hpp"
#include "hostless/files/vector_file.hpp"
#include "hostless/machine/bandwidth.hpp"
#include "hostless/machine/topology.hpp"
#include "hostless/solve/report.hpp"
#include "hostless/solve/symmetry.hpp"
#include "hostless/transport/libraries.hpp"
#include "hostless/transport/mpi.hpp"
#include "input.hpp"
#include "options_of.hpp"
#include "setup_shown.hpp"
#include "signals.hpp"
#include "solve/methods/method_vectors.hpp"
#include "standard_output.hpp"
#include "work.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

struct Options {
  InputOptions input;
  LayoutOptions layout;
  WorkOptions work;
  std::vector<std::string> files;  // A [b] [x0], or [b] [x0] with a generated matrix
  bool manufactured = false, quiet = false, no_bandwidth = false;
  std::string json, output;

  std::string b, x0;  // taken out of `files`
  Provenance provenance;
};

TakenOptions const& taken(Options const& o) { return o.work.taken; }

int columns_of(Options const& o) { return static_cast<int>(taken(o).number("rhs_columns")); }

RunKind run_of(Options const& o) {
  Choices choices;
  taken(o).put_into(choices);
  return choices.run_kind();
}

SolveOptions solve_options(Options const& o) {
  SolveOptions s = o.work.solve_options(run_of(o));
  s.run.stop_requested = [] { return asked_to_end() != 0; };
  s.run.stop_reason = [] { return words_of_end(asked_to_end()); };
  return s;
}

// On the processor only the host run has gates to look at.
void check_interval(Options const& o) {
  bool const looks = o.work.gpus() > 0 || run_of(o) == RunKind::host;
  if (taken(o).is_given("check_interval") && !looks)
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "--check-interval with the {} run on the processor is refused (it has no gates to look at). "
            "Drop it, or use --run host.",
            name(run_of(o))));
}

// Only --run auto on a GPU leaves something to be measured.
void check_tune(Options const& o) {
  if (!taken(o).is_given("tune")) return;
  if (o.work.gpus() == 0)
    throw Error(
        ErrorCode::usage,
        "--tune without a GPU is refused (it measures the runs there). Use --gpus 1 --run auto, or drop it.");
  if (run_of(o) != RunKind::automatic)
    throw Error(
        ErrorCode::usage,
        fmt::format("--tune with the {} run is refused (it has been chosen). Use --run auto, or drop it.",
                    name(run_of(o))));
  std::string const by = taken(o).word("gpu_transport");
  bool const by_name = by != "auto" && by != "peer";
  if (o.work.gpus() > 1 || o.work.ranks.ranks > 1 || by_name)
    throw Error(ErrorCode::usage,
                "--tune with several ranks or a --gpu-transport is refused (runs are measured on one GPU "
                "alone; there auto "
                "takes the persistent run where it fits, else graph). Drop it.");
  if (taken(o).is_given("profile") || taken(o).number("check_interval") != 1)
    throw Error(ErrorCode::usage,
                "--tune with --profile or --check-interval is refused (they choose the run, nothing is "
                "measured). Drop it.");
}

void check_tolerance(Options const& o) {
  std::string const method = taken(o).word("method");
  bool const compares = symmetry_for(method_from(method.c_str())) == Symmetry::required;
  check_symmetry_tolerance(taken(o), o.input.generated(), compares ? "" : "--method " + method);
}

// b = 1 would lie in the null space of a generated singular matrix, or have parts there.
bool is_made_for_singular(Options const& o) {
  return o.b.empty() && !o.manufactured && o.input.generated() && is_singular(o.input.problem());
}

std::string describe_rhs(Options const& o) {
  if (!o.b.empty()) return o.b;
  std::string const made = fmt::format("A x*, x* random of seed {}", o.input.seed);
  if (is_made_for_singular(o))
    return made + " (A is singular, and b = 1 has parts that no x reaches; a file has any other b)";
  return o.manufactured ? made : "1 in every row";
}

void fill_vectors(Options const& o, Matrix const& matrix, Solver& solver) {
  Group& group = matrix.transport().group();
  int const columns = columns_of(o);
  auto const rows = static_cast<std::size_t>(matrix.last_row() - matrix.first_row());
  auto read_share = [&](std::string const& path, auto const& to) {
    auto const mine = read_columns_share(group, path, {matrix.global_rows(), columns}, matrix.first_row(),
                                         matrix.last_row());
    for (int c = 0; c < columns; ++c)
      matrix.to_local(std::span(mine).subspan(static_cast<std::size_t>(c) * rows, rows), to(c));
  };
  if (o.manufactured || is_made_for_singular(o)) {
    solver.manufacture(o.input.seed);
  } else if (!o.b.empty()) {
    read_share(o.b, [&](int c) { return solver.b(c); });
  } else {
    std::fill(solver.b().begin(), solver.b().end(), 1.0);
  }
  if (!o.x0.empty()) read_share(o.x0, [&](int c) { return solver.x(c); });
}

// A checkpoint may go on in place.
void check_files(Options const& o) {
  std::string const resume = taken(o).word("resume_file");
  if (!o.x0.empty() && !resume.empty())
    throw Error(
        ErrorCode::usage,
        "a first guess with --resume is refused (the checkpoint goes on from its own x). Drop one of them.");
  std::vector<NamedFile> const results = {
      {"--output", o.output}, {"--json", o.json}, {"--profile", taken(o).word("profile")}};
  std::vector<NamedFile> written = results, read = files_read(o.input, o.layout);
  written.push_back({"--checkpoint", taken(o).word("checkpoint_file")});
  read.insert(read.end(), {{"the right-hand side", o.b}, {"the first guess", o.x0}});
  check_names(written, read);
  check_names(results, {{"--resume", resume}});
}

// Files that come into being under a temporary name need a folder that takes one.
void check_target(std::string const& path) {
  std::error_code ignored;
  auto const now = std::filesystem::status(path, ignored).type();
  if (now != std::filesystem::file_type::not_found && now != std::filesystem::file_type::regular &&
      now != std::filesystem::file_type::none) {
    throw Error(ErrorCode::environment,
                path + ": cannot be written: not a regular file (renaming would replace it). Name a file.");
  }
  check_whole_file(path);
}

void check_targets(Options const& o) {
  if (!o.json.empty() && o.json != "-") check_whole_file(o.json);
  if (std::string const file = taken(o).word("profile"); !file.empty()) check_whole_file(file);
  if (!o.output.empty()) check_target(o.output);
  if (std::string const file = taken(o).word("checkpoint_file"); !file.empty()) check_target(file);
}

// The error instead of throwing it: the answer is there, its summary must not be lost with the file.
std::optional<Error> write_solution(Options const& o, Matrix const& matrix, Solver& solver) {
  Group& group = matrix.transport().group();
  try {
    int const columns = columns_of(o);
    auto const rows = static_cast<std::size_t>(matrix.last_row() - matrix.first_row());
    std::vector<double> mine(rows * static_cast<std::size_t>(columns));
    for (int c = 0; c < columns; ++c)
      matrix.from_local(solver.x(c), std::span(mine).subspan(static_cast<std::size_t>(c) * rows, rows));
    write_columns(group, o.output, {matrix.global_rows(), columns}, matrix.first_row(), mine);
  } catch (Error const& e) {
    return e;
  }
  return {};
}

void describe(Options const& o, Matrix const& matrix, SolveReport& report) {
  report.rows = matrix.global_rows();
  report.entries = matrix.global_entries();
  report.input = o.input.describe();
  report.right_hand_side = describe_rhs(o);
  Choices choices;
  choices.seed = o.input.seed;
  taken(o).put_into(choices);
  o.layout.taken.put_into(choices);
  report.layout = layout_settings(choices);
  report.provenance = o.provenance;
  report.provenance.libraries = transport_libraries();  // ranks have loaded it
}

// Nothing where it cannot be measured, which is told: a solve is worth more than what it is compared with.
std::optional<double> read_bandwidth(int threads) {
  try {
    return measure_read_bandwidth(std::min(threads, find_topology().usable_threads), 0.1);
  } catch (Error const& e) {
    tell("hostless: the memory bandwidth is unknown: {}\n", e.what());
    return {};
  }
}

// To write memory that no cache holds can take a second: who looks at a solve of less does not wait for that.
bool is_worth_comparing(Group& group, double solve_s) {
  constexpr double least_s = 0.1;
  return group.max(static_cast<std::int64_t>(1e6 * solve_s)) >= static_cast<std::int64_t>(1e6 * least_s);
}

int solve_on_rank(Options const& o, Transport& transport) {
  Group& group = transport.group();
  bool const first = group.rank() == 0;
  group.together([&] {
    if (first) check_targets(o);
  });
  auto const begin = Clock::now();
  SetupShown shown(first && !o.quiet);
  SolveReport report;
  SolveOptions options = solve_options(o);
  std::optional<Matrix> matrix;
  {
    MatrixOptions layout = o.work.matrix_options(o.input, o.layout);
    layout.format.threads = options.run.threads;
    auto const source = o.input.open(group, &layout, vectors_of(options), symmetry_for(options.method),
                                     options.symmetry_tolerance);
    matrix.emplace(Matrix::from_source(transport, *source, layout));
  }
  report.time_input_s = std::chrono::duration<double>(Clock::now() - begin).count();
  describe(o, *matrix, report);
  ProgressLine progress(first && !o.quiet);
  if (first) {
    options.callback = [&](Progress const& p) {
      progress.step(p);
      return false;
    };
  }
  int const threads_of_rank = options.run.threads;
  Solver solver(*matrix, std::move(options));
  fill_vectors(o, *matrix, solver);
  shown.end();
  let_solve_answer();
  report.result = solver.solve();
  progress.clear();
  bool lost = report.result.status == Status::peer_lost;
  std::optional<Error> unwritten;
  if (!lost) {
    if (o.manufactured && std::isfinite(report.result.true_relative_residual)) {
      report.relative_error = solver.manufactured_error(o.input.seed);
    }
    if (!o.output.empty()) {
      unwritten = write_solution(o, *matrix, solver);
      if (!unwritten) report.output = o.output;
      lost = unwritten && unwritten->code() == ErrorCode::peer_lost;
      if (lost) {  // it had converged, and nobody has x
        report.result.status = Status::peer_lost;
        report.result.message = unwritten->what();
      }
    }
  }
  if (!lost) {
    report.peak_rank_bytes = group.max(peak_process_bytes());
    if (!o.json.empty()) report.communication = gather_communication(*matrix);
    // What the processor can read says nothing of a GPU's memory.
    bool const may_be_measured = !o.no_bandwidth && o.work.gpus() == 0;
    if (may_be_measured &&
        (!o.json.empty() || (!o.quiet && is_worth_comparing(group, report.result.time_solve_s)))) {
      group.together([&] {
        if (first) report.read_bandwidth = read_bandwidth(group.size() * threads_of_rank);
      });
    }
  }
  if (first || lost) {
    if (!o.quiet && o.json != "-") print("{}", summary(report));
    std::fflush(stdout);
  }
  auto const write_json = [&] {
    if (first && !o.json.empty()) write_text(o.json, to_json(report));
  };
  auto all = all_unwritten(unwritten, report.result.unwritten());
  write_or_keep(all, [&] {
    if (lost) return write_json();
    write_together(group, o.json, write_json);
  });
  tell_unwritten(all);
  return exit_code(report.result.status);
}

// What is solved for, and what is read and written beside the matrix.
void add_files(CLI::App& c, Options& o) {
  c.add_flag("--manufactured", o.manufactured, "b = A x* for a known x*; reports the error of x");
  c.add_option("--json", o.json, "Write the result as JSON; - for standard output");
  c.add_option("--output", o.output, "Write x: .npy, .mtx or .petsc");
  o.work.taken.add(c, OptionGroup::files);
  CLI::Option* const file = c.get_option("--checkpoint");
  CLI::Option* const every = c.get_option("--checkpoint-every");
  file->needs(every);
  every->needs(file);
  c.add_flag("--no-bandwidth", o.no_bandwidth, "Skip the measurement of memory bandwidth after the solve");
  c.add_flag("--quiet", o.quiet, "No progress and no summary");
}

// What the words of the command say together.
void settle(Options& o, CLI::App& c) {
  auto files = o.files;
  if (!o.input.generated()) {
    if (files.empty())
      throw Error(ErrorCode::usage, "nothing to solve. Give a matrix file, --generate or --preset.");
    o.input.file = files.front();
    files.erase(files.begin());
  }
  for (std::string const& file : o.files)  // as a shell makes of a variable that is not set
    if (file.empty())
      throw Error(
          ErrorCode::usage,
          fmt::format(
              "file {} of {} has no name (the matrix, b and the first guess are told by their places). "
              "Name it, or leave it out.",
              &file - o.files.data() + 1, o.files.size()));
  if (files.size() > 2) throw Error(ErrorCode::usage, fmt::format("'{}' is one file too many.", files[2]));
  if (!files.empty()) o.b = files[0];
  if (files.size() > 1) o.x0 = files[1];
  if (o.manufactured && !o.b.empty())
    throw Error(ErrorCode::usage, "--manufactured with a right-hand side is refused (it makes its own).");
  if (columns_of(o) > 1 && o.b.empty() && !o.manufactured)
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "--rhs-columns {} without a right-hand side is refused (all columns would be b = 1, alike). Name "
            "a file of {}, or use --manufactured.",
            columns_of(o), counted(columns_of(o), "column")));
  o.input.check();
  check_ends(solve_options(o));
  if (!started_by_mpi()) share_gpus(o.work.ranks, solve_options(o).run);  // there rank 0 names unknown words
  check_tune(o);
  check_interval(o);
  check_tolerance(o);
  o.work.matrix_options(o.input, o.layout);
  if (!o.output.empty()) check_vector_ending(o.output, columns_of(o));  // not only when the answer is there
  auto const require_name = [](std::string const& text, std::string const& what) {
    if (text.empty())
      throw Error(
          ErrorCode::usage,
          fmt::format("{} without a name is refused (nothing could be read or written). Name a file.", what));
  };
  for (char const* const name : {"--output", "--json", "--checkpoint", "--resume", "--profile"})
    if (CLI::Option const* const option = c.get_option(name); option->count() > 0)
      require_name(option->as<std::string>(), name);
  check_files(o);
  o.provenance = provenance_of(c);
}

}  // namespace

void add_solve(CLI::App& app, Arguments const& arguments, std::function<int()>& work) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("solve", "Solve A x = b and verify the answer");
  c->add_option(
       "files", o->files,
       "A [b] [x0]: Matrix Market (plain or gz), PETSc binary, scipy's .npz; vectors also .npy. "
       "Without b, b = 1, or where a generated matrix is singular A x* of a random x*. With --generate "
       "or --preset: [b] [x0]")
      ->expected(0, 3);
  o->input.add_problem(*c);
  o->work.taken.add(*c, OptionGroup::method);
  o->work.add(*c);
  o->work.taken.add(*c, OptionGroup::ends);
  o->layout.add_block(*c);
  o->layout.add_storage(*c);
  o->layout.add_shares(*c);
  add_files(*c, *o);
  c->callback([o, c, &arguments, &work] {
    work = [o, c, &arguments] {
      settle(*o, *c);
      return run_ranks(o->work.ranks, arguments,
                       [&](Transport& transport) { return solve_on_rank(*o, transport); });
    };
  });
}

}  // namespace hostless
