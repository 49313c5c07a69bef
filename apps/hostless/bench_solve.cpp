// Every way of solving one matrix, from one program that lays it out once: `hostless bench solve`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "bench.hpp"
#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "numbers.hpp"
#include "work.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  InputOptions input;
  LayoutOptions layout;
  WorkOptions work;
  std::string methods = "cg,pipelined-cg", runs, gpu_transports, json;
  std::int64_t iterations = 1000;
  int repeat = 3;
};

/// One way of solving.
struct Way {
  Method method;
  RunKind run;
  GpuTransport carrier = GpuTransport::automatic;  ///< of a run on GPUs
  bool on_gpus = false;                            ///< `host` never is
};

std::string runs_of(Options const& o) {
  if (!o.runs.empty()) return o.runs;
  return o.work.gpus > 0 ? "persistent,graph,stream" : "host,persistent,graph";
}

std::vector<GpuTransport> carriers_of(Options const& o) {
  if (o.work.gpus == 0 && !o.gpu_transports.empty())
    throw Error(ErrorCode::usage,
                "--gpu-transports without a GPU (nothing is carried between any). Use --gpus 2, or drop it.");
  std::vector<GpuTransport> carriers;
  for (std::string const& word : words_in(o.gpu_transports.empty() ? "peer" : o.gpu_transports))
    carriers.push_back(gpu_transport_from(word.c_str()));
  return carriers;
}

// Of one method: a run on GPUs by every transport between them.
void add_ways(Method method, Options const& o, std::vector<Way>& ways) {
  for (std::string const& word : words_in(runs_of(o))) {
    RunKind const run = run_kind_from(word.c_str());
    if (run == RunKind::host || o.work.gpus == 0) {
      ways.push_back({method, run});
      continue;
    }
    for (GpuTransport const carrier : carriers_of(o)) ways.push_back({method, run, carrier, true});
  }
}

// Errors  usage  unknown words; options that no way would use
std::vector<Way> ways_of(Options const& o) {
  std::vector<Way> ways;
  static_cast<void>(carriers_of(o));
  for (std::string const& method : words_in(o.methods)) add_ways(method_from(method.c_str()), o, ways);
  auto const has_lanes = [](Way const& way) { return way.run == RunKind::persistent && !way.on_gpus; };
  if (o.work.lanes > 0 && std::none_of(ways.begin(), ways.end(), has_lanes))
    throw Error(ErrorCode::usage,
                "--lanes without the persistent run of the processor (no other has them). Drop it.");
  return ways;
}

// `host` is the processor's, on the same ranks and plan: its bits are what a GPU's are held against.
SolveOptions solve_options(Options const& o, Way const& way) {
  SolveOptions s = o.work.solve_options(way.run);
  s.method = way.method;
  s.run.gpu_transport = way.carrier;
  if (!way.on_gpus) {
    s.run.gpus = 0;
    s.run.oversubscribe = o.work.gpus == 0 && o.work.oversubscribe;
  }
  if (way.run != RunKind::persistent) s.run.lanes = 1;
  s.rtol = 0;
  s.max_iterations = o.iterations;
  return s;
}

/// What became of one way, on every rank.
struct Row {
  std::string error;         ///< why there are no figures; empty: there are
  std::vector<double> us;    ///< rising: of every solve an iteration, of the slowest rank
  std::vector<double> wall;  ///< rising: the same by the host's clock, with copies to and from a GPU
  Result result;             ///< of the last solve
  std::string bits;          ///< `first`, `equal`, what differs, or why nothing was compared
  bool differs = false;
  double best() const { return us.front(); }
  double median() const { return us[us.size() / 2]; }
};

template <class T>
bool same_bits(T const& one, T const& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof one[0]) == 0;
}

class SolveBench {
 public:
  SolveBench(Options const& o, Transport& transport)
      : options_(o), group_(transport.group()), matrix_(make(o, transport)) {}
  Matrix const& matrix() const { return matrix_; }

  /// Collective. Binds the way once, solves once untimed, then as often as asked.
  /// Errors  peer_lost  a rank is gone
  Row measure(Way const& way) {
    Row row;
    try {
      Solver solver(matrix_, solve_options(options_, way));
      if (rhs_.empty()) {
        solver.manufacture(options_.input.seed);
        rhs_.emplace_back(solver.b().begin(), solver.b().end());
      }
      for (int k = 0; k <= options_.repeat && row.error.empty(); ++k) solve(solver, k > 0, row);
      if (row.error.empty()) compare(way.method, solver.x(), row);
    } catch (Error const& e) {
      if (e.code() == ErrorCode::peer_lost) throw;
      row.error = e.what();
      exit_code_ = e.exit_code();
    }
    std::sort(row.us.begin(), row.us.end());
    std::sort(row.wall.begin(), row.wall.end());
    solved_ += row.error.empty() ? 1 : 0;
    differ_ += row.differs ? 1 : 0;
    return row;
  }
  /// 1 where bits differ; where no way solved, that of the last refusal.
  int exit_code() const { return differ_ > 0 ? 1 : solved_ == 0 ? exit_code_ : 0; }

 private:
  struct Answer {
    std::vector<double> x, history, truth;
  };

  static Matrix make(Options const& o, Transport& transport) {
    auto const source = o.input.open(transport.group());
    MatrixOptions layout = o.work.matrix_options(o.input, o.layout);
    for (Way const& way : ways_of(o))
      layout.format.lanes = std::max(layout.format.lanes, solve_options(o, way).run.lanes);
    return Matrix::from_source(transport, *source, layout);
  }

  void solve(Solver& solver, bool timed, Row& row) {
    std::copy(rhs_[0].begin(), rhs_[0].end(), solver.b().begin());
    std::fill(solver.x().begin(), solver.x().end(), 0.0);
    group_.barrier();
    Result const& result = row.result = solver.solve();
    if (result.status == Status::peer_lost || result.iterations == 0) {
      row.error = fmt::format("{} after {} iterations{}", name(result.status), result.iterations,
                              result.message.empty() ? "" : ": " + result.message);
      exit_code_ = hostless::exit_code(result.status);
    } else if (timed) {
      double const one = 1e6 / static_cast<double>(result.iterations);
      bool const on_gpu = result.device_bytes > 0;
      row.us.push_back(one * group_.max(on_gpu ? result.time_device_s : result.time_solve_s));
      row.wall.push_back(one * result.time_solve_s);
    }
  }

  void compare(Method method, std::span<double> x, Row& row) {
    if (options_.work.reduction != "ordered") {
      row.bits = "not compared: the order of sums is free";
      return;
    }
    Answer answer{{x.begin(), x.end()}, row.result.residual_history, {row.result.true_residual}};
    auto const [at, is_first] = first_.try_emplace(method, std::move(answer));
    if (is_first) {
      row.bits = "first";
      return;
    }
    Answer const& first = at->second;
    std::string what;
    auto const look = [&](bool same, char const* name) {
      if (group_.any(!same)) what += fmt::format("{}{}", what.empty() ? "" : ", ", name);
    };
    look(same_bits(std::span<double const>(x), std::span<double const>(first.x)), "x");
    look(same_bits(row.result.residual_history, first.history), "history");
    look(same_bits(std::vector{row.result.true_residual}, first.truth), "true residual");
    row.differs = !what.empty();
    row.bits = what.empty() ? "equal" : "DIFFER: " + what;
  }

  Options const& options_;
  Group& group_;
  Matrix matrix_;
  std::vector<std::vector<double>> rhs_;  // one, as soon as a solver has made it
  std::map<Method, Answer> first_;
  int solved_ = 0, differ_ = 0, exit_code_ = 0;
};

Json json_of(Options const& o, SolveBench const& bench, Way const& way, Row const& row) {
  Json j = {{"matrix", o.input.describe()},
            {"method", name(way.method)},
            {"run", name(way.run)},
            {"ranks", bench.matrix().plan().ranks},
            {"gpus", way.on_gpus ? o.work.gpus : 0}};
  if (way.on_gpus) j["gpu_transport"] = name(way.carrier);
  if (!row.error.empty()) {
    j["error"] = row.error;
    return j;
  }
  Result const& result = row.result;
  j["best_us"] = row.best();
  j["median_us"] = row.median();
  j["all_us"] = row.us;
  j["wall_best_us"] = row.wall.front();
  j["iterations"] = result.iterations;
  j["status"] = name(result.status);
  double const truth = result.true_relative_residual;
  j["true_relative_residual"] = std::isfinite(truth) ? Json(truth) : Json(nullptr);
  j["bits"] = row.bits;
  for (auto const& [key, value] : result.choices) j["choices"][key] = value;
  return j;
}

std::string line_of(Way const& way, Row const& row) {
  std::string const label =
      fmt::format("{:20} {:11} {:7}", name(way.method), name(way.run), way.on_gpus ? name(way.carrier) : "");
  if (!row.error.empty()) return fmt::format("{} {}", label, row.error);
  return fmt::format("{} {:10.2f} {:10.2f} {:10.2f} {:10} {:13.3e}  {}", label, row.best(), row.median(),
                     row.wall.front(), row.result.iterations, row.result.true_relative_residual, row.bits);
}

void print(Options const& o, bool first, std::string const& line) {
  if (!first || o.json == "-") return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

int bench_on_rank(Options const& o, Transport& transport) {
  Group& group = transport.group();
  bool const first = group.rank() == 0;
  group.together([&] {
    if (first && !o.json.empty() && o.json != "-") check_writable(o.json);
  });
  SolveBench bench(o, transport);
  Json report = bench_report("solve", transport);
  report["gpus"] = o.work.gpus;
  report["rows"] = bench.matrix().global_rows();
  report["entries"] = bench.matrix().global_entries();
  report["asked_iterations"] = o.iterations;
  report["solves"] = Json::array();
  print(o, first,
        fmt::format("{}: {} rows, {} entries, {} ranks ({}), {}", o.input.describe(),
                    bench.matrix().global_rows(), bench.matrix().global_entries(), group.size(),
                    transport.capabilities().transport,
                    o.work.gpus > 0 ? fmt::format("{} GPUs", o.work.gpus) : "the processor"));
  print(o, first,
        fmt::format("{:20} {:11} {:7} {:>10} {:>10} {:>10} {:>10} {:>13}  {}", "method", "run", "by",
                    "best us", "median us", "by the wall", "iterations", "true residual", "bits"));
  auto const write = [&] {
    if (first && !o.json.empty()) write_text(o.json, report.dump(1) + "\n");
  };
  for (Way const& way : ways_of(o)) {
    try {
      Row const row = bench.measure(way);
      report["solves"].push_back(json_of(o, bench, way, row));
      print(o, first, line_of(way, row));
    } catch (Error const&) {
      write();  // what was measured until a rank went
      throw;
    }
  }
  write();
  group.barrier();
  return bench.exit_code();
}

}  // namespace

void add_bench_solve(CLI::App& bench, Arguments const& arguments, std::function<int()>& work) {
  auto o = std::make_shared<Options>();
  CLI::App* c = bench.add_subcommand("solve",
                                     "Every method in every run on one matrix, laid out once: time an "
                                     "iteration, and whether bits are equal");
  c->footer(
      "Strong scaling: the same matrix with --gpus 1, 2, 4 (or --ranks). Weak scaling: a --size that grows "
      "with them. bench/plot_scaling.py draws the JSON files. Exit codes: 1 bits differ; where every way was "
      "refused, that of the last refusal.");
  c->add_option("file", o->input.file, "Matrix Market (plain or gz) or PETSc binary");
  o->input.add_problem(*c);
  c->add_option("--methods", o->methods, "Of cg, single-reduction-cg, pipelined-cg, between commas")
      ->capture_default_str();
  c->add_option(
      "--runs", o->runs,
      "Of host, persistent, graph, stream, auto, between commas [host,persistent,graph; with --gpus "
      "persistent,graph,stream]; host is always the processor's");
  c->add_option("--gpu-transports", o->gpu_transports,
                "Of peer, nccl, nvshmem, mpi, host, auto, between commas: what carries between GPUs [peer]");
  c->add_option("--iterations", o->iterations, "Of every solve, whatever the residual")
      ->capture_default_str()
      ->check(whole_number(std::int64_t{1}));
  c->add_option("--repeat", o->repeat, "Timed solves of a way, after one that is not")
      ->capture_default_str()
      ->check(whole_number(1));
  o->work.add(*c);
  o->layout.add_block(*c);
  o->layout.add_storage(*c);
  o->layout.add_shares(*c);
  c->add_option("--json", o->json, "Write the figures as JSON; - for standard output");
  c->callback([o, &arguments, &work] {
    work = [o, &arguments] {
      o->input.check_given();
      if (!started_by_mpi()) {  // there rank 0 names unknown words
        for (Way const& way : ways_of(*o)) static_cast<void>(solve_options(*o, way));
        share_gpus(o->work.ranks, o->work.solve_options(RunKind::automatic).run);
      }
      o->work.matrix_options(o->input, o->layout);
      return run_ranks(o->work.ranks, arguments,
                       [&](Transport& transport) { return bench_on_rank(*o, transport); });
    };
  });
}

}  // namespace hostless
