// What a rank's window tells the blocks of a persistent kernel where items are passed on.
#include <gtest/gtest.h>

#include <cstring>

#include "fake_runtime.hpp"
#include "peers_case.hpp"

namespace hostless::gpu {
namespace {

// Rows 0 to 3 are those of blocks 0, 1, 0 and 1.
TEST(PeerDuties, WhatIsPassedOnIsADutyOfABlock) {
  test::fake_runtime::begin_again();
  Peers peers(2, 2);
  peers.layout.tiling.slices = 8;
  peers.layout.blocks = 2;
  peers.copies.rounds[0] = {{0, 8, 1}, {1, 2, 1, false, true}, {2, 9, 1}};
  peers.copies.rounds[1] = {{4, 7, 0, true, false}};
  PeerWindow window(peers.who, peers.copies, peers.layout, {});
  std::vector<PeerMemory> all(2);
  all[0] = lent(window);
  all[1].device = 1;
  for (int parity = 0; parity < 2; ++parity) all[1].staged[parity].address = &all[parity];
  window.connect(all);
  auto const& view = static_cast<RoutedView const&>(*window.view());
  EXPECT_EQ(view.levels, 2);
  EXPECT_EQ(std::vector<std::int32_t>(view.first, view.first + 5),
            (std::vector<std::int32_t>{0, 2, 2, 3, 4}));
  EXPECT_EQ(view.copies[0].from, 0);
  EXPECT_EQ(view.copies[1].from, 2);
  EXPECT_EQ(view.copies[2].from, 1);
  EXPECT_EQ(view.copies[3], peers.copies.rounds[1][0]) << "block 1 has less to do";
  EXPECT_EQ(view.staged[1][0], view.staged[0][0] + peers.copies.staging);
  for (int parity = 0; parity < 2; ++parity)
    EXPECT_EQ(static_cast<void const*>(view.staged[parity][1]), &all[parity]);
  std::memset(view.staged[0][0], 1, sizeof(FlaggedWord));
  window.forget();
  EXPECT_EQ(view.staged[0][0]->part[1], 0u);
}

}  // namespace
}  // namespace hostless::gpu
