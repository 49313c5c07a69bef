// Neighbourhood collectives over memory of GPUs, without one: gpu_exchange_test.cpp says how it is played.
#include <gtest/gtest.h>

#include <mutex>

#include "host_ranks.hpp"
#include "hostless/exchange/gpu_exchange.hpp"
#include "played_memory.hpp"
#include "random_neighborhoods.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

/// What is wrong with collective `number` on this rank, gaps in what is received included.
std::string try_on_gpu(Transport& transport, GpuTransport by, unsigned number) {
  int const rank = transport.group().rank();
  testing::Collective const collective(transport.group().size(), number);
  testing::Lists const& mine = collective.lists[testing::at(rank)];
  std::size_t const bytes = mine.receive_items * collective.item_bytes;
  testing::GpuBytes sent(mine.send_items * collective.item_bytes), memory(bytes);
  std::vector<std::byte> expected(memory.data(), memory.data() + bytes);
  Neighborhood const neighborhood(transport, mine.sources, mine.destinations, collective.options);
  NeighborCollective const planned = collective.planned(neighborhood, rank, sent.data(), memory.data());
  GpuExchange exchange(transport, planned.plan, {planned.field}, {by, {60, 60}, 0});
  for (int epoch = 1; epoch <= 3; ++epoch) {
    auto const now = collective.sent_bytes(rank, epoch);
    std::copy(now.begin(), now.end(), sent.data());
    collective.receive(rank, epoch, expected.data());
    exchange.start();
    exchange.finish();
    if (!exchange.wait()) return collective.name() + ": a rank was lost\n";
    if (!std::equal(expected.begin(), expected.end(), memory.data()))
      return collective.name() + ": bytes differ on rank " + std::to_string(rank) + "\n";
  }
  return {};
}

TEST(GpuExchange, NeighbourhoodCollectivesLeaveGapsAsTheyAre) {
  std::mutex guard;
  std::string text;
  int const collectives = test::of_all(60, 10);
  auto const all = [&](int ranks, char const* over, GpuTransport by) {
    test::tested_transport(over).run(ranks, [&, ranks, by](Transport& transport) {
      for (int k = 0; k < collectives; ++k) {
        std::string const mine = try_on_gpu(transport, by, static_cast<unsigned>(10000 + 100 * ranks + k));
        if (!mine.empty()) {
          std::lock_guard const lock(guard);
          text += mine;
        }
        if (transport.group().any(!mine.empty())) break;
      }
    });
  };
  for (int const ranks : {1, 3, 5}) {
    all(ranks, "threads", GpuTransport::host);               // which goes through the stages of the plan
    all(ranks, "loopback", gpu_transport_from("loopback"));  // in rounds
  }
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace hostless
