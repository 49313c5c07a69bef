// The program of docs/howto/neighbour-collectives.md, which shows what stands between its marks
// (test_pages.py).
#include <atomic>
#include <cstdio>
#include <span>
#include <vector>

// [plan
#include <hostless/exchange/exchange.hpp>
#include <hostless/exchange/neighborhood.hpp>

using namespace hostless;

// A ring of ranks: one number to the one before, two to the next one.
bool step(Transport& transport) {
  int const rank = transport.group().rank(), ranks = transport.group().size();
  int const left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  std::vector<int> const neighbours{left, right};
  Neighborhood const ring(transport, neighbours, neighbours);  // sources, destinations

  // Blocks in the order of the lists: counts and displacements in items, of 8 bytes here.
  std::vector<double> cells{1.0 * rank, rank + 0.25, rank + 0.5};
  std::vector<double> halo(4, -1.0);
  std::vector<std::int64_t> const sent{1, 2}, from{0, 1}, received{2, 1}, to{0, 3};
  NeighborCollective const planned =
      ring.alltoallv({std::as_bytes(std::span(cells)), sent, from, sizeof(double)},
                     {std::as_writable_bytes(std::span(halo)), received, to, sizeof(double)});

  // Bound once, then started and waited for as often as you like.
  Exchange exchange(transport, planned.plan, {planned.field});
  exchange.start();
  // What needs no halo is computed here.
  if (!exchange.wait()) return false;  // a rank is lost
  // plan]
  return halo == std::vector<double>{left + 0.25, left + 0.5, -1.0, 1.0 * right};
}

int main() {
  std::atomic<int> good{0};
  run_with_threads_transport(3, [&](Transport& transport) { good += step(transport) ? 1 : 0; });
  std::printf("halos are right on %d of 3 ranks\n", good.load());
  return good == 3 ? 0 : 1;
}
