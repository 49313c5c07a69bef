/* What a solve that fails leaves in the caller's result, and an option that would have no effect. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "hostless/hostless.h"

int main(void) {
  int64_t const offsets[] = {0, 1, 2}, columns[] = {0, 1};
  double const values[] = {2, 4}, b[] = {1, 1};
  double x[] = {0, 0};
  hostless_transport* t = NULL;
  hostless_matrix* matrix = NULL;
  hostless_solver* solver = NULL;
  hostless_options options;
  hostless_result result;
  hostless_default_options(&options);
  EXPECT(hostless_open_single(&t) == HOSTLESS_OK);
  EXPECT(hostless_matrix_from_rows(t, 0, 2, offsets, columns, values, &options, &matrix) == HOSTLESS_OK);
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_OK);
  EXPECT(hostless_solve(solver, b, x, &result) == HOSTLESS_OK && result.status == HOSTLESS_CONVERGED);
  hostless_solver_free(solver);

  /* The result still has a solve that converged. */
  options.resume_file = "no_such_checkpoint";
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_OK);
  EXPECT(hostless_solve(solver, b, x, &result) == HOSTLESS_BAD_INPUT);
  EXPECT(result.status == HOSTLESS_STATUS_RUNNING && result.iterations == 0 && isnan(result.true_relative_residual));
  EXPECT(result.struct_size == sizeof result && strcmp(hostless_status_name(result.status), "running") == 0);
  hostless_solver_free(solver);

  options.resume_file = NULL;
  options.tune = 0;
  EXPECT(hostless_solver_create(matrix, &options, &solver) == HOSTLESS_USAGE && solver == NULL);
  EXPECT(strstr(hostless_last_error(), "options.tune: 0 without a GPU is refused") != NULL);
  hostless_matrix_free(matrix);
  hostless_close(t);
  if (failures == 0) printf("C failed solve: all expectations hold\n");
  return failures == 0 ? 0 : 1;
}
