// Neighbourhood collectives on buffers of GPUs by every trigger, and products whose rows are gathered so: every byte and
// every value is compared, and what has to be measured is.
#include <algorithm>
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

/// Rows of no entry, of a few near the diagonal, and one of all columns; all rows are rank 0's.
class UnevenRows final : public RowSource {
 public:
  UnevenRows(std::int64_t rows, int rank) : rows_(rows), first_(rank == 0 ? 0 : rows) {}
  std::int64_t global_rows() const override { return rows_; }
  std::int64_t first_row() const override { return first_; }
  std::int64_t last_row() const override { return rows_; }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    out.clear();
    for (std::int64_t row = first; row < first + count; ++row) {
      bool const is_full = row == rows_ / 2;
      std::int64_t const reach = is_full ? rows_ : row % 5;
      for (std::int64_t column = std::max<std::int64_t>(0, row - reach);
           column < std::min(rows_, row + reach); ++column) {
        out.column.push_back(column);
        out.value.push_back((column % 2 == 0 ? 1.0 : -1.0) / static_cast<double>(3 * row + column + 1));
      }
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
  }

 private:
  std::int64_t rows_, first_;
};

std::vector<GpuNeighborCell> product_cells_of(int ranks, std::int64_t rows, std::int64_t columns) {
  std::mutex guard;
  std::vector<GpuNeighborCell> cells;
  run_with_threads_transport(ranks, [&](Transport& transport) {
    Group& group = transport.group();
    bench::GpuRowProduct what;
    what.product.block = bench::block_of_rows(group, UnevenRows(rows, group.rank()));
    what.product.mine = bench::neighbors_of(group, what.product.block);
    what.product.columns = columns;
    what.triggers = {Trigger::host, Trigger::stream, Trigger::graph};
    what.ways = {{GpuTransport::peer, false}, {GpuTransport::peer, true}, {GpuTransport::host, false}};
    what.gpus = gpus_of(ranks);
    what.may_share_gpus = true;
    auto mine = bench::gpu_row_product(transport, what, {1, 5, 2, {60, 60}}, [](GpuNeighborCell const&) {});
    std::lock_guard const lock(guard);
    if (group.rank() == 0) cells = std::move(mine);
  });
  return cells;
}

// The processor's products, which values of the kernel are held against, add up in the same order: equal bits.
TEST_F(GpuNeighborCollectives, ProductsAreThoseOfTheProcessor) {
  if (under_a_tool())
    GTEST_SKIP() << "kernels of ranks that share a GPU do not run side by side under a tool";
  for (int const ranks : {2, 4})
    for (std::int64_t const columns : {1, 7, 300}) {
      auto const cells = product_cells_of(ranks, 301, columns);
      EXPECT_EQ(cells.size(), 2u * (3 + 1 + 3 * 3));
      for (GpuNeighborCell const& cell : cells) {
        SCOPED_TRACE(cell.what + ", " + cell.way + " by " + name(cell.trigger) + ", " +
                     std::to_string(columns) + " columns, " + std::to_string(ranks) + " ranks: " + cell.why);
        EXPECT_NE(cell.status, GpuNeighborCell::Status::wrong);
        EXPECT_TRUE(cell.status == GpuNeighborCell::Status::measured ||
                    !must_be_measured(cell, ranks > gpus_of(ranks)));
      }
    }
}

}  // namespace
}  // namespace hostless::test
