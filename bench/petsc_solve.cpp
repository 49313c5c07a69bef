// PETSc's side: KSPCG and KSPPIPECG on AIJ, BAIJ and, when asked for, SBAIJ.

#include <fmt/format.h>
#include <petscksp.h>

#include "contestant.hpp"

namespace hostless::bench {
namespace {

void petsc(PetscErrorCode code) {
  if (code != 0) MPI_Abort(PETSC_COMM_WORLD, 1);  // PETSc has printed its own text
}

/// Counts, in blocks, what each block row of this rank holds. Its rows share one pattern (generators keep
/// whole blocks), so the first stands for all; PETSc refuses an entry without room, so a wrong count is loud.
struct Room {
  std::vector<PetscInt> own, other, own_upper, other_upper;

  Room(RowPanel const& panel, std::int64_t first, std::int64_t rows, int block) {
    for (std::int64_t row = 0; row < rows; row += block) {
      PetscInt count[4] = {};
      std::int64_t before = -1;
      for (auto k = static_cast<std::size_t>(panel.offset[static_cast<std::size_t>(row)]);
           k < static_cast<std::size_t>(panel.offset[static_cast<std::size_t>(row) + 1]); ++k) {
        std::int64_t const column = panel.column[k] / block;
        if (column == before) continue;
        before = column;
        bool const mine = column >= first / block && column < (first + rows) / block;
        bool const upper = column >= (first + row) / block;
        ++count[mine ? 0 : 1];
        if (upper) ++count[mine ? 2 : 3];
      }
      own.push_back(count[0]);
      other.push_back(count[1]);
      own_upper.push_back(count[2]);
      other_upper.push_back(count[3]);
    }
  }
};

Mat make_petsc(RowSource const& source, MatType type, int block) {
  std::int64_t const first = source.first_row(), rows = source.last_row() - first;
  RowPanel panel;
  source.panel(first, rows, panel);
  Room const room(panel, first, rows, block);
  Mat a = nullptr;
  petsc(MatCreate(PETSC_COMM_WORLD, &a));
  petsc(MatSetSizes(a, static_cast<PetscInt>(rows), static_cast<PetscInt>(rows), PETSC_DETERMINE,
                    PETSC_DETERMINE));
  petsc(MatSetType(a, type));
  petsc(MatXAIJSetPreallocation(a, block, room.own.data(), room.other.data(), room.own_upper.data(),
                                room.other_upper.data()));
  if (std::string(type) == MATSBAIJ) petsc(MatSetOption(a, MAT_IGNORE_LOWER_TRIANGULAR, PETSC_TRUE));
  std::vector<PetscInt> column;
  for (std::int64_t i = 0; i < rows; ++i) {
    auto const begin = panel.offset[static_cast<std::size_t>(i)],
               end = panel.offset[static_cast<std::size_t>(i) + 1];
    column.assign(panel.column.begin() + begin, panel.column.begin() + end);
    auto const row = static_cast<PetscInt>(first + i);
    petsc(MatSetValues(a, 1, &row, static_cast<PetscInt>(end - begin), column.data(),
                       panel.value.data() + begin, INSERT_VALUES));
  }
  petsc(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
  petsc(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
  return a;
}

class PetscSolve final : public Contestant {
 public:
  PetscSolve(Mat a, KSPType type, KSPNormType norm, Task const& task, std::vector<double> const& rhs)
      : iterations_(task.iterations) {
    petsc(MatCreateVecs(a, &x_, &b_));
    double* values = nullptr;
    petsc(VecGetArray(b_, &values));
    std::copy(rhs.begin(), rhs.end(), values);
    petsc(VecRestoreArray(b_, &values));
    petsc(KSPCreate(PETSC_COMM_WORLD, &ksp_));
    petsc(KSPSetOperators(ksp_, a, a));
    petsc(KSPSetType(ksp_, type));
    PC pc = nullptr;
    petsc(KSPGetPC(ksp_, &pc));
    petsc(PCSetType(pc, task.jacobi ? PCJACOBI : PCNONE));
    petsc(KSPSetNormType(ksp_, norm));
    // KSPPIPECG of 3.18 does one iteration more than its limit.
    PetscInt const limit = std::string(type) == KSPPIPECG ? iterations_ - 1 : iterations_;
    petsc(KSPSetTolerances(ksp_, 0.0, 0.0, 1e300, limit));
    petsc(KSPSetFromOptions(ksp_));
    petsc(KSPSetUp(ksp_));
  }
  Cost solve() override {
    petsc(VecSet(x_, 0.0));
    // bounded: a comparison, ended by who runs it
    MPI_Barrier(MPI_COMM_WORLD);
    Stopwatch const watch;
    petsc(KSPSolve(ksp_, b_, x_));
    Cost cost = watch.stop();
    // bounded: a comparison, ended by who runs it
    MPI_Allreduce(MPI_IN_PLACE, &cost, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    PetscInt done = 0;
    petsc(KSPGetIterationNumber(ksp_, &done));
    if (done != iterations_) fail(fmt::format("PETSc stopped after {} of {} iterations.", done, iterations_));
    return cost;
  }
  std::vector<double> answer() override {
    double const* values = nullptr;
    PetscInt size = 0;
    petsc(VecGetLocalSize(x_, &size));
    petsc(VecGetArrayRead(x_, &values));
    std::vector<double> x(values, values + size);
    petsc(VecRestoreArrayRead(x_, &values));
    return x;
  }

 private:
  PetscInt iterations_;
  Vec x_ = nullptr, b_ = nullptr;
  KSP ksp_ = nullptr;
};

struct PetscMethod {
  KSPType type;
  KSPNormType norm;
  char const* name;
};

/// The natural norm costs no reduction of its own in CG, and none that is not overlapped in pipelined CG.
std::vector<PetscMethod> petsc_methods() {
  return {{KSPCG, KSP_NORM_NATURAL, "KSPCG natural norm"},
          {KSPPIPECG, KSP_NORM_NATURAL, "KSPPIPECG natural norm"}};
}

}  // namespace

std::vector<std::unique_ptr<Contestant>> petsc_contestants(Task const& task, RowSource const& source,
                                                           std::vector<double> const& rhs) {
  std::vector<std::pair<MatType, std::string>> types{{MATAIJ, "AIJ"},
                                                     {MATBAIJ, fmt::format("BAIJ({})", task.block)}};
  if (task.half_storage) types.emplace_back(MATSBAIJ, fmt::format("SBAIJ({})", task.block));
  std::vector<std::unique_ptr<Contestant>> all;
  for (auto const& [type, storage] : types) {
    Mat const a = make_petsc(source, type, task.block);
    for (PetscMethod const& m : petsc_methods()) {
      all.push_back(std::make_unique<PetscSolve>(a, m.type, m.norm, task, rhs));
      all.back()->side = "petsc";
      all.back()->method = m.name;
      all.back()->storage = storage;
    }
  }
  return all;
}

}  // namespace hostless::bench
