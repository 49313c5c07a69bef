#pragma once
// Neighbourhood allgathers by every route beside the MPI library's own, on the patterns of Collom et al. and
// others: random sparse graphs and Moore neighbourhoods. What they and the products with a matrix
// (bench/neighbor/row_products.hpp) say of a way and of its time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/timing.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/mpi.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::bench {

/// Who sends to a rank and to whom it sends, both rising, itself never.
struct Neighbors {
  std::vector<int> sources, destinations;
};

/// Each ordered pair of ranks with probability `density` (0 to 1), the same for a seed on every machine.
Neighbors random_sparse(int ranks, int rank, double density, std::uint64_t seed);

/// Ranks in a grid, as near to a cube as can be (the sum of its axes is the least), whose axes close into rings: all that are at most `radius` steps away
/// along every axis, each once where an axis is so short that several steps lead to one rank.
/// dimension  1 to 4 axes
Neighbors moore(int ranks, int rank, int dimension, int radius);

/// How neighbours' blocks are gathered.
struct NeighborWay {
  bool by_library = false;     ///< MPI_Neighbor_allgather, or MPI_Neighbor_allgatherv
  std::optional<Route> route;  ///< empty: that of what moves
  std::string name;
  bool needed_rows =
      false;  ///< of products: an irregular exchange of the rows that are needed instead of blocks
};

struct NeighborWays {
  std::vector<NeighborWay> ways;
  std::optional<MpiVendor> vendor;  ///< empty: there is no MPI, and a way of the library is refused
  int ranks_per_node = 0;           ///< 0: nodes are found by host name
};

struct NeighborAllgather : NeighborWays {
  Neighbors mine;
  std::vector<std::size_t> bytes;  ///< of a block; one after the other
};

struct NeighborTiming {
  std::size_t bytes = 0;  ///< of a block, where all are equally long
  std::size_t way = 0;
  Route route = Route::direct;  ///< that was taken; nothing of the library
  Timing call;
  std::optional<MedianBound>
      library_over;  ///< of each repeat the library's time over this one's; empty without it
  /// The same of set-up and as many calls as a repeat has, of the medians; empty without a library.
  std::optional<double> library_over_with_set_up;
  /// Calls that repay what of set-up is more than the library's; empty where none do, or without a library.
  std::optional<double> repaid_after;
  double set_up_s = 0;     ///< of the slowest rank: what is made once; of the library its graph communicator
  std::int64_t calls = 0;  ///< made in all, those before and behind the timed ones too
  std::int64_t gathered = 0;  ///< bytes that all ranks together gather in a call
  /// Of one call: [nodes] bytes that leave each node and arrive there, and messages over all nodes; of the
  /// library those of a message for each edge.
  std::vector<std::int64_t> bytes_out, bytes_in;
  std::int64_t messages = 0;
};

/// All ways of a size are timed in turns, a repeat of each after the other and each repeat from another way on, and each call is over when the
/// slowest rank is. Before and behind it every byte that came is held against what its source had put there.
///
/// Collective; the same on every rank but for `mine`.
/// Errors  usage        no bytes; as Neighborhood; a way of the library without one
///         environment  something else arrived than was sent
///         peer_lost    a rank fell silent past its deadline
std::vector<NeighborTiming> neighbor_allgather(Transport& transport, NeighborAllgather const& what,
                                               Protocol const& protocol);

}  // namespace hostless::bench
