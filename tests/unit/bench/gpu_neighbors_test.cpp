// Neighbourhood collectives on GPUs that are played (tests/unit/exchange/fake_gpu): what cells say, that wrong bytes
// are named by rank, neighbour and offset, and how long blocks are.
#include "bench/neighbor/gpu/gpu_neighbors.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "hostless/base/rows.hpp"
#include "wrong_transport.hpp"

namespace hostless::bench {
namespace {

using Status = GpuNeighborCell::Status;

GpuNeighbors ring_of(int ranks, int rank) {
  GpuNeighbors what;
  what.mine = moore(ranks, rank, 1, 1);
  what.bytes = {8, 4099};
  what.collectives = {Collective::allgather, Collective::alltoallv};
  what.triggers = {Trigger::host, Trigger::stream, Trigger::graph, Trigger::kernel};
  what.ways = {{GpuTransport::host, false}};
  what.gpus = 2;
  what.may_share_gpus = true;
  return what;
}

/// Those of rank 0, over a transport with a fault.
std::vector<GpuNeighborCell> cells_of(int ranks, Fault fault) {
  std::vector<GpuNeighborCell> cells;
  run_with_threads_transport(ranks, [&](Transport& transport) {
    WrongTransport wrong(transport, fault);
    std::size_t told = 0;
    auto mine = gpu_neighbors(wrong, ring_of(ranks, transport.group().rank()), brief(),
                              [&](GpuNeighborCell const&) { ++told; });
    EXPECT_EQ(told, mine.size());
    if (transport.group().rank() == 0) cells = std::move(mine);
  });
  return cells;
}

void expect_measured(GpuNeighborCell const& cell) {
  EXPECT_EQ(cell.status, Status::measured) << cell.why;
  expect_times(cell.timing, brief());
  EXPECT_EQ(cell.described, "played");
  EXPECT_GE(cell.steps, 3);
  EXPECT_LE(cell.steps, brief().steps);
  EXPECT_GT(cell.set_up_s, 0);
  EXPECT_FALSE(cell.nccl_over);
  EXPECT_FALSE(cell.library_over);
  EXPECT_FALSE(cell.nccl_over_with_set_up);
}

TEST(GpuNeighbors, CellsComeBySizeWithTheRivalsFirst) {
  for (int const ranks : {2, 5}) {
    auto const cells = cells_of(ranks, Fault::none);
    ASSERT_EQ(cells.size(), 2u * 2u * (3 + 1 + 4));
    for (std::size_t k = 0; k < cells.size(); ++k) {
      GpuNeighborCell const& cell = cells[k];
      std::size_t const size = k / 8, of_size = k % 8;
      EXPECT_EQ(cell.what, size < 2 ? "allgather" : "alltoallv");
      EXPECT_EQ(cell.bytes, size % 2 == 0 ? 8u : 4099u);
      EXPECT_EQ(cell.way, of_size < 3 ? grouped_way : of_size == 3 ? library_way : "host");
      bool const is_recorded =
          ranks == 2 || cell.trigger != Trigger::graph;  // ranks that share a GPU: the host waits
      if (of_size >= 4 && cell.trigger != Trigger::kernel && is_recorded) {
        expect_measured(cell);
      } else {
        EXPECT_EQ(cell.status, Status::absent);
      }
    }
    EXPECT_EQ(cells[0].why, "played GPUs have no NCCL");
    EXPECT_NE(cells[3].why.find("without MPI"), std::string::npos);
    EXPECT_EQ(cells[6].why, ranks == 2 ? "" : "cannot be recorded in a graph: played");
    EXPECT_NE(cells[7].why.find("host inside a kernel (only transport peer"), std::string::npos);
  }
}

TEST(GpuNeighbors, AWrongByteIsNamedByRankNeighbourAndOffset) {
  std::map<Fault, std::string> const at = {{Fault::other_message, "byte 7"}, {Fault::other_middle, "byte 4"}};
  for (auto const& [fault, byte] : at) {
    auto const cells = cells_of(2, fault);
    EXPECT_EQ(cells[4].status, Status::wrong);
    EXPECT_EQ(cells[4].why, "rank 0: " + byte + " of the block of 8 bytes from rank 1 is not what was sent");
  }
  // What was there before is no byte of what must come.
  EXPECT_NE(cells_of(2, Fault::late_message)[4].why.find("byte 0 of the block of 8 bytes"),
            std::string::npos);
}

/// Two rows of each rank, whose columns are those of the rank and the one behind it.
class TwoRows final : public RowSource {
 public:
  TwoRows(int ranks, int rank) : ranks_(ranks), rank_(rank) {}
  std::int64_t global_rows() const override { return 2 * ranks_; }
  std::int64_t first_row() const override { return 2 * rank_; }
  std::int64_t last_row() const override { return 2 * rank_ + 2; }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    out.clear();
    for (std::int64_t row = first; row < first + count; ++row) {
      for (std::int64_t const column : {row, row + 2}) {
        if (column >= global_rows() || row == 0) continue;
        out.column.push_back(column);
        out.value.push_back(1.0 / static_cast<double>(3 * row + column));
      }
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
  }

 private:
  std::int64_t ranks_;
  int rank_;
};

std::vector<GpuNeighborCell> products_of(int ranks, Fault fault) {
  std::vector<GpuNeighborCell> cells;
  run_with_threads_transport(ranks, [&](Transport& transport) {
    WrongTransport wrong(transport, fault);
    Group& group = transport.group();
    GpuRowProduct what;
    static_cast<GpuNeighborWays&>(what) = ring_of(ranks, group.rank());
    what.product.block = block_of_rows(group, TwoRows(ranks, group.rank()));
    what.product.mine = neighbors_of(group, what.product.block);
    what.product.columns = 3;
    auto mine = gpu_row_product(wrong, what, brief(), [](GpuNeighborCell const&) {});
    if (group.rank() == 0) cells = std::move(mine);
  });
  return cells;
}

// Rank 0 needs the row 3 of rank 1 alone, the block has two.
TEST(GpuNeighbors, ProductsGatherBlocksOrRows) {
  for (int const ranks : {2, 3}) {
    auto const cells = products_of(ranks, Fault::none);
    ASSERT_EQ(cells.size(), 2u * (3 + 1 + 4));
    for (std::size_t k = 0; k < cells.size(); ++k) {
      GpuNeighborCell const& cell = cells[k];
      bool const blocks = k < 8;
      EXPECT_EQ(cell.what, blocks ? "blocks" : "rows");
      EXPECT_EQ(cell.bytes, 8u * 3 *
                                (blocks ? 2u * static_cast<unsigned>(ranks - 1)
                                        : 2u * static_cast<unsigned>(ranks - 1) - 1));
      bool const is_recorded = ranks == 2 || cell.trigger != Trigger::graph;
      if (cell.way == "host" && cell.trigger != Trigger::kernel && is_recorded) expect_measured(cell);
      EXPECT_TRUE(cell.way == "host" || cell.status == Status::absent);
    }
  }
}

TEST(GpuNeighbors, AWrongValueOfAProductIsNamed) {
  auto const cells = products_of(2, Fault::late_message);
  EXPECT_EQ(cells[4].status, Status::wrong);  // of a block, where no entry may take it
  EXPECT_NE(cells[4].why.find("rank 0: value (2, 0) of rank 1 is "), std::string::npos) << cells[4].why;
  EXPECT_EQ(cells[12].status, Status::wrong);
  EXPECT_NE(cells[12].why.find("rank 0: value (1, 0) of the product is "), std::string::npos)
      << cells[12].why;
}

// While others come to what is collective: where a graph is prepared, and in the last step that is timed.
TEST(GpuNeighbors, WhatGoesWrongForOneRankIsTheReasonOfAll) {
  Protocol const few{1, 3, 2, brief().limits};
  int const last = 2 + few.warm_up + few.steps * few.repeat;
  for (auto const& [call, trigger] :
       {std::pair{1, Trigger::graph}, {last, Trigger::host}, {last, Trigger::stream}}) {
    setenv("PLAYED_NCCL", std::to_string(call).c_str(), 1);
    run_with_threads_transport(2, [&, trigger = trigger](Transport& transport) {
      GpuNeighbors what = ring_of(2, transport.group().rank());
      what.bytes = {8};
      what.collectives = {Collective::allgather};
      what.triggers = {trigger};
      auto const cells = gpu_neighbors(transport, what, few, [](GpuNeighborCell const&) {});
      ASSERT_EQ(cells.size(), 3u);
      EXPECT_EQ(cells[0].status, Status::absent) << name(trigger);
      EXPECT_EQ(cells[0].why, "a played group has failed on rank 1.");
      EXPECT_EQ(cells[2].status, Status::measured) << cells[2].why;
    });
    unsetenv("PLAYED_NCCL");
  }
}

TEST(GpuNeighbors, SilenceIsALoss) {
  expect_error(2, ErrorCode::peer_lost, "a rank was lost", Fault::silence, [](Transport& transport) {
    Protocol soon = brief();
    soon.limits = {0.2, 0.2};
    gpu_neighbors(transport, ring_of(2, transport.group().rank()), soon, [](GpuNeighborCell const&) {});
  });
}

TEST(GpuNeighbors, WhatCannotBeIsRefused) {
  auto const refused = [](std::string const& words, std::function<void(GpuNeighbors&)> const& change) {
    expect_error(3, ErrorCode::usage, words, Fault::none, [&](Transport& transport) {
      GpuNeighbors what = ring_of(3, transport.group().rank());
      change(what);
      gpu_neighbors(transport, what, brief(), [](GpuNeighborCell const&) {});
    });
  };
  refused("a block of 0 bytes", [](GpuNeighbors& what) { what.bytes = {8, 0}; });
  refused("a graph without edges", [](GpuNeighbors& what) { what.mine = {}; });
  refused("3 GPUs (this machine has 2)", [](GpuNeighbors& what) { what.gpus = 3; });
  refused("some would share one", [](GpuNeighbors& what) { what.may_share_gpus = false; });
}

// MPI counts the bytes of a block, and of alltoallv those in front of it: not what all of them have together.
TEST(GpuNeighbors, WhatMpiDoesNotCountIsRefused) {
  constexpr std::size_t gib = std::size_t{1} << 30;
  std::byte none{};
  auto const blocks = [&](Collective collective, std::size_t bytes, std::vector<int> const& others) {
    Neighbors const mine{others, others};
    GpuBlocks const all({collective, bytes, 7}, mine, 0, {&none, &none});
    std::size_t together = 0;
    for (gpu::GroupedPart const& part : all.in()) together += part.bytes;
    EXPECT_GE(together, 2 * gib);
    all.require_counted();
  };
  EXPECT_NO_THROW(blocks(Collective::allgather, gib, {1, 2, 3}));
  EXPECT_THROW(blocks(Collective::allgather, 2 * gib, {1}), Error);
  EXPECT_NO_THROW(blocks(Collective::alltoallv, gib + gib / 4, {1, 2}));
  EXPECT_THROW(blocks(Collective::alltoallv, gib, {1, 2, 3, 4, 5}), Error);
}

// Equal on both sides of an edge by definition; a multiple of a power of two, so that a kernel's words fit.
TEST(GpuNeighbors, BlocksOfAlltoallvAreAroundTheSize) {
  for (std::size_t const bytes : {1u, 8u, 1000u, 1024u, 1u << 20}) {
    BlockSizes const sizes{Collective::alltoallv, bytes, 7};
    std::size_t least = bytes * 2, most = 0;
    double sum = 0;
    int edges = 0;
    for (int source = 0; source < 16; ++source)
      for (int target = 0; target < 16; ++target, ++edges) {
        std::size_t const block = sizes.of(source, target);
        least = std::min(least, block);
        most = std::max(most, block);
        sum += static_cast<double>(block);
        EXPECT_EQ(block % (bytes >= 128 ? 8 : 1), 0u);
      }
    EXPECT_GE(least, std::max<std::size_t>(1, bytes / 3));
    EXPECT_LE(most, bytes + bytes / 2);
    if (bytes < 1000) continue;
    EXPECT_LT(least, most);
    EXPECT_NEAR(sum / edges, static_cast<double>(bytes), 0.1 * static_cast<double>(bytes));
    EXPECT_NE(sizes.of(1, 2), (BlockSizes{Collective::alltoallv, bytes, 8}.of(1, 2)));
  }
  EXPECT_EQ((BlockSizes{Collective::allgather, 1000, 7}.of(3, 4)), 1000u);
}

}  // namespace
}  // namespace hostless::bench
