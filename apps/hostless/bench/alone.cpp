#include "alone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/device_communication.hpp"
#include "bench/stream_communication.hpp"
#include "hostless/operate/local_matrix.hpp"

namespace hostless {
namespace {

/// Some rows of a matrix and, of their columns, those with the same numbers.
class OwnRows final : public RowSource {
 public:
  /// rows: rising; `whole` can produce them, and lives as long.
  OwnRows(RowSource const& whole, std::vector<std::int64_t> rows) : whole_(whole), rows_(std::move(rows)) {}
  std::int64_t global_rows() const override { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t first_row() const override { return 0; }
  std::int64_t last_row() const override { return global_rows(); }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    out.clear();
    RowPanel some;
    for (std::int64_t at = first; at < first + count;) {
      std::int64_t const begin = row(at);
      std::int64_t together = 1;
      while (at + together < first + count && row(at + together) == begin + together) ++together;
      whole_.panel(begin, together, some);
      for (std::int64_t k = 0; k < together; ++k) take(some, static_cast<std::size_t>(k), out);
      at += together;
    }
  }

 private:
  std::int64_t row(std::int64_t at) const { return rows_[static_cast<std::size_t>(at)]; }
  void take(RowPanel const& from, std::size_t row, RowPanel& to) const {
    for (std::int64_t k = from.offset[row]; k < from.offset[row + 1]; ++k) {
      auto const at = static_cast<std::size_t>(k);
      auto const found = std::lower_bound(rows_.begin(), rows_.end(), from.column[at]);
      if (found == rows_.end() || *found != from.column[at]) continue;
      to.column.push_back(found - rows_.begin());
      to.value.push_back(from.value[at]);
    }
    to.offset.push_back(static_cast<std::int64_t>(to.column.size()));
  }
  RowSource const& whole_;
  std::vector<std::int64_t> rows_;
};

std::vector<std::int64_t> rows_of(Matrix const& matrix) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(matrix.owned()));
  for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = matrix.global_row(static_cast<std::int64_t>(k));
  std::sort(rows.begin(), rows.end());
  return rows;
}

bool has_one_sum(SolveOptions const& solve) { return solve.method == Method::pipelined_cg; }

// Of a run that queues, or replays, in that way.
std::vector<double> const& times_by(std::vector<bench::QueuedTiming> const& all, RunKind run) {
  auto const find = [&](char const* by) {
    return std::find_if(all.begin(), all.end(),
                        [&](auto const& one) { return one.by == by && one.problem.empty(); });
  };
  auto found = find(run == RunKind::graph ? "graph" : "stream");
  if (found == all.end()) found = find("stream");
  if (found == all.end())
    throw Error(ErrorCode::environment,
                all.empty() ? "nothing was timed on a stream. Report it." : all.front().problem);
  return found->timing.step_s;
}

}  // namespace

bench::Halo CommunicationAlone::what() const {
  Group& group = at_.transport.group();
  auto const source = at_.input.open(group, nullptr, 0, Symmetry::any);
  PlannedMatrix planned = plan_matrix(group, *source, at_.layout, true);
  bench::Halo what;
  what.plan = std::move(planned.mine);
  what.patterns = std::move(planned.patterns);
  bench::share_patterns(group, what.patterns);
  return what;
}

bench::HaloTiming const& CommunicationAlone::halo() {
  if (!halo_) halo_ = bench::halo(at_.transport, what(), bench::Protocol{});
  return *halo_;
}

std::vector<double> CommunicationAlone::on_stream(SolveOptions const& solve, bool one_sum) {
  bench::StreamWay const way{solve.run.gpu_transport, solve.run.gpus, solve.run.oversubscribe};
  bench::Protocol const protocol;
  int const said = one_sum ? 4 : 3;  // beside a sum's values the order to stop
  auto seconds = times_by(bench::stream_halo(at_.transport, what(), way, protocol), solve.run.kind);
  auto const sums = times_by(bench::stream_parts_of_sums(at_.transport, said, way, protocol), solve.run.kind);
  for (std::size_t k = 0; k < seconds.size(); ++k) seconds[k] += (one_sum ? 1 : 2) * sums[k];
  return seconds;
}

std::vector<double> CommunicationAlone::of(SolveOptions const& solve) {
  if (at_.transport.group().size() == 1)
    throw Error(ErrorCode::usage,
                "the communication of one rank (it has nobody to exchange with). Use --ranks 2 or --gpus 2.");
  if ((solve.method != Method::cg && solve.method != Method::pipelined_cg) ||
      solve.preconditioner == PreconditionerKind::chebyshev)
    throw Error(ErrorCode::usage,
                fmt::format("the communication of {} with preconditioner {} alone is refused (that of cg and "
                            "pipelined-cg with one product an iteration is known).",
                            name(solve.method), name(solve.preconditioner)));
  bool const one_sum = has_one_sum(solve);
  if (solve.run.gpus > 0 && solve.run.kind != RunKind::persistent) return on_stream(solve, one_sum);
  if (solve.run.gpus > 0) {
    gpu::Communication what;
    what.sums = one_sum ? 1 : 2;
    what.values = one_sum ? 3 : 2;
    return bench::device_steps(at_.matrix, solve.run, what, bench::Protocol{}).by_clock.step_s;
  }
  std::vector<double> seconds = halo().step.step_s;
  if (!one_sum)
    for (std::size_t k = 0; k < seconds.size(); ++k) seconds[k] += halo().sum_alone.step_s[k];
  return seconds;
}

void ComputingAlone::lay_out_own_rows(RowSource const* shared) {
  std::unique_ptr<Group> const alone = single_group();
  std::unique_ptr<RowSource> opened;
  if (shared == nullptr) opened = at_.input.open(*alone, nullptr, 0, Symmetry::any);
  OwnRows const own(shared != nullptr ? *shared : *opened, rows_of(at_.matrix));
  MatrixOptions layout = at_.layout;
  layout.partition = MatrixOptions::Partition::contiguous;
  layout.partition_file.clear();
  layout.route = Route::direct;
  layout.automatic_route = false;
  layout.ranks_per_node = 0;
  layout.gpus = std::min(layout.gpus, 1);
  single_ = single_transport();
  own_ = Matrix::from_source(*single_, own, layout);
}

void ComputingAlone::lay_out() {
  Group& group = at_.transport.group();
  Matrix const& matrix = at_.matrix;
  auto const work = group.all_gather(matrix.local() != nullptr ? matrix.local()->entries() : matrix.owned());
  int const busiest = static_cast<int>(std::max_element(work.begin(), work.end()) - work.begin());
  auto const source = at_.input.open(group, nullptr, 0, Symmetry::any);
  group.together([&] {
    if (group.rank() != busiest) return;
    auto const rows = rows_of(matrix);
    bool const has_all =
        !rows.empty() && source->first_row() <= rows.front() && rows.back() < source->last_row();
    lay_out_own_rows(has_all ? source.get() : nullptr);
  });
  busiest_ = busiest;
}

std::vector<double> ComputingAlone::of(SolveOptions const& solve) {
  constexpr int repeats = 3;
  constexpr std::int64_t most_iterations = 1000;
  constexpr double longest_s = 1.5;
  if (busiest_ < 0) lay_out();
  Group& group = at_.transport.group();
  std::array<double, repeats> seconds{};
  group.together([&] {
    if (group.rank() != busiest_) return;
    SolveOptions alone = solve;
    alone.run.gpus = std::min(alone.run.gpus, 1);
    alone.run.oversubscribe = false;
    alone.run.gpu_transport = GpuTransport::automatic;
    alone.rtol = 0;
    alone.time_limit_s = longest_s;  // the others wait
    alone.max_iterations =
        solve.max_iterations < 0 ? most_iterations : std::min(most_iterations, solve.max_iterations);
    Solver solver(*own_, alone);
    solver.manufacture(seed_);
    std::vector<double> const b(solver.b().begin(), solver.b().end());
    for (int k = -1; k < repeats; ++k) {
      std::copy(b.begin(), b.end(), solver.b().begin());
      std::fill(solver.x().begin(), solver.x().end(), 0.0);
      Result const result = solver.solve();
      if (result.iterations == 0)
        throw Error(ErrorCode::environment, fmt::format("computing alone: {} without an iteration {}",
                                                        name(result.status), result.message));
      if (k >= 0)
        seconds[static_cast<std::size_t>(k)] =
            (result.device_bytes > 0 ? result.time_device_s : result.time_solve_s) /
            static_cast<double>(result.iterations);
    }
  });
  auto const all = group.all_gather(seconds)[static_cast<std::size_t>(busiest_)];
  std::vector<double> rising(all.begin(), all.end());
  std::sort(rising.begin(), rising.end());
  return rising;
}

}  // namespace hostless
