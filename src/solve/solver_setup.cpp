// What a solver checks, allocates and computes before it solves, and again with new values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/counted.hpp"
#include "base/processors.hpp"
#include "solve/gpu_solver/gpu_ranks.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/setup/lanczos.hpp"
#include "solve/setup/manufactured.hpp"
#include "solve/setup/precision.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {
namespace {

[[noreturn]] void refuse(std::string const& text) { throw Error(ErrorCode::usage, text); }

void check_threads(RunOptions const& run) {
  if (run.threads < 1) refuse(fmt::format("{} (a rank needs at least one).", counted(run.threads, "thread")));
  if (run.threads > 1 && run.kind != RunKind::persistent) {
    refuse(
        fmt::format("{} a rank (lanes) with the {} run are refused (only `persistent` has several). Use "
                    "--run persistent.",
                    counted(run.threads, "thread"), name(run.kind)));
  }
  // An iteration of 900 rows takes 0.05 s with 64 a processor, half a second with 250; of 1,000 not one sum comes before the
  // deadline, and no limit of time is looked at.
  constexpr int most_threads_of_processor = 64;
  if (int const there = processors_of_rank(1, true);
      run.threads > std::int64_t{most_threads_of_processor} * there)
    refuse(fmt::format(
        "{} a rank (lanes) on {} are refused (all of them wait for each other in every sum). Use at most {}.",
        counted(run.threads, "thread"), counted(there, "processor"), most_threads_of_processor * there));
}

}  // namespace

void Solver::Parts::check_options() const {
  check_ends(options);
  check_threads(options.run);
  if (!options.run.profile_file.empty() && options.run.gpus == 0)
    refuse("a profile of a run on the processor is refused (kernels write it). Use --gpus 1.");
  if (int const every = options.run.check_interval; every < 1 || every > longest_check_interval)
    refuse(fmt::format("check interval {} (it is from 1 to {}).", every, longest_check_interval));
  if (HostWaits const waits = options.run.host_waits; waits != HostWaits::when_needed) {
    if (options.run.gpus == 0 || options.run.kind != RunKind::stream)
      refuse(fmt::format(
          "host waits {} with the {} run{} is refused (only the host that launches each kernel has "
          "something to wait for). Use --gpus and the run stream.",
          name(waits), name(options.run.kind), options.run.gpus == 0 ? " on the processor" : ""));
    if (options.run.check_interval > 1)
      refuse(fmt::format(
          "host waits {} with a check interval of {} is refused (it says when the host looks). Drop one "
          "of them.",
          name(waits), options.run.check_interval));
  }
  bool const is_long = options.run.longest_launch_s != RunOptions{}.longest_launch_s;
  if (is_long && options.run.gpus == 0)
    refuse(fmt::format(
        "longest launch {} s on the processor is refused (kernels are launched on a GPU). Use --gpus 1, or "
        "drop it.",
        options.run.longest_launch_s));
  bool const function = options.preconditioner == PreconditionerKind::function;
  if (function != static_cast<bool>(options.preconditioner_function))
    refuse("a preconditioner function belongs to preconditioner `function`, and the other way round.");
  if (function && !method().offers.apart) {
    refuse(fmt::format(
        "{} needs a preconditioner that every row can apply by itself (it forms M r on the fly). "
        "Use method {}.",
        name(options.method), names_of_methods([](auto const& one) { return one.offers.apart; })));
  }
  check_columns();
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
                       is_chebyshev() ? "Put the polynomial over none"
                                      : "Pass one of your own (a function in C++, M= in Python)"));
  }
  if (!options.checkpoint_file.empty() && options.checkpoint_every < 1)
    refuse("a checkpoint file needs checkpoint_every >= 1.");
  if (options.checkpoint_file.empty() && options.checkpoint_every > 0)
    refuse(
        "checkpoint_every without a checkpoint file is refused (nothing is written). Name one, or drop it.");
  check_gpu_ranks(matrix, options.run);
  Capabilities const can = matrix.transport().capabilities();
  if (options.run.gpus > 0) return;  // gpu::GpuSolver checks the rest
  if (options.run.kind == RunKind::stream)
    refuse("the stream run on the processor is refused (it launches kernels). Use --gpus 1, or --run host.");
  Support const face = options.run.kind == RunKind::host    ? can.host
                       : options.run.kind == RunKind::graph ? can.graph
                                                            : can.kernel;
  if (face == Support::absent)
    refuse(
        fmt::format("the {} transport has no {} run ({}).", can.transport, name(options.run.kind), can.note));
  if ((function || matrix.function()) && can.host_callback == Support::absent)
    refuse(fmt::format("the {} transport runs no host functions.", can.transport));
}

void Solver::Parts::allocate() {
  ExchangePlan const& plan = matrix.plan();
  auto const owned = static_cast<std::size_t>(plan.owned);
  group().together([&] {
    if (options.run.kind == RunKind::automatic && options.run.gpus == 0) options.run.kind = RunKind::host;
    check_options();
    if (options.matrix_precision == MatrixPrecision::fp32) check_fp32_range(matrix);  // a GPU knows no rows
    allocate_columns();
    if (options.preconditioner == PreconditionerKind::function) apart.assign(owned, 0.0);
    if (options.run.gpus > 0) gpu = std::make_unique<gpu::GpuSolver>(matrix, options, history.size());
  });
  if (gpu) gpu->bind();
  exchange = bind_exchange();
  run = options.run;
  run.stop_requested = [this] {
    bool const late =
        options.time_limit_s > 0 && time_spent_s + host::Engine::seconds_since(begun) > options.time_limit_s;
    if (late) return stop_for(fmt::format("the time limit of {} s was reached", options.time_limit_s));
    if (!options.run.stop_requested || !options.run.stop_requested()) return false;
    return stop_for(options.run.stop_reason ? options.run.stop_reason() : "the program asked it to stop");
  };
  run.observer = [this](State const& s, int column) {
    if (is_repeating) return false;  // they have been told
    bool stop = options.run.observer && options.run.observer(s, column);
    if (options.callback) {
      std::span<double const> x;
      if (options.callback_reads_x) x = this->column(column).fields[0];
      stop = options.callback({s.iteration, std::sqrt(s.rr), s.target, x, column}) || stop;
    }
    if (!stop && sees_null_direction(s)) return true;  // which is no wish
    if (!stop) return false;
    bool const says_why =
        options.run.stop_reason && options.run.stop_requested && options.run.stop_requested();
    return stop_for(says_why ? options.run.stop_reason() : "the callback asked it to stop");
  };
  engine = std::make_unique<host::Engine>(state, matrix.sweep(), host::Multiplier{matrix.local(), nullptr},
                                          *exchange, run, options.limits);
  engine->x_is_observed = options.callback && options.callback_reads_x;
  if (matrix.local() == nullptr) {
    engine->function = matrix.function();
    if (only_on_gpu()) engine->function = [this](double const* x, double* y) { gpu->multiply(x, y); };
    engine->product.resize(owned + static_cast<std::size_t>(stride * (columns() - 1)));
    engine->multiplier.ready = engine->product.data();
  }
  if (is_chebyshev()) require_mutual_neighbours(group(), *exchange, plan, gathered);
}

// A matrix that was refused stays refused until it has other values.
void Solver::Parts::refresh_symmetry() {
  if (!options.check_symmetry || options.symmetry_compared || !method().needs_symmetric()) return;
  if (symmetry_version == matrix.values_version()) return;
  check_symmetry();
  symmetry_version = matrix.values_version();
}

// x'Ay and y'Ax of two random vectors, both times 2^exponent: what is multiplied with A is that much larger, which
// changes no bit but where numbers underflow. Collective; two products with A.
Solver::Parts::SymmetrySample Solver::Parts::sample_symmetry(int exponent) {
  std::size_t const n = rhs.size();
  std::vector<double> u(n), v(n), scaled(n), au(n), av(n);
  for (std::size_t i = 0; i < n; ++i) {
    u[i] = random_entry(11, matrix.global_row(static_cast<std::int64_t>(i)));
    v[i] = random_entry(12, matrix.global_row(static_cast<std::int64_t>(i)));
  }
  auto const multiply_scaled = [&](std::vector<double> const& x, std::vector<double>& y) {
    for (std::size_t i = 0; i < n; ++i) scaled[i] = std::scalbn(x[i], exponent);
    multiply(scaled.data(), y.data());
  };
  multiply_scaled(u, au);
  multiply_scaled(v, av);
  SymmetrySample mine;
  mine.tolerance = options.symmetry_tolerance;
  for (std::size_t i = 0; i < n; ++i) {
    mine.vau += v[i] * au[i];
    mine.uav += u[i] * av[i];
    mine.size += std::abs(v[i] * au[i]) + std::abs(u[i] * av[i]);
  }
  SymmetrySample all;
  for (SymmetrySample const& s : group().all_gather(mine)) {
    all.vau += s.vau;
    all.uav += s.uav;
    all.size += s.size;
    all.tolerance = std::max(all.tolerance, s.tolerance);  // the same on all
  }
  return all;
}

void Solver::Parts::check_symmetry() {
  // Below this products may be denormal, whose rounding is no share of their size: a sum of 10^12 of them would be off
  // by some 1e-312.
  constexpr double resolved = 1e-280;
  constexpr int enlarged = 512;
  SymmetrySample all = sample_symmetry(0);
  int const exponent = all.size < resolved ? enlarged : 0;
  if (exponent != 0) all = sample_symmetry(exponent);
  if (std::abs(all.vau - all.uav) > all.tolerance * all.size) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format(
            "the matrix is not symmetric: x'Ay = {:.6e}, y'Ax = {:.6e} for two random vectors (the method "
            "needs A = A'). {}",
            std::scalbn(all.vau, -exponent), std::scalbn(all.uav, -exponent),
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
  DiagonalSigns const signs = method().demands == Demands::nothing     ? DiagonalSigns::any
                              : method().demands == Demands::symmetric ? DiagonalSigns::absolute
                                                                       : DiagonalSigns::positive;
  BadDiagonal mine{matrix.global_rows(), true, true};
  group().together([&] {
    std::optional<BadDiagonal> bad;
    if (only_on_gpu()) {
      int const b = matrix.sweep().tiling.block;
      std::vector<double> blocks(rhs.size() * static_cast<std::size_t>(b));
      gpu->diagonal_blocks(blocks.data());
      bad = invert_diagonal(std::move(blocks), b, block, preconditioner_data, signs);
    } else {
      bad = invert_diagonal(*matrix.local(), block, preconditioner_data, signs);
    }
    if (bad) mine = {matrix.global_row(bad->row), bad->finite, bad->regular};
    if (!gpu) {
      preconditioner_on_huge_pages.assign(preconditioner_data.begin(), preconditioner_data.end());
      preconditioner_data = {};
    }
  });
  bad_row.reset();
  bool all_regular = true;
  for (BadDiagonal const& one : group().all_gather(mine)) {
    if (one.row < (bad_row ? bad_row->row : matrix.global_rows())) bad_row = one;
    all_regular = all_regular && one.regular;
  }
  if (bad_row) bad_row->regular = all_regular;
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

std::span<double const> Solver::Parts::stored_preconditioner() const {
  if (gpu) return preconditioner_data;
  return preconditioner_on_huge_pages;
}

AnyPreconditioner Solver::Parts::preconditioner() const {
  using Kind = AnyPreconditioner::Kind;
  double const* const data = stored_preconditioner().data();
  switch (simple_kind()) {
    case PreconditionerKind::none:
    case PreconditionerKind::chebyshev:  // over another one
    case PreconditionerKind::function:   // apart from the rows
      return {};
    case PreconditionerKind::jacobi:
      return {Kind::jacobi, 1, data};
    case PreconditionerKind::block_jacobi:
      return {Kind::block_jacobi, matrix.sweep().tiling.block, data};
  }
  return {};
}

std::int64_t Solver::Parts::preconditioner_bytes() const {
  return preconditioner_data_bytes(options, matrix.sweep().tiling.block);
}

}  // namespace hostless
