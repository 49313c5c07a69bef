// PETSc and hostless on the same matrix, the same ranks and the same number of iterations, in one process
// each rank and in turns, so that both see the same machine. bench/compare_with_petsc.py runs this for every
// matrix and prints the table; docs/performance-cpu.md explains the rules.
//
//   mpirun -n 2 petsc_compare --kind poisson7 --nx 96 --ny 96 --nz 96 --iterations 100

#include <fmt/format.h>
#include <petscksp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "contestant.hpp"
#include "hostless/transport/mpi.hpp"

namespace hostless::bench {

void fail(std::string const& text) {
  fmt::print(stderr, "petsc_compare: {}\n", text);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

namespace {

/// |b - A x| / |b| in long double from the generator's rows: neither side's product.
double true_residual(RowSource const& rows, std::vector<double> const& b, std::vector<double> const& mine) {
  int const share = static_cast<int>(mine.size()), first = static_cast<int>(rows.first_row());
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int> shares(static_cast<std::size_t>(ranks)), firsts(shares);
  // bounded: a comparison, ended by who runs it
  MPI_Allgather(&share, 1, MPI_INT, shares.data(), 1, MPI_INT, MPI_COMM_WORLD);
  // bounded: a comparison, ended by who runs it
  MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::vector<double> x(static_cast<std::size_t>(rows.global_rows()));
  // bounded: a comparison, ended by who runs it
  MPI_Allgatherv(mine.data(), share, MPI_DOUBLE, x.data(), shares.data(), firsts.data(), MPI_DOUBLE,
                 MPI_COMM_WORLD);
  long double sums[2] = {0, 0};
  RowPanel panel;
  for (std::int64_t at = rows.first_row(); at < rows.last_row(); at += 4096) {
    std::int64_t const count = std::min<std::int64_t>(4096, rows.last_row() - at);
    rows.panel(at, count, panel);
    for (std::int64_t i = 0; i < count; ++i) {
      auto const row = static_cast<std::size_t>(i);
      long double const right = b[static_cast<std::size_t>(at - rows.first_row() + i)];
      long double r = right;
      for (auto k = static_cast<std::size_t>(panel.offset[row]);
           k < static_cast<std::size_t>(panel.offset[row + 1]); ++k)
        r -= static_cast<long double>(panel.value[k]) * x[static_cast<std::size_t>(panel.column[k])];
      sums[0] += r * r;
      sums[1] += right * right;
    }
  }
  // bounded: a comparison, ended by who runs it
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return static_cast<double>(std::sqrt(sums[0] / sums[1]));
}

nlohmann::json report(Task const& task, RowSource const& source, std::vector<double> const& rhs,
                      std::vector<std::unique_ptr<Contestant>> const& all) {
  nlohmann::json list = nlohmann::json::array();
  for (auto const& one : all) {
    nlohmann::json entry{{"side", one->side},
                         {"method", one->method},
                         {"storage", one->storage},
                         {"seconds", one->seconds},
                         {"processor_seconds", one->processor_seconds},
                         {"true_relative_residual", true_residual(source, rhs, one->answer())}};
    if (Result const* result = one->result()) {
      PhaseTimes const& t = result->times;
      entry["phases_s"] = {{"publish", t.publish_s},
                           {"sweep", t.sweep_s},
                           {"rows", t.rows_s},
                           {"sums", t.sums_s},
                           {"ghosts", t.ghosts_s}};
      entry["bytes_per_iteration"] = result->bytes_per_iteration;
      entry["choices"] = result->choices;
    }
    list.push_back(entry);
  }
  return {{"matrix", describe(task.problem)},
          {"kind", task.problem.kind},
          {"rows", source.global_rows()},
          {"ranks", task.ranks},
          {"iterations", task.iterations},
          {"preconditioner", task.jacobi ? "jacobi" : "none"},
          {"contestants", list}};
}

void compare(Task const& task, double bandwidth, std::string const& json_file) {
  auto const source = make_problem(task.problem, task.ranks, task.rank);
  auto const rhs = rhs_of(*source);
  auto const transport = open_mpi_transport(MpiVendor::openmpi, MPI_Comm_c2f(MPI_COMM_WORLD));
  Matrix const a = Matrix::from_source(*transport, *source, contiguous(task));
  auto all = petsc_contestants(task, *source, rhs);
  for (auto& one : hostless_contestants(task, a, rhs)) all.push_back(std::move(one));
  all.push_back(threads_contestant(task));
  for (int round = -1; round < task.repeats; ++round) {  // the first round warms up
    for (auto const& one : all) {
      Cost const cost = one->solve();
      if (round < 0) continue;
      one->seconds.push_back(cost.wall);
      one->processor_seconds.push_back(cost.processor);
    }
  }
  auto result = report(task, *source, rhs, all);
  result["entries"] = a.global_entries();
  result["read_bandwidth"] = bandwidth;
  result["storage"] = a.local()->describe();
  if (task.rank != 0) return;
  if (json_file.empty()) {
    fmt::print("{}\n", result.dump(2));
  } else if (!(std::ofstream(json_file) << result.dump(2) << '\n')) {
    fail(fmt::format("{} cannot be written.", json_file));
  }
}

void add_options(CLI::App& app, Task& task) {
  app.allow_extras();  // PETSc's own options
  app.add_option("--kind", task.problem.kind);
  app.add_option("--nx", task.problem.nx);
  app.add_option("--ny", task.problem.ny);
  app.add_option("--nz", task.problem.nz);
  app.add_option("--iterations", task.iterations);
  app.add_option("--repeats", task.repeats);
  app.add_flag("--jacobi", task.jacobi);
  app.add_flag("--sbaij", task.half_storage, "PETSc's symmetric half storage too");
  app.add_option("--half-reach", task.format.half_reach, "FormatRequest::half_reach; 0 stores everything");
}

}  // namespace
}  // namespace hostless::bench

int main(int argc, char** argv) {
  using namespace hostless::bench;
  Task task;
  std::string json_file, format = "auto";
  CLI::App app("PETSc and hostless in turns on one generated matrix");
  add_options(app, task);
  app.add_option("--format", format, "hostless' storage: auto, csr, bsr, sell");
  app.add_option("--json", json_file, "file for the result; standard output if not given");
  CLI11_PARSE(app, argc, argv);
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  if (PetscInitialize(&argc, &argv, nullptr, nullptr) != 0) fail("PETSc does not start.");
  MPI_Comm_size(MPI_COMM_WORLD, &task.ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &task.rank);
  try {
    task.format.format = hostless::FormatRequest::from(format).format;
    if (task.problem.kind.rfind("elasticity", 0) == 0) task.block = 3;
    compare(task, bandwidth_of_all_ranks(task), json_file);
  } catch (std::exception const& e) {
    fail(e.what());
  }
  PetscFinalize();
  MPI_Finalize();
  return 0;
}
