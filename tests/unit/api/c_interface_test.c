/* The C interface, from C: a tridiagonal system solved by one rank and by three threads, errors, updates, callbacks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "hostless/hostless.h"

enum { N = 60 };

/* -1, 2, -1 for rows [first, last). */
static int64_t fill(int64_t first, int64_t last, double scale, int64_t* offsets, int64_t* columns, double* values) {
  int64_t k = 0;
  offsets[0] = 0;
  for (int64_t i = first; i < last; ++i) {
    for (int64_t j = i - 1; j <= i + 1; ++j) {
      if (j < 0 || j >= N) continue;
      columns[k] = j;
      values[k++] = scale * (i == j ? 2.0 : -1.0);
    }
    offsets[i - first + 1] = k;
  }
  return k;
}

struct Seen {
  int64_t calls, last;
  int stop_at;
};

static int watch(int64_t iteration, double residual_norm, void* user) {
  struct Seen* seen = user;
  ++seen->calls;
  seen->last = iteration;
  return residual_norm < 0 || (seen->stop_at > 0 && iteration >= seen->stop_at);
}

/* Solves A x = b on this rank's share and compares with the closed form x_i = (i + 1)(N - i) / 2 of b = 1. */
static int solve_share(hostless_transport* t, void* user) {
  int64_t const ranks = hostless_size(t), rank = hostless_rank(t);
  int64_t const first = N * rank / ranks, last = N * (rank + 1) / ranks, rows = last - first;
  int64_t offsets[N + 1], columns[3 * N];
  double values[3 * N], b[N], x[N], history[4 * N];
  fill(first, last, 1.0, offsets, columns, values);
  hostless_options options;
  hostless_default_options(&options);
  options.preconditioner = "jacobi";
  options.rtol = 1e-12;
  options.partition = user;
  hostless_matrix* matrix = NULL;
  hostless_solver* solver = NULL;
  hostless_result result;
  EXPECT(hostless_matrix_from_rows(t, first, rows, offsets, columns, values, &options, &matrix) == HOSTLESS_OK);
  if (matrix == NULL) return 1;
  EXPECT(hostless_matrix_global_rows(matrix) == N);
  EXPECT(hostless_matrix_first_row(matrix) == first && hostless_matrix_last_row(matrix) == last);
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_OK);
  if (solver == NULL) return 1;
  for (double scale = 1.0; scale < 5.0; scale *= 4.0) { /* the second time with values four times as large */
    if (scale > 1.0) {
      fill(first, last, scale, offsets, columns, values);
      EXPECT(hostless_matrix_update_values(matrix, offsets, columns, values) == HOSTLESS_OK);
    }
    for (int64_t i = 0; i < rows; ++i) {
      b[i] = 1.0;
      x[i] = 0.0;
    }
    EXPECT(hostless_solve(solver, b, x, &result) == HOSTLESS_OK);
    EXPECT(result.status == HOSTLESS_CONVERGED);
    EXPECT(strcmp(hostless_status_name(result.status), "converged") == 0);
    EXPECT(result.true_relative_residual <= 1e-12);
    for (int64_t i = 0; i < rows; ++i) {
      double const row = (double)(first + i), exact = (row + 1) * (N - row) / 2 / scale;
      EXPECT(fabs(x[i] - exact) <= 1e-9 * exact);
    }
    EXPECT(result.history_length == result.iterations + 1 && result.history_length <= 4 * N);
    EXPECT(hostless_history(solver, history, 4 * N) == HOSTLESS_OK);
    EXPECT(fabs(history[0] - sqrt((double)N)) < 1e-12); /* x0 = 0: |r0| = |b| */
  }
  /* New values are looked at as the first ones were: with A[0, 1] not A[1, 0] nothing is solved. */
  fill(first, last, 1.0, offsets, columns, values);
  if (first == 0) values[1] = -1.5;
  EXPECT(hostless_matrix_update_values(matrix, offsets, columns, values) == HOSTLESS_OK);
  for (int again = 0; again < 2; ++again) {
    EXPECT(hostless_solve(solver, b, x, &result) == HOSTLESS_BAD_INPUT);
    EXPECT(strstr(hostless_last_error(), "the matrix is not symmetric") != NULL);
  }
  fill(first, last, 1.0, offsets, columns, values);
  EXPECT(hostless_matrix_update_values(matrix, offsets, columns, values) == HOSTLESS_OK);
  EXPECT(hostless_solve(solver, b, x, &result) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED);
  hostless_solver_free(solver);
  hostless_matrix_free(matrix);
  return 0;
}

/* Each column as alone: its bits, ending and history. */
static void test_columns(void) {
  enum { COLUMNS = 3 };
  hostless_transport* t = NULL;
  hostless_matrix* matrix = NULL;
  hostless_solver *all = NULL, *one = NULL;
  hostless_options options;
  hostless_result result, column;
  int64_t offsets[N + 1], columns[3 * N];
  double values[3 * N], b[COLUMNS * N], x[COLUMNS * N], alone[N], history[4 * N], other[4 * N];
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  fill(0, N, 1.0, offsets, columns, values);
  hostless_default_options(&options);
  EXPECT(options.rhs_columns == 1);
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_OK);
  EXPECT(hostless_solver_create(matrix, &options, &one) == HOSTLESS_OK);
  options.rhs_columns = 9;
  EXPECT(hostless_solver_create(matrix, &options, &all) == HOSTLESS_USAGE);
  EXPECT(strstr(hostless_last_error(), "options.rhs_columns: 9") != NULL);
  options.rhs_columns = COLUMNS;
  EXPECT(hostless_solver_create(matrix, &options, &all) == HOSTLESS_OK);
  EXPECT(hostless_result_of_column(all, 0, &column) == HOSTLESS_USAGE); /* nothing is solved yet */
  for (int i = 0; i < COLUMNS * N; ++i) {
    b[i] = i / N == 1 ? 0.0 : (double)(i * i % 17) - 5.0;
    x[i] = 0.0;
  }
  EXPECT(hostless_solve(all, b, x, &result) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED);
  for (int c = 0; c < COLUMNS; ++c) {
    hostless_result single;
    memset(alone, 0, sizeof alone);
    EXPECT(hostless_solve(one, b + c * N, alone, &single) == HOSTLESS_OK);
    EXPECT(memcmp(alone, x + c * N, sizeof alone) == 0);
    EXPECT(hostless_result_of_column(all, c, &column) == HOSTLESS_OK);
    EXPECT(column.status == single.status && column.iterations == single.iterations);
    EXPECT(column.rhs_norm == single.rhs_norm && column.history_length == single.history_length);
    EXPECT(column.time_solve_s == result.time_solve_s);
    EXPECT(hostless_history(one, other, 4 * N) == HOSTLESS_OK);
    EXPECT(hostless_history_of_column(all, c, history, 4 * N) == HOSTLESS_OK);
    EXPECT(memcmp(history, other, (size_t)column.history_length * sizeof *history) == 0);
  }
  EXPECT(hostless_result_of_column(one, 0, &column) == HOSTLESS_OK);
  EXPECT(hostless_result_of_column(all, COLUMNS, &column) == HOSTLESS_USAGE);
  EXPECT(hostless_result_of_column(all, -1, &column) == HOSTLESS_USAGE);
  EXPECT(hostless_result_of_column(all, 0, NULL) == HOSTLESS_USAGE);
  EXPECT(hostless_history_of_column(NULL, 0, history, N) == HOSTLESS_USAGE);
  hostless_solver_free(one);
  hostless_solver_free(all);
  hostless_matrix_free(matrix);
  hostless_close(t);
}

static void test_callback_and_errors(void) {
  hostless_transport* t = NULL;
  hostless_matrix* matrix = NULL;
  hostless_solver* solver = NULL;
  hostless_options options;
  hostless_result result;
  int64_t offsets[N + 1], columns[3 * N];
  double values[3 * N], b[N], x[N];
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  EXPECT(hostless_rank(t) == 0 && hostless_size(t) == 1);
  fill(0, N, 1.0, offsets, columns, values);
  struct Seen seen = {0, 0, 5};
  hostless_default_options(&options);
  options.callback = watch;
  options.user = &seen;
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, NULL, &matrix) == HOSTLESS_OK);
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_OK);
  for (int i = 0; i < N; ++i) {
    b[i] = (double)(i % 7) - 3.0;
    x[i] = 0.0;
  }
  EXPECT(hostless_solve(solver, b, x, &result) == HOSTLESS_OK);
  EXPECT(result.status == HOSTLESS_STATUS_ABORTED);
  EXPECT(seen.calls > 0 && result.iterations >= 5 && result.iterations <= 6);
  hostless_solver_free(solver);

  hostless_default_options(&options);
  options.gpus = -1;
  hostless_matrix* none = NULL;
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &none) == HOSTLESS_USAGE);
  EXPECT(none == NULL && strstr(hostless_last_error(), "options.gpus") != NULL);

  hostless_default_options(&options);
  solver = (hostless_solver*)offsets;
  options.method = "gmres";
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_USAGE && solver == NULL);
  EXPECT(strstr(hostless_last_error(), "gmres") != NULL);

  hostless_options wrong[4];
  char const* const what[4] = {"options.max_iterations: -5", "options.lanes: -5", "options.time_limit_s: -1", "options.time_limit_s: nan"};
  for (int k = 0; k < 4; ++k) hostless_default_options(&wrong[k]);
  wrong[0].max_iterations = -5;
  wrong[1].lanes = -5;
  wrong[2].time_limit_s = -1;
  wrong[3].time_limit_s = NAN;
  for (int k = 0; k < 4; ++k) {
    EXPECT(hostless_solver_create(matrix, &wrong[k], &solver) == HOSTLESS_USAGE && solver == NULL);
    EXPECT(strstr(hostless_last_error(), what[k]) != NULL);
  }
  hostless_default_options(&options);
  options.ranks_per_node = -3;
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &none) == HOSTLESS_USAGE);
  EXPECT(none == NULL && strstr(hostless_last_error(), "options.ranks_per_node: -3") != NULL);
  EXPECT(hostless_rank(NULL) == -1 && hostless_size(NULL) == -1);
  EXPECT(hostless_matrix_global_rows(NULL) == -1 && hostless_matrix_first_row(NULL) == -1 && hostless_matrix_last_row(NULL) == -1);

  hostless_default_options(&options);
  EXPECT(options.divergence_limit == 0); /* the method's */
  options.divergence_limit = 0.5;
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_USAGE && solver == NULL);
  EXPECT(strstr(hostless_last_error(), "options.divergence_limit: 0.5") != NULL);
  options.divergence_limit = 1; /* the first step's alpha is N / 2, of which the first and the last row get all */
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_OK);
  for (int i = 0; i < N; ++i) {
    b[i] = 1.0;
    x[i] = 0.0;
  }
  EXPECT(hostless_solve(solver, b, x, &result) == HOSTLESS_OK);
  EXPECT(result.status == HOSTLESS_DIVERGED && result.iterations == 1);
  hostless_solver_free(solver);
  hostless_matrix_free(matrix);

  matrix = NULL;
  columns[1] = N + 5;
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, NULL, &matrix) == HOSTLESS_BAD_INPUT);
  EXPECT(matrix == NULL && strstr(hostless_last_error(), "65") != NULL);
  EXPECT(hostless_matrix_from_rows(t, 0, N, NULL, columns, values, NULL, &matrix) == HOSTLESS_USAGE);
  for (int64_t end = N + 1; end > 0; end = end < INT64_MAX / 8 ? end * 8 : end < INT64_MAX ? INT64_MAX : 0) {
    int64_t wrong_offsets[3] = {0, 2, 0}; /* rows of more entries than columns: nothing behind them is read */
    wrong_offsets[2] = 2 + (end < INT64_MAX - 2 ? end : INT64_MAX - 2);
    EXPECT(hostless_matrix_from_rows(t, 0, 2, wrong_offsets, columns, values, NULL, &matrix) == HOSTLESS_USAGE && matrix == NULL);
    EXPECT(strstr(hostless_last_error(), "entries of a row (the matrix has 2 columns)") != NULL);
  }
  EXPECT(hostless_matrix_from_rows(t, INT64_MAX, N, offsets, columns, values, NULL, &matrix) == HOSTLESS_USAGE && matrix == NULL);
  EXPECT(strstr(hostless_last_error(), "first_row: 9223372036854775807 (") != NULL);
  matrix = (hostless_matrix*)offsets;
  EXPECT(hostless_matrix_read(t, "no such file", NULL, &matrix) != HOSTLESS_OK && matrix == NULL);
  hostless_transport* other = t; /* a handle is NULL where there is none, whatever was there */
  EXPECT(hostless_open_mpi("lam", 0, &other) == HOSTLESS_USAGE && other == NULL);
  EXPECT(strstr(hostless_last_error(), "'lam'") != NULL);
  EXPECT(hostless_open_mpi(NULL, 0, &other) == HOSTLESS_USAGE && hostless_open_mpi("mpich", 0, NULL) == HOSTLESS_USAGE);
  other = t;
  EXPECT(hostless_open_composite("lam", 0, &other) == HOSTLESS_USAGE && other == NULL);
  options.partition = "fair";
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_USAGE);
  options.partition = "contiguous";
  options.struct_size = sizeof options + 8; /* of a version that is newer than the library */
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_USAGE);
  options.struct_size = offsetof(hostless_options, columns) + 4; /* half of a pointer */
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_USAGE);
  options.struct_size = offsetof(hostless_options, rtol); /* shorter than any has been */
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_USAGE);
  options.struct_size = 0;
  EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_USAGE);
  EXPECT(matrix == NULL);
  hostless_close(t);
}

/* Solves the chain of N rows on one rank with these options; b is x_i - x_mean of a known x. */
static int solved(hostless_options const* options, hostless_result* result, double* x) {
  int64_t offsets[N + 1], columns[3 * N];
  double values[3 * N], b[N];
  fill(0, N, 1.0, offsets, columns, values);
  for (int i = 0; i < N; ++i) {
    b[i] = (double)(i % 7) - 3.0;
    x[i] = 0.0;
  }
  if (options->null_space_constant) { /* a chain whose ends are free */
    values[0] = values[3 * N - 3] = 1.0;
  }
  hostless_transport* t = NULL;
  hostless_matrix* matrix = NULL;
  hostless_solver* solver = NULL;
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  int code = hostless_matrix_from_rows(t, 0, N, offsets, columns, values, options, &matrix);
  if (code == HOSTLESS_OK) code = hostless_solver_create(matrix, options, &solver);
  if (code == HOSTLESS_OK) code = hostless_solve(solver, b, x, result);
  hostless_solver_free(solver);
  hostless_matrix_free(matrix);
  hostless_close(t);
  return code;
}

/* Every member does what the option of its name does. */
static void test_options(void) {
  hostless_options options;
  hostless_result plain, result;
  double x[N], y[N];
  hostless_default_options(&options);
  EXPECT(options.struct_size == sizeof options && options.check_symmetry == 1 && options.tune == 1 && options.seed == 1);
  EXPECT(options.chebyshev_degree == 4 && options.chebyshev_ratio == 30.0 && options.row_lanes == 1 && options.check_interval == 1);
  EXPECT(solved(&options, &plain, x) == HOSTLESS_OK && plain.status == HOSTLESS_CONVERGED);

  options.chebyshev_degree = 0, options.row_lanes = 0, options.check_interval = 0; /* as a program has them that fills with 0 */
  options.columns = "32", options.setup_threads = 2, options.check_symmetry = 0, options.seed = 7;
  EXPECT(solved(&options, &result, y) == HOSTLESS_OK && memcmp(x, y, sizeof x) == 0);

  hostless_default_options(&options);
  options.slices = 3;
  options.row_lanes = 2;
  EXPECT(solved(&options, &result, y) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED && memcmp(x, y, sizeof x) != 0);

  hostless_default_options(&options);
  options.matrix_precision = "fp32";
  EXPECT(solved(&options, &result, y) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED);
  options.method = "pipelined-cg";
  EXPECT(solved(&options, &result, y) == HOSTLESS_USAGE && strstr(hostless_last_error(), "fp32") != NULL);

  int64_t iterations[4];
  for (int k = 0; k < 4; ++k) {
    hostless_default_options(&options);
    options.preconditioner = "chebyshev";
    options.chebyshev_inner = k == 1 ? "none" : NULL;
    options.chebyshev_degree = k == 2 ? 9 : 2;
    options.chebyshev_upper = k == 3 ? 2.0 : 0.0;
    options.chebyshev_ratio = k == 3 ? 1e4 : 30.0;
    EXPECT(solved(&options, &result, y) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED);
    iterations[k] = result.iterations;
  }
  EXPECT(iterations[2] < iterations[0] && iterations[0] < plain.iterations && iterations[3] != iterations[0]);

  hostless_default_options(&options);
  options.null_space_constant = 1;
  EXPECT(solved(&options, &result, y) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED);
  double mean = 0;
  for (int i = 0; i < N; ++i) mean += y[i] / N;
  EXPECT(fabs(mean) < 1e-9);

  hostless_default_options(&options); /* stopped, and gone on with to the bit */
  options.checkpoint_file = "c_interface_test.checkpoint";
  options.checkpoint_every = 10;
  options.max_iterations = 15;
  EXPECT(solved(&options, &result, y) == HOSTLESS_OK && result.status == HOSTLESS_ITERATION_LIMIT);
  hostless_default_options(&options);
  options.resume_file = "c_interface_test.checkpoint";
  EXPECT(solved(&options, &result, y) == HOSTLESS_OK && result.iterations == plain.iterations && memcmp(x, y, sizeof x) == 0);
  remove(options.resume_file);

  char const* const what[5] = {"options.check_interval: -1 (a whole number", "options.chebyshev_ratio: 0.5 (a finite number above 1",
                               "options.columns: \"17\" (unknown). Did you mean '16'? Use auto, 16 or 32.", "options.row_lanes: 3 (one of 1, 2, ",
                               "Use options.gpus: 1."};
  for (int k = 0; k < 5; ++k) {
    hostless_default_options(&options);
    if (k == 0) options.check_interval = -1;
    if (k == 1) options.chebyshev_ratio = 0.5;
    if (k == 2) options.columns = "17";
    if (k == 3) options.row_lanes = 3;
    if (k == 4) options.profile_file = "trace.json";
    EXPECT(solved(&options, &result, y) == HOSTLESS_USAGE);
    EXPECT(strstr(hostless_last_error(), what[k]) != NULL);
  }
  hostless_default_options(&options);
  options.oversubscribe = 1;
  EXPECT(solved(&options, &result, y) == HOSTLESS_USAGE && strstr(hostless_last_error(), "oversubscribe") != NULL);
}

/* A program that was compiled when the struct was shorter has the function, not the macro. */
static void test_old_program(void) {
  hostless_options options;
  size_t const old = offsetof(hostless_options, matrix_precision);
  memset(&options, 0x55, sizeof options);
  (hostless_default_options)(&options);
  EXPECT(options.struct_size == old && options.rtol == 1e-8 && options.divergence_limit == 0);
  unsigned char const* const byte = (unsigned char const*)&options;
  for (size_t k = old; k < sizeof options; ++k) EXPECT(byte[k] == 0x55);
  double x[N];
  hostless_result result;
  EXPECT(solved(&options, &result, x) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED);
}

static void write_text(char const* name, char const* text) {
  FILE* file = fopen(name, "w");
  EXPECT(file != NULL);
  if (file == NULL) return;
  fputs(text, file);
  fclose(file);
}

/* What is refused is said with the names of the struct's members, not with the command's. */
static void test_names_in_refusals(void) {
  char const* const name = "c_interface_test.mtx";
  write_text(name, "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 2\n1 2 1\n2 1 1.00001\n2 2 4\n");
  hostless_transport* t = NULL;
  hostless_matrix* matrix = NULL;
  hostless_solver* solver = NULL;
  hostless_options options;
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  hostless_default_options(&options);
  EXPECT(hostless_matrix_read(t, name, &options, &matrix) == HOSTLESS_BAD_INPUT);
  EXPECT(strstr(hostless_last_error(), "(options.symmetry_tolerance, 1e-09 now)") != NULL);
  EXPECT(strstr(hostless_last_error(), "--") == NULL);
  options.symmetry_tolerance = 1e-4;
  EXPECT(hostless_matrix_read(t, name, &options, &matrix) == HOSTLESS_OK);
  options.null_space_constant = 1;
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_BAD_INPUT);
  EXPECT(strstr(hostless_last_error(), "Drop options.null_space_constant: 1.") != NULL);
  hostless_matrix_free(matrix);
  hostless_close(t);
  remove(name);
}

/* A matrix read from a file, on the contiguous partition and the direct route. */
static void test_file(void) {
  char const* const name = "c_interface_test.mtx";
  write_text(name, "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 2\n2 2 4\n");
  hostless_transport* t = NULL;
  hostless_matrix* matrix = NULL;
  hostless_solver* solver = NULL;
  hostless_options options;
  hostless_result result;
  double const b[2] = {1.0, 1.0};
  double x[2] = {0.0, 0.0};
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  hostless_default_options(&options);
  options.partition = "contiguous";
  options.route = "direct";
  EXPECT(hostless_matrix_read(t, name, &options, &matrix) == HOSTLESS_OK);
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_OK);
  EXPECT(hostless_solve(solver, b, x, &result) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED);
  EXPECT(fabs(x[0] - 0.5) < 1e-12 && fabs(x[1] - 0.25) < 1e-12);
  hostless_solver_free(solver);
  hostless_matrix_free(matrix);
  hostless_close(t);
  remove(name);
}

/* On the GPU of HOSTLESS_PLUGIN_DIR's library, a solve has the bits of the processor's; without one it says so. */
static void test_gpu(int there) {
  int64_t offsets[N + 1], columns[3 * N];
  double values[3 * N], b[N], x[2][N];
  fill(0, N, 1.0, offsets, columns, values);
  for (int i = 0; i < N; ++i) b[i] = i % 7 - 2.5;
  memset(x, 0, sizeof x);
  for (int gpus = 0; gpus <= 1; ++gpus) {
    hostless_transport* t = NULL;
    hostless_matrix* matrix = NULL;
    hostless_solver* solver = NULL;
    hostless_options options;
    hostless_result result;
    hostless_default_options(&options);
    options.gpus = gpus;
    options.preconditioner = "jacobi";
    options.format = "sell";
    EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
    EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_OK);
    int const code = hostless_solver_create(matrix, &options, &solver);
    if (gpus == 1 && !there) {
      EXPECT(code == HOSTLESS_ENVIRONMENT && strstr(hostless_last_error(), "no GPU can be used") != NULL);
    } else {
      EXPECT(code == HOSTLESS_OK);
      EXPECT(hostless_solve(solver, b, x[gpus], &result) == HOSTLESS_OK);
      EXPECT(result.status == HOSTLESS_CONVERGED);
      hostless_solver_free(solver);
    }
    hostless_matrix_free(matrix);
    if (gpus == 1) {
      options.run = "host";
      EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_OK);
      EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_USAGE);
      hostless_matrix_free(matrix);
      options.format = "bsr";
      EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_USAGE);
      options.gpus = 0, options.run = NULL, options.format = NULL, options.gpu_transport = "nccl";
      EXPECT(hostless_matrix_from_rows(t, 0, N, offsets, columns, values, &options, &matrix) == HOSTLESS_OK);
      EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_USAGE);
      hostless_matrix_free(matrix);
    }
    hostless_close(t);
  }
  EXPECT(!there || memcmp(x[0], x[1], sizeof x[0]) == 0);
}

static int refuse(hostless_transport* t, void* user) {
  (void)user;
  return hostless_rank(t) == 1 ? 42 : 0;
}

/* An offset of one rank that is too large ends all of them, at once. */
static int offset_of_one(hostless_transport* t, void* user) {
  (void)user;
  int64_t offsets[2] = {0, hostless_rank(t) == 1 ? INT64_MAX : 1};
  int64_t const columns[1] = {hostless_rank(t)};
  double const values[1] = {1};
  hostless_matrix* matrix = NULL;
  int const code = hostless_matrix_from_rows(t, hostless_rank(t), 1, offsets, columns, values, NULL, &matrix);
  return code == HOSTLESS_USAGE && matrix == NULL && strstr(hostless_last_error(), "entries of a row") != NULL ? 0 : 1;
}

int main(int count, char** words) {
  if (count > 1) {
    test_gpu(strcmp(words[1], "gpu") == 0);
    if (failures == 0) printf("C interface: what it expects of GPUs holds\n");
    return failures == 0 ? 0 : 1;
  }
  char automatic[] = "auto", metis[] = "metis";
  hostless_transport* t = NULL;
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  EXPECT(solve_share(t, automatic) == 0);
  hostless_close(t);
  EXPECT(hostless_run_threads(3, solve_share, automatic) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(3, solve_share, metis) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(3, offset_of_one, NULL) == HOSTLESS_OK);
  EXPECT(hostless_run_threads(2, refuse, NULL) == 42);
  EXPECT(strncmp(hostless_last_error(), "the body of rank ", 17) == 0);
  EXPECT(strstr(hostless_last_error(), " returned 42") != NULL);
  test_columns();
  test_callback_and_errors();
  test_options();
  test_old_program();
  test_file();
  test_names_in_refusals();
  if (failures == 0) printf("C interface: all expectations hold\n");
  return failures == 0 ? 0 : 1;
}
