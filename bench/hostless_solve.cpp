// hostless' side: its methods over MPI, and over threads of one process.

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "contestant.hpp"
#include "hostless/machine/bandwidth.hpp"

namespace hostless::bench {
namespace {

SolveOptions hostless_options(Task const& task, Method method) {
  SolveOptions options;
  options.method = method;
  options.preconditioner = task.jacobi ? PreconditionerKind::jacobi : PreconditionerKind::none;
  options.rtol = 0;
  options.max_iterations = task.iterations;
  return options;
}

/// Solves once from x = 0.
Cost timed(Solver& solver, Group& group, int iterations, Result& result) {
  std::ranges::fill(solver.x(), 0.0);
  group.barrier();
  Stopwatch const watch;
  result = solver.solve();
  Cost const mine = watch.stop();
  if (result.iterations != iterations)
    fail(fmt::format("hostless stopped after {} of {} iterations: {}. {}", result.iterations, iterations,
                     name(result.status), result.message));
  return {group.max(mine.wall), group.max(mine.processor)};
}

class HostlessSolve final : public Contestant {
 public:
  HostlessSolve(Matrix const& a, Task const& task, Method m, std::vector<double> const& rhs)
      : a_(a), solver_(a, hostless_options(task, m)), iterations_(task.iterations), rows_(rhs.size()) {
    a.to_local(rhs, solver_.b());
  }
  Cost solve() override { return timed(solver_, a_.transport().group(), iterations_, result_); }
  Result const* result() const override { return &result_; }
  std::vector<double> answer() override {
    std::vector<double> x(rows_);
    a_.from_local(solver_.x(), x);
    return x;
  }

 private:
  Matrix const& a_;
  Solver solver_;
  Result result_;
  int iterations_;
  std::size_t rows_;
};

/// All ranks wait for rank 0 without using their cores.
void wait_asleep() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// Gives rank 0 the cores of all ranks while it lives.
class AllCores {
 public:
  AllCores() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
    sched_setaffinity(0, sizeof all, &all);
  }
  ~AllCores() { sched_setaffinity(0, sizeof before_, &before_); }
  AllCores(AllCores const&) = delete;
  AllCores& operator=(AllCores const&) = delete;

 private:
  cpu_set_t before_;
};

/// The ranks are threads of MPI rank 0, which makes matrix and solver anew for every turn (not timed).
class ThreadsSolve final : public Contestant {
 public:
  explicit ThreadsSolve(Task const& task) : task_(task) {}
  Cost solve() override {
    Cost cost;
    if (task_.rank == 0) {
      AllCores const cores;
      run_with_threads_transport(task_.ranks, [&](Transport& transport) {
        Cost const slowest = solve_as(transport);
        if (transport.group().rank() == 0) cost = slowest;
      });
    }
    wait_asleep();
    // bounded: a comparison, ended by who runs it
    MPI_Bcast(&cost, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return cost;
  }
  std::vector<double> answer() override {
    auto const rows = problem_rows(task_.problem);
    x_.resize(static_cast<std::size_t>(rows));
    // bounded: a comparison, ended by who runs it
    MPI_Bcast(x_.data(), static_cast<int>(rows), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return {x_.begin() + share_first(rows, task_.ranks, task_.rank),
            x_.begin() + share_first(rows, task_.ranks, task_.rank + 1)};
  }

 private:
  Cost solve_as(Transport& transport) {
    Group& group = transport.group();
    auto const source = make_problem(task_.problem, task_.ranks, group.rank());
    auto const rhs = rhs_of(*source);
    Matrix const a = Matrix::from_source(transport, *source, contiguous(task_));
    Solver solver(a, hostless_options(task_, Method::cg));
    a.to_local(rhs, solver.b());
    Result result;
    Cost const slowest = timed(solver, group, task_.iterations, result);
    if (group.rank() == 0) x_.resize(static_cast<std::size_t>(a.global_rows()));
    group.barrier();
    a.from_local(solver.x(), std::span(x_).subspan(static_cast<std::size_t>(a.first_row()), rhs.size()));
    return slowest;
  }
  Task const& task_;
  std::vector<double> x_;
};

/// Uniform in [-1, 1), the same for both sides and every number of ranks.
double rhs_of_row(std::int64_t row) {
  auto h = static_cast<std::uint64_t>(row + 1) * 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>(h >> 11) * 0x1p-52 - 1.0;
}

}  // namespace

MatrixOptions contiguous(Task const& task) {
  MatrixOptions options;
  options.format = task.format;
  options.partition = MatrixOptions::Partition::contiguous;  // PETSc's rows, on PETSc's ranks
  return options;
}

std::vector<double> rhs_of(RowSource const& rows) {
  std::vector<double> b(static_cast<std::size_t>(rows.last_row() - rows.first_row()));
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] = rhs_of_row(rows.first_row() + static_cast<std::int64_t>(i));
  return b;
}

std::vector<std::unique_ptr<Contestant>> hostless_contestants(Task const& task, Matrix const& matrix,
                                                              std::vector<double> const& rhs) {
  std::vector<std::unique_ptr<Contestant>> all;
  for (Method m : methods()) {
    all.push_back(std::make_unique<HostlessSolve>(matrix, task, m, rhs));
    all.back()->side = "hostless mpi";
    all.back()->method = name(m);
    all.back()->storage = name(matrix.local()->format());
  }
  return all;
}

std::unique_ptr<Contestant> threads_contestant(Task const& task) {
  auto one = std::make_unique<ThreadsSolve>(task);
  one->side = "hostless threads";
  one->method = name(Method::cg);
  return one;
}

double bandwidth_of_all_ranks(Task const& task) {
  double bandwidth = 0;
  if (task.rank == 0) {
    AllCores const cores;
    bandwidth = measure_read_bandwidth(task.ranks, 0.5);
  }
  wait_asleep();
  return bandwidth;
}

}  // namespace hostless::bench
