// Exchanges ghosts without a solver: the program of docs/howto/exchange-ghosts.md, with a look at what came.
#include <atomic>
#include <cstdio>
#include <hostless/exchange/exchange.hpp>
#include <hostless/exchange/patterns.hpp>
#include <hostless/exchange/reverse_exchange.hpp>
#include <hostless/plan/checker.hpp>
#include <hostless/plan/routes.hpp>
#include <vector>

using namespace hostless;

// A ring of points, four a rank; each rank also reads its neighbours' nearest ones.
bool step(Transport& transport) {
  Group& group = transport.group();
  int const rank = group.rank(), ranks = group.size();
  std::int64_t const first = 4 * rank, all = 4 * ranks;
  std::vector<std::int64_t> const owned{first, first + 1, first + 2, first + 3};
  std::vector<std::int64_t> const ghosts{(first + all - 1) % all, (first + 4) % all};

  // Who reads what; one plan for each direction. Every rank calls these.
  auto const patterns = patterns_of_ghosts(group, owned, ghosts);
  NodeMap const nodes = NodeMap::blocks(ranks, ranks);
  PlanOptions const options{.reuse_guarantee = ReuseGuarantee::answer, .apart = true};
  ExchangePlan const plan = make_plan(Route::direct, patterns, nodes, rank, options);
  ReversePlan const back = make_reverse_plan(Route::direct, patterns, nodes, rank);

  // Two fields of different items in one message: a height, and a velocity of three numbers.
  std::vector<double> height(4, rank), height_ghosts(2);
  std::vector<float> velocity(12, 10.0F * static_cast<float>(rank)), velocity_ghosts(6);
  Exchange fill(transport, plan,
                {Field::apart(height.data(), height_ghosts.data(), sizeof(double)),
                 Field::apart(velocity.data(), velocity_ghosts.data(), 3 * sizeof(float))});
  fill.start();
  // Points that need no ghosts are computed here.
  if (!fill.wait()) return false;  // a rank is lost

  // What this rank computed for its neighbours' points is added to theirs.
  std::vector<double> share{0.25, 0.5}, total(4, 1.0);
  ReverseExchange add(transport, back, {{share.data(), total.data(), Element::f64}});
  add.start();
  if (!add.wait()) return false;

  int const left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  return height_ghosts == std::vector<double>{1.0 * left, 1.0 * right} &&
         velocity_ghosts[2] == 10.0F * static_cast<float>(left) &&
         velocity_ghosts[3] == 10.0F * static_cast<float>(right) &&
         total == std::vector<double>{1.5, 1.0, 1.0, 1.25} &&
         check(make_plans(Route::direct, patterns, nodes, options), patterns).empty();
}

int main() {
  std::atomic<int> good{0};
  run_with_threads_transport(3, [&](Transport& transport) { good += step(transport) ? 1 : 0; });
  std::printf("ghosts and sums are right on %d of 3 ranks\n", good.load());
  return good == 3 ? 0 : 1;
}
