#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "api/c_options.hpp"
#include "api/guarded.hpp"
#include "hostless/hostless.hpp"
#include "transport/agreement.hpp"

using namespace hostless::c_interface;

struct hostless_matrix {
  hostless::Matrix matrix;
};
struct hostless_solver {
  hostless::Matrix const& matrix;
  hostless::Solver solver;
  int columns;
  hostless::Result last;
  bool has_solved = false;
};

namespace {

// What is refused is said with the names of hostless_options' members.
template <class Work>
int guarded_with_options(Work const& work) noexcept {
  return guarded([&] {
    try {
      work();
    } catch (hostless::Error const& e) {
      throw hostless::Error(e.code(), respelled(hostless::Face::c, e.what()));
    }
  });
}

static_assert(static_cast<int>(hostless::Status::running) == HOSTLESS_STATUS_RUNNING);
static_assert(static_cast<int>(hostless::Status::converged) == HOSTLESS_CONVERGED);
static_assert(static_cast<int>(hostless::Status::aborted) == HOSTLESS_STATUS_ABORTED);

// A solve of ranks that were told different things would end as if one of them had been lost.
void require_alike(hostless::Group& group, Made what, hostless_options const& mine) {
  static_cast<void>(hostless::agree(group, std::nullopt, words_of(what, mine), false));
}

hostless::MatrixOptions matrix_options(hostless_options const& o) {
  hostless::Choices const choices = choices_of(o);
  hostless::MatrixOptions options = choices.matrix_options();
  // Which says where a value does not fit fp32.
  options.host_layout = o.gpus == 0 || choices.solve.matrix_precision != hostless::MatrixPrecision::fp64;
  return options;
}

hostless::SolveOptions solve_options(hostless_options const& o) {
  if (o.tune == 0 && o.gpus == 0)
    misused(
        "options.tune: 0 without a GPU is refused (it is of the runs there). Set options.gpus: 1, or leave "
        "what hostless_default_options has written.");
  hostless::Choices const choices = choices_of(o);
  hostless::SolveOptions s = choices.solve;
  s.run.kind = choices.run_kind();
  if (o.callback != nullptr) {
    s.callback = [call = o.callback, user = o.user](hostless::Progress const& p) {
      return call(p.iteration, p.residual_norm, user) != 0;
    };
  }
  return s;
}

// Times and bytes are those of the whole.
void write_result(hostless::Result const& r, hostless::Result const& whole, hostless_result& to) {
  to = {};
  to.struct_size = sizeof(hostless_result);
  to.status = static_cast<int>(r.status);
  to.iterations = r.iterations;
  to.restarts = r.restarts;
  to.rhs_norm = r.rhs_norm;
  to.true_relative_residual = r.true_relative_residual;
  to.recurrence_relative_residual = r.recurrence_relative_residual;
  to.time_setup_s = whole.time_setup_s;
  to.time_solve_s = whole.time_solve_s;
  to.bytes_per_iteration = whole.bytes_per_iteration;
  to.history_length = static_cast<int64_t>(r.residual_history.size());
}

// What the caller had there, of another solve, is not the end of one that fails.
void forget(hostless_result& result) {
  hostless::Result none;
  none.true_relative_residual = none.recurrence_relative_residual = std::numeric_limits<double>::quiet_NaN();
  write_result(none, none, result);
}

void copy_history(hostless::Result const& r, double* norms, int64_t capacity) {
  need(norms, "norms is NULL.");
  auto const n = std::min<std::size_t>(r.residual_history.size(),
                                       static_cast<std::size_t>(std::max<int64_t>(capacity, 0)));
  std::copy_n(r.residual_history.begin(), n, norms);
}

hostless::Result const& column_of(hostless_solver const* solver, int column) {
  need(solver, "solver is NULL.");
  if (column < 0 || column >= solver->columns)
    misused(fmt::format("column: {} (the solver has {}, from 0 on). Count from 0.", column, solver->columns));
  if (!solver->has_solved) misused("column of a solver that has solved nothing. Call hostless_solve first.");
  if (solver->columns == 1) return solver->last;
  auto const index = static_cast<std::size_t>(column);
  if (index >= solver->last.columns.size())
    misused(fmt::format("column: {} (the last solve tells of {}). Call hostless_solve again.", column,
                        solver->last.columns.size()));
  return solver->last.columns[index];
}

}  // namespace

extern "C" {

char const* hostless_status_name(int status) { return hostless::name(static_cast<hostless::Status>(status)); }

int hostless_matrix_from_rows(hostless_transport* transport, int64_t first_row, int64_t rows,
                              int64_t const* offsets, int64_t const* columns, double const* values,
                              hostless_options const* options, hostless_matrix** matrix) {
  return guarded_with_options([&] {
    clear(matrix);
    need(transport, "transport is NULL.");
    hostless::MatrixOptions layout;
    hostless_options given;
    std::size_t entries = 0;
    transport->transport->group().together([&] {  // a rank that fails alone would leave the others waiting
      need(matrix, "matrix is NULL.");
      need(offsets, "offsets is NULL.");
      if (rows < 0)
        misused(fmt::format("rows: {} (there cannot be fewer than none). Count this rank's rows.", rows));
      entries = static_cast<std::size_t>(std::max<int64_t>(offsets[rows], 0));
      if (entries > 0) {
        need(columns, "columns is NULL.");
        need(values, "values is NULL.");
      }
      given = options_or_default(options);
      layout = matrix_options(given);
    });
    require_alike(transport->transport->group(), Made::matrix, given);
    *matrix = new hostless_matrix{hostless::Matrix::from_rows(*transport->transport, first_row,
                                                              {offsets, static_cast<std::size_t>(rows) + 1},
                                                              {columns, entries}, {values, entries}, layout)};
  });
}

int hostless_matrix_read(hostless_transport* transport, char const* path, hostless_options const* options,
                         hostless_matrix** matrix) {
  return guarded_with_options([&] {
    clear(matrix);
    need(transport, "transport is NULL.");
    hostless::MatrixOptions layout;
    auto symmetry = hostless::Symmetry::required;
    double tolerance = 0;
    hostless_options given;
    transport->transport->group().together([&] {
      need(matrix, "matrix is NULL.");
      need(path, "path is NULL.");
      given = options_or_default(options);
      layout = matrix_options(given);
      hostless::SolveOptions const solve = choices_of(given).solve;
      symmetry = solve.check_symmetry ? hostless::symmetry_for(solve.method) : hostless::Symmetry::any;
      tolerance = solve.symmetry_tolerance;
    });
    require_alike(transport->transport->group(), Made::matrix_read, given);
    auto const rows = hostless::read_matrix(transport->transport->group(), path, {}, symmetry, tolerance);
    *matrix = new hostless_matrix{hostless::Matrix::from_source(*transport->transport, *rows, layout)};
  });
}

int hostless_matrix_update_values(hostless_matrix* matrix, int64_t const* offsets, int64_t const* columns,
                                  double const* values) {
  return guarded_with_options([&] {
    need(matrix, "matrix is NULL.");
    hostless::Matrix& m = matrix->matrix;
    std::size_t rows = 0, entries = 0;
    m.transport().group().together([&] {
      need(offsets, "offsets is NULL.");
      rows = static_cast<std::size_t>(m.last_row() - m.first_row());
      entries = static_cast<std::size_t>(std::max<int64_t>(offsets[rows], 0));
      if (entries > 0) {
        need(columns, "columns is NULL.");
        need(values, "values is NULL.");
      }
    });
    m.update_values({offsets, rows + 1}, {columns, entries}, {values, entries});
  });
}

int64_t hostless_matrix_global_rows(hostless_matrix const* matrix) {
  return matrix == nullptr ? -1 : matrix->matrix.global_rows();
}
int64_t hostless_matrix_first_row(hostless_matrix const* matrix) {
  return matrix == nullptr ? -1 : matrix->matrix.first_row();
}
int64_t hostless_matrix_last_row(hostless_matrix const* matrix) {
  return matrix == nullptr ? -1 : matrix->matrix.last_row();
}
void hostless_matrix_free(hostless_matrix* matrix) { delete matrix; }

int hostless_solver_create(hostless_matrix const* matrix, hostless_options const* options,
                           hostless_solver** solver) {
  return guarded_with_options([&] {
    clear(solver);
    need(matrix, "matrix is NULL.");
    hostless::SolveOptions how;
    hostless_options given;
    matrix->matrix.transport().group().together([&] {
      need(solver, "solver is NULL.");
      given = options_or_default(options);
      how = solve_options(given);
    });
    require_alike(matrix->matrix.transport().group(), Made::solver, given);
    int const columns = how.rhs_columns;
    *solver =
        new hostless_solver{matrix->matrix, hostless::Solver(matrix->matrix, std::move(how)), columns, {}};
  });
}

int hostless_solve(hostless_solver* solver, double const* b, double* x, hostless_result* result) {
  return guarded_with_options([&] {
    need(solver, "solver is NULL.");
    hostless::Matrix const& m = solver->matrix;
    auto const rows = static_cast<std::size_t>(m.last_row() - m.first_row());
    m.transport().group().together([&] {
      if (rows > 0) {
        need(b, "b is NULL.");
        need(x, "x is NULL.");
      }
      need(result, "result is NULL.");
    });
    std::size_t const all = rows * static_cast<std::size_t>(solver->columns);
    solver->has_solved = false;
    forget(*result);
    solver->last = solver->solver.solve({b, all}, {x, all});
    solver->has_solved = true;
    write_result(solver->last, solver->last, *result);
    std::vector<std::string> const unwritten = solver->last.unwritten();
    if (!unwritten.empty()) throw hostless::Error(hostless::ErrorCode::environment, unwritten.front());
  });
}

int hostless_history(hostless_solver const* solver, double* norms, int64_t capacity) {
  return guarded_with_options([&] {
    need(solver, "solver is NULL.");
    copy_history(solver->last, norms, capacity);
  });
}

int hostless_result_of_column(hostless_solver const* solver, int column, hostless_result* result) {
  return guarded_with_options([&] {
    hostless::Result const& one = column_of(solver, column);
    need(result, "result is NULL.");
    write_result(one, solver->last, *result);
  });
}

int hostless_history_of_column(hostless_solver const* solver, int column, double* norms, int64_t capacity) {
  return guarded_with_options([&] { copy_history(column_of(solver, column), norms, capacity); });
}

void hostless_solver_free(hostless_solver* solver) { delete solver; }

}  // extern "C"
