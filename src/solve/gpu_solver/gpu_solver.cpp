#include "solve/gpu_solver/gpu_solver.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "exchange/peer_copies.hpp"
#include "hostless/exchange/exchange.hpp"
#include "solve/gpu_solver/gpu_columns.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "solve/gpu_solver/gpu_ranks.hpp"
#include "solve/gpu_solver/gpu_trace.hpp"
#include "solve/gpu_solver/gpu_tuning.hpp"
#include "solve/gpu_solver/trace_times.hpp"
#include "solve/methods/method_vectors.hpp"
#include "transport/stream/symmetric.hpp"

namespace hostless::gpu {
namespace {

[[noreturn]] void refuse(std::string const& text) { throw Error(ErrorCode::usage, text); }

void check_request(Matrix const& matrix, SolveOptions const& options) {
  if (matrix.device_rows() == nullptr)
    refuse("the matrix was not laid out for a GPU (MatrixOptions::gpus is 0, or it is a function).");
  if (options.run.kind == RunKind::host)
    refuse(
        "the host run on a GPU is refused (it is the processor's). Use --run auto, persistent, graph or "
        "stream.");
  if (options.preconditioner == PreconditionerKind::function)
    refuse(
        "a preconditioner function on a GPU (it is a function of the host). Use none, jacobi, "
        "block-jacobi or chebyshev.");
  if (options.callback_reads_x)
    refuse(
        "a callback that reads x on a GPU (x stays there, and nobody waits between iterations). Drop the "
        "callback, or solve on the processor.");
  if (options.run.observer)
    refuse("RunOptions::observer on a GPU (nobody sees every decision there). Use SolveOptions::callback.");
  if (options.run.disturb)
    refuse("RunOptions::disturb on a GPU (threads are those of a kernel there). Leave it out.");
  if (options.run.threads != 1)
    refuse(
        fmt::format("{} a rank with a GPU are refused (its threads follow from the plan). Leave out --lanes.",
                    counted(options.run.threads, "thread")));
  if (!(options.run.longest_launch_s > 0))
    refuse(fmt::format("launches of at most {} s (they must be able to do something). Use more than 0.",
                       options.run.longest_launch_s));
}

// Kernels of their own add a row's products in an order that is not the plan's.
void check_format(DeviceFormat format, SolveOptions const& options) {
  if (!multiplied_apart(format)) return;
  if (options.reduction != Reduction::fast)
    refuse(
        fmt::format("format {} with reduction ordered is refused (its sums do not have the plan's order). "
                    "Use --reduction "
                    "fast, or another format.",
                    name(format)));
  if (options.matrix_precision == MatrixPrecision::fp32)
    refuse(
        fmt::format("format {} with the matrix in fp32 is refused (its products are in fp64 throughout). Use "
                    "another format.",
                    name(format)));
  if (options.run.kind == RunKind::persistent)
    refuse(
        fmt::format("format {} in the persistent run is refused (its products are made by kernels of their "
                    "own). Use --run "
                    "graph, stream or auto.",
                    name(format)));
}

PreconditionerData preconditioner_data_of(PreconditionerKind kind) {
  return kind == PreconditionerKind::jacobi         ? PreconditionerData::jacobi
         : kind == PreconditionerKind::block_jacobi ? PreconditionerData::block_jacobi
                                                    : PreconditionerData::none;
}

// What an iteration moves, for the model of runs.
void count_bytes(Problem& problem, SolveOptions const& options) {
  DeviceRows const& rows = *problem.rows;
  IterationTraffic const traffic = traffic_of(options, rows.tiling.block);
  bool const is_rounded = problem.text.variant == Variant::rounded;
  problem.matrix_bytes =
      traffic.products * (is_rounded ? rows.rounded_bytes_per_sweep() : rows.bytes_per_sweep());
  problem.vector_bytes = traffic.vector_bytes * problem.owned * options.rhs_columns;
}

void choose_device(Problem& problem, Matrix const& matrix, GpuTransport transport, int gpus, int devices) {
  problem.rank = matrix.plan().rank;
  problem.ranks = matrix.plan().ranks;
  problem.processes = !matrix.transport().capabilities().threads_as_ranks;
  if (int const used = std::min(gpus, matrix.ranks_here()); used > devices)
    refuse(fmt::format("{} (this machine has {}). Use --gpus {}.", counted(used, "GPU"), devices, devices));
  GpuSlot const slot =
      gpu_slot(matrix.rank_here(), matrix.ranks_here(), gpus, matrix.plan().nodes.nodes() > 1);
  problem.device = slot.device;
  problem.sharers = slot.sharers;
  problem.transport = facts_of(transport).transport;
}

// Empty where they follow each other.
std::vector<std::int64_t> caller_rows(Matrix const& matrix) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(matrix.plan().ranks > 1 ? matrix.owned() : 0));
  bool follow = true;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    rows[k] = matrix.global_row(static_cast<std::int64_t>(k));
    follow = follow && rows[k] == matrix.first_row() + static_cast<std::int64_t>(k);
  }
  if (follow) rows.clear();
  return rows;
}

}  // namespace

GpuSolver::GpuSolver(Matrix const& matrix, SolveOptions const& options, std::size_t history_size,
                     Communication const* communication)
    : matrix_(matrix), limits_(options.limits) {
  check_request(matrix, options);
  check_format(matrix.device_rows()->format, options);
  Library& gpus = library();
  Problem& problem = problem_;
  choose_device(problem, matrix, options.run.gpu_transport, options.run.gpus, gpus.devices());
  problem.text = {options.method, variant_of(options)};
  problem.run = options.run.kind;
  problem.free_order = options.reduction == Reduction::fast;
  problem.preconditioner_data = preconditioner_data_of(simple_kind(options));
  if (communication != nullptr) {
    problem.text.communicates = true;
    problem.communication = *communication;
    problem.preconditioner_data = PreconditionerData::jacobi;
  }
  if (problem.text.variant == Variant::polynomial)
    problem.polynomial = ChebyshevNumbers::of(options.chebyshev.degree, options.chebyshev.ratio);
  problem.rows = matrix.device_rows();
  problem.owned = matrix.owned();
  problem.first_row = matrix.first_row();
  problem.caller_row = caller_rows(matrix);
  count_bytes(problem, options);
  problem.check_interval = options.run.check_interval;
  problem.host_waits = options.run.host_waits;
  problem.deadline_s = options.limits.later_s;
  problem.first_s = options.limits.first_s;
  problem.longest_launch_s = options.run.longest_launch_s;
  constexpr std::int32_t profiled_barriers = 600;
  bool const traced = options.run.trace || !options.run.profile_file.empty() || communication != nullptr;
  problem.trace_barriers = traced ? profiled_barriers : 0;
  problem.history_size = static_cast<std::int64_t>(history_size);
  problem.columns = options.rhs_columns;
  check_columns(problem, options);
  DeviceFacts const facts = gpus.facts(problem.device);
  name_ = facts.name;
  owned_ = problem.owned;
  wants_tuning_ = problem.columns == 1 && !is_collective() && options.run.tune &&
                  problem.run == RunKind::automatic && problem.trace_barriers == 0 &&
                  problem.check_interval == 1;
  if (wants_tuning_) tuning_key_ = tuning_key(problem, facts, gpus.describe());
}

void GpuSolver::bind() {
  Group& group = matrix_.transport().group();
  if (is_collective()) describe_messages();
  group.together([&] { solve_ = library().bind(problem_); });
  values_version_ = matrix_.values_version();
  if (is_collective()) bind_ranks();
}

void GpuSolver::describe_messages() {
  Group& group = matrix_.transport().group();
  SweepPlan const& sweep = matrix_.sweep();
  for (int slice = 0; is_by_stream() && slice < sweep.tiling.slices; ++slice)
    if (sweep.awaits(slice)) problem_.border.push_back(slice);
  copies_ = peer_copies(matrix_.plan(), group);
  problem_.copies = &copies_;
  if (is_by_stream()) {
    bool const is_cuda = library().describe().rfind("CUDA", 0) == 0;
    GpuMessages::Options options;
    options.transport = problem_.transport;
    options.limits = limits_;
    options.vendor = is_cuda ? "cuda" : "hip";
    messages_ = std::make_unique<GpuMessages>(matrix_.transport(), matrix_.plan(), copies_, options);
    problem_.rounds = &messages_->rounds();
    problem_.stream_rounds = &messages_->stream_rounds();
    problem_.host = messages_->host();
    problem_.node = messages_->node();
    problem_.speaks = messages_->speaks();
  }
  if (facts_of(problem_.transport).symmetric_memory) take_symmetric_memory();
}

void GpuSolver::take_symmetric_memory() {
  problem_.symmetric = gpu::take_symmetric_memory(
      matrix_.transport().group(), [&] { return library().symmetric_offer(problem_); },
      [&](auto const& offers) { return library().symmetric_memory(problem_, offers); });
}

void GpuSolver::bind_ranks() {
  Group& group = matrix_.transport().group();
  PeerShape shape;
  group.together([&] { shape = solve_->peer_shape(); });
  auto const shapes = group.all_gather(shape);
  group.together([&] { solve_->make_run(shapes); });
  connect_ranks();
}

void GpuSolver::connect_ranks() {
  Group& group = matrix_.transport().group();
  PeerMemory memory;
  auto const tell = [&] {
    group.together([&] { memory = solve_->peer_memory(); });
    return group.all_gather(memory);
  };
  auto memories = tell();
  if (facts_of(problem_.transport).stays_connected && !have_met(contacts_of(memories)))
    memories = tell();  // a new place
  if (messages_) messages_->bind(solve_->message_buffers());
  group.together([&] { solve_->connect(memories); });
}

// In the order of the plan; every row's values go with it.
std::vector<double> GpuSolver::with_ghosts(std::vector<double> const& preconditioner_data) const {
  ExchangePlan const& plan = matrix_.plan();
  auto const owned = static_cast<std::size_t>(plan.owned),
             all = owned + static_cast<std::size_t>(plan.ghosts);
  auto const below = static_cast<std::size_t>(plan.ghosts_below);
  std::size_t const width = problem_.preconditioner_data == PreconditionerData::block_jacobi
                                ? static_cast<std::size_t>(matrix_.sweep().tiling.block)
                                : 1;
  auto const owner =
      std::make_shared<std::vector<double>>(all);  // a late rank's message may come after a loss
  std::vector<double>& one = *owner;
  std::vector<double> whole(all * width);
  Exchange exchange(matrix_.transport(), plan, one.data() + below, Reduction::ordered, limits_, owner);
  for (std::size_t k = 0; k < width; ++k) {
    for (std::size_t row = 0; row < owned; ++row) one[below + row] = preconditioner_data[row * width + k];
    matrix_.transport().group().barrier();  // the ghosts of the last round are read
    exchange.start();
    if (!exchange.wait())
      throw Error(ErrorCode::peer_lost, "a rank was lost while a preconditioner was exchanged.");
    for (std::size_t row = 0; row < all; ++row) whole[row * width + k] = one[row];
  }
  matrix_.transport().group().barrier();
  return whole;
}

void GpuSolver::refresh_values() {
  Group& group = matrix_.transport().group();
  if (values_version_ != matrix_.values_version())
    group.together([&] { solve_->put_rows(*matrix_.device_rows()); });
  values_version_ = matrix_.values_version();
}

void GpuSolver::refresh(std::vector<double> const& preconditioner_data, int preconditioner_version) {
  Group& group = matrix_.transport().group();
  refresh_values();
  if (problem_.preconditioner_data != PreconditionerData::none &&
      preconditioner_version_ != preconditioner_version) {
    if (problem_.ranks == 1) {
      solve_->put_preconditioner_data(preconditioner_data);
    } else {
      auto const whole = with_ghosts(preconditioner_data);
      group.together([&] { solve_->put_preconditioner_data(whole); });
    }
  }
  preconditioner_version_ = preconditioner_version;
}

// From here to the end of the run every rank waits for the others inside kernels: nobody may still be
// allocating or loading.
void GpuSolver::barrier_before_run() {
  if (!is_collective()) return;
  Group& group = matrix_.transport().group();
  if (group.any(was_lost_)) {  // flagged words of the lost run may have come late
    group.together([&] { solve_->forget_barriers(0); });
    if (messages_) messages_->renew();
    if (is_by_stream()) connect_ranks();
    was_lost_ = false;
  }
  group.barrier();
}

void GpuSolver::tune(State const& start, int fields, std::function<bool()> const& stop) {
  TuningRequest request;
  request.key = tuning_key_;
  request.start = start;
  request.owned = owned_;
  request.fields = fields;
  request.stop = stop;
  choose_by_measuring(*solve_, request, TuningCache(TuningCache::default_folder()));
}

void GpuSolver::run(State& state, std::span<double const> b, std::span<std::span<double> const> fields,
                    std::span<StepRecord> history, std::function<bool()> const& stop,
                    std::function<bool(std::int64_t, double, int)> const& progress) {
  solve_->put_rhs(b.data());
  for (std::size_t k = 0; k < fields.size(); ++k) solve_->put_field(static_cast<int>(k), fields[k].data());
  run(state, history, stop, progress);
  for (std::size_t k = 0; k < fields.size(); ++k) solve_->get_field(static_cast<int>(k), fields[k].data());
}

void GpuSolver::run(State& state, std::span<StepRecord> history, std::function<bool()> const& stop,
                    std::function<bool(std::int64_t, double, int)> const& progress) {
  solve_->put_history(history.data(), kept_of(history, state));
  barrier_before_run();
  was_lost_ = is_collective();  // if it throws, others do not know where this rank is
  bool asked = false;           // to stop, by whoever watches the progress
  solve_->run(
      state, [&] { return asked || stop(); },
      [&](std::int64_t iteration, double rr, int column) {
        asked = progress(iteration, rr, column) || asked;
      });
  was_lost_ = state.status == Status::peer_lost;
  solve_->get_history(history.data(), kept_of(history, state));
}

void GpuSolver::communicate(State& state) {
  barrier_before_run();
  was_lost_ = is_collective();
  solve_->run(
      state, [] { return false; }, nullptr);
  was_lost_ = state.status == Status::peer_lost;
}

IterationTimes GpuSolver::iteration_times() const {
  if (problem_.trace_barriers == 0) return {};
  return times_of(clock_trace(solve_->trace(), problem_.ranks));
}

void GpuSolver::write_profile(std::string const& path) const {
  write_trace(matrix_.transport().group(), path, solve_->trace(), !was_lost_);
}

}  // namespace hostless::gpu
