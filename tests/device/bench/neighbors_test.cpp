// Neighbourhood collectives on buffers of GPUs by every trigger: every byte is compared, and what has to be measured is.
#include <mutex>

#include "bench/neighbor/gpu/gpu_neighbors.hpp"
#include "gpu_setting.hpp"

namespace hostless::test {
namespace {

using bench::GpuNeighborCell;
using bench::Trigger;
using GpuNeighborCollectives = Gpu;

std::vector<GpuNeighborCell> cells_of(int ranks) {
  std::mutex guard;
  std::vector<GpuNeighborCell> cells;
  run_with_threads_transport(ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    bench::GpuNeighbors what;
    what.mine = bench::moore(ranks, rank, 1, 1);
    what.bytes = {8, 1000, 1 << 18};
    what.collectives = {bench::Collective::allgather, bench::Collective::alltoallv};
    what.triggers = {Trigger::host, Trigger::stream, Trigger::graph, Trigger::kernel};
    what.ways = {{GpuTransport::peer, false}, {GpuTransport::peer, true}, {GpuTransport::host, false}};
    what.gpus = gpus_of(ranks);
    what.may_share_gpus = true;
    auto mine = bench::gpu_neighbors(transport, what, {1, 20, 2, {60, 60}}, [](GpuNeighborCell const&) {});
    std::lock_guard const lock(guard);
    if (rank == 0) cells = std::move(mine);
  });
  return cells;
}

/// Ranks that share a GPU wait for the host between kernels, so no graph has that; copies are in none.
bool must_be_measured(GpuNeighborCell const& cell, bool share) {
  bool const words = cell.what == "allgather" || cell.bytes >= 128;  // a kernel's have 8 bytes
  if (cell.way == "peer") return cell.trigger != Trigger::kernel || words;
  if (cell.way == "copies") return cell.trigger == Trigger::host || cell.trigger == Trigger::stream;
  return cell.way == "host" && cell.trigger != Trigger::kernel && !(share && cell.trigger == Trigger::graph);
}

TEST_F(GpuNeighborCollectives, EveryTriggerBringsEveryByte) {
  if (under_a_tool())
    GTEST_SKIP() << "kernels of ranks that share a GPU do not run side by side under a tool";
  for (int const ranks : {2, 4}) {
    auto const cells = cells_of(ranks);
    EXPECT_EQ(cells.size(), 2u * 3 * (3 + 1 + 3 * 4));
    for (GpuNeighborCell const& cell : cells) {
      SCOPED_TRACE(cell.way + " by " + name(cell.trigger) + ", " + std::to_string(cell.bytes) + " bytes, " +
                   std::to_string(ranks) + " ranks: " + cell.why);
      EXPECT_NE(cell.status, GpuNeighborCell::Status::wrong);
      bool const measured = cell.status == GpuNeighborCell::Status::measured;
      EXPECT_TRUE(measured || !must_be_measured(cell, ranks > gpus_of(ranks)));
      if (cell.way == bench::grouped_way && ranks <= gpus_of(ranks))
        EXPECT_TRUE(measured || cell.why.find("libnccl") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace hostless::test
