/* PETSc's ghosts and a solve, for bench/preload/run_petsc.sh. */
#include <petscksp.h>
#include <petscsf.h>

enum { mine = 64, width = 8, calls = 6 };

/* Each rank has eight leaves of either neighbour. */
static void ghosts(PetscMPIInt rank, PetscMPIInt ranks) {
  PetscSFNode roots[2 * width];
  double root[width], leaf[2 * width];
  PetscSF sf;
  for (int k = 0; k < width; ++k) {
    roots[k].rank = (rank + 1) % ranks;
    roots[k].index = k;
    roots[width + k].rank = (rank + ranks - 1) % ranks;
    roots[width + k].index = width - 1 - k;
  }
  PetscSFCreate(PETSC_COMM_WORLD, &sf);
  PetscSFSetFromOptions(sf);
  PetscSFSetGraph(sf, width, 2 * width, NULL, PETSC_COPY_VALUES, roots, PETSC_COPY_VALUES);
  for (int call = 0; call < calls; ++call) {
    double sum = 0;
    for (int k = 0; k < width; ++k) root[k] = rank * 100 + k + call;
    PetscSFBcastBegin(sf, MPI_DOUBLE, root, leaf, MPI_REPLACE);
    PetscSFBcastEnd(sf, MPI_DOUBLE, root, leaf, MPI_REPLACE);
    for (int k = 0; k < 2 * width; ++k) sum += leaf[k] * (k + 1);
    PetscSynchronizedPrintf(PETSC_COMM_WORLD, "ghosts %d of rank %d: %.17g\n", call, rank, sum);
    PetscSynchronizedFlush(PETSC_COMM_WORLD, stdout);
  }
  PetscSFDestroy(&sf);
}

/* -u'' = 1 on a line; the preconditioner is an option. */
static void solve(PetscMPIInt ranks) {
  Mat a;
  Vec x, b;
  KSP ksp;
  PetscInt first, end, iterations, rows = mine * ranks;
  PetscReal norm;
  MatCreateAIJ(PETSC_COMM_WORLD, mine, mine, rows, rows, 3, NULL, 1, NULL, &a);
  MatGetOwnershipRange(a, &first, &end);
  for (PetscInt row = first; row < end; ++row)
    for (PetscInt column = row > 0 ? row - 1 : row; column <= row + 1 && column < rows; ++column)
      MatSetValue(a, row, column, column == row ? 2.0 : -1.0, INSERT_VALUES);
  MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY);
  MatCreateVecs(a, &x, &b);
  VecSet(b, 1.0);
  KSPCreate(PETSC_COMM_WORLD, &ksp);
  KSPSetOperators(ksp, a, a);
  KSPSetType(ksp, KSPCG);
  KSPSetFromOptions(ksp);
  KSPSolve(ksp, b, x);
  KSPGetIterationNumber(ksp, &iterations);
  VecNorm(x, NORM_2, &norm);
  PetscPrintf(PETSC_COMM_WORLD, "solve: %d iterations, |x| = %.17g\n", (int)iterations, (double)norm);
  KSPDestroy(&ksp);
  VecDestroy(&x);
  VecDestroy(&b);
  MatDestroy(&a);
}

int main(int count, char** words) {
  PetscMPIInt rank, ranks;
  PetscInitialize(&count, &words, NULL, NULL);
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
  ghosts(rank, ranks);
  solve(ranks);
  return PetscFinalize();
}
