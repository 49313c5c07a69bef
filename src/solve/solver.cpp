#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "solve/condition.hpp"
#include "solve/gpu_ranks.hpp"
#include "solve/lanczos.hpp"
#include "solve/manufactured.hpp"
#include "solve/method_vectors.hpp"
#include "solve/methods.hpp"
#include "solve/precision.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {
namespace {

// Times |b|: the recurrence falls for ever, the true residual stays above about 1e-16 |b|; below this it says
// nothing.
constexpr double useless_below = 0x1p-60;

}  // namespace

void Solver::Parts::check_options() const {
  auto refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  check_ends(options);
  if (options.run.threads < 1)
    refuse(fmt::format("{} threads (a rank needs at least one).", options.run.threads));
  if (options.run.threads > 1 && options.run.kind != RunKind::persistent) {
    refuse(fmt::format(
        "{} threads a rank (lanes) with the {} run (only `persistent` has several). Use --run persistent.",
        options.run.threads, name(options.run.kind)));
  }
  if (!options.run.profile_file.empty() && options.run.gpus == 0)
    refuse("a profile of a run on the processor (kernels write it). Use --gpus 1.");
  if (int const every = options.run.check_interval; every < 1 || every > longest_check_interval)
    refuse(fmt::format("check interval {} (it is from 1 to {}).", every, longest_check_interval));
  bool const function = options.preconditioner == PreconditionerKind::function;
  if (function != static_cast<bool>(options.preconditioner_function))
    refuse("a preconditioner function belongs to preconditioner `function`, and the other way round.");
  if (function && options.method != Method::cg) {
    refuse(
        fmt::format("{} needs a preconditioner that every row can apply by itself (it forms M r on the fly). "
                    "Use method cg.",
                    name(options.method)));
  }
  check_chebyshev(options);
  check_precision(options, matrix);
  if (only_on_gpu() && options.run.gpus == 0)
    refuse(
        "a matrix whose values are on a GPU alone, and a solve on the processor (which has no layout of it). "
        "Use "
        "--gpus 1.");
  if (matrix.function() &&
      (simple_kind() == PreconditionerKind::jacobi || simple_kind() == PreconditionerKind::block_jacobi)) {
    refuse(fmt::format("{} needs the matrix's diagonal (this one is a function). {}.", name(simple_kind()),
                       is_chebyshev() ? "Put the polynomial over none" : "Pass a preconditioner function"));
  }
  if (!options.checkpoint_file.empty() && options.checkpoint_every < 1)
    refuse("a checkpoint file needs checkpoint_every >= 1.");
  check_gpu_ranks(matrix, options.run);
  Capabilities const can = matrix.transport().capabilities();
  if (options.run.gpus > 0) return;  // gpu::Offload checks the rest
  if (options.run.kind == RunKind::stream)
    refuse("the stream run on the processor (it launches kernels). Use --gpus 1, or --run host.");
  Support const face = options.run.kind == RunKind::host    ? can.host
                       : options.run.kind == RunKind::graph ? can.graph
                                                            : can.kernel;
  if (face == Support::absent)
    refuse(
        fmt::format("the {} transport has no {} run ({}).", can.transport, name(options.run.kind), can.note));
  if ((function || matrix.function()) && can.host_callback == Support::absent)
    refuse(fmt::format("the {} transport runs no host functions.", can.transport));
}

// Only the first wish counts: it is polled again until all ranks have heard of it. True.
bool Solver::Parts::stop_for(std::string const& reason) {
  if (why_stopped.empty()) why_stopped = reason;
  return true;
}

void Solver::Parts::allocate() {
  ExchangePlan const& plan = matrix.plan();
  auto const owned = static_cast<std::size_t>(plan.owned);
  group().together([&] {
    if (options.run.kind == RunKind::automatic && options.run.gpus == 0) options.run.kind = RunKind::host;
    check_options();
    if (options.matrix_precision == MatrixPrecision::fp32) check_fp32_range(matrix);  // a GPU knows no rows
    vector_with_ghosts->resize(owned + static_cast<std::size_t>(plan.ghosts));
    gathered = vector_with_ghosts->data() + plan.ghosts_below;
    rhs.resize(owned);
    fields.resize(static_cast<std::size_t>(fields_of(options)));
    for (auto& f : fields) f.resize(owned);
    if (options.preconditioner == PreconditionerKind::function) apart.resize(owned);
    auto const steps = static_cast<std::size_t>(std::min(limit(), most_history)) + 1;
    history_memory.reset(new StepRecord[steps]);
    history = {history_memory.get(), steps};
    history[0] = {};  // all that is known where a rank is lost before the first true residual
    if (options.run.gpus > 0) gpu = std::make_unique<gpu::GpuSolver>(matrix, options, history.size());
  });
  if (gpu) gpu->bind();
  exchange = std::make_unique<Exchange>(matrix.transport(), plan, gathered, options.reduction, options.limits,
                                        vector_with_ghosts);
  run = options.run;
  run.stop_requested = [this] {
    bool const late = options.time_limit_s > 0 && host::Engine::seconds_since(begun) > options.time_limit_s;
    if (late) return stop_for(fmt::format("the time limit of {} s was reached", options.time_limit_s));
    if (!options.run.stop_requested || !options.run.stop_requested()) return false;
    return stop_for(options.run.stop_reason ? options.run.stop_reason() : "the program asked it to stop");
  };
  run.observer = [this](State const& s) {
    bool stop = options.run.observer && options.run.observer(s);
    if (options.callback)
      stop = options.callback({s.iteration, std::sqrt(s.rr), s.target, fields[0]}) || stop;
    return stop && stop_for("the callback asked it to stop");
  };
  engine = std::make_unique<host::Engine>(state, matrix.sweep(), host::Multiplier{matrix.local(), nullptr},
                                          *exchange, run, options.limits);
  if (matrix.local() == nullptr) {
    engine->function = matrix.function();
    if (only_on_gpu()) engine->function = [this](double const* x, double* y) { gpu->multiply(x, y); };
    engine->product.resize(owned);
    engine->multiplier.ready = engine->product.data();
  }
  if (is_chebyshev()) require_mutual_neighbours(group(), *exchange, plan, gathered);
}

// y = A x outside a text: set-up work, with a collective of its own so that a lost peer is an error.
void Solver::Parts::multiply(double const* x, double* y) {
  if (only_on_gpu()) gpu->refresh_values();
  std::copy_n(x, rhs.size(), gathered);
  group().barrier();
  exchange->start();
  if (!exchange->wait()) throw Error(ErrorCode::peer_lost, "a rank was lost while vectors were exchanged.");
  if (engine->function) {
    engine->function(gathered, y);
  } else {
    matrix.local()->multiply(gathered, y);
  }
  group().barrier();
}

void Solver::Parts::check_symmetry() {
  std::size_t const n = rhs.size();
  std::vector<double> u(n), v(n), au(n), av(n);
  for (std::size_t i = 0; i < n; ++i) {
    u[i] = random_entry(11, matrix.global_row(static_cast<std::int64_t>(i)));
    v[i] = random_entry(12, matrix.global_row(static_cast<std::int64_t>(i)));
  }
  multiply(u.data(), au.data());
  multiply(v.data(), av.data());
  struct Sums {
    double vau = 0, uav = 0, size = 0, tolerance = 0;
  } mine;
  mine.tolerance = options.symmetry_tolerance;
  for (std::size_t i = 0; i < n; ++i) {
    mine.vau += v[i] * au[i];
    mine.uav += u[i] * av[i];
    mine.size += std::abs(v[i] * au[i]) + std::abs(u[i] * av[i]);
  }
  Sums all;
  for (Sums const& s : group().all_gather(mine)) {
    all.vau += s.vau;
    all.uav += s.uav;
    all.size += s.size;
    all.tolerance = std::max(all.tolerance, s.tolerance);  // the same on all
  }
  if (std::abs(all.vau - all.uav) > all.tolerance * all.size) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format(
            "the matrix is not symmetric: x'Ay = {:.6e}, y'Ax = {:.6e} for two random vectors (the method "
            "needs A = A'). {}",
            all.vau, all.uav,
            matrix.function() ? "Correct the function, or use another method." : "Store both triangles."));
  }
}

void Solver::Parts::refresh_preconditioner() {
  if (preconditioner_version == matrix.values_version()) return;
  if (only_on_gpu()) gpu->refresh_values();  // products and the diagonal are read there
  bool const block = simple_kind() == PreconditionerKind::block_jacobi;
  if (block || simple_kind() == PreconditionerKind::jacobi) refresh_preconditioner_data(block);
  if (is_chebyshev() && !bad_row) refresh_bound();
  preconditioner_version = matrix.values_version();
}

void Solver::Parts::refresh_rounded() {
  if (options.matrix_precision == MatrixPrecision::fp64 || rounded_version == matrix.values_version()) return;
  group().together([&] {
    if (rounded_version >= 0) check_fp32_range(matrix);  // new values
    if (gpu) return;                                     // it rounds what it is given
    rounded.reset();
    engine->multiplier.rounded = &rounded.emplace(matrix.local()->rounded_to_fp32());
  });
  rounded_version = matrix.values_version();
}

void Solver::Parts::refresh_preconditioner_data(bool block) {
  BadDiagonal mine{matrix.global_rows(), true};
  group().together([&] {
    std::optional<BadDiagonal> bad;
    if (only_on_gpu()) {
      int const b = matrix.sweep().tiling.block;
      std::vector<double> blocks(rhs.size() * static_cast<std::size_t>(b));
      gpu->diagonal_blocks(blocks.data());
      bad = invert_diagonal(std::move(blocks), b, block, preconditioner_data);
    } else {
      bad = invert_diagonal(*matrix.local(), block, preconditioner_data);
    }
    if (bad) mine = {matrix.global_row(bad->row), bad->finite};
  });
  bad_row.reset();
  for (BadDiagonal const& one : group().all_gather(mine)) {
    if (one.row < (bad_row ? bad_row->row : matrix.global_rows())) bad_row = one;
  }
}

// Works on vectors of the method that no caller has filled.
void Solver::Parts::refresh_bound() {
  bound = {options.chebyshev.upper, 0};
  if (options.chebyshev.upper > 0) return;
  for (std::size_t i = 0; i < rhs.size(); ++i)
    fields[1][i] = random_entry(15, matrix.global_row(static_cast<std::int64_t>(i)));
  group().barrier();
  bound.found = largest_ritz_value(*engine, preconditioner(),
                                   {fields[1].data(), fields[3].data(), fields[2].data(), gathered});
  if (state.status != Status::running)
    throw Error(ErrorCode::peer_lost, "a rank was lost while eigenvalues were estimated.");
  group().barrier();
  bound.upper = chebyshev_safety * bound.found;
}

AnyPreconditioner Solver::Parts::preconditioner() const {
  using Kind = AnyPreconditioner::Kind;
  switch (simple_kind()) {
    case PreconditionerKind::none:
    case PreconditionerKind::chebyshev:  // over another one
      return {};
    case PreconditionerKind::jacobi:
      return {Kind::jacobi, 1, preconditioner_data.data()};
    case PreconditionerKind::block_jacobi:
      return {Kind::block_jacobi, matrix.sweep().tiling.block, preconditioner_data.data()};
    case PreconditionerKind::function:
      return {Kind::apart, 1, apart.data()};
  }
  return {};
}

std::int64_t Solver::Parts::preconditioner_bytes() const {
  return preconditioner_data_bytes(options, matrix.sweep().tiling.block);
}

void Solver::Parts::prepare_rhs() {
  if (there != nullptr) return prepare_in_place();
  double mine = 0;
  for (double v : rhs)
    mine = std::max(mine, std::isfinite(v) ? std::abs(v) : std::numeric_limits<double>::infinity());
  amplitude = group().max(mine);
  state = State{};
  host::Engine& e = *engine;
  measure(e, rhs.data());
  null_space_removed = 0;
  if (options.null_space_constant && state.status == Status::running && std::isfinite(state.rz)) {
    null_space_removed = std::abs(take_mean(rhs)) * std::sqrt(static_cast<double>(matrix.global_rows()));
    measure(e, rhs.data());
  }
  b_square = state.rr;
}

// Endings that no iteration is needed for.
bool Solver::Parts::easy_ending(Result& result) {
  auto end = [&](Status status, std::string text) {
    result.status = status;
    result.message = std::move(text);
    return true;
  };
  if (state.status != Status::running)
    return end(state.status, "a rank was lost before the first iteration.");
  if (!std::isfinite(amplitude)) return end(Status::not_finite, "the right-hand side holds NaN or infinity.");
  if (!std::isfinite(b_square)) {
    return end(Status::not_finite,
               fmt::format("|b|^2 overflows: entries of b reach {:.3e}. Scale the system.", amplitude));
  }
  if (amplitude > 0 && b_square < std::numeric_limits<double>::min()) {
    if (options.null_space_constant && null_space_removed > 0)
      return false;  // b was constant: zero is its projection
    return end(
        Status::breakdown,
        fmt::format("|b|^2 underflows: entries of b are at most {:.3e}. Scale the system.", amplitude));
  }
  // Squares of residuals near such a target would look like zero, and zero like an end.
  double const target = std::max(options.rtol * std::sqrt(b_square), options.atol);
  double const smallest = std::numeric_limits<double>::min(), eps = std::numeric_limits<double>::epsilon();
  if (b_square > 0 && b_square < smallest / eps / eps && target > 0 && target < std::sqrt(smallest)) {
    return end(Status::breakdown,
               fmt::format("the square of the target {:.3e} underflows: entries of b are at most {:.3e}. "
                           "Scale the system.",
                           target, amplitude));
  }
  if (bad_row) {
    char const* const what = simple_kind() == PreconditionerKind::jacobi ? "entry" : "block";
    if (!bad_row->finite)
      return end(Status::not_finite,
                 fmt::format("the diagonal {} of row {} holds NaN or infinity.", what, bad_row->row + 1));
    return end(Status::indefinite_preconditioner,
               fmt::format("the diagonal {} of row {} is not positive.", what, bad_row->row + 1));
  }
  if (is_chebyshev() && !(bound.upper > 0 && std::isfinite(bound.upper) && std::isfinite(1 / bound.upper))) {
    Status const status = !std::isfinite(bound.upper) ? Status::not_finite
                          : bound.upper < 0           ? Status::indefinite_matrix
                                                      : Status::breakdown;
    return end(status,
               fmt::format("the largest eigenvalue that a Lanczos run found is {} (a Chebyshev polynomial "
                           "needs a positive bound).",
                           bound.found));
  }
  return false;
}

void Solver::Parts::start_state() {
  state = first_state(options, bound.upper);
  state.target = std::max(options.rtol * std::sqrt(b_square), options.atol);
  state.propose_at = std::max(state.target, useless_below * std::sqrt(b_square));
  state.limit = limit();
  state.projects = options.null_space_constant;
  state.history = history.data();
  state.history_size = static_cast<std::int64_t>(history.size());
  if (there != nullptr) return start_in_place();
  if (b_square == 0) {  // x = 0 solves it exactly, whatever the guess was
    std::fill(fields[0].begin(), fields[0].end(), 0.0);
  }
}

// What a checkpoint of this solve belongs to; costs one product with A.
void Solver::Parts::identify() {
  identity.plan = fingerprint(matrix.plan(), matrix.sweep());
  identity.rows = matrix.global_rows();
  identity.ranks = group().size();
  identity.method = static_cast<std::int32_t>(options.method);
  identity.preconditioner = static_cast<std::int32_t>(options.preconditioner);
  identity.precision = static_cast<std::int32_t>(options.matrix_precision);
  identity.reduction = static_cast<std::int32_t>(options.reduction);
  identity.null_space = options.null_space_constant ? 1 : 0;
  if (is_chebyshev()) {
    identity.degree = options.chebyshev.degree;
    identity.inner = static_cast<std::int32_t>(options.chebyshev.inner);
    identity.ratio = options.chebyshev.ratio;
    identity.upper = options.chebyshev.upper;
  }
  identity.rhs = checksum(group(), rhs);
  std::vector<double> u(rhs.size()), product(rhs.size());
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = random_entry(14, matrix.global_row(static_cast<std::int64_t>(i)));
  multiply(u.data(), product.data());
  identity.matrix = checksum(group(), product);
}

// All vectors that an iteration reads before it writes them.
std::vector<std::span<double>> Solver::Parts::saved() {
  std::vector<std::span<double>> all(fields.begin(), fields.end());
  all.emplace_back(gathered, rhs.size());
  return all;
}

void Solver::Parts::resume() {
  state = read_checkpoint(group(), options.resume_file, identity, state, history, saved());
  if (state.iteration >= state.limit) ask_for_true_residual(state);
}

void Solver::Parts::run_on_gpu() {
  auto const progress = [this](std::int64_t iteration, double rr) {
    return options.callback && options.callback({iteration, std::sqrt(rr), state.target}) &&
           stop_for("the callback asked it to stop");
  };
  gpu->refresh(preconditioner_data, preconditioner_version);
  if (there != nullptr) return gpu->run(state, history, run.stop_requested, progress);
  auto const vectors = saved();
  gpu->run(state, rhs, vectors, history, run.stop_requested, progress);
}

// Which run of the GPU is the fastest, with the preconditioner in place; nothing where the run is known.
void Solver::Parts::tune() {
  bool const fits = !bad_row && (!is_chebyshev() || (bound.upper > 0 && std::isfinite(1 / bound.upper)));
  if (!gpu || !gpu->wants_tuning() || !fits) return;
  gpu->refresh(preconditioner_data, preconditioner_version);
  gpu->tune(first_state(options, bound.upper), static_cast<int>(fields.size()) + 1,
            options.run.stop_requested);
}

void Solver::Parts::run_conjugate_gradient() {
  auto at = [&](std::size_t k) { return fields[k].data(); };
  double const* b = rhs.data();
  RunKind const kind = options.run.kind;
  if (is_chebyshev()) {
    auto const numbers = ChebyshevNumbers::of(options.chebyshev.degree, options.chebyshev.ratio);
    return run_method(
        *engine, kind,
        ConjugateGradient<AnyPreconditioner, Chebyshev<>>{
            {}, nullptr, b, at(0), at(1), at(2), gathered, nullptr, {numbers, preconditioner()}, at(3)});
  }
  auto const* function = options.preconditioner_function ? &options.preconditioner_function : nullptr;
  run_method(*engine, kind,
             ConjugateGradient<>{
                 preconditioner(), function, b, at(0), at(1), at(2), gathered, apart.data(), {}, nullptr});
}

void Solver::Parts::run_once() {
  if (gpu) return run_on_gpu();
  AnyPreconditioner const m = preconditioner();
  auto at = [&](std::size_t k) { return fields[k].data(); };
  double const* b = rhs.data();
  RunKind const kind = options.run.kind;
  switch (options.method) {
    case Method::cg:
      return run_conjugate_gradient();
    case Method::single_reduction_cg:
      return run_method(*engine, kind, SingleReduction<>{m, b, at(0), at(1), at(2), at(3), at(4), gathered});
    case Method::pipelined_cg:
      return run_method(*engine, kind,
                        Pipelined<>{m, b, at(0), at(1), at(2), at(3), at(4), at(5), at(6), gathered});
  }
}

void Solver::Parts::iterate(Result& result) {
  bool const checkpoints = !options.checkpoint_file.empty();
  for (;;) {
    if (checkpoints)
      state.pause_at = (state.iteration / options.checkpoint_every + 1) * options.checkpoint_every;
    run_once();
    if (state.awaits_projection()) {
      project_residual();
      if (state.status != Status::running) return;
      continue;
    }
    if (state.status != Status::paused) return;
    auto const now = saved();
    auto const kept = std::min<std::size_t>(history.size(), static_cast<std::size_t>(state.iteration) + 1);
    write_checkpoint(group(), options.checkpoint_file, identity, state, {history.data(), kept},
                     {now.begin(), now.end()});
    ++result.checkpoints;
    state.status = Status::running;
  }
}

void Solver::Parts::describe(Result& result) const {
  auto& c = result.choices;
  ExchangePlan const& plan = matrix.plan();
  c.emplace_back("method", name(options.method));
  c.emplace_back("preconditioner", name(options.preconditioner));
  if (simple_kind() == PreconditionerKind::block_jacobi && matrix.sweep().tiling.block == 1)
    c.emplace_back("preconditioner_why", "block-jacobi is jacobi here: the matrix has no blocks");
  if (is_chebyshev()) describe_chebyshev(options.chebyshev, bound, state, c);
  c.emplace_back("transport", matrix.transport().capabilities().transport);
  c.emplace_back("run", name(gpu ? gpu->run_kind() : options.run.kind));
  c.emplace_back("lanes", std::to_string(options.run.threads));
  c.emplace_back("ranks", std::to_string(plan.ranks));
  c.emplace_back("nodes", std::to_string(plan.nodes.nodes()));
  c.emplace_back("route", name(plan.route));
  c.emplace_back("partition", matrix.why_partition());
  c.emplace_back("block", matrix.why_block());
  c.emplace_back("slices", std::to_string(matrix.sweep().tiling.slices));
  c.emplace_back("row_lanes", std::to_string(matrix.sweep().tiling.threads_per_row));
  if (matrix.local() != nullptr) {
    c.emplace_back("format", matrix.local()->describe());
    c.emplace_back("format_why", matrix.local()->why());
  }
  c.emplace_back("matrix_precision", describe_precision(options.matrix_precision, state, matrix_bytes(false),
                                                        matrix_bytes(true)));
  if (gpu) {
    c.emplace_back("gpu", gpu->device_name());
    if (std::string const text = gpu->describe_transport(); !text.empty())
      c.emplace_back("gpu_transport", text);
    c.emplace_back("gpu_run", gpu->describe());
    c.emplace_back("run_why", gpu->why_run());
    c.emplace_back("gpu_format", matrix.device_rows()->why);
    describe_storage(result);
  }
  bool const same = exchange->reduction() == options.reduction;
  c.emplace_back("reduction",
                 gpu && options.reduction == Reduction::fast ? fmt::format("fast ({})", gpu->describe_sums())
                 : same                                      ? name(options.reduction)
                        : "ordered (this transport has no library all-reduce; its gather is the fast way)");
  c.emplace_back("instruction_set", name(active_isa()));
  describe_settings(result);
}

// With what was left open resolved, so that the same settings make the same steps.
void Solver::Parts::describe_settings(Result& result) const {
  auto& s = result.settings;
  auto const add = [&](char const* key, auto const& value) { s.emplace_back(key, fmt::format("{}", value)); };
  add("method", name(options.method));
  add("preconditioner", name(options.preconditioner));
  add("matrix_precision", name(options.matrix_precision));
  add("rtol", options.rtol);
  add("atol", options.atol);
  add("max_iterations", limit());
  add("divergence_limit", options.divergence_limit);
  add("null_space", options.null_space_constant ? "constant" : "none");
  add("reduction", name(options.reduction));
  add("run", name(gpu ? gpu->run_kind() : options.run.kind));
  add("lanes", options.run.threads);
  add("check_interval", options.run.check_interval);
  add("gpus", options.run.gpus);
  add("oversubscribe", options.run.oversubscribe ? "yes" : "no");
  add("gpu_transport", name(options.run.gpu_transport));
  add("time_limit_s", options.time_limit_s);
  add("checkpoint_file", options.checkpoint_file);
  add("checkpoint_every", options.checkpoint_every);
  add("resume_file", options.resume_file);
  add("first_deadline_s", options.limits.first_s);
  add("later_deadline_s", options.limits.later_s);
}

// Of a sweep; rounded values take less only on a GPU.
std::int64_t Solver::Parts::matrix_bytes(bool is_rounded) const {
  if (gpu) {
    DeviceRows const& rows = *matrix.device_rows();
    return is_rounded ? rows.rounded_bytes_per_sweep() : rows.bytes_per_sweep();
  }
  return matrix.local() != nullptr ? matrix.local()->bytes_per_sweep() : 0;
}

// Endings inside an iteration leave the true residual of an older x behind; a lost peer leaves none.
void Solver::Parts::find_true_residual() {
  switch (state.status) {
    case Status::indefinite_matrix:
    case Status::indefinite_preconditioner:
    case Status::not_finite:
    case Status::breakdown:
      break;
    case Status::peer_lost:
      state.true_rr = std::numeric_limits<double>::quiet_NaN();
      return;
    default:
      return;  // judged from this x
  }
  State const ended = state;
  double rr = std::numeric_limits<double>::quiet_NaN();
  if (there != nullptr) {
    rr = true_residual_in_place();
  } else {
    std::vector<double> residual(rhs.size());
    multiply(fields[0].data(), residual.data());
    for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = rhs[i] - residual[i];
    state = State{};
    measure(*engine, residual.data());
    if (state.status == Status::running) rr = state.rr;
  }
  state = ended;
  state.true_rr = rr;
  state.recurrence_rr = ended.wants_true_residual ? ended.recurrence_rr : ended.rr;
}

// A file that cannot be written costs nobody the answer.
void Solver::Parts::write_profile(Result& result) const {
  if (options.run.profile_file.empty()) return;
  try {
    gpu->write_profile(options.run.profile_file);
  } catch (Error const& e) {
    if (e.code() == ErrorCode::peer_lost) throw;
    result.profile_problem = e.what();
  }
}

// Where the matrix has turned out not to be positive definite there is no such number.
void Solver::Parts::estimate_condition(Result& result) const {
  bool const is_known = state.status == Status::converged || state.status == Status::iteration_limit ||
                        state.status == Status::stagnated || state.status == Status::aborted;
  auto const last = std::min<std::int64_t>(state.iteration, static_cast<std::int64_t>(history.size()) - 1);
  std::int64_t const first = state.changed_at + 1;
  if (!is_known || first > last) return;
  auto const steps =
      history.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1));
  bool const all = last == state.iteration;  // the true residual is of the last step
  auto const values = extreme_ritz_values(
      trusted_steps(steps, all ? state.true_rr : std::numeric_limits<double>::quiet_NaN()));
  if (!values) return;
  result.smallest_eigenvalue = values->smallest;
  result.largest_eigenvalue = values->largest;
  result.condition_estimate = values->largest / values->smallest;
}

void Solver::Parts::finish(Result& result, PhaseTimes const& before, double waited_before) {
  double const b_norm = std::sqrt(b_square);
  auto relative = [&](double norm) { return b_norm > 0 ? norm / b_norm : norm; };
  result.rhs_norm = b_norm;
  result.iterations = state.iteration;
  result.restarts = state.restarts;
  result.replacements = state.replacements;
  result.true_residual = std::sqrt(state.true_rr);
  result.true_relative_residual = relative(result.true_residual);
  result.recurrence_relative_residual =
      relative(std::sqrt(state.iteration == 0 ? state.true_rr : state.recurrence_rr));
  result.residual_gap = std::abs(result.true_relative_residual - result.recurrence_relative_residual);
  result.null_space_removed = null_space_removed;
  estimate_condition(result);
  auto const kept = std::min<std::size_t>(history.size(), static_cast<std::size_t>(state.iteration) + 1);
  result.residual_history = norms(history.first(kept));
  PhaseTimes const& now = engine->times;
  result.times = {now.publish_s - before.publish_s, now.sweep_s - before.sweep_s, now.rows_s - before.rows_s,
                  now.sums_s - before.sums_s, now.ghosts_s - before.ghosts_s};
  result.waited_s = exchange->waited_s() - waited_before;
}

Result Solver::Parts::solve() {
  Result result;
  result.time_setup_s = time_setup_s;
  begun = Clock::now();
  why_stopped.clear();
  exchange->lower();  // what stopped the solve before does not stop this one
  PhaseTimes const times = engine->times;
  gpu::Cost const gpu_before = gpu ? gpu->cost() : gpu::Cost{};
  double const waited = exchange->waited_s();
  refresh();
  prepare_rhs();
  bool const easy = easy_ending(result);
  if (!easy) {
    if (!options.resume_file.empty() || !options.checkpoint_file.empty()) identify();
    start_state();
    if (!options.resume_file.empty()) {
      resume();
    } else if (options.null_space_constant) {
      project_solution();  // what a guess has of the null space only drowns the rest in rounding
    }
    result.resumed_at = state.iteration;
    if (options.null_space_constant) {
      iterate_and_project(result);
    } else {
      iterate(result);
    }
    result.status = state.status;
    find_true_residual();
    if (state.status != Status::peer_lost) give_answer();  // before products overwrite what is there
    if (gpu) {
      gpu::Cost const now = gpu->cost();
      result.time_device_s = now.device_s - gpu_before.device_s;
      result.launches = now.launches - gpu_before.launches;
      result.device_bytes = gpu->device_bytes();
      result.device_peak_bytes = gpu->peak_bytes();
      auto const vectors = static_cast<std::int64_t>(fields.size()) + 2;    // the gathered one, and b
      bool const both = options.matrix_precision == MatrixPrecision::fp32;  // the rounded values besides
      result.device_model_bytes = matrix_bytes(false) +
                                  (both ? matrix_bytes(false) - matrix_bytes(true) : 0) +
                                  (8 * vectors + preconditioner_bytes()) * matrix.owned();
      write_profile(result);
    }
    result.time_solve_s = host::Engine::seconds_since(begun);
    finish(result, times, waited);
    result.message = advice(result);
  } else {
    if (result.status != Status::peer_lost) give_answer();
    result.rhs_norm = std::sqrt(b_square);
    result.true_residual = result.true_relative_residual = std::numeric_limits<double>::quiet_NaN();
    result.recurrence_relative_residual = result.residual_gap = result.true_residual;
  }
  describe(result);
  if (easy) result.time_solve_s = host::Engine::seconds_since(begun);
  if (result.status != Status::peer_lost) {
    std::int64_t const products = products_an_iteration(options);
    bool const is_rounded = options.matrix_precision == MatrixPrecision::fp32;
    result.bytes_per_iteration = group().sum(products * matrix_bytes(is_rounded) +
                                             vector_bytes(options, preconditioner_bytes()) * matrix.owned());
    result.halo_bytes_per_iteration = group().sum(products * matrix.plan().items_sent() * 8);
    result.time_solve_s = group().max(result.time_solve_s);
  }
  return result;
}

Solver::Solver(Matrix const& matrix, SolveOptions options) {
  auto const begin = Clock::now();
  parts_ = std::make_unique<Parts>(matrix, std::move(options));
  parts_->allocate();
  if (parts_->options.check_symmetry) parts_->check_symmetry();
  parts_->refresh();
  parts_->tune();
  parts_->time_setup_s = host::Engine::seconds_since(begin);
}
Solver::Solver(Solver&&) noexcept = default;
Solver::~Solver() = default;

void Solver::set_tolerances(double rtol, double atol) {
  check_tolerances(rtol, atol);
  parts_->options.rtol = rtol, parts_->options.atol = atol;
}
std::span<double> Solver::b() { return parts_->rhs; }
std::span<double> Solver::x() { return parts_->fields[0]; }

Result Solver::Parts::solve_or_lose() {
  try {
    return solve();
  } catch (Error const& e) {
    if (e.code() != ErrorCode::peer_lost) throw;
    Result result;
    result.status = Status::peer_lost;
    result.message = e.what();
    describe(result);
    return result;
  }
}
Result Solver::solve() { return parts_->solve_or_lose(); }

Result Solver::solve(std::span<double const> b, std::span<double> x) {
  Matrix const& m = parts_->matrix;
  parts_->group().together([&] {
    auto const rows = static_cast<std::size_t>(m.last_row() - m.first_row());
    if (b.size() != rows || x.size() != rows) {
      throw Error(ErrorCode::usage, fmt::format("b has {} and x {} entries (this rank has {} rows).",
                                                b.size(), x.size(), rows));
    }
  });
  m.to_local(b, this->b());
  m.to_local(x, this->x());
  Result result = solve();
  if (result.status != Status::peer_lost) m.from_local(this->x(), x);
  return result;
}

void Solver::multiply(std::span<double const> x, std::span<double> y) {
  parts_->group().together([&] {
    auto const owned = static_cast<std::size_t>(parts_->matrix.owned());
    if (x.size() == owned && y.size() == owned) return;
    throw Error(ErrorCode::usage,
                fmt::format("x has {} and y {} entries (this rank works on {} rows). Pass vectors of that "
                            "length.",
                            x.size(), y.size(), owned));
  });
  parts_->multiply(x.data(), y.data());
}

void Solver::manufacture(std::uint64_t seed) {
  Parts& p = *parts_;
  double const norm = manufactured_norm(p.matrix, seed);
  std::vector<double>& x = p.fields[0];
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = random_entry(seed, p.matrix.global_row(static_cast<std::int64_t>(i))) / norm;
  p.multiply(x.data(), p.rhs.data());
  std::fill(x.begin(), x.end(), 0.0);
}

double Solver::manufactured_error(std::uint64_t seed) const {
  Parts& p = *parts_;
  double const norm = manufactured_norm(p.matrix, seed);
  std::vector<double> const& x = p.fields[0];
  double mean = 0;
  if (p.options.null_space_constant) mean = manufactured_mean(p.matrix, seed) / norm;
  double square = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const error =
        x[i] - (random_entry(seed, p.matrix.global_row(static_cast<std::int64_t>(i))) / norm - mean);
    square += error * error;
  }
  return std::sqrt(p.group().sum(square));
}

}  // namespace hostless
