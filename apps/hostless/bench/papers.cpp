// The matrices of two papers in the ways that they compare, by the papers' names: `hostless bench papers`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>

#include "answers.hpp"
#include "base/counted.hpp"
#include "bench.hpp"
#include "hostless/transport/mpi.hpp"
#include "numbers.hpp"
#include "options_of.hpp"
#include "overlap.hpp"
#include "papers_list.hpp"
#include "setup_shown.hpp"
#include "solve/methods/method_vectors.hpp"
#include "standard_output.hpp"
#include "work.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;
using papers::PaperMatrix;

struct PapersOptions {
  std::string table = "001-1", folder, only, variants, by_cpu = "nccl", json;
  std::optional<double> scale;
  std::optional<std::int64_t> rows, iterations;
  std::optional<int> repeat;
  bool no_compute = false, overlap = false;
  std::uint64_t seed = 1;
  LayoutOptions layout;
  WorkOptions work;
  Provenance provenance;

  int repeats() const { return repeat.value_or(papers::table_of(table).repeat); }
};

// The file of that name, or the preset that stands in for it.
InputOptions input_of(PapersOptions const& o, PaperMatrix const& matrix) {
  InputOptions input;
  input.seed = o.seed;
  if (!o.folder.empty()) input.file = papers::file_of(o.folder, matrix.name);
  if (!input.file.empty()) return input;
  input.preset_name = matrix.preset;
  input.scale = o.scale;
  if (o.rows)
    input.scale = std::min(
        1.0, static_cast<double>(*o.rows) / static_cast<double>(problem_rows(preset(matrix.preset))));
  return input;
}

SolveOptions solve_options(PapersOptions const& o, papers::Variant const& variant, int ranks) {
  bool const on_gpus = o.work.gpus() > 0;
  papers::Table const& table = papers::table_of(o.table);
  SolveOptions s = o.work.solve_options(on_gpus ? variant.on_gpus : variant.on_processor);
  s.method = variant.method;
  if (s.run.kind != RunKind::persistent) s.run.threads = 1;
  if (on_gpus) {
    s.run.host_waits = variant.waits;
    std::string const transport = *variant.transport != 0 ? variant.transport : o.by_cpu;
    if (ranks > 1) s.run.gpu_transport = gpu_transport_from(transport.c_str());
  }
  s.rtol = table.rtol;
  s.max_iterations = o.iterations.value_or(table.iterations > 0 ? table.iterations : -1);
  return s;
}

/// What became of one variant, on every rank.
struct PapersRow {
  std::string error;            ///< why there are no figures; empty: there are
  std::vector<double> solve_s;  ///< rising: of every timed solve, of the slowest rank
  Result result;                ///< of the last one
  std::optional<Compared> compared;
  std::vector<double> alone_s;     ///< with --no-compute, rising: exchange and sums of an iteration
  std::optional<Overlap> overlap;  ///< of several ranks: on the processor, and with --overlap
  double us(double seconds) const { return 1e6 * seconds / static_cast<double>(result.iterations); }
};

/// One matrix, laid out, and what has been solved with it.
class PapersBench {
 public:
  PapersBench(PapersOptions const& o, std::vector<papers::Variant> const& variants, InputOptions const& input,
              Transport& transport)
      : options_(o), input_(input), group_(transport.group()) {
    SetupShown const shown(group_.rank() == 0);
    layout_ = o.work.matrix_options(input, o.layout);
    int vectors = 0;
    for (papers::Variant const& variant : variants) {
      if (!papers::obstacle(variant, group_.size(), o.work.gpus() > 0).empty()) continue;
      SolveOptions const s = solve_options(o, variant, group_.size());
      vectors = std::max(vectors, vectors_of(s));
      layout_.format.threads = std::max(layout_.format.threads, s.run.threads);
    }
    auto const source =
        input.open(group_, &layout_, vectors, Symmetry::required, symmetry_tolerance(o.work.taken));
    matrix_ = Matrix::from_source(transport, *source, layout_);
    overlap_.emplace(LaidOut{transport, *matrix_, input, layout_}, input.seed);
  }
  Matrix const& matrix() const { return *matrix_; }

  /// Collective. Solves once untimed, then as often as asked, each time from zero for the same b.
  /// Errors  peer_lost  a rank is gone
  PapersRow measure(papers::Variant const& variant) {
    PapersRow row;
    row.error = papers::obstacle(variant, group_.size(), options_.work.gpus() > 0);
    if (!row.error.empty()) return row;
    SolveOptions const how = solve_options(options_, variant, group_.size());
    try {
      if (options_.no_compute) {
        row.alone_s = overlap_->communication().of(how);
        return row;
      }
      std::optional<Solver> solver(std::in_place, *matrix_, how);
      solver->manufacture(input_.seed);
      std::vector<double> const b(solver->b().begin(), solver->b().end());
      for (int k = 0; k <= options_.repeats() && row.error.empty(); ++k) solve(*solver, b, k > 0, row);
      std::sort(row.solve_s.begin(), row.solve_s.end());
      if (row.error.empty() && how.reduction == Reduction::ordered)
        row.compared = answers_.compare(name(variant.method), {false,
                                                               {solver->x().begin(), solver->x().end()},
                                                               row.result.residual_history,
                                                               row.result.true_residual});
      solver.reset();  // what is measured beside it may need its memory
      if (row.error.empty()) find_overlap(how, b, row);
    } catch (Error const& e) {
      if (e.code() == ErrorCode::peer_lost) throw;
      row.error = e.what();
    }
    return row;
  }

 private:
  // Without being asked only what costs no solve more.
  void find_overlap(SolveOptions const& how, std::vector<double> const& b, PapersRow& row) {
    if (group_.size() == 1 || (how.run.gpus > 0 && !options_.overlap)) return;
    if (options_.overlap) {
      double const whole_s = 1e-6 * row.us(row.solve_s[row.solve_s.size() / 2]);
      row.overlap = overlap_->measure(how, row.result, whole_s, b);
    } else {
      row.overlap.emplace();
      row.overlap->by_clock = row.result.iteration_times;
      row.overlap->communication_s = overlap_->communication().of(how);
      row.overlap->runs_problem = "not asked for (--overlap)";
    }
  }
  void solve(Solver& solver, std::vector<double> const& b, bool timed, PapersRow& row) {
    std::copy(b.begin(), b.end(), solver.b().begin());
    std::fill(solver.x().begin(), solver.x().end(), 0.0);
    group_.barrier();
    Result const& result = row.result = solver.solve();
    if (result.status == Status::peer_lost || result.iterations == 0 ||
        !std::isfinite(result.true_relative_residual)) {
      row.error = fmt::format("{} after {}{}", name(result.status), counted(result.iterations, "iteration"),
                              result.message.empty() ? "" : ": " + result.message);
      if (result.status == Status::peer_lost) throw Error(ErrorCode::peer_lost, row.error);
      return;
    }
    bool const on_gpu = result.device_bytes > 0;
    if (timed) row.solve_s.push_back(group_.max(on_gpu ? result.time_device_s : result.time_solve_s));
  }

  PapersOptions const& options_;
  InputOptions const& input_;
  Group& group_;
  std::optional<Matrix> matrix_;
  MatrixOptions layout_;
  std::optional<OverlapBench> overlap_;
  Answers answers_{group_};
};

Json head_of(PaperMatrix const& matrix, InputOptions const& input) {
  bool const stand_in = input.generated();
  Json j = {{"name", matrix.name}, {"stand_in", stand_in}, {"input", input.describe()}};
  if (stand_in) j["of_the_matrix"] = "its size and structure, not its values";
  return j;
}

Json json_of(PapersOptions const& o, Matrix const& matrix, papers::Variant const& variant,
             PapersRow const& row) {
  bool const on_gpus = o.work.gpus() > 0;
  int const ranks = matrix.plan().ranks;
  RunOptions const run =
      papers::obstacle(variant, ranks, on_gpus).empty() ? solve_options(o, variant, ranks).run : RunOptions{};
  Json j = {{"variant", variant.name}, {"label", variant.label}, {"method", name(variant.method)},
            {"run", name(run.kind)},   {"ranks", ranks},         {"gpus", o.work.gpus()}};
  if (on_gpus) {
    j["gpu_transport"] = name(run.gpu_transport);
    j["host_waits"] = name(run.host_waits);
  }
  if (!row.error.empty()) {
    j["error"] = row.error;
    return j;
  }
  if (o.no_compute) {
    j["communication_us"] = 1e6 * row.alone_s[row.alone_s.size() / 2];
    j["communication_interval_us"] = {1e6 * row.alone_s.front(), 1e6 * row.alone_s.back()};
    return j;
  }
  if (row.overlap) add_overlap(*row.overlap, j);
  Result const& result = row.result;
  auto const& all = row.solve_s;
  papers::Work const work =
      papers::work_of(variant.method, matrix.global_rows(), matrix.global_entries(), result.iterations);
  j["iterations"] = result.iterations;
  j["status"] = name(result.status);
  j["all_s"] = all;
  j["best_s"] = all.front();
  j["best_us"] = row.us(all.front());
  j["median_us"] = row.us(all[all.size() / 2]);
  j["interval_us"] = {row.us(all.front()), row.us(all.back())};
  j["gflops_per_rank"] = work.flops / all.front() / ranks * 1e-9;
  j["terabytes_per_second_per_rank"] = work.bytes / all.front() / ranks * 1e-12;
  j["true_relative_residual"] = result.true_relative_residual;
  if (row.compared) {
    j["bits"] = row.compared->bits;
    j["digest"] = fmt::format("{:016x}", row.compared->digest);
  }
  for (auto const& [key, value] : result.choices) j["choices"][key] = value;
  return j;
}

std::string line_of(papers::Variant const& variant, PapersRow const& row) {
  if (!row.error.empty()) return fmt::format("  {:26} {}", variant.name, row.error);
  if (row.solve_s.empty())
    return fmt::format("  {:26} {:10.2f} {:10.2f} {:10.2f}", variant.name, 1e6 * row.alone_s.front(),
                       1e6 * row.alone_s[row.alone_s.size() / 2], 1e6 * row.alone_s.back());
  auto const& all = row.solve_s;
  std::string const overlap = row.overlap ? words_of(*row.overlap) : "";
  return fmt::format("  {:26} {:10.2f} {:10.2f} {:10.2f} {:10} {:13.3e}  {}{}{}", variant.name,
                     row.us(all.front()), row.us(all[all.size() / 2]), row.us(all.back()),
                     row.result.iterations, row.result.true_relative_residual,
                     row.compared ? row.compared->bits : "not compared", overlap.empty() ? "" : "; ",
                     overlap);
}

/// The report as it grows, of which rank 0 tells people.
class Report {
 public:
  Report(PapersOptions const& o, Transport& transport)
      : options_(o), group_(transport.group()), paced_(is_paced(group_, o.json)) {
    group_.together([&] {
      if (first() && !o.json.empty() && o.json != "-") check_whole_file(o.json);
    });
    papers::Table const& table = papers::table_of(o.table);
    report_ = bench_report("papers", o.provenance, transport);
    report_["table"] = table.name;
    report_["gpus"] = o.work.gpus();
    report_["asked_iterations"] = o.iterations.value_or(table.iterations);
    report_["rtol"] = table.rtol;
    report_["repeat"] = o.repeats();
    report_["computes"] = !o.no_compute;
    report_["matrices"] = Json::array();
  }
  void line(std::string const& text) const {
    if (!first() || options_.json == "-") return;
    print("{}\n", text);
    std::fflush(stdout);
  }
  void begin(Json head) { report_["matrices"].push_back(std::move(head)); }
  Json& matrix() { return report_["matrices"].back(); }
  /// Collective. What is there up to now, unless a reader would set the pace.
  void keep() {
    if (!paced_) group_.together([&] { write(); });
  }
  void end() {
    if (paced_) write();
  }

 private:
  bool first() const { return group_.rank() == 0; }
  void write() const {
    if (first() && !options_.json.empty()) write_text(options_.json, json_text(report_));
  }
  PapersOptions const& options_;
  Group& group_;
  bool paced_;
  Json report_;
};

/// How many matrices came to no figures, and how many times bits differed.
struct Outcome {
  int unsolved = 0, differ = 0;
};

void measure_matrix(PapersOptions const& o, std::vector<papers::Variant> const& variants,
                    PaperMatrix const& matrix, Transport& transport, Report& report, Outcome& outcome) {
  InputOptions const input = input_of(o, matrix);
  report.begin(head_of(matrix, input));
  int solved = 0;
  try {
    PapersBench bench(o, variants, input, transport);
    report.matrix()["rows"] = bench.matrix().global_rows();
    report.matrix()["entries"] = bench.matrix().global_entries();
    report.line(fmt::format("{}: {}, {}, {}{}", matrix.name, counted(bench.matrix().global_rows(), "row"),
                            counted(bench.matrix().global_entries(), "entry", "entries"),
                            input.generated() ? "stand-in: " : "", input.describe()));
    for (papers::Variant const& variant : variants) {
      PapersRow const row = bench.measure(variant);
      solved += row.error.empty() ? 1 : 0;
      outcome.differ += row.compared && row.compared->differs ? 1 : 0;
      report.matrix()["runs"].push_back(json_of(o, bench.matrix(), variant, row));
      report.line(line_of(variant, row));
      report.keep();
    }
  } catch (Error const& e) {
    if (e.code() == ErrorCode::peer_lost) throw;
    report.matrix()["error"] = e.what();
    report.line(fmt::format("{}: {}", matrix.name, e.what()));
    report.keep();
  }
  outcome.unsolved += solved == 0 ? 1 : 0;
}

int papers_on_rank(PapersOptions const& o, Transport& transport) {
  papers::Table const& table = papers::table_of(o.table);
  int const ranks = transport.group().size();
  auto const matrices = papers::matrices_of(table, o.only);
  auto const variants = papers::variants_of(table, o.variants, ranks, o.work.gpus() > 0);
  Report report(o, transport);
  report.line(fmt::format("table {}: {} ({}), {}, {} of {}", table.name, counted(ranks, "rank"),
                          transport.capabilities().transport,
                          o.work.gpus() > 0 ? counted(o.work.gpus(), "GPU") : "the processor",
                          counted(o.repeats(), "timed solve"),
                          table.rtol > 0 ? fmt::format("relative residual {:g}", table.rtol)
                                         : counted(o.iterations.value_or(table.iterations), "iteration")));
  report.line(fmt::format("  {:26} {:>10} {:>10} {:>10} {:>10} {:>13}  {}", "variant", "best us", "median us",
                          "worst us", "iterations", "true residual", "bits"));
  Outcome outcome;
  try {
    for (PaperMatrix const& matrix : matrices)
      measure_matrix(o, variants, matrix, transport, report, outcome);
  } catch (Error const&) {
    report.end();  // what was measured until a rank went
    throw;
  }
  report.end();
  return outcome.differ > 0 || outcome.unsolved > 0 ? 1 : 0;
}

void add_options(CLI::App& c, PapersOptions& o) {
  c.add_option("--table", o.table,
               fmt::format("Of paper and table: {}", fmt::join(papers::table_names(), ", ")))
      ->capture_default_str()
      ->check(CLI::IsMember(papers::table_names()));
  c.add_option("--matrices", o.folder,
               "Folder of matrix files, by the collection's names; what is not there a preset stands in for");
  c.add_option("--only", o.only, "Matrices of the table, between commas [all]");
  c.add_option("--variants", o.variants,
               "Of the table, between commas [all that so many ranks or GPUs have]");
  auto* scale = c.add_option("--scale", o.scale, "Shrinks presets to about this share of their rows");
  c.add_option("--rows", o.rows, "Shrinks presets to about so many rows")
      ->check(whole_number(std::int64_t{1}))
      ->excludes(scale);
  c.add_option("--iterations", o.iterations,
               "At most, of every solve [what the paper says: 5000; until a residual]")
      ->check(whole_number(std::int64_t{1}));
  c.add_option("--repeat", o.repeat, "Timed solves, after one that is not [what the paper says: 3 or 5]")
      ->check(whole_number(1));
  c.add_flag("--no-compute", o.no_compute,
             "Exchanges and sums of an iteration alone, in place of solves (with several ranks)")
      ->excludes(c.get_option("--iterations"), c.get_option("--repeat"));
  c.add_flag("--overlap", o.overlap,
             "Which share of the communication lay beside computing, of every variant of several ranks: by a "
             "traced solve, and by communication and computing alone")
      ->excludes(c.get_option("--no-compute"));
  c.add_option("--by-cpu", o.by_cpu,
               "nccl, mpi, host or peer: what carries between GPUs where the paper's variant does not say")
      ->capture_default_str()
      ->check(CLI::IsMember({"nccl", "mpi", "host", "peer"}));
  c.add_option("--seed", o.seed, "Of the coefficients, the manufactured solution and METIS")
      ->capture_default_str()
      ->check(whole_number(std::uint64_t{0}, most_seed));
  o.work.add(c);
  add_symmetry_tolerance(c, o.work.taken);
  o.layout.add_block(c);
  o.layout.add_storage(c);
  o.layout.add_shares(c);
  c.add_option("--json", o.json, "Write the figures as JSON; - for standard output");
}

}  // namespace

void add_bench_papers(CLI::App& bench, Arguments const& arguments, std::function<int()>& work) {
  auto o = std::make_shared<PapersOptions>();
  CLI::App* c = bench.add_subcommand(
      "papers", "The matrices and the ways of Trotter et al. (000) and Ismayilov et al. (001), by name");
  c->footer(
      "A file keeps its size; --scale and --rows are of presets, which have the size and structure of the "
      "matrices, not their values. bench/plot_papers.py draws the JSON files of several numbers of GPUs. "
      "Exit code 1: bits differ, or a matrix has no figures (its row says why).");
  add_options(*c, *o);
  c->callback([o, c, &arguments, &work] {
    work = [o, c, &arguments] {
      papers::Table const& table = papers::table_of(o->table);
      if (int const columns = static_cast<int>(o->work.taken.number("rhs_columns")); columns > 1)
        throw Error(
            ErrorCode::usage,
            fmt::format(
                "--rhs-columns {} with the papers' variants is refused (their times, flops and bytes are of "
                "one right-hand side). Drop it, or use bench solve.",
                columns));
      for (char const* const list : {"--only", "--variants"})
        if (c->count(list) > 0 && c->get_option(list)->as<std::string>().empty())
          throw Error(
              ErrorCode::usage,
              fmt::format("{} without a name is refused (nothing is chosen). Name some, or drop it.", list));
      if (c->count("--by-cpu") > 0 && o->work.gpus() == 0)
        throw Error(ErrorCode::usage,
                    "--by-cpu without a GPU is refused (it carries between GPUs). Use --gpus 2, or drop it.");
      auto const matrices = papers::matrices_of(table, o->only);
      if (c->count("--matrices") > 0) papers::check_folder(o->folder);
      check_symmetry_tolerance(o->work.taken, o->folder.empty());
      std::vector<NamedFile> read;
      for (PaperMatrix const& matrix : matrices) {
        read.push_back({"the matrix", input_of(*o, matrix).file});
        static_cast<void>(o->work.matrix_options(input_of(*o, matrix), o->layout));
      }
      check_names({{"--json", o->json}}, read);
      if (!started_by_mpi()) share_gpus(o->work.ranks, o->work.solve_options(RunKind::automatic).run);
      int const ranks = std::max(o->work.ranks.ranks, 1);
      for (papers::Variant const& variant :
           papers::variants_of(table, o->variants, ranks, o->work.gpus() > 0))
        static_cast<void>(solve_options(*o, variant, ranks));
      o->provenance = provenance_of(*c);
      return run_ranks(o->work.ranks, arguments,
                       [&](Transport& transport) { return papers_on_rank(*o, transport); });
    };
  });
}

}  // namespace hostless
