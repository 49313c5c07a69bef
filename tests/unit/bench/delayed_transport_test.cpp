// Messages and sums that arrive later: never before their time, and at once for whoever looks after it.
#include "bench/delayed_transport.hpp"

#include <gtest/gtest.h>

#include "hostless/base/wait.hpp"

namespace hostless::test {
namespace {

constexpr double latency_s = 0.02;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
template <class Poll>
double until(Clock::time_point begin, Poll const& poll) {
  while (!poll() && seconds_since(begin) < 10) Backoff::give_core_away();
  return seconds_since(begin);
}

TEST(DelayedTransport, MessagesTakeTheirTime) {
  run_with_threads_transport(2, [](Transport& threads) {
    bench::DelayedTransport transport(threads, latency_s);
    auto const me = transport.group().rank(), other = 1 - me;
    std::vector<std::byte> out(8), in(8);
    Binding binding;
    binding.out.push_back({me, other, out.data(), out.size()});
    binding.in.push_back({other, other, in.data(), in.size()});
    auto const endpoint = transport.bind(binding);
    for (std::uint32_t epoch = 1; epoch < 6; ++epoch) {
      out[3] = static_cast<std::byte>(10 * epoch + static_cast<std::uint32_t>(me));
      auto const begin = Clock::now();  // nobody sends before all have come
      transport.group().barrier();
      endpoint->receive(0, epoch);
      endpoint->send(0, epoch);
      if (epoch % 2 == 0) {  // whoever computes meanwhile waits no more
        transport.group().barrier();
        auto const sent = Clock::now();
        until(sent, [&] { return seconds_since(sent) > 2 * latency_s; });
        EXPECT_TRUE(endpoint->received(0));
      } else {
        EXPECT_GE(until(begin, [&] { return endpoint->received(0); }), 0.9 * latency_s);
      }
      EXPECT_EQ(in[3], static_cast<std::byte>(10 * epoch + static_cast<std::uint32_t>(other)));
      std::vector<double> all(2), mine{static_cast<double>(me) + epoch};
      auto const summed = Clock::now();
      endpoint->gather(mine);
      EXPECT_GE(until(summed, [&] { return endpoint->gathered(all); }), 0.9 * latency_s);
      EXPECT_EQ(all, (std::vector<double>{0.0 + epoch, 1.0 + epoch}));
    }
  });
}

}  // namespace
}  // namespace hostless::test
