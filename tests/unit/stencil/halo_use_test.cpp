// How often halos travel: looks, and ears for others between them, do not use them up. What one rank alone gives anew
// reaches the others, too.
#include <gtest/gtest.h>

#include <memory>

#include "forwarding_endpoint.hpp"
#include "hostless/stencil/body.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/stencil.hpp"

namespace hostless::test {
namespace {

/// As the threads are; counts the messages that this rank sends.
class SendsCounted final : public Transport {
 public:
  explicit SendsCounted(Transport& inner) : inner_(inner) {}
  Capabilities capabilities() const override { return inner_.capabilities(); }
  Group& group() override { return inner_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    return std::make_unique<Counting>(inner_.bind(binding), sends);
  }
  std::int64_t sends = 0;

 private:
  class Counting final : public ForwardingEndpoint {
   public:
    Counting(std::unique_ptr<Endpoint> inner, std::int64_t& sends)
        : ForwardingEndpoint(std::move(inner)), sends_(sends) {}
    void send(int index, std::uint32_t epoch) override {
      ++sends_;
      ForwardingEndpoint::send(index, epoch);
    }

   private:
    std::int64_t& sends_;
  };
  Transport& inner_;
};

TEST(HaloUse, ExchangesAreAsFarApartAsHalosAreDeep) {
  constexpr int rows = 24, columns = 9;
  StencilKernel const kernel = make_stencil("heat", 2, 8);
  std::vector<double> given(rows * columns);
  for (std::size_t k = 0; k < given.size(); ++k)
    given[k] = static_cast<double>(k * 2654435761u % 1000) / 1000;
  CellArray const seen{given.data(), {columns * 8, columns * 8, 8}};
  std::vector<double> alone(given.size());
  for (int const ranks : {1, 2})
    for (int const every : {0, 1, 3}) {
      run_with_threads_transport(ranks, [&](Transport& threads) {
        SendsCounted transport(threads);
        StencilOptions options;
        options.depth = 5;
        options.ranks_along = {ranks, 1, 1};
        StencilRun run(transport, {{rows, 1, columns}, {}}, kernel, options);
        run.give(0, seen);
        StencilStop stop;
        stop.every = every;
        transport.sends = 0;
        EXPECT_EQ(run.run(12, stop).steps, 12);
        EXPECT_EQ(transport.sends, ranks == 1 ? 0 : 3) << every;  // of 5, 5 and 2 steps
        EXPECT_EQ(run.run(3, stop).steps, 3);
        EXPECT_EQ(transport.sends, ranks == 1 ? 0 : 4) << every;  // a run begins with an exchange
        if (ranks == 1) return run.take(0, {alone.data(), seen.stride});
        std::vector<double> mine(given.size());
        run.take(0, {mine.data(), seen.stride});
        for (std::int64_t k = run.box().low[0] * columns; k < run.box().high[0] * columns; ++k)
          EXPECT_EQ(mine[static_cast<std::size_t>(k)], alone[static_cast<std::size_t>(k)]) << k;
      });
    }
}

/// Relaxes to what a coefficient says, by its neighbours' word too.
struct Pulled {
  static constexpr int axes = 2, radius = 1, coefficients = 1;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    return T(0.25) * (u(-1, 0) + u(1, 0)) + T(0.25) * (u.of(1, -1, 0) + u.of(1, 1, 0));
  }
};

/// Cells of a run in which those of the first rank alone are given anew after some steps.
/// array  that is given: 0: the field; 1: its coefficient
std::vector<double> cells_after(StencilKernel const& kernel, int ranks, int array) {
  constexpr int rows = 24, columns = 9, deep = 4;
  std::vector<double> all(rows * columns);
  CellArray const seen{all.data(), {columns * 8, columns * 8, 8}};
  run_with_threads_transport(ranks, [&](Transport& transport) {
    StencilOptions options;
    options.depth = deep;
    options.ranks_along = {ranks, 1, 1};
    StencilRun run(transport, {{rows, 1, columns}, {}}, kernel, options);
    std::vector<double> mine(all.size());
    CellArray const of_mine{mine.data(), seen.stride};
    auto const fill = [&](int number) {
      for (std::size_t k = 0; k < mine.size(); ++k)
        mine[k] = static_cast<double>((k + static_cast<std::size_t>(number)) * 2654435761u % 1000) / 4000;
    };
    for (int one = 0; one < kernel.arrays(); ++one) {
      fill(one);
      run.give(one, of_mine);
    }
    EXPECT_EQ(run.run(deep + 1).status, StencilStatus::steps_done);
    fill(array);
    if (array == 0) run.take(0, of_mine);
    for (std::size_t k = 0; k < all.size() / 2; ++k) mine[k] += 0.125;
    if (run.box().low[0] == 0) run.give(array, of_mine);
    EXPECT_EQ(run.run(2 * deep).status, StencilStatus::steps_done);
    run.take(0, seen);  // each its own
  });
  return all;
}

TEST(HaloUse, OneRankAloneMayGiveAnew) {
  StencilKernel const plain = make_stencil("heat", 2, 8);
  EXPECT_EQ(cells_after(plain, 2, 0), cells_after(plain, 1, 0));
  StencilKernel const with_coefficient = kernel_of<double>(Pulled{}, "pulled");
  EXPECT_EQ(cells_after(with_coefficient, 2, 1), cells_after(with_coefficient, 1, 1));
}

}  // namespace
}  // namespace hostless::test
