#pragma once
// Cells of the contract that are solved on GPUs, and compared with the host run of the same plan.

#include <array>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "gpu_setting.hpp"
#include "hostless/base/error.hpp"
#include "solve_contract_check.hpp"

namespace hostless::test {

/// What tests of several ranks go through.
constexpr int most_ranks = 4;
constexpr std::array<char const*, 3> formats = {"auto", "sell", "csr"};
struct Text {
  Method method;
  PreconditionerKind preconditioner;
};
inline std::vector<Text> texts() {
  std::vector<Text> all;
  for (Method method : all_methods())
    for (PreconditionerKind kind : gpu_preconditioners(method)) all.push_back({method, kind});
  return all;
}

struct GpuCell {
  contract::Plan plan;
  RunKind run;
  std::string format;
  int route = 0;  ///< as in contract::Way
  int ranks = 1;
  GpuTransport transport = GpuTransport::automatic;

  contract::Cell cell() const { return {plan, {0, route, 1}}; }
  MatrixOptions matrix() const {
    MatrixOptions options = contract::matrix_options(cell());
    options.gpus = gpus_of(ranks);
    options.gpu_format = options.threads_per_row > 1 && format != "auto" ? "csr" : format;
    return options;
  }
  SolveOptions solve() const {
    SolveOptions options = contract::solve_options(cell(), {});
    share_gpus(options.run, ranks);
    options.run.kind = run;
    options.run.gpu_transport = transport;
    return options;
  }
};
inline std::string name(GpuCell const& cell) {
  static constexpr std::array<char const*, 5> routes = {"direct", "two_step", "three_step", "split",
                                                        "leader"};
  return contract::name(cell.plan) + " | " + std::to_string(cell.ranks) + " ranks " +
         routes[static_cast<std::size_t>(cell.route)] + " | GPU " + hostless::name(cell.run) + " " +
         cell.format + " " + hostless::name(cell.transport);
}

struct GpuFindings {
  int solved = 0, converged = 0;
  std::atomic<int> differ{0};
};

/// Solves a cell twice with one solver, on this rank, and compares both with the reference of its plan.
inline void solve_cell(Transport& transport, GpuCell const& cell, contract::Outcome const& reference,
                       GpuFindings& findings) {
  Matrix const matrix = contract::make_matrix(transport, cell.plan, cell.matrix());
  contract::Outcome const expected = contract::share_of(reference, matrix);
  Solver solver(matrix, cell.solve());
  for (char const* which : {"the first solve", "the second solve"}) {
    std::string const found = contract::solve(matrix, solver).difference(expected);
    EXPECT_EQ(found, "") << name(cell) << ", rank " << transport.group().rank() << ", " << which;
    findings.differ += found.empty() ? 0 : 1;
  }
}

/// All cells of one number of ranks.
inline void solve_cells(int ranks, std::vector<GpuCell> const& cells, GpuFindings& findings) {
  std::map<contract::Plan, contract::Outcome> references;
  for (GpuCell const& cell : cells) {
    if (references.count(cell.plan) == 0) references[cell.plan] = contract::reference(cell.plan, ranks);
    findings.converged += references[cell.plan].status == Status::converged ? 1 : 0;
    ++findings.solved;
  }
  run_with_threads_transport(ranks, [&](Transport& transport) {
    for (GpuCell const& cell : cells) {
      try {
        solve_cell(transport, cell, references.at(cell.plan), findings);
      } catch (Error const& e) {
        ADD_FAILURE() << name(cell) << ": " << e.what();
        throw;
      }
    }
  });
}

}  // namespace hostless::test
