/* Ranks that are threads and have been given different options: a usage error on all of them at once, which names the option and both values. */
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "hostless/hostless.h"

enum { N = 48 };

struct Case {
  void (*set)(hostless_options*, int rank);
  char const* said; /* of both values; NULL: ranks may differ in it */
  int of_matrix;
};

static int with_options(hostless_transport* t, void* user) {
  struct Case const* const c = user;
  int64_t const ranks = hostless_size(t), rank = hostless_rank(t);
  int64_t const first = N * rank / ranks, rows = N * (rank + 1) / ranks - first;
  int64_t offsets[N + 1], columns[N];
  double values[N], b[N], x[N];
  for (int64_t i = 0; i <= rows; ++i) offsets[i] = i;
  for (int64_t i = 0; i < rows; ++i) columns[i] = first + i, values[i] = 2, b[i] = 1, x[i] = 0;
  hostless_options same, mine;
  hostless_default_options(&same);
  mine = same;
  c->set(&mine, (int)rank);
  hostless_matrix* matrix = NULL;
  hostless_solver* solver = NULL;
  int code = hostless_matrix_from_rows(t, first, rows, offsets, columns, values, c->of_matrix ? &mine : &same, &matrix);
  if (code == HOSTLESS_OK) code = hostless_solver_create(matrix, &mine, &solver);
  if (c->said == NULL) {
    hostless_result result;
    EXPECT(code == HOSTLESS_OK && hostless_solve(solver, b, x, &result) == HOSTLESS_OK);
    EXPECT(result.status == HOSTLESS_CONVERGED);
  } else {
    EXPECT(code == HOSTLESS_USAGE && strstr(hostless_last_error(), c->said) != NULL);
    EXPECT((matrix == NULL) == (c->of_matrix != 0) && solver == NULL);
  }
  hostless_solver_free(solver);
  hostless_matrix_free(matrix);
  return 0;
}

static void rtol(hostless_options* o, int rank) { o->rtol = rank == 1 ? 0.01 : 1e-8; }
static void atol_of(hostless_options* o, int rank) { o->atol = rank == 1 ? 3 : 0; }
static void limit(hostless_options* o, int rank) { o->max_iterations = rank == 1 ? 7 : 0; }
static void method(hostless_options* o, int rank) { o->method = rank == 2 ? "minres" : "cg"; }
static void divergence(hostless_options* o, int rank) { o->divergence_limit = rank == 1 ? 100 : 0; }
static void degree(hostless_options* o, int rank) {
  o->preconditioner = "chebyshev";
  o->chebyshev_degree = rank == 1 ? 5 : 3;
}
static void preconditioner(hostless_options* o, int rank) { o->preconditioner = rank == 1 ? "jacobi" : NULL; }
static void precision(hostless_options* o, int rank) { o->matrix_precision = rank == 1 ? "fp32" : NULL; }
static void slices(hostless_options* o, int rank) { o->slices = rank == 1 ? 8 : 0; }
static void lanes(hostless_options* o, int rank) {
  o->run = "persistent";
  o->lanes = 1 + rank % 2;
}

int main(void) {
  struct Case const cases[] = {
      {rtol, "rank 0 was given a solver, options.rtol: 1e-08, and rank 1 a solver, options.rtol: 0.01 (", 0},
      {atol_of, "options.atol: 0, and rank 1 a solver, options.atol: 3 (", 0},
      {limit, ", and rank 1 a solver, options.max_iterations: 7 (", 0},
      {method, "options.method: \"cg\", and rank 2 a solver, options.method: \"minres\" (", 0},
      {divergence, ", and rank 1 a solver, options.divergence_limit: 100 (", 0},
      {degree, "options.chebyshev_degree: 3, and rank 1 a solver, options.chebyshev_degree: 5 (", 0},
      {preconditioner, "options.preconditioner: \"none\", and rank 1 a solver, options.preconditioner: \"jacobi\" (", 0},
      {precision, "options.matrix_precision: \"fp64\", and rank 1 a solver, options.matrix_precision: \"fp32\" (", 0},
      {slices, "and rank 1 a matrix, options.slices: 8 (", 1},
      {lanes, NULL, 0}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k)
    EXPECT(hostless_run_threads(3, with_options, (void*)&cases[k]) == HOSTLESS_OK);
  if (failures == 0) printf("C agreement: all expectations hold\n");
  return failures == 0 ? 0 : 1;
}
