// Which GPU a rank has: by its number on its machine, in turn, or in blocks where there are several nodes.
#include "solve/gpu_solver/gpu_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace hostless {
namespace {

TEST(GpuSlot, RanksTakeTheGpusInTurn) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int gpus = 1; gpus <= 5; ++gpus) {
      std::vector<int> there(static_cast<std::size_t>(gpus));
      for (int rank = 0; rank < ranks; ++rank) {
        GpuSlot const slot = gpu_slot(rank, ranks, gpus);
        ASSERT_LT(slot.device, gpus);
        ++there[static_cast<std::size_t>(slot.device)];
        EXPECT_EQ(gpu_slot((rank + gpus) % ranks, ranks, gpus).device, (rank + gpus) % ranks % gpus);
      }
      for (int rank = 0; rank < ranks; ++rank) {
        GpuSlot const slot = gpu_slot(rank, ranks, gpus);
        EXPECT_EQ(slot.sharers, there[static_cast<std::size_t>(slot.device)]) << rank << " of " << ranks;
      }
    }
  }
}

TEST(GpuSlot, RanksOfSeveralNodesTakeThemInBlocks) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (int gpus = 1; gpus <= 5; ++gpus) {
      std::vector<int> there(static_cast<std::size_t>(gpus));
      int last = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        int const device = gpu_slot(rank, ranks, gpus, true).device;
        EXPECT_TRUE(device == last || device == last + 1) << rank << " of " << ranks;
        ++there[static_cast<std::size_t>(last = device)];
      }
      EXPECT_EQ(last, std::min(gpus, ranks) - 1);
      for (int rank = 0; rank < ranks; ++rank) {
        GpuSlot const slot = gpu_slot(rank, ranks, gpus, true);
        EXPECT_EQ(slot.sharers, there[static_cast<std::size_t>(slot.device)]) << rank << " of " << ranks;
      }
    }
}

Matrix diagonal(Transport& transport, int ranks_per_node) {
  constexpr std::int64_t rows = 40;
  std::vector<std::int64_t> offsets(rows + 1), columns(rows);
  std::iota(offsets.begin(), offsets.end(), 0);
  std::iota(columns.begin(), columns.end(), rows * transport.group().rank());
  MatrixOptions options;
  options.ranks_per_node = ranks_per_node;
  options.gpus = 2;
  return Matrix::from_rows(transport, rows * transport.group().rank(), offsets, columns,
                           std::vector<double>(rows, 1.0), options);
}

TEST(GpuRanks, DeclaredNodesAreNoMachines) {
  run_with_threads_transport(4, [](Transport& transport) {
    for (int ranks_per_node : {0, 1, 2, 4}) {
      Matrix const matrix = diagonal(transport, ranks_per_node);
      EXPECT_EQ(matrix.plan().nodes.nodes(), ranks_per_node == 0 ? 1 : 4 / ranks_per_node);
      EXPECT_EQ(matrix.rank_here(), transport.group().rank());
      EXPECT_EQ(matrix.ranks_here(), 4);
      RunOptions run;
      run.kind = RunKind::persistent;
      run.gpus = 2;
      EXPECT_THROW(check_gpu_ranks(matrix, run), Error) << "4 ranks on 2 GPUs of one machine";
      run.oversubscribe = true;
      EXPECT_NO_THROW(check_gpu_ranks(matrix, run));
    }
  });
}

}  // namespace
}  // namespace hostless
