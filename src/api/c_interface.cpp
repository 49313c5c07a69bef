#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "api/guarded.hpp"
#include "base/processors.hpp"
#include "hostless/hostless.hpp"

using namespace hostless::c_interface;

struct hostless_matrix {
  hostless::Matrix matrix;
};
struct hostless_solver {
  hostless::Matrix const& matrix;
  hostless::Solver solver;
  std::vector<double> history;
};

namespace {

static_assert(static_cast<int>(hostless::Status::converged) == HOSTLESS_CONVERGED);
static_assert(static_cast<int>(hostless::Status::aborted) == HOSTLESS_STATUS_ABORTED);

hostless_options options_or_default(hostless_options const* given) {
  hostless_options options;
  hostless_default_options(&options);
  if (given == nullptr) return options;
  if (given->struct_size == 0 || given->struct_size > sizeof(hostless_options)) {
    misused(
        fmt::format("options.struct_size: {}, which is not that of this version, {} (call "
                    "hostless_default_options first).",
                    given->struct_size, sizeof(hostless_options)));
  }
  std::memcpy(&options, given, given->struct_size);
  return options;
}

std::string word(char const* given, char const* otherwise) { return given != nullptr ? given : otherwise; }

int threads_of(hostless_options const& o) {
  if (o.lanes < 0)
    misused(fmt::format("options.lanes: {} (a rank has a thread). Use 0 or 1 for one.", o.lanes));
  return std::max(1, o.lanes);
}

hostless::MatrixOptions matrix_options(hostless_options const& o) {
  hostless::MatrixOptions m;
  std::string const partition = word(o.partition, "auto");
  using Partition = hostless::MatrixOptions::Partition;
  if (partition == "contiguous") {
    m.partition = Partition::contiguous;
  } else if (partition == "metis") {
    m.partition = Partition::metis;
  } else if (partition != "auto") {
    misused("unknown partition '" + partition + "'. Use auto, contiguous or metis.");
  }
  if (o.gpus < 0) misused(fmt::format("options.gpus: {} (it counts GPUs). Use 0 for the processor.", o.gpus));
  if (o.ranks_per_node < 0)
    misused(fmt::format("options.ranks_per_node: {} (a node has a rank). Use 0 to find nodes.",
                        o.ranks_per_node));
  m.gpus = o.gpus;
  m.host_layout = o.gpus == 0;
  if (o.gpus > 0) {
    m.gpu_format = word(o.format, "auto");
  } else {
    m.format = hostless::FormatRequest::from(word(o.format, "auto"));
  }
  m.format.threads = threads_of(o);
  m.automatic_route = is_automatic(o.route);
  if (!m.automatic_route) m.route = hostless::route_from(o.route);
  m.block = o.block_size;
  m.ranks_per_node = o.ranks_per_node;
  return m;
}

hostless::SolveOptions solve_options(hostless_options const& o) {
  hostless::SolveOptions s;
  s.method = hostless::method_from(word(o.method, "cg").c_str());
  s.run.gpus = o.gpus;
  s.run.gpu_transport = hostless::gpu_transport_from(word(o.gpu_transport, "auto").c_str());
  s.run.kind = hostless::run_kind_from(word(o.run, o.gpus > 0 ? "auto" : "host").c_str());
  s.run.threads = threads_of(o);
  s.preconditioner = hostless::preconditioner_from(word(o.preconditioner, "none").c_str());
  s.reduction = hostless::reduction_from(word(o.reduction, "ordered").c_str());
  s.rtol = o.rtol;
  s.atol = o.atol;
  if (o.max_iterations < -1)
    misused(fmt::format("options.max_iterations: {} (it counts them). Use -1 for 10 times the rows.",
                        o.max_iterations));
  if (!(o.time_limit_s >= 0))
    misused(fmt::format("options.time_limit_s: {} (seconds). Use 0 for no limit.", o.time_limit_s));
  s.max_iterations = o.max_iterations;
  s.divergence_limit = o.divergence_limit;
  s.time_limit_s = o.time_limit_s;
  s.null_space_constant = o.null_space_constant != 0;
  if (o.callback != nullptr) {
    s.callback = [call = o.callback, user = o.user](hostless::Progress const& p) {
      return call(p.iteration, p.residual_norm, user) != 0;
    };
  }
  return s;
}

}  // namespace

extern "C" {

char const* hostless_last_error(void) { return last_error().c_str(); }

char const* hostless_status_name(int status) { return hostless::name(static_cast<hostless::Status>(status)); }

void hostless_default_options(hostless_options* options) {
  hostless::SolveOptions const d;
  *options = {};
  options->struct_size = sizeof(hostless_options);
  options->lanes = 1;
  options->rtol = d.rtol;
  options->atol = d.atol;
  options->max_iterations = d.max_iterations;
  options->divergence_limit = d.divergence_limit;
}

int hostless_open_single(hostless_transport** transport) {
  return guarded([&] {
    clear(transport);
    need(transport, "transport is NULL.");
    auto made = std::make_unique<hostless_transport>();
    made->owned = hostless::single_transport();
    made->transport = made->owned.get();
    *transport = made.release();
  });
}

int hostless_open_mpi(char const* vendor, int fortran_communicator, hostless_transport** transport) {
  return guarded([&] {
    clear(transport);
    need(transport, "transport is NULL.");
    need(vendor, "vendor is NULL. Use openmpi or mpich.");
    bool const openmpi = std::strcmp(vendor, "openmpi") == 0;
    if (!openmpi && std::strcmp(vendor, "mpich") != 0)
      misused(fmt::format("unknown MPI vendor '{}'. Use openmpi or mpich.", vendor));
    auto made = std::make_unique<hostless_transport>();
    made->owned = hostless::open_mpi_transport(
        openmpi ? hostless::MpiVendor::openmpi : hostless::MpiVendor::mpich, fortran_communicator);
    made->transport = made->owned.get();
    *transport = made.release();
  });
}

void hostless_close(hostless_transport* transport) { delete transport; }

int hostless_run_threads(int ranks, int (*body)(hostless_transport*, void*), void* user) {
  int result = 0;
  int const code = guarded([&] {
    need(reinterpret_cast<void const*>(body), "body is NULL.");
    if (ranks > hostless::most_workers)
      misused(fmt::format("{} ranks (at most {} threads of one machine are started). Use fewer, or MPI.",
                          ranks, hostless::most_workers));
    std::vector<int> codes(static_cast<std::size_t>(std::max(ranks, 1)), 0);
    auto collect = [&] {
      for (int c : codes) result = result == 0 ? c : result;
    };
    try {
      hostless::run_with_threads_transport(ranks, [&](hostless::Transport& t) {
        hostless_transport handle;
        handle.transport = &t;
        int& mine = codes[static_cast<std::size_t>(t.group().rank())];
        mine = body(&handle, user);
        if (mine != 0) throw hostless::Error(hostless::ErrorCode::aborted, "a rank's body failed.");
      });
    } catch (hostless::Error const& e) {
      collect();
      if (e.code() != hostless::ErrorCode::aborted) throw;
    }
    collect();
  });
  return code != HOSTLESS_OK ? code : result;
}

int hostless_rank(hostless_transport const* transport) {
  return transport == nullptr ? -1 : transport->transport->group().rank();
}
int hostless_size(hostless_transport const* transport) {
  return transport == nullptr ? -1 : transport->transport->group().size();
}

int hostless_matrix_from_rows(hostless_transport* transport, int64_t first_row, int64_t rows,
                              int64_t const* offsets, int64_t const* columns, double const* values,
                              hostless_options const* options, hostless_matrix** matrix) {
  return guarded([&] {
    clear(matrix);
    need(transport, "transport is NULL.");
    hostless::MatrixOptions layout;
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
      layout = matrix_options(options_or_default(options));
    });
    *matrix = new hostless_matrix{hostless::Matrix::from_rows(*transport->transport, first_row,
                                                              {offsets, static_cast<std::size_t>(rows) + 1},
                                                              {columns, entries}, {values, entries}, layout)};
  });
}

int hostless_matrix_read(hostless_transport* transport, char const* path, hostless_options const* options,
                         hostless_matrix** matrix) {
  return guarded([&] {
    clear(matrix);
    need(transport, "transport is NULL.");
    hostless::MatrixOptions layout;
    auto symmetry = hostless::Symmetry::required;
    transport->transport->group().together([&] {
      need(matrix, "matrix is NULL.");
      need(path, "path is NULL.");
      layout = matrix_options(options_or_default(options));
      char const* const method = options_or_default(options).method;
      symmetry =
          hostless::symmetry_for(method == nullptr ? hostless::Method::cg : hostless::method_from(method));
    });
    auto const rows = hostless::read_matrix(transport->transport->group(), path, {}, symmetry);
    *matrix = new hostless_matrix{hostless::Matrix::from_source(*transport->transport, *rows, layout)};
  });
}

int hostless_matrix_update_values(hostless_matrix* matrix, int64_t const* offsets, int64_t const* columns,
                                  double const* values) {
  return guarded([&] {
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
  return guarded([&] {
    clear(solver);
    need(matrix, "matrix is NULL.");
    hostless::SolveOptions how;
    matrix->matrix.transport().group().together([&] {
      need(solver, "solver is NULL.");
      how = solve_options(options_or_default(options));
    });
    *solver = new hostless_solver{matrix->matrix, hostless::Solver(matrix->matrix, std::move(how)), {}};
  });
}

int hostless_solve(hostless_solver* solver, double const* b, double* x, hostless_result* result) {
  return guarded([&] {
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
    hostless::Result r = solver->solver.solve({b, rows}, {x, rows});
    *result = {};
    result->struct_size = sizeof(hostless_result);
    result->status = static_cast<int>(r.status);
    result->iterations = r.iterations;
    result->restarts = r.restarts;
    result->rhs_norm = r.rhs_norm;
    result->true_relative_residual = r.true_relative_residual;
    result->recurrence_relative_residual = r.recurrence_relative_residual;
    result->time_setup_s = r.time_setup_s;
    result->time_solve_s = r.time_solve_s;
    result->bytes_per_iteration = r.bytes_per_iteration;
    solver->history = std::move(r.residual_history);
    result->history_length = static_cast<int64_t>(solver->history.size());
  });
}

int hostless_history(hostless_solver const* solver, double* norms, int64_t capacity) {
  return guarded([&] {
    need(solver, "solver is NULL.");
    need(norms, "norms is NULL.");
    auto const n = std::min<std::size_t>(solver->history.size(),
                                         static_cast<std::size_t>(std::max<int64_t>(capacity, 0)));
    std::copy_n(solver->history.begin(), n, norms);
  });
}

void hostless_solver_free(hostless_solver* solver) { delete solver; }

}  // extern "C"
