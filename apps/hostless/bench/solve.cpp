// Every way of solving one matrix, from one program that lays it out once: `hostless bench solve`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "answers.hpp"
#include "base/counted.hpp"
#include "bench.hpp"
#include "hostless/solve/symmetry.hpp"
#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "numbers.hpp"
#include "options_of.hpp"
#include "overlap.hpp"
#include "setup_shown.hpp"
#include "solve/methods/method_vectors.hpp"
#include "standard_output.hpp"
#include "work.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  InputOptions input;
  LayoutOptions layout;
  WorkOptions work;
  std::string methods = "cg,pipelined-cg", preconditioners, runs, gpu_transports, routes, json;
  std::int64_t iterations = 1000, host_iterations = 0;  ///< 0: as many as the others
  int repeat = 3;
  bool overlap = false;
  Provenance provenance;
};

/// One way of solving.
struct Way {
  std::string route;  ///< in the words of --route; each has a layout of its own
  Method method;
  PreconditionerKind preconditioner;
  RunKind run;
  GpuTransport gpu_transport = GpuTransport::automatic;  ///< of a run on GPUs
  bool on_gpus = false;                                  ///< `host` never is
};

std::string runs_of(BenchOptions const& o) {
  if (!o.runs.empty()) return o.runs;
  return o.work.gpus() > 0 ? "persistent,graph,stream" : "host,persistent,graph";
}

std::vector<GpuTransport> gpu_transports_of(BenchOptions const& o) {
  if (o.work.gpus() == 0 && !o.gpu_transports.empty())
    throw Error(ErrorCode::usage,
                "--gpu-transports without a GPU is refused (nothing is carried between any). Use --gpus 2, "
                "or drop it.");
  std::vector<GpuTransport> gpu_transports;
  for (std::string const& word : words_in(o.gpu_transports.empty() ? "peer" : o.gpu_transports))
    gpu_transports.push_back(gpu_transport_from(word.c_str()));
  return gpu_transports;
}

std::vector<std::string> routes_of(BenchOptions const& o) {
  return words_in(o.routes.empty() ? o.layout.taken.word("route") : o.routes);
}

// In every run; on GPUs by every transport between them.
void add_ways(Way way, BenchOptions const& o, std::vector<Way>& ways) {
  for (std::string const& word : words_in(runs_of(o))) {
    way.run = run_kind_from(word.c_str());
    way.on_gpus = way.run != RunKind::host && o.work.gpus() > 0;
    for (GpuTransport const gpu_transport :
         way.on_gpus ? gpu_transports_of(o) : std::vector{GpuTransport::automatic}) {
      way.gpu_transport = gpu_transport;
      ways.push_back(way);
    }
  }
}

bool has_threads(Way const& way) { return way.run == RunKind::persistent && !way.on_gpus; }

// Those of one route follow each other. Errors  usage  unknown words; options that no way would use
std::vector<Way> ways_of(BenchOptions const& o) {
  std::vector<Way> ways;
  static_cast<void>(gpu_transports_of(o));
  for (std::string const& route : routes_of(o))
    for (std::string const& method : words_in(o.methods))
      for (std::string const& kind :
           words_in(o.preconditioners.empty() ? o.work.taken.word("preconditioner") : o.preconditioners))
        add_ways({route, method_from(method.c_str()), preconditioner_from(kind.c_str()), RunKind::host}, o,
                 ways);
  if (o.work.taken.is_given("lanes") && std::none_of(ways.begin(), ways.end(), has_threads))
    throw Error(
        ErrorCode::usage,
        "--lanes without the persistent run of the processor is refused (no other has them). Drop it.");
  auto const compares = [](Way const& way) { return symmetry_for(way.method) == Symmetry::required; };
  check_symmetry_tolerance(o.work.taken, o.input.generated(),
                           std::any_of(ways.begin(), ways.end(), compares) ? "" : "--methods " + o.methods);
  auto const is_polynomial = [](Way const& way) {
    return way.preconditioner == PreconditionerKind::chebyshev;
  };
  if (o.work.solve_options(RunKind::host).chebyshev != ChebyshevOptions() &&
      std::none_of(ways.begin(), ways.end(), is_polynomial))
    throw Error(
        ErrorCode::usage,
        "--chebyshev options without preconditioner chebyshev are refused (no other has them). Drop them.");
  if (o.overlap && o.work.taken.number("rhs_columns") > 1)
    throw Error(ErrorCode::usage,
                "--overlap with --rhs-columns is refused (what it measures is of one right-hand side). Drop "
                "one of them.");
  auto const is_host = [](Way const& way) { return way.run == RunKind::host; };
  if (o.host_iterations > 0 && std::none_of(ways.begin(), ways.end(), is_host))
    throw Error(ErrorCode::usage,
                "--host-iterations without the run host is refused (it alone has them). Drop it.");
  return ways;
}

MatrixOptions matrix_options(BenchOptions const& o, std::string const& route) {
  LayoutOptions layout = o.layout;
  layout.taken.say("route", route);
  return o.work.matrix_options(o.input, layout);
}

// The processor may do the beginning alone, where all of it would take minutes.
bool is_brief(BenchOptions const& o, Way const& way) {
  return way.run == RunKind::host && o.host_iterations > 0 && o.host_iterations < o.iterations;
}

// `host` is the processor's, on the same ranks and plan: its bits are what a GPU's are held against.
SolveOptions solve_options(BenchOptions const& o, Way const& way) {
  SolveOptions s = o.work.solve_options(way.run);
  s.method = way.method;
  s.preconditioner = way.preconditioner;
  s.run.gpu_transport = way.gpu_transport;
  if (!way.on_gpus) {
    s.run.gpus = 0;
    s.run.oversubscribe = s.run.oversubscribe && o.work.gpus() == 0;
  }
  if (way.run != RunKind::persistent) s.run.threads = 1;
  if (way.preconditioner != PreconditionerKind::chebyshev) s.chebyshev = {};  // others have no such options
  s.rtol = 0;
  s.max_iterations = is_brief(o, way) ? o.host_iterations : o.iterations;
  return s;
}

/// What became of one way, on every rank.
struct Row {
  std::string error;         ///< why there are no figures; empty: there are
  int columns = 1;           ///< right-hand sides that are solved for at once
  std::vector<double> us;    ///< rising: of every solve an iteration, of the slowest rank
  std::vector<double> wall;  ///< rising: the same by the host's clock, with copies to and from a GPU
  Result result;             ///< of the last solve
  std::string bits;          ///< `first`, `equal`, what differs, or why nothing was compared
  std::uint64_t digest = 0;  ///< of x, history and true residual: of equal bits it is equal
  bool differs = false;
  std::optional<Overlap> overlap;  ///< of several ranks, with --overlap
  double best() const { return us.front(); }
  double median() const { return us[us.size() / 2]; }
};

class SolveBench {
 public:
  SolveBench(BenchOptions const& o, Transport& transport)
      : options_(o), transport_(transport), group_(transport.group()) {}
  Matrix const& matrix() const { return *matrix_; }

  /// Collective. Lays the matrix out for ways of that route from now on; before any is measured.
  void lay_out(std::string const& route) {
    if (matrix_ && route == route_) return;
    overlap_.reset();
    matrix_.reset();  // there need not be room for two
    rhs_.clear();
    SetupShown const shown(group_.rank() == 0);
    MatrixOptions& layout = layout_ = matrix_options(options_, route);
    int vectors = 0;
    Symmetry symmetry = Symmetry::any;
    for (Way const& way : ways_of(options_)) {
      if (symmetry_for(solve_options(options_, way).method) == Symmetry::required)
        symmetry = Symmetry::required;
      vectors = std::max(vectors, vectors_of(solve_options(options_, way)));
      layout.format.threads = std::max(layout.format.threads, solve_options(options_, way).run.threads);
      layout.host_layout = layout.host_layout || !way.on_gpus;
    }
    auto const source =
        options_.input.open(group_, &layout, vectors, symmetry, symmetry_tolerance(options_.work.taken));
    matrix_ = Matrix::from_source(transport_, *source, layout);
    overlap_.emplace(LaidOut{transport_, *matrix_, options_.input, layout_}, options_.input.seed);
    route_ = route;
  }

  /// Collective. Binds the way once, solves once untimed, then as often as asked.
  /// Errors  peer_lost  a rank is gone
  Row measure(Way const& way) {
    Row row;
    try {
      std::optional<Solver> solver(std::in_place, *matrix_, solve_options(options_, way));
      row.columns = solve_options(options_, way).rhs_columns;
      if (rhs_.empty()) {
        solver->manufacture(options_.input.seed);
        for (int c = 0; c < row.columns; ++c) rhs_.emplace_back(solver->b(c).begin(), solver->b(c).end());
      }
      int const repeat = is_brief(options_, way) ? 1 : options_.repeat;
      for (int k = 0; k <= repeat && row.error.empty(); ++k) solve(*solver, k > 0, row);
      if (row.error.empty()) compare(way, *solver, row);
      std::sort(row.us.begin(), row.us.end());
      solver.reset();  // what is measured beside it may need its memory
      if (row.error.empty() && options_.overlap && group_.size() > 1 && row.columns == 1)
        row.overlap =
            overlap_->measure(solve_options(options_, way), row.result, 1e-6 * row.median(), rhs_[0]);
    } catch (Error const& e) {
      if (e.code() == ErrorCode::peer_lost) throw;
      row.error = e.what();
      exit_code_ = e.exit_code();
    }
    std::sort(row.wall.begin(), row.wall.end());
    solved_ += row.error.empty() ? 1 : 0;
    differ_ += row.differs ? 1 : 0;
    return row;
  }
  /// 1 where bits differ; where no way solved, that of the last refusal.
  int exit_code() const { return differ_ > 0 ? 1 : solved_ == 0 ? exit_code_ : 0; }

 private:
  void solve(Solver& solver, bool timed, Row& row) {
    for (int c = 0; c < row.columns; ++c) start(solver, c, c);
    group_.barrier();
    Result const& result = row.result = solver.solve();
    if (result.status == Status::peer_lost || result.iterations == 0) {
      row.error = fmt::format("{} after {}{}", name(result.status), counted(result.iterations, "iteration"),
                              result.message.empty() ? "" : ": " + result.message);
      if (result.status == Status::peer_lost) throw Error(ErrorCode::peer_lost, row.error);
      exit_code_ = hostless::exit_code(result.status);
    } else if (timed) {
      double const one = 1e6 / static_cast<double>(result.iterations);
      bool const on_gpu = result.device_bytes > 0;
      row.us.push_back(one * group_.max(on_gpu ? result.time_device_s : result.time_solve_s));
      row.wall.push_back(one * result.time_solve_s);
    }
  }

  void start(Solver& solver, int column, int number) {
    std::copy_n(rhs_[static_cast<std::size_t>(number)].begin(), solver.b(column).size(),
                solver.b(column).begin());
    std::fill(solver.x(column).begin(), solver.x(column).end(), 0.0);
  }

  // With every other answer to the same question; several columns each with itself alone too.
  void compare(Way const& way, Solver& solver, Row& row) {
    if (options_.work.taken.word("reduction") != name(Reduction::ordered)) {
      row.bits = "not compared: the order of sums is free";
      return;
    }
    if (row.columns == 1) return compare(way, 0, {solver.x(), row.result}, row);
    for (int c = 0; c < row.columns; ++c)
      compare(way, c, {solver.x(c), row.result.columns[static_cast<std::size_t>(c)]}, row);
    SolveOptions alone = solve_options(options_, way);
    alone.rhs_columns = 1;
    Solver one(*matrix_, std::move(alone));
    for (int c = 0; c < row.columns; ++c) {
      start(one, 0, c);
      Result const result = one.solve();
      if (result.status == Status::peer_lost) throw Error(ErrorCode::peer_lost, result.message);
      compare(way, c, {one.x(), result}, row);
    }
  }

  struct Solved {
    std::span<double const> x;
    Result const& result;
  };
  // The first difference is kept, and the digest of the first column.
  void compare(Way const& way, int column, Solved const& solved, Row& row) {
    Compared const compared =
        answers_.compare(fmt::format("{} {} column {}", name(way.method), name(way.preconditioner), column),
                         {is_brief(options_, way),
                          {solved.x.begin(), solved.x.end()},
                          solved.result.residual_history,
                          solved.result.true_residual},
                         options_.host_iterations);
    if (!row.differs) row.bits = compared.bits;
    if (compared.differs && !row.differs && row.columns > 1)
      row.bits += fmt::format(" of column {}", column + 1);
    if (row.digest == 0) row.digest = compared.digest;
    row.differs = row.differs || compared.differs;
  }

  BenchOptions const& options_;
  Transport& transport_;
  Group& group_;
  std::optional<Matrix> matrix_;
  MatrixOptions layout_;
  std::optional<OverlapBench> overlap_;
  std::string route_;
  std::vector<std::vector<double>> rhs_;  // of each column, as soon as a solver has made them
  Answers answers_{group_};
  int solved_ = 0, differ_ = 0, exit_code_ = 0;
};

Json json_of(BenchOptions const& o, SolveBench const& bench, Way const& way, Row const& row) {
  Json j = {{"matrix", o.input.describe()},
            {"method", name(way.method)},
            {"preconditioner", name(way.preconditioner)},
            {"route", way.route},
            {"run", name(way.run)},
            {"ranks", bench.matrix().plan().ranks},
            {"gpus", way.on_gpus ? o.work.gpus() : 0}};
  if (way.on_gpus) j["gpu_transport"] = name(way.gpu_transport);
  if (!row.error.empty()) {
    j["error"] = row.error;
    return j;
  }
  Result const& result = row.result;
  j["rhs_columns"] = row.columns;
  j["best_us"] = row.best();
  j["best_us_per_column"] = row.best() / row.columns;
  j["median_us"] = row.median();
  j["all_us"] = row.us;
  j["wall_best_us"] = row.wall.front();
  j["iterations"] = result.iterations;
  j["rows"] = bench.matrix().global_rows();
  j["bytes_per_iteration"] = result.bytes_per_iteration;
  j["halo_bytes_per_iteration"] = result.halo_bytes_per_iteration;
  j["status"] = name(result.status);
  double const true_residual = result.true_relative_residual;
  j["true_relative_residual"] = std::isfinite(true_residual) ? Json(true_residual) : Json(nullptr);
  double const condition = result.condition_estimate;
  j["condition_estimate"] = std::isfinite(condition) ? Json(condition) : Json(nullptr);
  if (row.overlap) add_overlap(*row.overlap, j);
  j["bits"] = row.bits;
  if (row.digest != 0) j["digest"] = fmt::format("{:016x}", row.digest);
  for (auto const& [key, value] : result.choices) j["choices"][key] = value;
  for (auto const& [key, value] : result.settings) j["settings"][key] = value;
  return j;
}

// Method, and what there is several of.
std::string text_of(BenchOptions const& o, Way const& way) {
  std::string text = name(way.method);
  if (!o.preconditioners.empty()) text += fmt::format(" {}", name(way.preconditioner));
  if (!o.routes.empty()) text += fmt::format(" {}", way.route);
  return text;
}

std::string line_of(BenchOptions const& o, Way const& way, Row const& row) {
  std::string const label = fmt::format("{:20} {:11} {:7}", text_of(o, way), name(way.run),
                                        way.on_gpus ? name(way.gpu_transport) : "");
  if (!row.error.empty()) return fmt::format("{} {}", label, row.error);
  std::string const overlap = row.overlap ? words_of(*row.overlap) : "";
  std::string const of_column =
      row.columns > 1 ? fmt::format(" {:10.2f}", row.best() / row.columns) : std::string();
  return fmt::format("{} {:10.2f}{} {:10.2f} {:10.2f} {:10} {:13.3e}  {}{}{}", label, row.best(), of_column,
                     row.median(), row.wall.front(), row.result.iterations, row.result.true_relative_residual,
                     row.bits, overlap.empty() ? "" : "; ", overlap);
}

void print_row(BenchOptions const& o, bool first, std::string const& line) {
  if (!first || o.json == "-") return;
  hostless::print("{}\n", line);
  std::fflush(stdout);
}

int bench_on_rank(BenchOptions const& o, Transport& transport) {
  Group& group = transport.group();
  bool const first = group.rank() == 0, paced = is_paced(group, o.json);
  group.together([&] {
    if (first && !o.json.empty() && o.json != "-") check_whole_file(o.json);
  });
  SolveBench bench(o, transport);
  std::vector<Way> const ways = ways_of(o);
  bench.lay_out(ways.front().route);
  Json report = bench_report("solve", o.provenance, transport);
  report["gpus"] = o.work.gpus();
  report["rows"] = bench.matrix().global_rows();
  report["entries"] = bench.matrix().global_entries();
  report["asked_iterations"] = o.iterations;
  report["solves"] = Json::array();
  print_row(
      o, first,
      fmt::format("{}: {}, {}, {} ({}), {}", o.input.describe(), counted(bench.matrix().global_rows(), "row"),
                  counted(bench.matrix().global_entries(), "entry", "entries"), counted(group.size(), "rank"),
                  transport.capabilities().transport,
                  o.work.gpus() > 0 ? counted(o.work.gpus(), "GPU") : "the processor"));
  print_row(
      o, first,
      fmt::format("{:20} {:11} {:7} {:>10}{} {:>10} {:>10} {:>10} {:>13}  {}", "method", "run", "by",
                  "best us", o.work.taken.number("rhs_columns") > 1 ? fmt::format(" {:>10}", "a column") : "",
                  "median us", "by the wall", "iterations", "true residual", "bits"));
  auto const write = [&] {
    if (first && !o.json.empty()) write_text(o.json, json_text(report));
  };
  std::vector<Error> unwritten;  // by the last try
  for (Way const& way : ways) {
    try {
      bench.lay_out(way.route);
      Row const row = bench.measure(way);
      report["solves"].push_back(json_of(o, bench, way, row));
      print_row(o, first, line_of(o, way, row));
    } catch (Error const&) {
      std::vector<Error> lost;
      write_or_keep(lost, write);  // what was measured until a rank went
      for (Error const& one : lost) tell("hostless: {}\n", one.what());
      throw;
    }
    if (paced) continue;
    unwritten.clear();
    write_or_keep(unwritten, [&] { group.together(write); });  // whatever becomes of the next way
  }
  if (paced) write();
  tell_unwritten(unwritten);  // there may be no room, and what was printed is there all the same
  return bench.exit_code();
}

}  // namespace

void add_bench_solve(CLI::App& bench, Arguments const& arguments, std::function<int()>& work) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* c = bench.add_subcommand("solve",
                                     "Every method in every run on one matrix, laid out once: time an "
                                     "iteration, and whether bits are equal");
  c->footer(
      "Strong scaling: the same matrix with --gpus 1, 2, 4 (or --ranks). Weak scaling: a --size that grows "
      "with them. bench/plot_scaling.py draws the JSON files. Exit codes: 1 bits differ; where every way was "
      "refused, that of the last refusal.");
  c->add_option("file", o->input.file, "Matrix Market (plain or gz) or PETSc binary");
  o->input.add_problem(*c);
  c->add_option("--methods", o->methods, "Of " + method_names(", ") + ", between commas")
      ->capture_default_str();
  c->add_option(
      "--runs", o->runs,
      "Of host, persistent, graph, stream, auto, between commas [host,persistent,graph; with --gpus "
      "persistent,graph,stream]; host is always the processor's");
  c->add_option("--gpu-transports", o->gpu_transports,
                "Of peer, nccl, nvshmem, mpi, host, peer+nccl, peer+mpi, peer+host, auto, between commas: "
                "what carries between GPUs [peer]");
  c->add_option("--iterations", o->iterations, "Of every solve, whatever the residual")
      ->capture_default_str()
      ->check(whole_number(std::int64_t{1}));
  c->add_option("--host-iterations", o->host_iterations,
                "Of the run host, once timed: the beginning of the others' histories is held against it "
                "[as --iterations]")
      ->check(whole_number(std::int64_t{1}));
  c->add_option("--repeat", o->repeat, "Timed solves of a way, after one that is not")
      ->capture_default_str()
      ->check(whole_number(1));
  c->add_flag("--overlap", o->overlap,
              "Which share of the communication lay beside computing, of every way of several ranks: by a "
              "traced solve, and by communication and computing alone");
  o->work.add(*c);
  add_symmetry_tolerance(*c, o->work.taken);
  o->layout.add_block(*c);
  o->layout.add_storage(*c);
  o->layout.add_shares(*c);
  c->add_option("--preconditioners", o->preconditioners,
                "Every method with each of these, between commas [what --preconditioner says]")
      ->excludes(c->get_option("--preconditioner"));
  c->add_option("--routes", o->routes,
                "Everything with each of these, between commas; each is laid out once [what --route says]")
      ->excludes(c->get_option("--route"));
  c->add_option("--json", o->json, "Write the figures as JSON; - for standard output");
  c->callback([o, c, &arguments, &work] {
    work = [o, c, &arguments] {
      o->input.check_given();
      check_names({{"--json", o->json}}, files_read(o->input, o->layout));
      if (!started_by_mpi()) {  // there rank 0 names unknown words
        for (Way const& way : ways_of(*o)) {
          static_cast<void>(solve_options(*o, way));
          static_cast<void>(matrix_options(*o, way.route));
        }
        share_gpus(o->work.ranks, o->work.solve_options(RunKind::automatic).run);
      }
      o->provenance = provenance_of(*c);
      return run_ranks(o->work.ranks, arguments,
                       [&](Transport& transport) { return bench_on_rank(*o, transport); });
    };
  });
}

}  // namespace hostless
